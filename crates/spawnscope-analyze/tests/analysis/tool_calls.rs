//! Commands that are started through a shell again and again: their delay until their own exec, and
//! its causes.

use spawnscope_analyze::explain::tool_calls::{Reason, ToolCalls, fixes, given_commands, tool_calls};

use crate::prelude::*;

const MS: u64 = 1_000_000;

/// Starts a command in a shell, which launches `slow` for a line of a start-up file for `own_ms`
/// before.
fn start(builder: &mut Builder, at_ms: u64, shell: &[&str], slow_ms: u64) -> LaunchId {
    let spans = Spans { run: (slow_ms + 20) * MS, ..Spans::USUAL };
    let call = builder.launch(ROOT, at_ms * MS, &spans, Some((&format!("/bin/{}", shell[0]), shell)));
    if slow_ms > 0 {
        let spans = Spans { run: slow_ms * MS, ..Spans::USUAL };
        let slow = builder.launch(call, (at_ms + 2) * MS, &spans, Some(("/usr/bin/direnv", &["direnv", "export"])));
        if shell[0] != "fish" {
            let line = builder.line(Language::Bash, "/home/user/.bashrc", 9, "");
            builder.set_call_chain(slow, &[line]);
        }
    }
    let own = (at_ms + slow_ms + 5) * MS;
    builder.launch(call, own, &Spans::USUAL, Some(("/usr/bin/git", &["git", "status"])));
    call
}

fn found(shell: &[&str], slow_ms: impl Fn(u64) -> u64) -> Vec<ToolCalls> {
    let mut builder = Builder::command("/usr/bin/agent", &["agent"], 10_000 * MS);
    for number in 0..10 {
        start(&mut builder, 10 + number * 500, shell, slow_ms(number));
    }
    tool_calls(&Forest::build(&builder.recording))
}

#[test]
fn a_start_up_file_delays_commands() {
    let kinds = found(&["bash", "-l", "-c", "cd /srv && git status"], |number| if number == 9 { 300 } else { 100 });
    let [kind] = kinds.as_slice() else { panic!("{kinds:?}") };
    assert_eq!((kind.caller.as_slice(), kind.shape.as_str(), kind.count), (&b"agent"[..], "bash -l -c", 10));
    assert!(kind.is_login);
    let millis = kind.delay.map(|delay| delay.0 / MS);
    assert!(millis[0] == 105 && millis[1] > 105 && millis[2] == 305, "{millis:?}");
    let cause = &kind.causes[0];
    assert_eq!((cause.label.as_slice(), cause.calls), (&b"/home/user/.bashrc:9  direnv"[..], 10));
    assert!((Nanos(118 * MS)..Nanos(125 * MS)).contains(&cause.time), "{cause:?}");
    assert_eq!(kind.launches.len(), 10, "the launches that a cure removes");
}

#[test]
fn the_cure_depends_on_why_the_shell_reads_the_file() {
    for (shell, fix) in [
        (["bash", "-lc", "git status"], "start the shell without -l"),
        (["bash", "-c", "git status"], "do not set BASH_ENV"),
        (["bash", "-c", ". ~/.bashrc; git status"], "leave these lines out of the file"),
        (["fish", "-c", "git status"], "start fish with --no-config"),
        (["zsh", "-c", "git status"], "let these lines run only in interactive shells"),
    ] {
        let kinds = found(&shell, |_| 100);
        assert!(fixes(&kinds[0])[0].starts_with(fix), "{shell:?}: {:?}", fixes(&kinds[0]));
    }
}

#[test]
fn options_with_values_precede_the_command() {
    let kinds = found(&["bash", "-o", "pipefail", "-lc", "git status"], |_| 100);
    assert_eq!((kinds[0].shape.as_str(), kinds[0].is_login), ("bash -o pipefail -lc", true));
}

/// Returns the kinds of ten commands in a sandbox, whose program is a shim. A hook precedes each.
fn in_sandboxes(texts: [&str; 2]) -> Vec<ToolCalls> {
    let mut builder = Builder::command("/usr/bin/agent", &["agent"], 10_000 * MS);
    let spans = |run_ms| Spans { run: run_ms * MS, ..Spans::USUAL };
    for number in 0..10 {
        let at = 10 + number * 500;
        builder.launch(ROOT, at * MS, &spans(30), Some(("/opt/check", &["check", "pre"])));
        let sandbox = Some(("/usr/bin/bwrap", &["bwrap", "bash"][..]));
        let sandbox = builder.launch(ROOT, (at + 50) * MS, &spans(200), sandbox);
        let words = ["bash", "-c", texts[number as usize % 2]];
        let shell = builder.launch(sandbox, (at + 60) * MS, &spans(150), Some(("/bin/bash", &words)));
        for (path, ms) in [("/shims/node", 70), ("/opt/bin/node", 110)] {
            builder.exec_at(shell, path.as_bytes(), &[b"node"], [ms, ms + 1, ms + 2].map(|ms| (at + ms) * MS));
        }
    }
    tool_calls(&Forest::build(&builder.recording))
}

#[test]
fn sandboxes_shims_and_hooks_delay_commands() {
    let kinds = in_sandboxes(["node a.js", "node b.js"]);
    let [kind] = kinds.as_slice() else { panic!("{kinds:?}") };
    assert_eq!((kind.shape.as_str(), kind.delay[0].0 / MS), ("bwrap bash -c", 60));
    let causes: Vec<_> = kind.causes.iter().map(|cause| (cause.reason, cause.label.as_slice())).collect();
    let expected = [(Reason::Shim, &b"/shims/node"[..]), (Reason::Hook, b"check pre"), (Reason::Wrapper, b"bwrap")];
    assert_eq!(causes, expected);
    assert_eq!(kind.causes[0].time, Nanos(40 * MS));
    assert!(kind.launches.is_empty() && fixes(kind)[0].starts_with("put the directory of the real program"));
    // Both may be steps of one program.
    let same = in_sandboxes(["node a.js"; 2]);
    assert!(same[0].causes.iter().all(|cause| cause.reason != Reason::Hook));
}

#[test]
fn shells_that_start_only_the_command_are_not_reported() {
    assert!(found(&["bash", "-c", "git status"], |_| 0).is_empty());
    assert!(found(&["bash", "-c", "make"], |_| 100).is_empty(), "the command itself was not seen");
    assert!(found(&["bash", "script.sh"], |_| 100).is_empty());
}

#[test]
fn what_a_program_before_the_shell_starts_is_no_line_of_the_shells_files() {
    let mut builder = Builder::command("/usr/bin/agent", &["agent"], 10_000 * MS);
    for number in 0..10 {
        let at = (10 + number * 500) * MS;
        let spans = Spans { run: 150 * MS, ..Spans::USUAL };
        let call = builder.launch(ROOT, at, &spans, Some(("/opt/ssh", &["ssh", "git status"])));
        let wait = Spans { run: 100 * MS, ..Spans::USUAL };
        let wait = builder.launch(call, at + 3 * MS, &wait, Some(("/usr/bin/sleep", &["sleep", "0.1"])));
        let line = builder.line(Language::Bash, "/opt/ssh", 3, "");
        builder.set_call_chain(wait, &[line]);
        builder.exec_at(call, b"/bin/bash", &[b"bash", b"-c", b"git status"], [120, 121, 122].map(|ms| at + ms * MS));
        builder.launch(call, at + 125 * MS, &Spans::USUAL, Some(("/usr/bin/git", &["git", "status"])));
    }
    let kinds = tool_calls(&Forest::build(&builder.recording));
    assert!(kinds[0].causes.iter().all(|cause| cause.reason == Reason::Wrapper), "{kinds:?}");
    assert!(kinds[0].launches.is_empty(), "{kinds:?}");
}

/// Returns which launches are commands that a program is given. One line of it starts a shell for
/// each text.
fn given(program: &str, texts: &[&str]) -> Vec<String> {
    let mut builder = Builder::command(&format!("/usr/bin/{program}"), &[program, "x"], 10_000 * MS);
    let mut stack = None;
    for number in 0..6 {
        let shell = start(&mut builder, 10 + number * 500, &["bash", "-lc", texts[number as usize % texts.len()]], 100);
        let line = builder.line(Language::Python, "/home/user/agent.py", 5, "");
        stack = stack.or_else(|| Some(builder.set_call_chain(shell, &[line])));
        builder.row(shell).script_stack = stack;
        let own = builder.recording.launches.last().unwrap().id;
        let name = texts[number as usize % texts.len()].split(' ').next().unwrap();
        let path = builder.text(format!("/usr/bin/{name}").as_bytes());
        builder.recording.execs.iter_mut().filter(|exec| exec.launch == own).for_each(|exec| exec.path = path);
    }
    let forest = Forest::build(&builder.recording);
    let names = given_commands(&forest).into_iter().zip(&forest.launches).filter(|(is_given, _)| *is_given);
    names.take(4).map(|(_, launch)| String::from_utf8(launch.command.label()).unwrap()).collect()
}

#[test]
fn a_program_is_given_the_commands_that_one_line_executes_if_their_programs_differ() {
    assert_eq!(given("python3", &["uname -s", "date", "git status"]), ["bash", "uname", "bash", "date"]);
    assert_eq!(given("python3", &["date", "date -u"]), [""; 0], "the line names its program");
    assert_eq!(given("make", &["uname -s", "date", "git status"]), [""; 0], "a makefile contains its commands");
}
