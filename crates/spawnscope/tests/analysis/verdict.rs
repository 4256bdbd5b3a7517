//! The first sentences of a report: the principal cause, the share of the wall that depends on a
//! command, and the best fix that the user can make.

use spawnscope::event::LeftCpu;
use spawnscope::present::{summary, verdict};

use crate::prelude::*;
use crate::printed::report_with_causes;
use crate::recordings::serial_unpacking;
use crate::serial::CLOCK_NANOSLEEP;

fn verdict_of(recorded: &(Recording, Vec<SliceRow>)) -> String {
    verdict::verdict(&report_with_causes(recorded, GroupBy::Command)).expect("a verdict")
}

/// Returns the recording of a script that launches git 41 times. Each git mostly sleeps.
fn sleeping_git() -> (Recording, Vec<SliceRow>) {
    let mut serial = Serial::new();
    for _ in 0..41 {
        let git = ("/opt/bin/git", ["git", "status"].as_slice());
        let child = serial.launch_without_cpu(&Spans::USUAL, Some(git), 40_000_000, LeftCpu::Interruptible);
        let mut slices = serial.slices.iter_mut();
        let slept = slices.find(|slice| slice.task.0 == child.0 && slice.syscall == Some(READ));
        slept.unwrap().syscall = Some(CLOCK_NANOSLEEP);
        serial.launch(&Spans::USUAL, Some(("/usr/bin/true", &["true"])));
    }
    serial.finish()
}

#[test]
fn the_verdict_names_the_command_that_the_wall_depends_on() {
    let recorded = sleeping_git();
    let printed = verdict_of(&recorded);
    let timer = "of the wall time went into waiting for a timer.";
    assert_contains(&printed, ["Without git, started 41 times, the wall time would be ", timer]);
    assert!(!printed.contains("Nothing worth changing"), "{printed}");
    let (share, _) = printed.split_once("would be ").unwrap().1.split_once(" % shorter").unwrap();
    let share: f64 = share.parse().unwrap();
    assert!((90.0..100.0).contains(&share), "{printed}");
    // Git is the first row, with the same time.
    let text = summary::render(&report_with_causes(&recorded, GroupBy::Command), 80, None, None);
    let text = plain(&text);
    let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("  program")).collect();
    assert!(rows[0].contains(" saved without it ") && rows[1].starts_with("  git "), "{text}");
}

#[test]
fn the_verdict_names_the_wrapper_that_launched_the_command() {
    let mut report = report_with_causes(&sleeping_git(), GroupBy::Command);
    assert_contains(&verdict::verdict(&report).unwrap(), ["Without git, started 41 times, the wall time"]);
    report.dependence[0].launched_through = Some(b"xargs".to_vec());
    assert_contains(
        &verdict::verdict(&report).unwrap(),
        ["Without git, started 41 times through xargs, the wall time"],
    );
}

#[test]
fn a_launch_tax_that_is_mostly_a_wait_for_a_cpu_says_so() {
    let queued = Spans { queue: 5_000_000, ..Spans::USUAL };
    for (spans, is_queued) in [(&queued, true), (&Spans::USUAL, false)] {
        let mut serial = Serial::new();
        for _ in 0..20 {
            serial.launch(spans, Some(("/usr/bin/true", &["true"])));
        }
        let printed = verdict_of(&serial.finish());
        assert_contains(&printed, ["went into start-up (starting and ending programs), most of it true."]);
        assert_eq!(printed.contains("% of the wall time was waiting for a CPU"), is_queued, "{printed}");
    }
}

#[test]
fn work_is_the_principal_cause_even_if_nothing_can_be_changed() {
    let busy = running(60_000_000);
    let mut serial = Serial::with_command("/usr/bin/make", &["make"]);
    for _ in 0..7 {
        serial.launch(&busy, Some(("/usr/libexec/cc1", &["cc1", "x.c"])));
        serial.launch(&Spans::USUAL, Some(("/usr/bin/as", &["as"])));
    }
    let (recording, slices) = serial.finish();
    let share = spawnscope::units::percent(Nanos(7 * busy.run), recording.info.wall.unwrap());
    let printed = verdict_of(&(recording, slices));
    assert_contains(&printed, [&format!("{share} of the wall time went into running cc1, started 7 times.")]);
}

#[test]
fn the_verdict_ends_with_the_first_advice_and_its_saving() {
    let printed = verdict_of(&serial_unpacking().finish());
    let fix =
        "Fix first: bash launches dirname 40 times although `${p%/*}` would do. Fixing this saves 74.2 %, 46.0 ms (";
    assert!(printed.contains(fix) && printed.ends_with(" to 49.2)."), "{printed}");
}
