//! The first sentences of a report: the principal cause, the share of the wall that depends on a command, and the best fix that the user can
//! make.

use spawnscope::analyze::{Causes, Forest, GroupBy, Report, report_on};
use spawnscope::event::{Language, LeftCpu};
use spawnscope::present::{summary, table, verdict};
use spawnscope::record::reader::{Recording, SliceRow};

use crate::builder::Spans;
use crate::serial::{CLOCK_NANOSLEEP, READ, Serial, timelines};

fn report((recording, slices): &(Recording, Vec<SliceRow>)) -> Report {
    let forest = Forest::build(recording);
    let causes = Causes::find(recording, &forest, &timelines(&forest, slices));
    report_on(recording, &forest, causes.as_ref(), GroupBy::Command)
}

fn verdict_of(recorded: &(Recording, Vec<SliceRow>)) -> String {
    verdict::verdict(&report(recorded)).expect("a verdict")
}

/// Returns the recording of a script that launches 41 times a git that mostly sleeps.
fn sleeping_git() -> (Recording, Vec<SliceRow>) {
    let mut serial = Serial::new();
    for _ in 0..41 {
        let git = ("/opt/bin/git", ["git", "status"].as_slice());
        let child = serial.launch_without_cpu(&Spans::USUAL, Some(git), 40_000_000, LeftCpu::Interruptible);
        let slept = serial
            .slices
            .iter_mut()
            .find(|slice| slice.task.0 == child.0 && slice.syscall == Some(READ));
        slept.unwrap().syscall = Some(CLOCK_NANOSLEEP);
        serial.launch(&Spans::USUAL, Some(("/usr/bin/true", &["true"])));
    }
    serial.finish()
}

#[test]
fn the_verdict_names_the_command_that_the_wall_depends_on() {
    let recorded = sleeping_git();
    let printed = verdict_of(&recorded);
    assert!(printed.contains("of the wall depends on 41 x git. "), "{printed}");
    assert!(
        printed.contains("of the wall is spent waiting for a timer."),
        "{printed}"
    );
    assert!(!printed.contains("Nothing worth changing"), "{printed}");
    let share: f64 = printed.split(' ').next().unwrap().parse().unwrap();
    assert!((90.0..100.0).contains(&share), "{printed}");
    // Git is the first row, with the same time.
    let text = summary::render(&report(&recorded), 80, None);
    let text = anstream::adapter::strip_str(&text).to_string();
    let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("  command")).collect();
    assert!(rows[0].contains(" depends ") && rows[1].starts_with("  git "), "{text}");
}

#[test]
fn work_is_the_principal_cause_even_if_nothing_can_be_changed() {
    let busy = Spans {
        run: 60_000_000,
        ..Spans::USUAL
    };
    let mut serial = Serial::with_command("/usr/bin/make", &["make"]);
    for _ in 0..7 {
        serial.launch(&busy, Some(("/usr/libexec/cc1", &["cc1", "x.c"])));
        serial.launch(&Spans::USUAL, Some(("/usr/bin/as", &["as"])));
    }
    let printed = verdict_of(&serial.finish());
    assert!(
        printed.contains("% of the wall is spent running cc1 (7 launches)."),
        "{printed}"
    );
}

#[test]
fn the_best_fix_is_one_that_the_user_can_make() {
    let mut serial = Serial::new();
    for number in 0..60 {
        let (file, program) = match number % 3 {
            0 => ("build.sh", "/usr/bin/basename"),
            _ => ("./configure", "/usr/bin/dirname"),
        };
        let argv = [program.rsplit('/').next().unwrap(), "/a/b"];
        let child = serial.launch_waiting(&Spans::USUAL, Some((program, &argv)), READ);
        let line = serial.builder.line(Language::Bash, file, 3, "");
        serial.builder.set_call_chain(child, &[line]);
    }
    let recorded = serial.finish();
    let printed = verdict_of(&recorded);
    let (_, best) = printed.split_once("Fix first: ").unwrap();
    let (finding, saving) = best.split_once(". Fixing this saves ").unwrap();
    assert!(finding.contains("basename 20 times"), "{printed}");
    assert!(saving.contains(" ms ("), "{printed}");
    let full = table::render(&report(&recorded), &table::Options::all(200));
    let full = anstream::adapter::strip_str(&full).to_string();
    assert!(
        full.contains("dirname 40 times although `${p%/*}` would do, in generated code (configure)"),
        "{full}"
    );
    assert!(full.contains("Repeated command lines"), "{full}");
}
