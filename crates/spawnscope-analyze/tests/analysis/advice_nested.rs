//! Advice on launches that launch others: what each of them does alone is no repetition, and a loop
//! may be somebody else's.

use spawnscope_analyze::explain::advice::AdviceList;
use spawnscope_data::event::{Language, LaunchId, LeftCpu, Nanos, TaskId};
use spawnscope_data::rows::{SliceRow, WakerRow};

use crate::builder::Spans;
use crate::serial::{Serial, WAIT4, advices, is_silent, only};
use crate::slices::{created, ended, slice};

/// Fewer launches than any rule requires.
const COUNT: u64 = 4;
const INNER: Spans = Spans { run: 80_000_000, ..Spans::USUAL };

/// Adds a launch that waits for one of its own, which it requests at a line of `script`; without a
/// name, this is the script that the launch was given.
fn launch_around(serial: &mut Serial, argv: &[&str], inner: &[&str], script: &str, line: u32) -> LaunchId {
    let spans = INNER;
    let lost = spans.total();
    let outer = serial.launch_without_cpu(&Spans::USUAL, Some((argv[0], argv)), lost, LeftCpu::Interruptible);
    let begins = serial.builder.row(outer).exit.unwrap().0 - lost;
    let child = serial.builder.launch(outer, begins, &spans, Some((inner[0], inner)));
    let row = serial.builder.row(child);
    row.parent_task = Some(TaskId(outer.0));
    let [born, zombie] = [row.created, row.zombie].map(|at| at.unwrap().0);
    serial.slices.extend([created(child.0, born, spans.queue), ended(child.0, born + spans.queue, zombie)]);
    let is_wait = |slice: &&mut SliceRow| slice.task == TaskId(outer.0) && slice.reason == LeftCpu::Interruptible;
    let wait = serial.slices.iter_mut().find(is_wait).unwrap();
    let on = wait.off.0 - wait.on_span.unwrap().0;
    let waker = Some(WakerRow::Task(TaskId(child.0)));
    *wait = slice(outer.0, on, born, [zombie - born, spans.reap], WAIT4, waker);
    let mut line = serial.builder.line(Language::Bash, script, line, "");
    line.file = line.file.filter(|_| !script.is_empty());
    serial.builder.set_call_chain(child, &[line]);
    outer
}

/// The upper end of what one launch in place of several saves, if each launches the program that
/// `inner` names.
fn most_saved(inner: impl Fn(u64) -> String) -> Nanos {
    let mut serial = Serial::new();
    for number in 0..COUNT {
        let argument = format!("s{number}");
        launch_around(&mut serial, &["/opt/steps", &argument], &[&inner(number)], "steps", 7);
    }
    let found = advices(&serial.finish());
    let of_steps = found.worth.iter().filter(|advice| advice.finding.title.contains("steps"));
    of_steps.map(|advice| advice.saving[2]).max().unwrap_or_default()
}

#[test]
fn what_each_launch_does_alone_is_not_saved_by_one_launch() {
    let repeated = most_saved(|_| "/opt/compile".to_owned());
    assert!(repeated >= Nanos((COUNT - 1) * INNER.run), "{repeated:?}");
    let alone = most_saved(|number| format!("/opt/step-{number}"));
    assert!(alone < Nanos(INNER.run), "{alone:?}");
}

/// Advice on tests that clean one file each, for a runner that is this script.
fn advice_on_tests(runner: &str) -> AdviceList {
    let mut serial = Serial::with_command("/bin/bash", &["bash", runner]);
    for number in 0..COUNT {
        let file = format!("/tmp/f{number}");
        let argv = ["/bin/bash", "exec-test", &file];
        let test = launch_around(&mut serial, &argv, &["/opt/clean", "-r", &file], "a.test", 3);
        let line = serial.builder.line(Language::Bash, runner, 9, "");
        serial.builder.set_call_chain(test, &[line]);
    }
    advices(&serial.finish())
}

#[test]
fn a_loop_of_a_test_runner_is_not_the_users() {
    let of_clean = |found: &AdviceList| only(found, "many-per-launch").finding.title.contains("clean");
    assert!(of_clean(&advice_on_tests("/home/me/all.sh")));
    let found = advice_on_tests("/usr/libexec/bats-core/bats-exec-file");
    assert!(is_silent(&found, "many-per-launch"), "{found:?}");
}

/// Returns the title of the advice on programs behind `sh -c 'apt-cache policy NAME | sed -n 3p'`.
/// The line of the caller may be unknown.
fn title_of_programs_in_lines(parent: &str, line: Option<u32>) -> String {
    let mut serial = Serial::with_command(parent, &[parent, "x"]);
    for number in 0..COUNT {
        let package = format!("p{number}");
        let text = format!("apt-cache policy {package} | sed -n 3p");
        let shell = &["/bin/sh", "-c", &text];
        let shell = launch_around(&mut serial, shell, &["/usr/bin/apt-cache", "policy", &package], "", 1);
        if let Some(line) = line {
            let line = serial.builder.line(Language::Python, "x.py", line, "");
            serial.builder.set_call_chain(shell, &[line]);
        }
    }
    only(&advices(&serial.finish()), "many-per-launch").finding.title
}

#[test]
fn a_program_of_a_line_is_answered_if_the_line_has_no_cure() {
    let title =
        |parent: &str| format!("{parent} launches apt-cache through a shell 4 times (apt-cache policy), once per item");
    let with_place = title_of_programs_in_lines("/usr/bin/python3", Some(7));
    assert_eq!(with_place, title("python3") + ", at x.py:7");
    // Each text is another one, but it is no place.
    assert_eq!(title_of_programs_in_lines("/usr/bin/tclsh", None), title("tclsh"));
    assert_eq!(title_of_programs_in_lines("/opt/program", None), title("program"));
}

/// A file that all of them use may be one that they change.
#[test]
fn scripts_that_use_the_same_file_may_need_their_order() {
    let evidence = |file: &str| {
        let mut serial = Serial::with_command("/bin/bash", &["bash", "x.sh"]);
        let spans = Spans { run: 40_000_000, ..Spans::USUAL };
        for number in 0..30 {
            let (start, number) = (serial.now(), number.to_string());
            let job = serial.launch(&spans, Some(("/bin/bash", &["bash", "./add.sh", "-c", "./cfg.d", &number])));
            let file = file.replace('@', &number);
            serial.builder.launch(
                job,
                start + 2_000_000,
                &Spans::USUAL,
                Some(("/usr/bin/sed", &["sed", "-n", "s/.a/b.c/", &file])),
            );
        }
        let found = advices(&serial.finish());
        let advice = only(&found, "parallel");
        (advice.finding.evidence.join("\n"), advice.finding.is_guess)
    };
    let (sentences, is_guess) = evidence("./t/todo.txt");
    assert!(is_guess && sentences.contains("most of them use ./t/todo.txt: if they change it"), "{sentences}");
    assert!(!evidence("./t/todo@.txt").1 && !evidence("/usr/share/a.txt").1);
}
