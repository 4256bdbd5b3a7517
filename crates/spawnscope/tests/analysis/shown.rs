//! Text output at every width: sentences are wrapped and never cut, numbers stay next to their labels, and a value is the same in every
//! output.

use anstream::adapter::strip_str;
use serde_json::Value;
use spawnscope::analyze::advice::AdviceList;
use spawnscope::analyze::select::Selector;
use spawnscope::analyze::whatif::changes::Change;
use spawnscope::analyze::whatif::whatif_report::{RequestedChange, WhatIfError, WhatIfReport, whatif_report};
use spawnscope::analyze::{Causes, Forest, GroupBy, Report, report_on};
use spawnscope::event::{Calibration, Constant, Language};
use spawnscope::present::{advice, table, whatif};
use spawnscope::record::reader::{Recording, SliceRow};
use spawnscope::units;

use crate::builder::{ROOT, Spans};
use crate::recordings::substitution_recording;
use crate::serial::{READ, Serial, timelines};

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

fn report((recording, slices): &(Recording, Vec<SliceRow>), group_by: GroupBy) -> Report {
    let forest = Forest::build(recording);
    let causes = Causes::find(recording, &forest, &timelines(&forest, slices));
    report_on(recording, &forest, causes.as_ref(), group_by)
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
    let words: Vec<String> = strip_str(text)
        .to_string()
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    words.join(" ")
}

#[test]
fn keep_rule_removes_the_advice_of_all_other_rules() {
    let recorded = substitution_recording("/bin/bash", 60, &["dirname", "/a/b"]);
    let found = report(&recorded, GroupBy::Command);
    let rules =
        |found: &Report| -> Vec<&str> { found.advices.worth.iter().map(|advice| advice.finding.rule).collect() };
    let first = *rules(&found).first().expect("advice");
    assert!(AdviceList::rules().any(|name| name == first), "{first} is not a rule");
    let mut kept = found.clone();
    kept.advices.keep_rule(first);
    assert!(!rules(&kept).is_empty() && rules(&kept).iter().all(|rule| *rule == first));
    let printed = joined(&advice::render(&kept, true, 80, None));
    assert!(printed.contains(&format!("rule {first})")), "{printed}");
    kept.advices.keep_rule("close-loop");
    assert!(kept.advices.worth.is_empty() && kept.advices.together.is_none());
}

#[test]
fn a_removal_counts_the_forks_that_remain() {
    let recorded = substitution_recording("/bin/bash", 30, &["sed", "s/a/b/"]);
    let printed_text = |selections: &[&str]| joined(&whatif::render(&without(&recorded, selections).unwrap(), 80));
    let stay = "30 forks remain that ran no other program: `--remove '(bash)'` removes all (bash) launches";
    assert!(printed_text(&["sed"]).contains(stay), "{}", printed_text(&["sed"]));
    for selections in [&["sed", "(bash)"][..], &["(bash)"]] {
        assert!(
            !printed_text(selections).contains("forks remain"),
            "{selections:?}: {}",
            printed_text(selections)
        );
    }
    let looping = joined(&whatif::render(&without_dirname(&looping()).unwrap(), 80));
    assert!(
        !looping.contains("forks remain"),
        "each fork executes dirname itself: {looping}"
    );
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
    let refused = |selection: &str| without(&recorded, &[selection]).unwrap_err().to_string();
    let printed_text = refused("line=git25.sh:9");
    assert!(
        printed_text.contains("calls functions that requested 5 launches, most of them at git25.sh:5"),
        "{printed_text}"
    );
    for selection in ["line=git25.sh:8", "mv,line=git25.sh:9"] {
        let expected = format!("no launch matches `--remove {selection}`");
        assert_eq!(refused(selection), expected, "that line called no mv");
    }
    assert_eq!(without(&recorded, &["line=git25.sh:5"]).unwrap().changes[0].launches, 5);
}

#[test]
fn names_in_parentheses_are_explained_where_they_are_shown() {
    let forks = substitution_recording("/bin/bash", 30, &["sed", "s/a/b/"]);
    let shown = |recorded, group_by| joined(&table::render(&report(recorded, group_by), &table::Options::default()));
    let fork = "(bash): a fork of bash that runs no other program";
    let recorder = "(recorder): spawnscope, which started the command";
    let critical = "critical: time on the critical path, including run";
    let by_command = shown(&forks, GroupBy::Command);
    assert!(
        by_command.contains(fork) && !by_command.contains(recorder),
        "{by_command}"
    );
    assert!(by_command.contains(critical), "{by_command}");
    let by_parent = shown(&forks, GroupBy::Parent);
    assert!(by_parent.contains(recorder) && !by_parent.contains(fork), "{by_parent}");
    let by_line = shown(&forks, GroupBy::Line);
    assert!(by_line.contains(recorder) && by_line.contains(fork), "{by_line}");
    assert!(!shown(&looping(), GroupBy::Command).contains(fork));
}

#[test]
fn a_prediction_is_complete_at_every_width() {
    let whatif_report = without_dirname(&looping()).unwrap();
    for width in WIDTHS {
        let text = strip_str(&whatif::render(&whatif_report, width)).to_string();
        assert!(!text.contains('…'), "{width}:\n{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= width),
            "{width}:\n{text}"
        );
        for sentence in [
            "of the wall; between ",
            "waiting for a timer",
            "launching: all phases but run",
        ] {
            assert!(joined(&text).contains(sentence), "{width}: {sentence}\n{text}");
        }
    }
}

#[test]
fn a_saving_has_the_same_interval_in_every_output() {
    let looping = looping();
    let whatif_report = without_dirname(&looping).unwrap();
    let advised = report(&looping, GroupBy::Command).advices.worth[0].saving;
    assert_eq!(whatif_report.prediction.saving(), advised);
    let parsed: Value = serde_json::from_str(&whatif::json(&whatif_report)).unwrap();
    let output = ["saving_ns", "saving_low_ns", "saving_high_ns"].map(|key| parsed[key].as_u64().unwrap());
    assert_eq!(output, advised.map(|saving| saving.0));
    let [saved, least, most] = advised.map(spawnscope::units::time);
    let text = joined(&whatif::render(&whatif_report, 80));
    assert!(text.contains(&format!("saved {saved} ")), "{text}");
    assert!(
        text.contains(&format!("of the wall; between {least} and {most}")),
        "{text}"
    );
}

/// Savings refer to the wall without recording overhead. Every output shows the same share of that wall.
#[test]
fn a_saving_has_the_same_share_of_the_unrecorded_wall_in_every_output() {
    let (mut recording, mut slices) = looping();
    recording.calibration.push(Calibration {
        what: Constant::RecordedCall,
        ns: 250.0,
        low_ns: None,
        high_ns: None,
    });
    slices.iter_mut().for_each(|slice| slice.calls = Some(400));
    let recorded = (recording, slices);
    let whatif_report = without_dirname(&recorded).unwrap();
    let prediction = &whatif_report.prediction;
    assert!(
        prediction.wall.0 > prediction.unrecorded.0 + prediction.wall.0 / 100,
        "{prediction:?}"
    );
    let found = report(&recorded, GroupBy::Command);
    let base = units::time(prediction.unrecorded);
    let share = format!(
        "{} of the wall without recording overhead",
        units::percent(prediction.saving()[0], prediction.unrecorded)
    );
    let output = joined(&whatif::render(&whatif_report, 80));
    assert!(output.contains(&share), "{output}");
    assert!(
        output.contains(&format!("about {base} without recording overhead")),
        "{output}"
    );
    let output = joined(&advice::render(&found, false, 80, None));
    assert!(output.contains(&share), "{output}");
    let output = joined(&table::render(&found, &table::Options::default()));
    assert!(output.contains(&share), "{output}");
    assert!(
        output.contains(&format!("of {base} without recording overhead")),
        "{output}"
    );
    let parsed: Value = serde_json::from_str(&advice::json(&found)).unwrap();
    assert_eq!(parsed["unrecorded_ns"].as_u64(), Some(prediction.unrecorded.0));
}

#[test]
fn figures_are_next_to_their_names_on_wide_pages() {
    let found = report(&looping(), GroupBy::Command);
    let text = table::render(&found, &table::Options::all(200));
    let text = strip_str(&text).to_string();
    let row = text.lines().find(|line| line.starts_with("  dirname")).unwrap();
    assert!(row.starts_with("  dirname     40"), "{row}");
}

#[test]
fn shares_of_lines_are_marked_as_excluding_sleep() {
    let mut looping = looping();
    let legend = |looping: &(Recording, Vec<SliceRow>)| {
        let found = report(looping, GroupBy::Line);
        joined(&table::render(&found, &table::Options::default()))
    };
    let output = legend(&looping);
    assert!(
        output.contains("critical path, without sleeps and other external waits"),
        "{output}"
    );
    let mut serial = Serial::new();
    serial.launch(&Spans::USUAL, DIRNAME);
    looping = serial.finish();
    let output = legend(&looping);
    assert!(
        output.contains("on the critical path") && !output.contains("without sleeps"),
        "{output}"
    );
}

#[test]
fn instructions_are_complete_at_every_width() {
    let mut serial = Serial::with_command("/usr/bin/python3", &["python3", "run.py"]);
    for _ in 0..40 {
        serial.launch(&Spans::USUAL, Some(("/bin/sh", &["sh", "-c", "git status"])));
        let shell = serial.builder.recording.launches.last().unwrap().id;
        let at = serial.builder.row(shell).exit.unwrap().0 - 100_000;
        serial
            .builder
            .exec_at(shell, b"/usr/bin/git", &[b"git", b"status"], [at, at + 1, at + 2]);
    }
    let found = report(&serial.finish(), GroupBy::Command);
    for width in WIDTHS {
        let text = advice::render(&found, false, width, None);
        for snippet in [
            "subprocess.run([\"prog\", \"arg\"]) without shell=True",
            "os.system() and os.popen() always use a shell",
            "if the program cannot be changed: `spawnscope accel -- CMD`",
        ] {
            assert!(joined(&text).contains(snippet), "{width}: {snippet}\n{text}");
        }
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
    let output = |recorded: &_| joined(&advice::render(&report(recorded, GroupBy::Command), false, 80, None));
    assert!(output(&live).contains("still in progress"), "{}", output(&live));
    let mut cut_off = live;
    cut_off.0.info.is_live = false;
    assert!(matches!(without_dirname(&cut_off), Err(WhatIfError::NoWall)));
    assert!(
        output(&cut_off).contains("contains no complete command"),
        "{}",
        output(&cut_off)
    );
}

/// Returns the recording of a command that is executed by a version manager's shim, which runs for this many nanoseconds.
fn through_a_shim(shim_ns: u64) -> (Recording, Vec<SliceRow>) {
    let mut serial = Serial::with_command("/home/user/.rbenv/shims/ruby", &["bash", "ruby"]);
    let at = [shim_ns, shim_ns + 300_000, shim_ns + 600_000];
    serial.builder.exec_at(ROOT, b"/opt/ruby/bin/ruby", &[b"ruby"], at);
    serial.run_shell_until(60_000_000);
    serial.finish()
}

#[test]
fn advice_with_a_small_or_uncertain_saving_says_which_it_is() {
    let output = |shim| {
        let all = joined(&advice::render(
            &report(&through_a_shim(shim), GroupBy::Command),
            true,
            80,
            None,
        ));
        let doubt = "not worth fixing or too uncertain; see `--all`";
        let some = joined(&advice::render(
            &report(&through_a_shim(shim), GroupBy::Command),
            false,
            80,
            None,
        ));
        assert!(some.contains(doubt), "{some}");
        all
    };
    let uncertain = output(8_000_000);
    assert!(
        uncertain
            .contains("Too uncertain the recorded command reaches the real ruby through /home/user/.rbenv/shims/ruby"),
        "{uncertain}"
    );
    assert!(uncertain.contains("of the wall (between "), "{uncertain}");
    let little = output(3_000_000);
    assert!(
        little.contains("Not worth fixing: the saving is too small the recorded command reaches the real ruby"),
        "{little}"
    );
    let value: Value =
        serde_json::from_str(&advice::json(&report(&through_a_shim(3_000_000), GroupBy::Command))).unwrap();
    assert_eq!(value["not_worth"][0]["doubt"], "little");
}

#[test]
fn the_call_site_of_the_example_is_printed_after_it() {
    let mut serial = Serial::with_command("/bin/bash", &["bash", "unpack.sh"]);
    for line in (0..40).map(|number| 3 + number % 2) {
        let launch = serial.launch_waiting(&Spans::USUAL, DIRNAME, READ);
        let frame = serial.builder.line(Language::Bash, "unpack.sh", line, "");
        serial.builder.set_call_chain(launch, &[frame]);
    }
    let found = report(&serial.finish(), GroupBy::Command);
    let printed = joined(&advice::render(&found, false, 80, None));
    let expected = "launched from unpack.sh:3 (20 times) and 1 more line for example: dirname a/b call site of the example: unpack.sh:3 ->";
    assert!(printed.contains(expected), "{printed}");
    let parsed: Value = serde_json::from_str(&advice::json(&found)).unwrap();
    let evidence = parsed["advice"][0]["evidence"].as_str().unwrap();
    assert!(
        evidence.ends_with("and 1 more line. call site of the example: unpack.sh:3"),
        "{evidence}"
    );
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
    let by_command = report(&recorded, GroupBy::Command);
    for (text, label) in [
        (advice::render(&by_command, false, 80, None), "for example: git"),
        (table::render(&by_command, &table::Options::all(80)), "40 x"),
        (
            table::render(&report(&recorded, GroupBy::Arguments), &table::Options::all(80)),
            "git --no",
        ),
    ] {
        let text = strip_str(&text).to_string();
        let shown = text.lines().find(|line| line.contains(label) && line.contains('…'));
        assert!(
            shown.is_some_and(|line| line.contains("rev-parse --show-toplevel")),
            "{text}"
        );
    }
}
