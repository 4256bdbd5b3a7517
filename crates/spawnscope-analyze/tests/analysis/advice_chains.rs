//! Advice about the time before a program starts: directories of PATH that lack it, and chains of
//! programs that exec it.

use spawnscope_analyze::explain::advice::{Advice, AdviceList};
use spawnscope_data::event::{Language, Nanos, TaskId};
use spawnscope_data::rows::{Recording, SliceRow, WakerRow};

use crate::builder::{ROOT, Spans};
use crate::serial::{READ, SHELL, Serial, WAIT4, advices, is_silent, only};
use crate::slices::{created, ended, slice};

const COUNT: u64 = 40;
const MISS: u64 = 25_000;

/// Returns the advice on launches that try this many directories before they find their program.
fn advice_on_searches(misses: u64) -> AdviceList {
    let mut serial = Serial::with_command("/usr/bin/xargs", &["xargs", "-a", "list", "tool"]);
    let spans = Spans { setup: 40_000 + 20 * MISS, ..Spans::USUAL };
    for _ in 0..COUNT {
        let launch = serial.launch(&spans, Some(("/opt/real/bin/tool", &["tool", "x"])));
        let begin = serial.builder.row(launch).first_run.unwrap().0;
        for number in 0..misses {
            let enter = begin + number * MISS;
            let path = format!("/dead{number}/tool");
            serial.builder.failed_exec_at(launch, &path, libc::ENOENT, enter);
            let failed = serial.builder.recording.failed_execs.last_mut().unwrap();
            failed.returned = Nanos(enter + MISS);
        }
    }
    advices(&serial.finish())
}

#[test]
fn directories_that_lack_the_program_are_named_with_its_path() {
    let advice = only(&advice_on_searches(12), "path-search");
    assert_eq!(advice.finding.launches.len() as u64, COUNT);
    let expected = COUNT * 12 * MISS;
    assert!(advice.saving[0].0.abs_diff(expected) <= expected / 100, "{:?}", advice.saving);
    let fix = advice.finding.fix.concat();
    assert!(fix.contains("/opt/real/bin/tool") && fix.contains("/dead0"), "{fix}");
    assert!(advice.finding.evidence[0].starts_with("480 failed execs"), "{advice:?}");
}

#[test]
fn a_program_that_is_found_at_once_is_not_searched_for() {
    assert!(is_silent(&advice_on_searches(0), "path-search"));
}

/// Returns the advice on launches that exec several programs in a row, one every 0.6 ms. `@` in a
/// word is the number of the launch.
fn advice_on_chains(execs: &[(&str, Option<&str>, &[&str])]) -> AdviceList {
    const STEP: u64 = 600_000;
    let mut serial = Serial::new();
    let spans = Spans { run: STEP * execs.len() as u64, ..Spans::USUAL };
    for launched in 0..COUNT {
        let numbered = |argv: &[&str]| argv.iter().map(|word| word.replace('@', &launched.to_string())).collect();
        let first: Vec<String> = numbered(execs[0].2);
        let first: Vec<&str> = first.iter().map(String::as_str).collect();
        let launch = serial.launch(&spans, Some((execs[0].0, &first)));
        let mut at = serial.builder.recording.execs.last().unwrap().load_end.unwrap().0;
        for (number, (path, interpreter, argv)) in execs.iter().enumerate() {
            if number > 0 {
                let argv: Vec<String> = numbered(argv);
                let argv: Vec<&[u8]> = argv.iter().map(|word| word.as_bytes()).collect();
                serial.builder.exec_at(launch, path.as_bytes(), &argv, [at + 50_000, at + 300_000, at + STEP]);
                at += STEP;
            }
            let interpreter = interpreter.map(|path| serial.builder.text(path.as_bytes()));
            serial.builder.recording.execs.last_mut().unwrap().interpreter = interpreter;
        }
    }
    advices(&serial.finish())
}

const ENV: Option<&str> = Some("/usr/bin/env");

#[test]
fn shims_are_named_with_the_real_programs_path() {
    let advice = only(
        &advice_on_chains(&[
            ("/home/user/.pyenv/shims/python3", ENV, &["bash", "python3", "x.py"]),
            ("/bin/bash", None, &["bash", "/home/user/.pyenv/shims/python3", "x.py"]),
            ("/home/user/.pyenv/bin/pyenv", ENV, &["bash", "pyenv", "exec", "python3"]),
            ("/home/user/.pyenv/versions/3.12/bin/python3", None, &["python3", "x.py"]),
        ]),
        "shims",
    );
    assert_eq!(advice.finding.launches.len() as u64, COUNT);
    assert!(advice.finding.evidence[0].ends_with("python3 -> bash -> pyenv -> python3"), "{advice:?}");
    assert!(advice.finding.fix[0].ends_with("/home/user/.pyenv/versions/3.12/bin/python3"), "{advice:?}");
    assert!(advice.saving[0] > Nanos(COUNT * 1_500_000), "{:?}", advice.saving);
}

#[test]
fn the_form_of_a_program_counts_and_not_of_what_it_executes_for_its_work() {
    let found = advice_on_chains(&[
        ("/usr/bin/dpkg", None, &["dpkg", "-L", "p@"]),
        ("/usr/bin/dpkg-query", None, &["dpkg-query", "--listfiles", "--", "p@"]),
    ]);
    let advice = only(&found, "many-per-launch");
    assert_eq!(advice.finding.fix, ["ask once for all items:", "  dpkg -L A B C ..."], "{advice:?}");
}

#[test]
fn an_interpreter_line_with_env_costs_one_exec() {
    let tool: (&str, Option<&str>, &[&str]) = ("/home/user/bin/tool", ENV, &["env", "perl", "tool"]);
    let advice = only(&advice_on_chains(&[tool, ("/usr/bin/perl", None, &["perl", "tool"])]), "shims");
    assert!(advice.finding.fix[0].ends_with("#!/usr/bin/perl"), "{advice:?}");
}

#[test]
fn programs_that_change_how_another_runs_are_not_shims() {
    let cases: [(&str, &[&str]); 4] = [
        ("/usr/bin/nice", &["nice", "tool"]),
        ("/usr/bin/sudo", &["sudo", "tool"]),
        ("/usr/bin/env", &["env", "LC_ALL=C", "tool"]),
        ("/bin/bash", &["bash", "-c", "cd x && exec tool"]),
    ];
    for (path, argv) in cases {
        let found = advice_on_chains(&[(path, None, argv), ("/usr/bin/tool", None, &["tool"])]);
        assert!(is_silent(&found, "shims"), "{argv:?}: {found:?}");
    }
}

/// Returns the advice on `python3 x.py` through the shims of pyenv. The scripts of pyenv fork
/// `helpers` times before they execute python3.
fn advice_on_command_through_pyenv(helpers: u64) -> AdviceList {
    const STEP: u64 = 20_000_000;
    let mut serial = Serial::with_command("/home/user/.pyenv/shims/python3", &["bash", "python3", "x.py"]);
    let shebang = serial.builder.text(b"/usr/bin/env");
    serial.builder.recording.execs[0].interpreter = Some(shebang);
    serial.builder.exec_at(ROOT, b"/bin/bash", &[b"bash", b"shims/python3"], [1_000_000, 1_300_000, 1_600_000]);
    for _ in 0..helpers {
        serial.launch_waiting(&Spans::USUAL, None, READ);
    }
    let at = serial.now().max(STEP);
    let real = b"/home/user/.pyenv/versions/3.12/bin/python3";
    serial.builder.exec_at(ROOT, real, &[b"python3", b"x.py"], [at, at + 300_000, at + 600_000]);
    serial.run_shell_until(at + STEP);
    advices(&serial.finish())
}

#[test]
fn a_shim_before_the_command_itself_is_reported() {
    let advice = only(&advice_on_command_through_pyenv(0), "shims");
    assert_eq!(advice.finding.title, "the recorded command reaches the real python3 through 2 earlier execs");
    assert_eq!(advice.finding.whatif, "--direct=python3");
    assert!(advice.finding.evidence[1].starts_with("it takes "), "{advice:?}");
    assert!(advice.saving[0] > Nanos(18_000_000), "{:?}", advice.saving);
}

#[test]
fn forks_of_a_version_manager_get_no_advice() {
    let found = advice_on_command_through_pyenv(COUNT);
    assert!(is_silent(&found, "bare-forks"), "{found:?}");
    assert!(only(&found, "shims").saving[0] > Nanos(18_000_000));
}

#[test]
fn advice_on_a_script_run_by_a_version_manager_is_for_its_author() {
    let mut serial = Serial::with_command("/home/user/.rbenv/bin/rbenv", &["bash", "rbenv", "exec", "bash", "x.sh"]);
    serial.builder.exec_at(ROOT, b"/bin/bash", &[b"bash", b"x.sh"], [1_000_000, 1_300_000, 1_600_000]);
    for _ in 0..COUNT {
        serial.launch_waiting(&Spans::USUAL, None, READ);
    }
    let found = advices(&serial.finish());
    assert_eq!(only(&found, "bare-forks").finding.launches.len() as u64, COUNT);
}

#[test]
fn a_namesake_of_the_command_is_not_a_version_manager() {
    let mut serial = Serial::with_command("./tool", &["./tool"]);
    serial.builder.exec_at(ROOT, b".libs/tool", &[b"tool"], [30_000_000, 30_300_000, 30_600_000]);
    serial.run_shell_until(60_000_000);
    assert!(is_silent(&advices(&serial.finish()), "shims"));
}

const PYENV: &str = "/home/user/.pyenv/libexec/pyenv";

/// Returns the advice on a start-up file of bash that runs each of these pyenv commands once, and
/// reads the shell code that it prints.
fn advice_on_startup_file(commands: &[&[&str]]) -> AdviceList {
    let mut serial = Serial::with_command("/bin/bash", &["bash", "-i"]);
    let spans = Spans { run: 40_000_000, ..Spans::USUAL };
    for command in commands {
        let script = format!("{PYENV}-{}", command[0]);
        let words = [&["bash", PYENV], *command].concat();
        let launch = serial.launch_waiting(&spans, Some((PYENV, &words)), READ);
        serial.builder.recording.execs.last_mut().unwrap().interpreter = Some(serial.builder.text(b"/usr/bin/env"));
        let loaded = serial.builder.recording.execs.last().unwrap().load_end.unwrap().0;
        let rest: Vec<&[u8]> = command[1..].iter().map(|word| word.as_bytes()).collect();
        let mut at = loaded + 1_000_000;
        for path in ["/bin/bash", &script, "/bin/bash"] {
            let argv = [&[b"bash".as_slice(), script.as_bytes()], &rest[..]].concat();
            let ends = [at, at + 300_000, at + 600_000];
            serial.builder.exec_at(launch, path.as_bytes(), &argv, ends);
            let shebang = serial.builder.text(b"/usr/bin/env");
            let exec = serial.builder.recording.execs.last_mut().unwrap();
            exec.interpreter = (path == script).then_some(shebang);
            at += 5_000_000;
        }
    }
    advices(&serial.finish())
}

#[test]
fn a_version_manager_that_is_called_for_itself_is_not_a_shim() {
    let found = advice_on_startup_file(&[&["init", "-"], &["rehash"], &["install", "3.12"]]);
    assert!(is_silent(&found, "shims"), "{found:?}");
    let calls: Vec<&Advice> = found.worth.iter().filter(|advice| advice.finding.rule == "version-manager").collect();
    let mut titles: Vec<&str> = calls.iter().map(|advice| advice.finding.title.as_str()).collect();
    titles.sort_unstable();
    assert_eq!(titles, ["bash calls `pyenv init -` once", "bash calls `pyenv rehash` once"], "installing is intended");
    let init = calls.iter().find(|advice| advice.finding.title.contains("init")).unwrap();
    assert_eq!(init.finding.whatif, "--remove=pyenv-init,parent=bash");
    assert!(init.finding.fix[2].ends_with(". ~/.pyenv-init.sh"), "{init:?}");
    assert!(init.saving[0] > Nanos(40_000_000), "{:?}", init.saving);
}

#[test]
fn chains_with_similar_titles_are_distinguished() {
    let mut serial = Serial::new();
    for tool in ["lint", "test"] {
        let path = format!("/home/user/.asdf/shims/{tool}");
        let spans = Spans { run: 40_000_000, ..Spans::USUAL };
        let launch = serial.launch(&spans, Some((&path, &[tool])));
        let loaded = serial.builder.recording.execs.last().unwrap().load_end.unwrap().0;
        for (number, path) in [(1, "/opt/asdf/bin/asdf"), (2, "/usr/bin/node")] {
            let at = loaded + number * 10_000_000;
            let script = format!("/opt/{tool}.js");
            let argv: [&[u8]; 2] = [b"node", script.as_bytes()];
            serial.builder.exec_at(launch, path.as_bytes(), &argv, [at, at + 300_000, at + 600_000]);
        }
    }
    let found = advices(&serial.finish());
    let mut titles: Vec<&str> = found.worth.iter().map(|advice| advice.finding.title.as_str()).collect();
    titles.sort_unstable();
    let title = "bash launches node through 2 earlier execs once";
    let expected = ["lint", "test"].map(|tool| format!("{title}: node /opt/{tool}.js"));
    assert_eq!(titles, expected);
}

/// Builds a recording of `depth` nested scripts, taken from `scripts` in turn. Each only launches
/// the next one and waits for it.
pub(crate) fn nested_scripts(scripts: &[(&str, &[&str])], depth: u64) -> (Recording, Vec<SliceRow>) {
    /// How long a script works before it launches the next one, and again after the next one has
    /// ended.
    const OWN: u64 = 20_000;
    const LAUNCHING: u64 = Spans::USUAL.total() - Spans::USUAL.run;
    const BEFORE: u64 = LAUNCHING - Spans::USUAL.teardown - Spans::USUAL.reap;
    let mut serial = Serial::with_command("/bin/sh", &["sh", "start.sh"]);
    let mut parent = ROOT;
    for level in 0..depth {
        let script = scripts[level as usize % scripts.len()];
        let begins = SHELL + level * (BEFORE + OWN);
        let run = Spans::USUAL.run + (depth - 1 - level) * (LAUNCHING + 2 * OWN);
        let child = serial.builder.launch(parent, begins, &Spans { run, ..Spans::USUAL }, Some(script));
        serial.builder.row(child).parent_task = Some(TaskId(parent.0));
        serial.builder.recording.execs.last_mut().unwrap().interpreter = Some(serial.builder.text(b"/bin/sh"));
        let row = serial.builder.row(child);
        let (created_at, zombie, reaped) = (row.created.unwrap().0, row.zombie.unwrap().0, row.reaped.unwrap().0);
        let on = if level == 0 { 0 } else { begins - BEFORE - OWN + Spans::USUAL.create + Spans::USUAL.queue };
        let waker = Some(WakerRow::Task(TaskId(child.0)));
        let waits = [zombie - created_at, Spans::USUAL.reap];
        serial.slices.push(slice(parent.0, on, created_at, waits, WAIT4, waker));
        serial.slices.push(created(child.0, created_at, Spans::USUAL.queue));
        if level > 0 {
            let parent_ends = serial.builder.row(parent).zombie.unwrap().0;
            serial.slices.push(ended(parent.0, reaped, parent_ends));
        } else {
            serial.resume_shell_at(reaped);
        }
        parent = child;
    }
    let last = serial.builder.row(parent);
    let (created_at, zombie) = (last.created.unwrap().0, last.zombie.unwrap().0);
    serial.slices.push(ended(parent.0, created_at + Spans::USUAL.queue, zombie));
    serial.finish()
}

#[test]
fn a_wrapper_passes_its_arguments_on() {
    for (argument, is_wrapper) in [("a.o", true), ("0.1", false)] {
        let mut serial = Serial::new();
        let spans = Spans { run: Spans::USUAL.total() + 200_000, ..Spans::USUAL };
        for _ in 0..COUNT {
            let script = serial.launch(&spans, Some(("/bin/sh", &["sh", "./w.sh", "a.o"])));
            let at = serial.builder.recording.execs.last().unwrap().load_end.unwrap().0 + 100_000;
            let child = serial.builder.launch(script, at, &Spans::USUAL, Some(("/opt/real", &["real", argument])));
            serial.builder.row(child).parent_task = Some(TaskId(script.0));
        }
        let found = advices(&serial.finish());
        assert_eq!(!is_silent(&found, "shims"), is_wrapper, "{argument}: {found:?}");
    }
}

#[test]
fn a_script_that_calls_itself_is_not_a_shim() {
    for spelled in ["./deep.sh", "/home/user/deep.sh", "/home/user/./deep.sh"] {
        let scripts: [(&str, &[&str]); 2] = [("./deep.sh", &["sh", "./deep.sh"]), (spelled, &["sh", spelled])];
        let found = advices(&nested_scripts(&scripts, COUNT));
        assert!(is_silent(&found, "shims"), "{spelled}: {found:?}");
    }
    let of_shell: (&str, &[&str]) = ("/bin/sh", &["sh", "deep.sh"]);
    let found = advices(&nested_scripts(&[of_shell], COUNT));
    assert!(is_silent(&found, "shims"), "{found:?}");
}

#[test]
fn scripts_that_call_each_other_are_not_shims() {
    let scripts: [(&str, &[&str]); 2] = [("./a.sh", &["sh", "./a.sh"]), ("./b.sh", &["sh", "./b.sh"])];
    let found = advices(&nested_scripts(&scripts, COUNT));
    assert!(is_silent(&found, "shims"), "{found:?}");
}

#[test]
fn a_script_that_execs_itself_is_not_a_shim() {
    let rerun: (&str, Option<&str>, &[&str]) = ("./x.sh", Some("/bin/sh"), &["sh", "./x.sh"]);
    let found = advice_on_chains(&[rerun, ("/home/user/x.sh", Some("/bin/sh"), &["sh", "x.sh"])]);
    assert!(is_silent(&found, "shims"), "{found:?}");
    let wrapper: (&str, Option<&str>, &[&str]) = ("./w.sh", Some("/bin/sh"), &["sh", "./w.sh"]);
    only(&advice_on_chains(&[wrapper, rerun]), "shims");
}

/// Returns the advice on a start-up file of bash that runs a program once and reads its output.
fn advice_on_startup_program(path: &str, argv: &[&str]) -> AdviceList {
    advice_on_start_of("/bin/bash", path, argv)
}

fn advice_on_start_of(shell: &str, path: &str, argv: &[&str]) -> AdviceList {
    let mut serial = Serial::with_command(shell, &[shell, "-i"]);
    let spans = Spans { run: 40_000_000, ..Spans::USUAL };
    serial.launch_waiting(&spans, Some((path, argv)), READ);
    advices(&serial.finish())
}

#[test]
fn code_that_a_program_prints_for_a_start_up_file_can_be_saved() {
    let found = advice_on_startup_program("/usr/bin/node", &["node", "/usr/bin/npm", "completion"]);
    let advice = only(&found, "shell-code");
    assert_eq!(advice.finding.title, "bash calls `npm completion` once");
    assert!(advice.finding.fix.concat().contains("completions/npm"), "{advice:?}");
    assert!(advice.saving[0] > Nanos(40_000_000), "{advice:?}");
    let of_zsh =
        only(&advice_on_start_of("/bin/zsh", "/usr/bin/node", &["node", "/usr/bin/npm", "completion"]), "shell-code");
    assert!(!of_zsh.finding.fix.concat().contains("bash-completion"), "{of_zsh:?}");
    let found = advice_on_startup_program("/usr/bin/direnv", &["direnv", "hook", "bash"]);
    let fix = only(&found, "shell-code").finding.fix;
    assert!(fix[2].ends_with("eval \"$(direnv hook bash)\"  ->  . ~/.direnv-init.sh"), "{fix:?}");
}

#[test]
fn output_for_a_start_up_file_that_may_differ_each_time_gets_no_advice() {
    for argv in [&["direnv", "exec", "."][..], &["fnm", "env"], &["ssh-agent", "-s"]] {
        let found = advice_on_startup_program(&format!("/usr/bin/{}", argv[0]), argv);
        assert!(is_silent(&found, "shell-code"), "{argv:?}: {found:?}");
    }
}

/// Returns the advice on a shell that calls a package manager repeatedly. Each call runs one
/// command through a shell.
fn advice_on_runner_calls(argv: &[&str]) -> AdviceList {
    let mut serial = Serial::new();
    let spans = Spans { run: 20_000_000, ..Spans::USUAL };
    for _ in 0..COUNT {
        let runner = serial.launch(&spans, Some(("/usr/bin/node", argv)));
        let created = serial.builder.row(runner).created.unwrap().0;
        let shell = Some(("/bin/sh", &["sh", "-c", "tsc --noEmit"][..]));
        let shell = serial.builder.launch(runner, created + 10_000_000, &Spans::USUAL, shell);
        serial.builder.row(shell).parent_task = Some(TaskId(runner.0));
        let line = serial.builder.line(Language::Node, "/x/node_modules/run-all/index.js", 7, "spawn");
        serial.builder.set_call_chain(runner, &[line]);
    }
    advices(&serial.finish())
}

#[test]
fn a_runner_that_starts_one_command_each_time_is_reported() {
    let found = advice_on_runner_calls(&["node", "/usr/bin/npx", "tsc", "--noEmit"]);
    let advice = only(&found, "package-script");
    assert!(advice.foreign.is_none(), "the scripts are in the user's package.json: {advice:?}");
    assert_eq!(advice.finding.launches.len() as u64, COUNT);
    assert!(advice.finding.fix[1].ends_with("npx tsc --noEmit  ->  node_modules/.bin/tsc --noEmit"), "{advice:?}");
    assert!(advice.saving[0] > Nanos(COUNT * 10_000_000), "{advice:?}");
    let found = advice_on_runner_calls(&["node", "/opt/npm/bin/npm-cli.js", "run", "-s", "check"]);
    let advice = only(&found, "package-script");
    assert!(advice.finding.fix.concat().contains("node --run check"), "{advice:?}");
}

#[test]
fn other_work_of_a_package_manager_is_not_reported() {
    let silent = advice_on_runner_calls(&["node", "/usr/bin/npm", "-s", "run", "check"]);
    assert!(!is_silent(&silent, "package-script"), "{silent:?}");
    for argv in [
        &["node", "/usr/bin/npm", "--prefix=a", "run", "tsc"][..],
        &["node", "/usr/bin/npm", "install", "tsc"],
        &["node", "server.js", "run", "check"],
    ] {
        let found = advice_on_runner_calls(argv);
        assert!(is_silent(&found, "package-script"), "{argv:?}: {found:?}");
    }
}
