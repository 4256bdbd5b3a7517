//! Tests how the outputs show the call sites of launches.

use serde_json::Value;
use spawnscope::analyze::critical_path;
use spawnscope::analyze::model::external_wait::ExternalWait;
use spawnscope::analyze::path::flame::{FlameOptions, Stacking, Weight, flame};
use spawnscope::analyze::sites::callers::{Callers, Detail};
use spawnscope::analyze::sites::select::{SelectError, Selector};
use spawnscope::present::flame::folded;
use spawnscope::record::reader::FrameRow;

use crate::prelude::*;
use crate::printed::launches_as_ndjson;
use crate::recordings::{DIRNAME, MV, find, relocate, serial_unpacking, unpacking};

/// Returns a recording of `sh -c SCRIPT`, as make runs a recipe, with a launch from each of these
/// lines.
fn launches_by_recipe(script: &str, lines: &[u32]) -> Recording {
    let mut builder = Builder::command("/bin/sh", &["sh", "-c", script], 1_000_000_000);
    for (at, line) in (1_000_000..).step_by(2_000_000).zip(lines) {
        let launch = builder.launch(ROOT, at, &Spans::USUAL, DIRNAME);
        let frame = FrameRow { file: None, ..builder.line(Language::Dash, "", *line, "") };
        builder.set_call_chain(launch, &[frame]);
    }
    builder.recording
}

#[test]
fn a_script_without_a_file_is_labelled_by_its_text() {
    let long = "x".repeat(100);
    let script = format!("dirname \"$p\"\n\n  mv a b\n{long}é");
    let recording = launches_by_recipe(&script, &[1, 3, 4, 9]);
    let forest = Forest::build(&recording);
    let expected =
        ["sh -c 'dirname \"$p\"'", "sh -c 'mv a b' line 3", &format!("sh -c '{}…' line 4", &long[..48]), "sh line 9"];
    assert_eq!(call_site_labels(&forest, Detail::Line), expected);
    assert_eq!(call_site_labels(&forest, Detail::Function), [expected[0]; 4]);
    let wanted = FlameOptions { weight: Weight::Count, stacking: Stacking::Caller, phase: None };
    let drawn = folded(&flame(&forest, None, |_| b"", wanted).unwrap());
    let first = "sh;-c 'dirname \"$p\"';dirname 1\n";
    assert_contains(&drawn, [first, "sh;-c:3 'mv a b';dirname 1\n"]);
}

fn call_site_labels(forest: &Forest<'_>, detail: Detail) -> Vec<String> {
    let callers = Callers::find(forest, detail);
    (1..5).map(|launch| String::from_utf8(callers.call_site_of(launch).unwrap().label()).unwrap()).collect()
}

#[test]
fn a_command_lists_its_call_sites() {
    let found = report(&unpacking(), GroupBy::Command);
    let mv = find(&found.groups, "mv");
    let largest = mv.callers.largest.iter().map(|(call_site, count)| (call_site.line, *count));
    assert_eq!(largest.collect::<Vec<_>>(), [(Some(20), 5)]);
    assert_eq!(mv.callers.unknown, 1);
    // The recorder, which has no script lines, launched bash.
    let bash = find(&found.groups, "bash");
    assert_eq!(bash.callers.unknown, 0);
    let parsed: Value = serde_json::from_str(&json::render(&found)).unwrap();
    let commands = parsed["commands"].as_array().unwrap();
    let dirname = commands.iter().find(|command| command["command"] == "dirname").unwrap();
    let caller = &dirname["callers"][0];
    assert_eq!(
        (&caller["file"], &caller["line"], &caller["function"], &caller["count"]),
        (&"/opt/unpack.sh".into(), &14.into(), &"relocate".into(), &5.into())
    );
}

#[test]
fn a_line_has_its_share_of_the_wall() {
    let (recording, slices) = serial_unpacking().finish();
    let forest = Forest::build(&recording);
    let timelines = timelines(&forest, &slices);
    let causes = spawnscope::analyze::Causes::find(&recording, &forest, &timelines).unwrap();
    let found = spawnscope::analyze::report_on(&recording, &forest, Some(&causes), GroupBy::Line);
    let line = find(&found.groups, "unpack.sh:14 in relocate()");
    assert_eq!(line.inclusive.critical, Some(Nanos(30 * Spans::USUAL.total())));
    let text = whole_table(&found, 100);
    let share = 100.0 * (30 * Spans::USUAL.total()) as f64 / found.wall.0 as f64;
    let sentence =
        format!("unpack.sh:14 in relocate(): 30 x dirname, 34.5 ms in all, {share:.1} % of the critical path");
    assert!(text.contains(&sentence), "{sentence}\n{text}");
    let command = find(&found.groups, "(recorder)");
    let path = critical_path(&forest, &timelines, found.wall).unwrap();
    // The group is the command with its descendants, from the command's exec on.
    let sum = path.sum().since(path.external_wait[&ExternalWait::Recorder]);
    assert_eq!(command.inclusive.critical, Some(sum));
    let order: Vec<&[u8]> = found.groups.iter().map(|group| group.label.as_slice()).collect();
    let lines: [&[u8]; 3] = [b"unpack.sh:14 in relocate()", b"unpack.sh:20", b"(recorder)"];
    assert_eq!(order, lines, "the command has no line");
    let parsed: Value = serde_json::from_str(&json::render(&found)).unwrap();
    let row = &parsed["commands"][0];
    assert_eq!(parsed["by"], "line");
    assert_eq!(row["command"], "unpack.sh:14 in relocate()");
    assert_eq!(row["caller"]["line"], 14);
    assert_eq!(row["inclusive_critical_ns"], 30 * Spans::USUAL.total());
    assert_eq!(row["launched"][0]["count"], 30);
}

#[test]
fn a_report_by_line_explains_missing_call_sites() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 100_000_000);
    builder.launch(ROOT, 0, &Spans::USUAL, MV);
    let forest = Forest::build(&builder.recording);
    let refused = Selector::parse("line=a.sh:1").unwrap().select(&forest);
    assert!(matches!(refused, Err(SelectError::Line(_))), "{refused:?}");
    let text = table_of(&report(&builder.recording, GroupBy::Line));
    assert_contains(&text, ["does not contain call sites", "(bash: unknown line): 1 x mv"]);
}

#[test]
fn ndjson_has_the_whole_call_chain_of_a_launch() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 100_000_000);
    let launch = builder.launch(ROOT, 0, &Spans::USUAL, MV);
    let chain = relocate(&mut builder);
    builder.set_call_chain(launch, &chain);
    let native = builder.code("/bin/bash", "make_child", 0x10);
    let native = builder.set_call_chain(launch, &[native]);
    builder.recording.stacks[native.index() as usize].is_truncated = true;
    let name = builder.text(b"caf\xe9");
    builder.recording.frames[1].function = Some(name);
    let lines = launches_as_ndjson(&builder.recording);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["caller"], Value::Null);
    let caller = &lines[1]["caller"];
    assert_eq!(caller["line"], 14);
    assert_eq!(caller["function"], "caf\u{fffd}");
    assert_eq!(caller["function_hex"], "636166e9");
    assert_eq!(caller["stack"][1]["line"], 30);
    assert_eq!(caller["stack_truncated"], false);
    assert_eq!(caller["native_stack"][0]["function"], "make_child");
    assert_eq!(caller["native_stack_truncated"], true);
}
