//! Tests how the outputs show activity that is still going on when the recording ends.

use serde_json::Value;
use spawnscope::analyze::predict::whatif::changes::Change;
use spawnscope::analyze::predict::whatif::whatif_report::{RequestedChange, WhatIfError, whatif_report};
use spawnscope::analyze::report_on;
use spawnscope::analyze::sites::select::Selector;
use spawnscope::present::{advice, verdict};

use crate::prelude::*;
use crate::recordings::{SHELL_WALL as WALL, attribution, causes, open_wait, shell_with, sleeping_child};
use crate::serial::WAIT4;

const POLL: u16 = 7;
/// The first argument of wait4 for a wait for any child (-1 as recorded).
const ANY_CHILD: u64 = u32::MAX as u64;

fn report(recording: &Recording, slices: &[SliceRow]) -> Report {
    let forest = Forest::build(recording);
    report_on(recording, &forest, Some(&causes(recording, slices)), GroupBy::Command)
}

#[test]
fn nothing_is_concluded_if_the_replay_error_is_large() {
    let builder = shell_with(0);
    let found = report(&builder.recording, &[]);
    let sentence = "No verdict: the replay error is -100.0 %: the recording is too incomplete.";
    assert_eq!(verdict::verdict(&found).as_deref(), Some(sentence));
    assert!(found.advices.worth.is_empty() && found.advices.not_worth.is_empty());
    let advice_text = plain(&advice::render(&found, false, 80, None));
    for text in [advice_text, whole_table(&found, 80)] {
        assert_contains(&unwrapped(&text), [sentence]);
    }
    let parsed: Value = advice::json(&found);
    assert_eq!(parsed["principal_cause"], sentence);

    let forest = Forest::build(&builder.recording);
    let asked = RequestedChange {
        change: Change::Static,
        text: "--static sh".to_owned(),
        selector: Some(Selector::parse("sh").unwrap()),
    };
    let none = timelines(&forest, &[]);
    let refused = whatif_report(&builder.recording, &forest, &none, &[asked]);
    assert!(matches!(refused, Err(WhatIfError::Unreliable(error)) if error == -1.0));
}

#[test]
fn the_verdict_says_that_most_of_the_wall_is_unknown() {
    let mut builder = shell_with(0);
    builder.recording.launches[0].pid = Some(Pid(1));
    let polls = open_wait(1, 0, 10_000_000, POLL, 0);
    let found = report(&builder.recording, &[polls]);
    let verdict = verdict::verdict(&found);
    assert_eq!(verdict.as_deref(), Some("What 99.5 % of the wall time went into is unknown."));
}

#[test]
fn an_unfinished_wait_is_listed_with_the_childs_own_waits() {
    let builder = shell_with(1);
    let waits = open_wait(1, 0, 1_500_000, WAIT4, ANY_CHILD);
    let slices = [&[waits][..], &sleeping_child(2)].concat();
    let mut found = report(&builder.recording, &slices);
    found.waits = attribution(&builder.recording, &slices);
    let [wait] = &found.waits[..] else { panic!("{:?}", found.waits) };
    assert_eq!(wait.parts.total(), Nanos(WALL - 1_500_000));
    let asleep = sleeping_child(2)[1].off.0;
    assert_eq!(wait.parts.run_waiting, Nanos(WALL - asleep));
    assert!(wait.parts.run > wait.parts.run_waiting);
    let line = "sh waited 2.00 s in wait4 for 1 x sleep: 2.00 s run (2.00 s of it blocked)";
    assert_contains(&whole_table(&found, 200), [line]);
}
