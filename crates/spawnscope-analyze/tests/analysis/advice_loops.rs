//! Advice about shells per file, make's `$(shell ...)` and recipes, GNU parallel, scripts that
//! poll, serial launches, and loops in general.

use spawnscope_analyze::explain::advice::{Advice, AdviceList, Owner};
use spawnscope_data::event::{LaunchId, LeftCpu, Nanos, TaskId};
use spawnscope_data::rows::{Recording, SliceRow};

use crate::builder::{ROOT, Spans};
use crate::recordings::fix_of;
use crate::serial::{CLOCK_NANOSLEEP, READ, Serial, WAIT4, advices, is_silent, only};
use crate::slices::{created, ended, slice};

const COUNT: u64 = 30;

fn advice_on_launches(parent: &[&str], argv: &[&str], wait: u16) -> AdviceList {
    let mut serial = Serial::with_command(parent[0], parent);
    for number in 0..COUNT {
        let words: Vec<String> = argv.iter().map(|word| word.replace('@', &number.to_string())).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        serial.launch_waiting(&Spans::USUAL, Some((words[0], &words)), wait);
    }
    advices(&serial.finish())
}

const LOOP: &[&str] = &["/bin/sh", "-c", "test -s \"$1\" && echo \"$1\"", "sh", "f@"];

#[test]
fn one_shell_loops_over_the_files_of_find() {
    let find = &["/usr/bin/find", ".", "-exec", "sh", "-c", "...", "sh", "{}", ";"];
    let advice = only(&advice_on_launches(find, LOOP, WAIT4), "many-per-launch");
    assert!(fix_of(&advice).contains("{} +"), "{advice:?}");
    assert_eq!(advice.finding.whatif, "--in-process=sh,parent=find");
    let launching_only = COUNT * (Spans::USUAL.total() - Spans::USUAL.run);
    assert!(advice.saving[0] >= Nanos(launching_only), "{advice:?} of {launching_only}");
    let xargs = &["/usr/bin/xargs", "-n", "1", "sh", "-c", "..."];
    assert!(!is_silent(&advice_on_launches(xargs, LOOP, WAIT4), "many-per-launch"));
    for all_at_once in [
        &["/usr/bin/find", ".", "-exec", "sh", "-c", "...", "sh", "{}", "+"][..],
        &["/usr/bin/xargs", "sh", "-c", "..."],
        &["/bin/bash", "loop.sh"],
    ] {
        let found = advice_on_launches(all_at_once, LOOP, WAIT4);
        assert!(is_silent(&found, "many-per-launch"), "{all_at_once:?}: {found:?}");
    }
}

/// Returns the advice on a parent that launches sha1sum through `sh -c`, once for each file.
fn advice_on_launches_by_shell(parent: &[&str], text: &str) -> AdviceList {
    let mut serial = Serial::with_command(parent[0], parent);
    let spans = Spans { run: 1_000_000, ..Spans::USUAL };
    for number in 0..COUNT {
        let text = text.replace('@', &number.to_string());
        let launch = serial.launch(&spans, Some(("/bin/sh", &["sh", "-c", &text])));
        let at = serial.builder.recording.execs.last().unwrap().load_end.unwrap().0;
        let instants = [at + 50_000, at + 350_000, at + 750_000];
        let program: [&[u8]; 2] = [b"sha1sum", text.as_bytes()];
        serial.builder.exec_at(launch, b"/usr/bin/sha1sum", &program, instants);
    }
    advices(&serial.finish())
}

#[test]
fn find_and_xargs_need_no_shell_for_a_plain_command() {
    let find = &["/usr/bin/find", ".", "-exec", "sh", "-c", "sha1sum {}", ";"][..];
    let xargs = &["/usr/bin/xargs", "-I{}", "sh", "-c", "sha1sum {}"][..];
    for (parent, fix) in [(find, "-exec PROGRAM {} +"), (xargs, "xargs PROGRAM")] {
        let found = advice_on_launches_by_shell(parent, "sha1sum f@");
        let advice = only(&found, "needless-shell");
        assert!(fix_of(&advice).contains(fix), "{advice:?}");
        assert!(!fix_of(&advice).contains("posix_spawn"), "{advice:?}");
        assert!(is_silent(&found, "many-per-launch"), "{found:?}");
        // find and xargs cannot redirect by themselves.
        let found = advice_on_launches_by_shell(parent, "sha1sum <f@");
        assert!(is_silent(&found, "needless-shell"), "{found:?}");
        assert!(!is_silent(&found, "many-per-launch"), "{found:?}");
    }
    let make = advice_on_launches_by_shell(&["/usr/bin/make"], "sha1sum <f@");
    assert!(is_silent(&make, "needless-shell"), "nor can make: {make:?}");
}

#[test]
fn make_evaluates_a_shell_function_once() {
    let make = &["/usr/bin/make", "all"];
    let same = &["/bin/sh", "-c", "cat version | tr a b"];
    let advice = only(&advice_on_launches(make, same, READ), "once");
    assert!(advice.finding.title.contains("30 times") && fix_of(&advice).contains(":="), "{advice:?}");
    assert_eq!(advice.saving[0], Nanos((COUNT - 1) * Spans::USUAL.total()));
    let different = advice_on_launches(make, &["/bin/sh", "-c", "cat v@ | tr a b"], READ);
    assert!(is_silent(&different, "once"), "{different:?}");
    let recipe = advice_on_launches(make, same, WAIT4);
    assert!(is_silent(&recipe, "once"), "make does not read what a recipe prints: {recipe:?}");
}

#[test]
fn parallel_gets_no_advice_on_its_shells() {
    let mut serial = Serial::with_command("/usr/bin/parallel", &["parallel", "cksum"]);
    for number in 0..COUNT {
        let text = format!("cksum f{number}");
        serial.launch(&Spans::USUAL, Some(("/bin/bash", &["/bin/bash", "-c", &text])));
    }
    let found = advices(&serial.finish());
    let advice = only(&found, "many-per-launch");
    assert!(fix_of(&advice).contains("parallel -m"), "{advice:?}");
    assert!(is_silent(&found, "needless-shell"), "{found:?}");
    let xargs = advice_on_launches(&["/usr/bin/xargs"], &["/bin/bash", "-c", "cksum f@"], WAIT4);
    assert!(is_silent(&xargs, "many-per-launch"), "{xargs:?}");
}

/// The duration of each sleep.
const PAUSE: u64 = 20_000_000;
/// How long before the end of the last sleep the worker ends.
const EARLY: u64 = 15_000_000;

/// Builds a recording of `work & while kill -0 $!; do sleep 0.02; done`. Without a worker, nothing
/// shows what the loop waits for.
fn polling(sleeps: u64, has_worker: bool) -> (Recording, Vec<SliceRow>) {
    let mut serial = Serial::new();
    let cycle = Spans { run: PAUSE, ..Spans::USUAL };
    let worker =
        has_worker.then(|| serial.builder.launch(ROOT, 1_000_000, &Spans::USUAL, Some(("/opt/work", &["work"]))));
    for _ in 0..sleeps {
        let child = serial.launch(&cycle, Some(("/bin/sleep", &["sleep", "0.02"])));
        replace_run_by_sleep(&mut serial, child);
    }
    if let Some(worker) = worker {
        let last = LaunchId(worker.0 + sleeps);
        let end = serial.builder.row(last).exit.unwrap().0 - EARLY;
        let row = serial.builder.row(worker);
        (row.exit, row.zombie, row.reaped) = (Some(Nanos(end - 60_000)), Some(Nanos(end)), Some(Nanos(end + EARLY)));
        row.parent_task = Some(TaskId(ROOT.0));
        let born = row.created.unwrap().0;
        serial.slices.push(created(worker.0, born, 20_000));
        serial.slices.push(ended(worker.0, born + 20_000, end));
    }
    serial.finish()
}

/// Replaces the run of a child by a sleep.
fn replace_run_by_sleep(serial: &mut Serial, child: LaunchId) {
    let row = serial.builder.row(child);
    let (exit, zombie) = (row.exit.unwrap().0, row.zombie.unwrap().0);
    let last = serial.slices.iter_mut().rfind(|slice| slice.task.0 == child.0).unwrap();
    let on = last.off.0 - last.on_span.unwrap().0;
    *last = ended(child.0, exit, zombie);
    serial.slices.push(slice(child.0, on, exit - PAUSE, [PAUSE, 0], CLOCK_NANOSLEEP, None));
}

#[test]
fn a_script_that_polls_its_child_sleeps_too_long_once() {
    let found = advices(&polling(17, true));
    let advice = only(&found, "sleep-loop");
    assert_eq!(advice.finding.title, "bash polls: 17 x sleep 0.02");
    assert!(fix_of(&advice).contains("wait \"$pid\""), "{advice:?}");
    let error = advice.saving[0].0.abs_diff(EARLY);
    assert!(error < EARLY / 10, "{advice:?}");
}

#[test]
fn polling_for_an_unknown_event_may_save_all_of_the_sleep() {
    let advice = only(&advices(&polling(17, false)), "sleep-loop");
    assert!(advice.finding.limits.contains("does not show what the script waits for"), "{advice:?}");
    assert_eq!(advice.finding.title, "bash pauses: 17 x sleep 0.02");
    let [saved, low, high] = advice.saving;
    assert_eq!((saved, low), (Nanos(0), Nanos(0)), "a pace is no waste");
    assert!(high >= Nanos(17 * PAUSE), "{advice:?}");
    assert!(!is_silent(&advices(&polling(1, true)), "sleep-loop"), "one sleep holds the wall");
}

#[test]
fn the_interval_of_a_monitor_is_not_what_to_fix() {
    let mut serial = Serial::new();
    for _ in 0..17 {
        serial.launch(&Spans::USUAL, Some(("/bin/df", &["df", "/"])));
        let child = serial.launch(&Spans { run: PAUSE, ..Spans::USUAL }, Some(("/bin/sleep", &["sleep", "0.02"])));
        replace_run_by_sleep(&mut serial, child);
    }
    let found = advices(&serial.finish());
    assert!(is_silent(&found, "sleep-loop"), "{found:?}");
    assert!(found.not_worth.iter().any(|(_, advice)| advice.finding.title.starts_with("bash pauses")), "{found:?}");
}

fn advice_on_recipes(lines: &[&str]) -> AdviceList {
    let mut serial = Serial::with_command("/usr/bin/make", &["make"]);
    for target in 0..COUNT {
        for line in lines {
            let text = line.replace('@', &target.to_string());
            serial.launch(&Spans::USUAL, Some(("/bin/sh", &["/bin/sh", "-c", &text])));
        }
    }
    advices(&serial.finish())
}

#[test]
fn lines_of_recipes_share_a_shell() {
    let advice = only(&advice_on_recipes(&["test -s f@ || exit 1", "echo x >f@.o; :"]), "many-per-launch");
    assert_eq!(advice.finding.whatif, "--batch=sh,parent=make=2");
    let single = advice_on_recipes(&["test -s f@ || exit 1"]);
    assert!(is_silent(&single, "many-per-launch"), "one line each: {single:?}");
}

#[test]
fn a_loop_over_an_unknown_program_gets_general_advice() {
    let python = &["/usr/bin/python3", "loop.py"];
    let advice = only(&advice_on_launches(python, &["/opt/ask", "f@"], WAIT4), "in-language");
    assert_eq!(advice.finding.whatif, "--in-process=ask,parent=python3");
    assert!(fix_of(&advice).contains("with a library"), "{advice:?}");
    let known = advice_on_launches(&["/bin/bash", "loop.sh"], &["/usr/bin/dirname", "a/f@"], WAIT4);
    assert_eq!(known.worth[0].finding.rule, "builtin", "a rule has better advice: {known:?}");
}

#[test]
fn a_loop_of_command_lines_run_by_a_shell_is_a_loop() {
    let python = &["/usr/bin/python3", "loop.py"];
    let line = &["/bin/sh", "-c", "read x <f@; echo $x"];
    let advice = only(&advice_on_launches(python, line, WAIT4), "in-language");
    assert_eq!(advice.finding.title, format!("python3 runs {COUNT} command lines that begin with read, through sh"));
    assert_eq!(advice.finding.whatif, "--in-process=sh,parent=python3");
    assert!(fix_of(&advice).contains("do the work in Python"), "{advice:?}");
    let shell = advice_on_launches(&["/bin/bash", "loop.sh"], line, WAIT4);
    assert!(is_silent(&shell, "in-language"), "{shell:?}");
}

#[test]
fn a_shell_has_no_builtin_for_changes_of_files() {
    let rm = only(&advice_on_launches(BASH, &["/bin/rm", "-f", "conftest"], WAIT4), "in-language");
    assert!(fix_of(&rm).contains("several files"), "{rm:?}");
    assert!(!fix_of(&rm).contains("##*/"), "{rm:?}");
    let ask = only(&advice_on_launches(BASH, &["/opt/ask", "f@"], WAIT4), "in-language");
    assert!(fix_of(&ask).contains("pass all inputs to one launch") && !fix_of(&ask).contains("##*/"), "{ask:?}");
}

const BASH: &[&str] = &["/bin/bash", "loop.sh"];

#[test]
fn loops_are_ranked_by_their_launch_tax() {
    // Slightly less than the other phases take together: with longer runs, the launches would be no
    // candidates.
    const LONG: u64 = 900_000;
    let mut serial = Serial::with_command(BASH[0], BASH);
    for (program, launches, run) in
        [("a", COUNT, LONG), ("b", COUNT, LONG), ("c", COUNT, LONG), ("d", COUNT + 5, LONG / 100)]
    {
        for _ in 0..launches {
            serial.launch(&Spans { run, ..Spans::USUAL }, Some((&format!("/opt/{program}"), &[program, "f"])));
        }
    }
    let found = advices(&serial.finish());
    let titles: Vec<&str> = found.worth.iter().map(|advice| advice.finding.title.as_str()).collect();
    for title in ["bash launches d 35 times", "bash launches a 30 times"] {
        assert!(titles.iter().any(|found| found.starts_with(title)), "{titles:?}");
    }
}

/// Python runs command lines through a shell. Each line contains a subshell and a program, and the
/// program runs a line through another shell.
#[test]
fn a_command_line_and_its_launches_count_once() {
    let python = &["/usr/bin/python3", "loop.py"];
    let spans = Spans { run: 20 * Spans::USUAL.total(), ..Spans::USUAL };
    let mut serial = Serial::with_command(python[0], python);
    for number in 0..COUNT {
        let line = format!("(cd x; :); ask {number} | cat");
        let shell = serial.launch(&spans, Some(("/bin/sh", &["sh", "-c", &line])));
        let begun = serial.builder.row(shell).created.unwrap().0;
        let each = 2 * Spans::USUAL.total();
        let fork = Spans { run: 50_000, ..Spans::USUAL };
        serial.builder.launch(shell, begun + each, &fork, None);
        let ask = serial.builder.launch(shell, begun + 3 * each, &Spans::USUAL, Some(("/opt/ask", &["ask"])));
        let inner = Some(("/bin/sh", &["sh", "-c", "read x; :"][..]));
        serial.builder.launch(ask, begun + 4 * each, &Spans::USUAL, inner);
        for launch in [shell, ask] {
            // Both mostly wait, so that their CPU time is short.
            let load = serial.builder.recording.execs.iter().find(|exec| exec.launch == launch).unwrap().load_cpu;
            serial.builder.row(launch).exit_cpu = load.map(|load| Nanos(load.0 + 50_000));
        }
    }
    let found = advices(&serial.finish());
    let advice = only(&found, "in-language");
    assert_eq!(advice.finding.launches.len() as u64, 4 * COUNT, "{advice:?}");
    let options = &advice.finding.whatif;
    assert!(options.contains("'--in-process=(sh),parent=sh'"), "{options}");
    assert_eq!(options.matches("--in-process").count(), 4, "{options}");
}

/// The shell that Ruby's backquotes and Node's execSync start only launches the program, so advice
/// is about that, and removes both.
#[test]
fn a_shell_that_only_launches_a_program_is_seen_through() {
    let spans = Spans { run: 3 * Spans::USUAL.total(), ..Spans::USUAL };
    for (parent, line, rule, fix) in [
        (["/usr/bin/ruby", "x.rb"], "basename a/f#.c .c", "in-language", "File.basename(path, SUFFIX)"),
        (["/usr/bin/lua", "x.lua"], "id -u", "once", "local answer"),
        (["/usr/bin/gawk", "x.awk"], "date -u -d @# +%F", "in-language", "strftime(FORMAT, seconds"),
        (["/usr/bin/node", "x.js"], "node -p f#", "resident", "in this process"),
        (["/usr/bin/php", "x.php"], "file -b f# 2>/dev/null", "many-per-launch", "file -b FILES..."),
    ] {
        let mut serial = Serial::with_command(parent[0], &parent);
        for number in 0..COUNT {
            let line = line.replace('#', &number.to_string());
            let shell = serial.launch_waiting(&spans, Some(("/bin/sh", &["sh", "-c", &line])), READ);
            let begun = serial.builder.row(shell).created.unwrap().0 + Spans::USUAL.total();
            let command = line.split(" 2>").next().unwrap_or_default();
            let words: Vec<&str> = command.split(' ').collect();
            serial.builder.launch(shell, begun, &Spans::USUAL, Some((&format!("/usr/bin/{}", words[0]), &words)));
        }
        let found = advices(&serial.finish());
        let advice = only(&found, rule);
        let program = line.split(' ').next().unwrap();
        let name = parent[0].rsplit('/').next().unwrap();
        let begin = format!("{name} launches {program} through a shell {COUNT} times");
        assert!(advice.finding.title.starts_with(&begin), "{advice:?}");
        assert!(fix_of(&advice).contains(fix), "{advice:?}");
        let names_option = advice.finding.evidence.iter().any(|line| line.contains("record --node-lines"));
        assert_eq!(names_option, name == "node", "{advice:?}");
        let changed = advice.finding.changes.iter().map(|applied| applied.launches.len()).sum::<usize>() as u64;
        assert!(changed >= COUNT - 1, "{advice:?}");
        let is_alone = rule != "in-language" || is_silent(&found, "needless-shell");
        assert!(is_alone, "{found:?}");
    }
}

/// Returns the advice on a shell that runs `wrapper` repeatedly. Each wrapper launches `link`
/// `each` times.
fn advice_on_wrappers(wrapper: (&str, &[&str]), each: u64) -> AdviceList {
    let mut serial = Serial::with_command(BASH[0], BASH);
    let spans = Spans { run: 3 * each * Spans::USUAL.total(), ..Spans::USUAL };
    for _ in 0..COUNT {
        let parent = serial.launch(&spans, Some(wrapper));
        let mut begins = serial.builder.row(parent).created.unwrap().0 + 500_000;
        for _ in 0..each {
            let child = serial.builder.launch(parent, begins, &Spans::USUAL, Some(("/opt/link", &["link", "a.o"])));
            serial.builder.row(child).parent_task = Some(TaskId(parent.0));
            begins += 2 * Spans::USUAL.total();
        }
    }
    advices(&serial.finish())
}

fn count_link_advices(found: &AdviceList) -> usize {
    let not_worth = found.not_worth.iter().map(|(_, advice)| advice.clone());
    let all = found.worth.iter().cloned().flat_map(Advice::separated).chain(not_worth);
    all.filter(|advice| advice.finding.title.contains("launches link")).count()
}

#[test]
fn a_compiled_program_that_launches_one_program_is_not_a_loop() {
    let compiled: (&str, &[&str]) = ("/opt/collect", &["collect", "a.o"]);
    assert_eq!(count_link_advices(&advice_on_wrappers(compiled, 1)), 0);
    assert!(count_link_advices(&advice_on_wrappers(compiled, 2)) > 0);
    let script: (&str, &[&str]) = ("/usr/bin/python3", &["python3", "one.py"]);
    assert!(!advice_on_wrappers(script, 1).worth.is_empty(), "one process could run the script for all");
}

/// Returns the advice on a parent that compiles file after file, for `millis` each, while the
/// program `beside` runs.
fn advice_on_compilations(parent: &str, millis: u64, file: &str, beside: Option<&str>) -> AdviceList {
    let mut serial = Serial::with_command(parent, &[parent]);
    let start = serial.now();
    let spans = Spans { run: millis * 1_000_000, ..Spans::USUAL };
    for number in 0..COUNT {
        let file = file.replace('@', &number.to_string());
        serial.launch(&spans, Some(("/usr/bin/cc", &["cc", "-c", &file])));
    }
    if let Some(program) = beside {
        serial.builder.launch(ROOT, start, &spans, Some((program, &[program])));
    }
    advices(&serial.finish())
}

#[test]
fn long_independent_launches_are_advised_to_run_in_parallel() {
    let (make, cargo) = ("/usr/bin/make", "/usr/bin/cargo");
    let advice = only(&advice_on_compilations(make, 20, "f@.c", None), "parallel");
    assert!(fix_of(&advice).contains("make -j"), "{advice:?}");
    assert!(is_silent(&advice_on_compilations(make, 1, "f@.c", None), "parallel"), "too short");
    assert!(is_silent(&advice_on_compilations(make, 20, "f.c", None), "parallel"), "always the same");
    let parallel = advice_on_compilations(make, 20, "f@.c", Some("/usr/bin/ar"));
    assert!(is_silent(&parallel, "parallel"), "both CPUs had a command: {parallel:?}");
    assert!(!is_silent(&advice_on_compilations(cargo, 20, "f@.rs", None), "parallel"), "as with -j1");
    assert!(is_silent(&advice_on_compilations(cargo, 20, "f@.rs", Some("/usr/bin/rustc")), "serial"));
}

#[test]
fn launches_that_mostly_wait_run_more_at_a_time_than_there_are_cpus() {
    let of = |reason: LeftCpu| {
        let mut serial = Serial::new();
        for number in 0..10 {
            let key = format!("key{number}");
            let program = Some(("/opt/ask", &["ask", "host", &key][..]));
            let launch = serial.launch_without_cpu(&Spans::USUAL, program, 100_000_000, reason);
            serial.builder.row(launch).cpu = Some(Nanos(1_000_000));
        }
        advices(&serial.finish())
    };
    let advice = only(&of(LeftCpu::Interruptible), "parallel");
    assert!(fix_of(&advice).starts_with("run 8 of them at a time:\n  ask host ... >FILE & in"), "{advice:?}");
    assert!(is_silent(&of(LeftCpu::Preempted), "parallel"), "they wait for a CPU, and the shell reads their output");
}

/// A runner of tests reads what they print, but its own option keeps their outputs apart.
#[test]
fn a_runner_that_reads_outputs_has_an_option_for_several_at_a_time() {
    let of = |parent: &str| {
        let mut serial = Serial::with_command(parent, &[parent, "t"]);
        for number in 0..COUNT {
            let test = format!("t/{number}.t");
            let spans = Spans { run: 20_000_000, ..Spans::USUAL };
            serial.launch_waiting(&spans, Some(("/usr/bin/perl", &["perl", &test])), READ);
        }
        advices(&serial.finish())
    };
    let fixes = |found: AdviceList| found.worth.into_iter().flat_map(Advice::separated).map(|each| fix_of(&each));
    assert!(fixes(of("/usr/bin/prove")).any(|fix| fix.ends_with("prove -j2")));
    for other in ["/usr/bin/make", "/bin/sh"] {
        assert!(!fixes(of(other)).any(|fix| fix.contains("at a time")), "{other}");
    }
}

#[test]
fn readers_that_wait_for_their_writers_do_not_run_at_a_time() {
    let mut serial = Serial::new();
    for number in 0..10 {
        let lists = Spans { run: 100_000_000, ..Spans::USUAL };
        serial.builder.launch(ROOT, serial.now(), &lists, Some(("/opt/list", &["list", "-a"])));
        let name = format!("name{number}");
        let program = Some(("/opt/ask", &["ask", &name][..]));
        let reader = serial.launch_without_cpu(&Spans::USUAL, program, 100_000_000, LeftCpu::Interruptible);
        serial.builder.row(reader).cpu = Some(Nanos(1_000_000));
    }
    let found = advices(&serial.finish());
    let is_of_readers = |advice: &Advice| advice.finding.rule == "parallel" && advice.finding.title.contains(" ask ");
    assert!(!found.worth.into_iter().flat_map(Advice::separated).any(|advice| is_of_readers(&advice)));
}

/// `npm run clean && npm run css`: what a person wrote down in this order may depend on it.
#[test]
fn commands_without_a_loop_keep_their_order() {
    let of = |code: &str| {
        let mut serial = Serial::with_command("/bin/sh", &["sh", "-c", code]);
        for step in 0..COUNT {
            let spans = Spans { run: 40_000_000, ..Spans::USUAL };
            serial.launch(&spans, Some(("/opt/task", &["task", &format!("step{step}")])));
        }
        advices(&serial.finish())
    };
    assert!(is_silent(&of("task clean && task css && task js; task html"), "parallel"));
    assert!(!is_silent(&of("for step in clean css js html; do task $step; done"), "parallel"));
}

#[test]
fn a_shell_that_checks_one_script_has_no_other_cure() {
    let mut serial = Serial::with_command("/usr/bin/find", &["find", "."]);
    for number in 0..COUNT {
        let script = format!("s{number}.sh");
        serial.launch(&Spans::USUAL, Some(("/bin/bash", &["bash", "-n", &script])));
    }
    let advice = only(&advices(&serial.finish()), "parallel");
    assert!(fix_of(&advice).contains("xargs -0 -n1 -P2"), "{advice:?}");
}

#[test]
fn launches_that_a_known_program_chooses_itself_are_not_the_users() {
    let third_party = Some(Owner::ThirdParty);
    // Only the scripts of CMake name such a program.
    for (launcher, owner) in [("/usr/bin/cmake", None), ("/opt/cargo-1.90", third_party), ("/opt/my-tool", None)] {
        let mut serial = Serial::with_command(launcher, &[launcher, "."]);
        for number in 0..COUNT {
            let number = number.to_string();
            serial.launch(&Spans::USUAL, Some(("/opt/ask", &["ask", &number])));
        }
        let advice = only(&advices(&serial.finish()), "in-language");
        assert_eq!(advice.foreign.map(|foreign| foreign.owner), owner, "{launcher}");
    }
}

#[test]
fn a_cure_of_some_launches_counts_only_these() {
    let mut serial = Serial::with_command("/usr/bin/python3", &["python3", "x.py"]);
    for number in 0..9 {
        let file = number.to_string();
        let words = if number < 3 { ["git", "init", &file] } else { ["git", "add", &file] };
        serial.launch(&Spans::USUAL, Some(("/usr/bin/git", &words)));
    }
    let advice = only(&advices(&serial.finish()), "many-per-launch");
    assert!(advice.finding.title.starts_with("python3 launches git 6 times (git add)"), "{advice:?}");
    assert!(advice.finding.evidence[0].starts_with("6 launches take"), "{advice:?}");
}
