//! Commands that are started through a shell again and again: their delay until their own exec, and its causes.

use spawnscope_analyze::Forest;
use spawnscope_analyze::explain::tool_calls::{ToolCalls, fixes, tool_calls};
use spawnscope_data::event::{Language, LaunchId, Nanos};

use crate::builder::{Builder, ROOT, Spans};

const MS: u64 = 1_000_000;

/// Starts a command in a shell, which launches `slow` for a line of a start-up file for `own_ms` before.
fn start(builder: &mut Builder, at_ms: u64, shell: &[&str], slow_ms: u64) -> LaunchId {
    let spans = Spans { run: (slow_ms + 20) * MS, ..Spans::USUAL };
    let call = builder.launch(ROOT, at_ms * MS, &spans, Some(("/bin/bash", shell)));
    if slow_ms > 0 {
        let spans = Spans { run: slow_ms * MS, ..Spans::USUAL };
        let slow = builder.launch(call, (at_ms + 2) * MS, &spans, Some(("/usr/bin/direnv", &["direnv", "export"])));
        let line = builder.line(Language::Bash, "/home/user/.bashrc", 9, "");
        builder.set_call_chain(slow, &[line]);
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
    ] {
        let kinds = found(&shell, |_| 100);
        assert!(fixes(&kinds[0])[0].starts_with(fix), "{shell:?}: {:?}", fixes(&kinds[0]));
    }
}

#[test]
fn shells_that_start_only_the_command_are_not_reported() {
    assert!(found(&["bash", "-c", "git status"], |_| 0).is_empty());
    assert!(found(&["bash", "-c", "make"], |_| 100).is_empty(), "the command itself was not seen");
    assert!(found(&["bash", "script.sh"], |_| 100).is_empty());
}
