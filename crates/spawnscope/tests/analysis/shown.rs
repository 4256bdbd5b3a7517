//! Text output at every width: sentences are wrapped and never cut, numbers stay next to their
//! labels, and a value is the same in every output.

use serde_json::Value;
use spawnscope::analyze::explain::advice::{Advice, AdviceList};
use spawnscope::analyze::predict::whatif::changes::Change;
use spawnscope::analyze::predict::whatif::whatif_report::{RequestedChange, WhatIfError, WhatIfReport, whatif_report};
use spawnscope::analyze::sites::select::Selector;
use spawnscope::event::{Calibration, Constant};
use spawnscope::present::{advice, whatif};
use spawnscope::units;

use crate::prelude::*;
use crate::printed::{plain, report_with_causes as report, whole_table};
use crate::recordings::substitution_recording;

const DIRNAME: Option<(&str, &[&str])> = Some(("/usr/bin/dirname", &["dirname", "a/b"]));
const WIDTHS: [usize; 4] = [40, 60, 80, 200];

/// Returns the recording of a loop with `$(dirname)` and of a program that sleeps.
fn looping() -> (Recording, Vec<SliceRow>) {
    let mut serial = Serial::new();
    for _ in 0..40 {
        serial.launch_waiting(&Spans::USUAL, DIRNAME, READ);
    }
    serial.launch_sleeping(&Spans::USUAL, ("/bin/sleep", &["sleep", "0.1"]), 100_000_000);
    serial.finish()
}

fn without_dirname(recorded: &(Recording, Vec<SliceRow>)) -> Result<WhatIfReport, WhatIfError> {
    without(recorded, &["dirname"])
}

fn without((recording, slices): &(Recording, Vec<SliceRow>), selections: &[&str]) -> Result<WhatIfReport, WhatIfError> {
    let forest = Forest::build(recording);
    let asked = selections.iter().map(|selection| RequestedChange {
        change: Change::Remove,
        text: format!("--remove {selection}"),
        selector: Some(Selector::parse(selection).unwrap()),
    });
    let asked: Vec<RequestedChange> = asked.collect();
    whatif_report(recording, &forest, &timelines(&forest, slices), &asked)
}

/// Returns the text without styles and line breaks.
fn joined(text: &str) -> String {
    unwrapped(&plain(text))
}

#[test]
fn keep_rule_removes_the_advice_of_all_other_rules() {
    let recorded = substitution_recording("/bin/bash", 60, None, &["dirname", "/a/b"]);
    let found = report(&recorded, GroupBy::Command);
    let rules =
        |found: &Report| -> Vec<&str> { found.advices.worth.iter().map(|advice| advice.finding.rule).collect() };
    let first = *rules(&found).first().expect("advice");
    assert!(AdviceList::rules().any(|name| name == first), "{first} is not a rule");
    let mut kept = found.clone();
    kept.advices.keep_rule(first);
    assert!(!rules(&kept).is_empty() && rules(&kept).iter().all(|rule| *rule == first));
    let printed = joined(&advice::render(&kept, true, 80, None));
    assert!(printed.contains(&format!("rule {first} ")), "{printed}");
    kept.advices.keep_rule("close-loop");
    assert!(kept.advices.worth.is_empty() && kept.advices.together.is_none());
}

#[test]
fn a_removal_counts_the_forks_that_remain() {
    let recorded = substitution_recording("/bin/bash", 30, None, &["sed", "s/a/b/"]);
    let stay = "30 forks remain that ran no other program: `--remove '(bash)'` removes all (bash) launches";
    assert_contains(&printed_removal(&recorded, &["sed"]), [stay]);
    for selections in [&["sed", "(bash)"][..], &["(bash)"]] {
        let text = printed_removal(&recorded, selections);
        assert!(!text.contains("forks remain"), "{selections:?}: {text}");
    }
    let looping = joined(&whatif::render(&without_dirname(&looping()).unwrap(), 80));
    // Each fork executes dirname itself.
    assert!(!looping.contains("forks remain"), "{looping}");
}

fn printed_removal(recorded: &(Recording, Vec<SliceRow>), selections: &[&str]) -> String {
    joined(&whatif::render(&without(recorded, selections).unwrap(), 80))
}

#[test]
fn selecting_a_line_that_only_calls_functions_fails_and_names_the_launching_line() {
    let mut serial = Serial::new();
    for _ in 0..5 {
        let launch = serial.launch_waiting(&Spans::USUAL, DIRNAME, READ);
        let chain = [(5, "git"), (9, "")]
            .map(|(line, function)| serial.builder.line(Language::Bash, "/opt/git25.sh", line, function));
        serial.builder.set_call_chain(launch, &chain);
    }
    let recorded = serial.finish();
    let printed_text = without(&recorded, &["line=git25.sh:9"]).unwrap_err().to_string();
    let sentence = "calls functions that requested 5 launches, most of them at git25.sh:5";
    assert_contains(&printed_text, [sentence]);
    for selection in ["line=git25.sh:8", "mv,line=git25.sh:9"] {
        let expected = format!("no launch matches `--remove {selection}`");
        let refused = without(&recorded, &[selection]).unwrap_err().to_string();
        assert_eq!(refused, expected, "that line called no mv");
    }
    assert_eq!(without(&recorded, &["line=git25.sh:5"]).unwrap().changes[0].launches, 5);
}

#[test]
fn names_in_parentheses_are_explained_where_they_are_shown() {
    let forks = substitution_recording("/bin/bash", 30, None, &["sed", "s/a/b/"]);
    let fork = "(bash): a fork of bash that runs no other program";
    let recorder = "(recorder): spawnscope, which started the command";
    let critical = "critical: time on the critical path, including run";
    let by_command = shown_by(&forks, GroupBy::Command);
    assert_contains(&by_command, [fork, critical]);
    assert!(!by_command.contains(recorder), "{by_command}");
    let by_parent = shown_by(&forks, GroupBy::Parent);
    assert!(by_parent.contains(recorder) && !by_parent.contains(fork), "{by_parent}");
    let by_line = shown_by(&forks, GroupBy::Line);
    assert!(by_line.contains(recorder) && by_line.contains(fork), "{by_line}");
    assert!(!shown_by(&looping(), GroupBy::Command).contains(fork));
}

fn shown_by(recorded: &(Recording, Vec<SliceRow>), group_by: GroupBy) -> String {
    joined(&table::render(&report(recorded, group_by), &table::Options::default()))
}

#[test]
fn a_prediction_is_complete_at_every_width() {
    let whatif_report = without_dirname(&looping()).unwrap();
    for width in WIDTHS {
        let text = plain(&whatif::render(&whatif_report, width));
        let fits = text.lines().all(|line| line.chars().count() <= width);
        assert!(fits && !text.contains('…'), "{width}:\n{text}");
        let parts = ["of the wall time; between ", "waiting for a timer", "start-up (all phases but run)"];
        assert_contains(&joined(&text), parts);
    }
}

#[test]
fn a_saving_has_the_same_interval_in_every_output() {
    let looping = looping();
    let whatif_report = without_dirname(&looping).unwrap();
    let advised = report(&looping, GroupBy::Command).advices.worth[0].saving;
    assert_eq!(whatif_report.prediction.saving(), advised);
    let parsed: Value = whatif::json(&whatif_report);
    let output = ["saving_ns", "saving_low_ns", "saving_high_ns"].map(|key| parsed[key].as_u64().unwrap());
    assert_eq!(output, advised.map(|saving| saving.0));
    let [saved, least, most] = advised.map(spawnscope::units::time);
    let text = joined(&whatif::render(&whatif_report, 80));
    let interval = format!("of the wall time; between {least} and {most}");
    assert_contains(&text, [&format!("saved {saved} "), &interval]);
}

/// Savings refer to the wall without recording overhead. Every output shows the same share of that
/// wall.
#[test]
fn a_saving_has_the_same_share_of_the_unrecorded_wall_in_every_output() {
    let (mut recording, mut slices) = looping();
    recording.calibration.push(Calibration { what: Constant::RecordedCall, ns: 250.0, low_ns: None, high_ns: None });
    slices.iter_mut().for_each(|slice| slice.calls = Some(400));
    let recorded = (recording, slices);
    let whatif_report = without_dirname(&recorded).unwrap();
    let prediction = &whatif_report.prediction;
    let hundredth = prediction.wall.0 / 100;
    assert!(prediction.wall.0 > prediction.unrecorded.0 + hundredth, "{prediction:?}");
    let found = report(&recorded, GroupBy::Command);
    let base = units::time(prediction.unrecorded);
    let share = units::percent(prediction.saving()[0], prediction.unrecorded);
    let output = joined(&whatif::render(&whatif_report, 80));
    let of = format!("{share} of the wall time without recording overhead");
    assert_contains(&output, [&of, &format!("about {base} without recording overhead")]);
    let output = joined(&advice::render(&found, false, 80, None));
    assert_contains(&output, [&format!("saves {share}, "), &format!("100 % is {base}, the run without recording")]);
    let parsed: Value = advice::json(&found);
    assert_eq!(parsed["unrecorded_ns"].as_u64(), Some(prediction.unrecorded.0));
}

#[test]
fn figures_are_next_to_their_names_on_wide_pages() {
    let found = report(&looping(), GroupBy::Command);
    let text = whole_table(&found, 200);
    let row = text.lines().find(|line| line.starts_with("  dirname")).unwrap();
    assert!(row.starts_with("  dirname     40"), "{row}");
}

#[test]
fn shares_of_lines_are_marked_as_excluding_sleeps() {
    let output = shown_by(&looping(), GroupBy::Line);
    assert_contains(&output, ["what they launch, without sleeps and other external waits"]);
    let mut serial = Serial::new();
    serial.launch(&Spans::USUAL, DIRNAME);
    let output = shown_by(&serial.finish(), GroupBy::Line);
    assert_contains(&output, ["on the critical path"]);
    assert!(!output.contains("without sleeps"), "{output}");
}

#[test]
fn instructions_are_complete_at_every_width() {
    let mut serial = Serial::with_command("/usr/bin/python3", &["python3", "run.py"]);
    for _ in 0..40 {
        serial.launch(&Spans::USUAL, Some(("/bin/sh", &["sh", "-c", "git status"])));
        let shell = serial.builder.recording.launches.last().unwrap().id;
        let at = serial.builder.row(shell).exit.unwrap().0 - 100_000;
        let builder = &mut serial.builder;
        builder.exec_at(shell, b"/usr/bin/git", &[b"git", b"status"], [at, at + 1, at + 2]);
    }
    let mut found = report(&serial.finish(), GroupBy::Command);
    // Another fix for the same launches may come first.
    let all = std::mem::take(&mut found.advices.worth).into_iter().flat_map(Advice::separated);
    found.advices.worth = all.filter(|advice| advice.finding.rule == "needless-shell").collect();
    for width in WIDTHS {
        let text = advice::render(&found, false, width, None);
        let run = "subprocess.run([\"prog\", \"arg\"]) without shell=True";
        let system = "os.system() and os.popen() always use a shell";
        let accel = "if the program cannot be changed: `spawnscope accel -- CMD`";
        assert_contains(&joined(&text), [run, system, accel]);
        // The author of a Python script does not need the instructions for C and JavaScript.
        assert!(!text.contains("posix_spawnp") && !text.contains("execFile"), "{text}");
    }
}

#[test]
fn a_growing_recording_is_marked_as_such() {
    let (mut recording, slices) = looping();
    recording.info.wall = None;
    recording.info.ended = None;
    recording.info.is_live = true;
    let live = (recording, slices);
    assert!(matches!(without_dirname(&live), Err(WhatIfError::IsLive)));
    assert_contains(&shown_advice(&live), ["still in progress"]);
    let mut cut_off = live;
    cut_off.0.info.is_live = false;
    assert!(matches!(without_dirname(&cut_off), Err(WhatIfError::NoWall)));
    assert_contains(&shown_advice(&cut_off), ["contains no complete command"]);
}

fn shown_advice(recorded: &(Recording, Vec<SliceRow>)) -> String {
    joined(&advice::render(&report(recorded, GroupBy::Command), false, 80, None))
}

/// Returns the recording of a command that a version manager's shim executes after `shim_ns`.
fn through_a_shim(shim_ns: u64) -> (Recording, Vec<SliceRow>) {
    let mut serial = Serial::with_command("/home/user/.rbenv/shims/ruby", &["bash", "ruby"]);
    let at = [shim_ns, shim_ns + 300_000, shim_ns + 600_000];
    serial.builder.exec_at(ROOT, b"/opt/ruby/bin/ruby", &[b"ruby"], at);
    serial.run_shell_until(60_000_000);
    serial.finish()
}

#[test]
fn advice_with_a_small_or_uncertain_saving_says_which_it_is() {
    let uncertain = all_advice_on_a_shim(5_600_000);
    let expected = "Too uncertain the recorded command reaches the real ruby through /home/user/.rbenv/shims/ruby";
    assert_contains(&uncertain, [expected]);
    assert_contains(&uncertain, ["of the wall time (between "]);
    let little = all_advice_on_a_shim(3_000_000);
    let expected = "Not worth fixing: the saving is too small the recorded command reaches the real ruby";
    assert_contains(&little, [expected]);
    let found = report(&through_a_shim(3_000_000), GroupBy::Command);
    let value: Value = advice::json(&found);
    assert_eq!(value["not_worth"][0]["doubt"], "little");
}

fn all_advice_on_a_shim(shim_ns: u64) -> String {
    let found = report(&through_a_shim(shim_ns), GroupBy::Command);
    let some = joined(&advice::render(&found, false, 80, None));
    assert_contains(&some, ["not worth fixing or too uncertain; see `--all`"]);
    joined(&advice::render(&found, true, 80, None))
}

#[test]
fn the_example_is_from_the_line_that_requests_most() {
    let mut serial = Serial::with_command("/bin/bash", &["bash", "unpack.sh"]);
    for number in 0..40 {
        let (line, path) = if number % 4 == 0 { (3, "a/b") } else { (4, "c/d") };
        let launch = serial.launch_waiting(&Spans::USUAL, Some(("/usr/bin/dirname", &["dirname", path])), READ);
        let frame = serial.builder.line(Language::Bash, "unpack.sh", line, "");
        serial.builder.set_call_chain(launch, &[frame]);
    }
    let found = report(&serial.finish(), GroupBy::Command);
    let printed = joined(&advice::render(&found, false, 80, None));
    let expected = "launched from unpack.sh:4 (30 times) and 1 more line for example: dirname c/d ->";
    assert!(printed.contains(expected), "{printed}");
}

#[test]
fn shortened_command_lines_with_the_same_beginning_show_their_ends() {
    let options = "core.preloadindex=true,log.showSignature=false,color.ui=false,color.diff=false";
    let git: &[&str] = &["git", "--no-pager", "-c", options, "rev-parse", "--show-toplevel"];
    let mut serial = Serial::with_command("/usr/bin/python3", &["python3", "status.py"]);
    for _ in 0..40 {
        serial.launch_waiting(&Spans::USUAL, Some(("/usr/bin/git", git)), READ);
    }
    let recorded = serial.finish();
    let [by_command, by_arguments] = [GroupBy::Command, GroupBy::Arguments].map(|by| report(&recorded, by));
    for (text, label) in [
        (plain(&advice::render(&by_command, false, 80, None)), "for example: git"),
        (whole_table(&by_command, 80), "40 x"),
        (whole_table(&by_arguments, 80), "git --no"),
    ] {
        let mut shown = text.lines().filter(|line| line.contains(label) && line.contains('…'));
        assert!(shown.next().is_some_and(|line| line.contains("rev-parse --show-toplevel")), "{text}");
    }
}
