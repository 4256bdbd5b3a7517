//! Counts, names and groups of launches.

use serde_json::Value;
use spawnscope::analyze::Origin;
use spawnscope::analyze::model::phases::Phase;
use spawnscope::event::{Loss, Missing};

use crate::prelude::*;

const TRUE: Option<(&str, &[&str])> = Some(("/bin/true", &["true"]));

fn bash() -> Builder {
    Builder::command("/bin/bash", &["bash"], 1_000_000_000)
}

#[test]
fn counts_exclude_processes_that_existed_before() {
    let mut builder = bash();
    builder.launch(ROOT, 0, &Spans::USUAL, TRUE);
    builder.launch(ROOT, 0, &Spans::USUAL, None);
    for (id, origin) in [(4, Origin::Existed), (5, Origin::Orphan)] {
        let row = blank(LaunchId(id), None, origin);
        builder.recording.launches.push(row);
    }
    builder.failed_exec_at(ROOT, "/a/x", libc::ENOENT, 1_000);
    let all = by_command(&builder.recording).all;
    assert_eq!((all.count, all.forks_without_exec), (4, 1));
    assert_eq!((all.failed_execs, all.orphans), (1, 1));
    assert_eq!(all.unfinished, 1, "the orphan");
}

#[test]
fn the_tax_is_everything_but_run() {
    let mut builder = bash();
    builder.launch(ROOT, 0, &Spans::USUAL, TRUE);
    let found = by_command(&builder.recording);
    let group = found.groups.iter().find(|group| group.label == b"true").unwrap();
    assert_eq!(group.sums.tax, Some(Nanos(Spans::USUAL.total() - Spans::USUAL.run)));
    assert_eq!(group.sums.total, Nanos(Spans::USUAL.total()));
    assert_eq!(group.sums.phases.get(Phase::Run).time, Some(Nanos(Spans::USUAL.run)));
}

#[test]
fn a_phase_that_is_known_for_no_launch_is_null_and_not_zero() {
    let mut builder = bash();
    builder.launch(ROOT, 0, &Spans::USUAL, TRUE);
    for exec in &mut builder.recording.execs {
        exec.load_end = None;
    }
    let found = by_command(&builder.recording);
    let parsed: Value = serde_json::from_str(&json::render(&found)).unwrap();
    assert!(parsed["phases"]["load"].is_null() && parsed["phases"]["run"].is_null());
    assert_eq!(parsed["phases_unknown"]["load"], 2);
    assert_eq!(parsed["phases"]["exec"], 600_000);
    let text = table_of(&found);
    // The CPU time is known, although the time of the phase is not.
    let legend = text.lines().find(|line| line.contains("▚ load")).unwrap();
    assert_eq!(unwrapped(legend), "▚ load - - - 400 us");
}

/// The recording is like one of an unprivileged collector: the exec phase is known only for the
/// command.
#[test]
fn a_phase_that_is_known_only_for_the_command_is_unknown_and_the_tax_is_a_lower_bound() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 50_000_000);
    for number in 0..20 {
        let start = number * 2_000_000;
        builder.launch(ROOT, start, &Spans::USUAL, TRUE);
    }
    for exec in &mut builder.recording.execs[1..] {
        (exec.enter, exec.returned) = (None, None);
    }
    let mut found = by_command(&builder.recording);
    let exec = found.all.phases.get(Phase::Exec);
    assert_eq!((exec.known, exec.unknown), (1, 20));
    let full = table_of(&found);
    let exec_line: Vec<&str> = full.lines().find(|line| line.contains("▒ exec")).unwrap().split_whitespace().collect();
    assert_eq!(exec_line[2..5], ["-", "-", "-"], "{full}");
    let bar = full.lines().find(|line| line.contains('█')).unwrap();
    assert!(!bar.contains('▒'), "{full}");
    assert!(full.contains("  start-up  "));
    found.info.missing.push(Missing { what: Missing::SCHEDULER.to_owned(), effect: String::new() });
    let full = table_of(&found);
    assert!(full.contains("  start-up, at least "), "{full}");
    let table = plain(&table::render_table(&found, &table::Options { width: 200, top: None, file: None }));
    assert!(table.contains(" start-up at least "), "{table}");
}

#[test]
fn a_mean_counts_only_launches_that_have_the_phase() {
    let mut builder = bash();
    for number in 0..3 {
        let id = builder.launch(ROOT, number * 9_000_000, &Spans::USUAL, TRUE);
        builder.launch(id, number * 9_000_000 + 2_000_000, &Spans::USUAL, None);
    }
    let static_program = builder.recording.execs.last_mut().unwrap();
    (static_program.has_loader, static_program.load_end) = (Some(false), None);
    let found = by_command(&builder.recording);
    for (phase, expected) in [
        (Phase::Create, (Some(120_000), 6, 0)),
        // Forks have no setup, and that of the command is unknown.
        (Phase::Setup, (Some(40_000), 3, 0)),
        // Forks have no exec.
        (Phase::Exec, (Some(300_000), 4, 0)),
        // The static program has no load.
        (Phase::Load, (Some(400_000), 3, 0)),
    ] {
        let sum = found.all.phases.get(phase);
        assert_eq!((sum.mean().map(|mean| mean.0), sum.known, sum.unknown), expected, "{phase:?}");
    }
    let forks = found.groups.iter().find(|group| group.label == b"(true)").unwrap();
    assert_eq!(forks.sums.phases.get(Phase::Exec).mean(), None);
    let parsed: Value = serde_json::from_str(&json::render(&found)).unwrap();
    let mut rows = parsed["commands"].as_array().unwrap().iter();
    let row = rows.find(|row| row["command"] == "(true)").unwrap();
    // The forks have no exec, so its time is 0 and not null.
    assert_eq!(row["phases"]["exec"], 0);
}

#[test]
fn the_setup_of_the_command_is_neither_known_nor_counted_as_unknown() {
    let builder = bash();
    let all = by_command(&builder.recording).all;
    let setup = all.phases.get(Phase::Setup);
    assert_eq!((setup.time, setup.known, setup.unknown), (None, 0, 0));
}

/// Returns the labels of groups, sorted, with the numbers of their launches.
fn counts(report: &Report) -> Vec<String> {
    let mut counts: Vec<String> = report
        .groups
        .iter()
        .map(|group| format!("{}: {}", String::from_utf8_lossy(&group.label), group.sums.count))
        .collect();
    counts.sort_unstable();
    counts
}

#[test]
fn launches_can_be_grouped_by_their_arguments() {
    let mut builder = Builder::command("/bin/bash", &["bash", "build.sh"], 1_000_000_000);
    for (start, argument) in [(0, "a.c"), (10_000_000, "b.c"), (20_000_000, "a.c")] {
        let cc = Some(("/usr/bin/cc", &["cc", "-c", argument][..]));
        builder.launch(ROOT, start, &Spans::USUAL, cc);
    }
    builder.launch(ROOT, 30_000_000, &Spans::USUAL, None);
    let found = report(&builder.recording, GroupBy::Arguments);
    let expected = ["(bash): 1", "bash build.sh: 1", "cc -c a.c: 2", "cc -c b.c: 1"];
    assert_eq!(counts(&found), expected);
    let text = table_of(&found);
    assert!(text.contains("cc -c a.c"), "{text}");
    let parsed: Value = serde_json::from_str(&json::render(&found)).unwrap();
    assert_eq!(parsed["by"], "args");
}

#[test]
fn a_launch_of_unknown_parent_is_not_the_command_itself() {
    let mut builder = bash();
    builder.launch(LaunchId(99), 0, &Spans::USUAL, Some(("/bin/a", &["a"])));
    let found = report(&builder.recording, GroupBy::Parent);
    let orphans = found.groups.iter().find(|group| group.label == b"-").unwrap();
    assert_eq!((orphans.sums.count, found.groups.len()), (1, 2));
}

#[test]
fn a_sum_of_tax_that_exceeds_the_wall_is_not_a_share_of_it() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 10_000_000);
    for _ in 0..100 {
        builder.launch(ROOT, 1_000_000, &Spans::USUAL, TRUE);
    }
    let text = table_of(&by_command(&builder.recording));
    let tax = "  start-up                 95.8 ms   9.6 times the wall time, over all launches\n";
    assert!(text.contains(tax) && !text.contains("% of the wall"), "{text}");
}

#[test]
fn overlapping_launches_are_marked_and_serial_ones_are_not() {
    assert!(table_of_overlapping(2_000_000).contains("4.8 % of the wall time (all phases but run)"));
    assert!(table_of_overlapping(400_000).contains("4.8 % of the wall time, over all launches"));
}

fn table_of_overlapping(interval_ns: u64) -> String {
    let mut builder = bash();
    for number in 0..50 {
        builder.launch(ROOT, 1_000_000 + number * interval_ns, &Spans::USUAL, TRUE);
    }
    table_of(&by_command(&builder.recording))
}

#[test]
fn a_live_recording_is_not_called_cut_off() {
    let mut builder = bash();
    let info = &mut builder.recording.info;
    (info.wall, info.ended, info.is_live) = (None, None, true);
    let found = by_command(&builder.recording);
    let text = table_of(&found);
    assert!(!found.is_cut_off() && !text.contains("cut off"), "{text}");
    let expected = "  still being recorded: figures include everything up to the last batch\n";
    assert_contains(&text, [expected]);
    let parsed: Value = serde_json::from_str(&json::render(&found)).unwrap();
    assert_eq!(parsed["is_live"], true);
}

/// Returns a report with numbers of maximum width.
fn wide_figures() -> Report {
    let mut builder = Builder::command("/bin/bash", &["bash"], 40_000_000_000_000_000);
    for number in 0..1_100 {
        let spans = Spans { create: 987_600_000_000, run: 40_000_000_000_000, ..Spans::USUAL };
        let id = builder.launch(ROOT, number * 1_000_000, &spans, TRUE);
        builder.failed_exec_at(id, "/usr/local/bin/true", libc::ENOENT, number * 1_000_000);
    }
    let mut found = by_command(&builder.recording);
    for group in &mut found.groups {
        group.sums.count = 123_456_789;
        group.sums.failed_execs = 123_456_789;
    }
    found
}

#[test]
fn figures_never_touch_each_other_and_are_never_cut() {
    let found = wide_figures();
    for width in [40, 47, 55, 60, 68, 74, 79, 80, 120] {
        let text = whole_table(&found, width);
        let row = text.lines().find(|line| line.starts_with("  true ")).unwrap();
        let mut whole = row.split_whitespace().skip(1);
        assert_eq!(whole.next(), Some("123,456,789"), "{width}: {row}");
        assert!(row.contains(" 302 h"), "the tax at {width}: {row}");
        for line in text.lines() {
            assert!(spawnscope::present::text::width(line) <= width, "{width}: {line}");
            let is_note = line.starts_with("bash") || line.contains("of 1,101 launches");
            assert!(is_note || !line.contains('…'), "{width}: {line}");
        }
    }
}

#[test]
fn narrow_terminals_lose_whole_columns_in_a_fixed_order() {
    let mut builder = bash();
    builder.launch(ROOT, 0, &Spans::USUAL, TRUE);
    let found = by_command(&builder.recording);
    for (width, expected) in [
        (80, "count total mean start-up critical largest phase failed"),
        (70, "count total mean start-up critical"),
        (55, "count total start-up critical"),
        (42, "count start-up critical"),
        (40, "count start-up critical"),
    ] {
        assert_eq!(titles(&found, width, "command"), expected, "{width}");
    }
    let wide = wide_figures();
    let text = whole_table(&wide, 40);
    assert!(text.lines().any(|line| unwrapped(line) == "command count start-up"), "{text}");
    let phases = [80, 60, 48, 40].map(|width| titles(&found, width, "phase"));
    let expected = ["total share mean cpu", "total share mean", "total share", "total share"];
    assert_eq!(phases, expected);
}

fn titles(found: &Report, width: usize, first: &str) -> String {
    let text = whole_table(found, width);
    let line = text.lines().find(|line| line.trim_start().starts_with(first)).unwrap();
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_wall_of_a_recording_that_was_cut_off_ends_at_its_last_event() {
    let mut builder = bash();
    let info = &mut builder.recording.info;
    (info.wall, info.ended, info.last_event) = (None, None, Nanos(700_000_000));
    let found = by_command(&builder.recording);
    assert!(found.is_cut_off());
    assert_eq!(found.wall, Nanos(700_000_000));
    assert!(table_of(&found).contains("the recorder did not finish"));
}

#[test]
fn lost_events_are_always_printed() {
    let mut builder = bash();
    let lost = [("launch", 3), ("slice", 1_200)].map(|(kind, events)| Loss { kind: kind.to_owned(), events });
    builder.recording.info.lost = lost.to_vec();
    let text = table_of(&by_command(&builder.recording));
    assert!(text.contains("1,203 events (launch: 3, slice: 1,200)"), "{text}");
}

#[test]
fn a_recording_without_launches_has_a_report() {
    let mut builder = bash();
    builder.recording.launches.clear();
    let found = by_command(&builder.recording);
    assert_eq!((found.all.count, found.all.tax), (0, None));
    let text = table_of(&found);
    assert_contains(&text, ["launches                       0", "\n  no launches\n"]);
    assert!(!text.contains("  start-up  "), "{text}");
    serde_json::from_str::<Value>(&json::render(&found)).unwrap();
}

#[test]
fn rows_beyond_the_top_are_summed_in_one_line() {
    let mut builder = bash();
    for number in 0..30u64 {
        let program = format!("/bin/p{number}");
        builder.launch(ROOT, number * 2_000_000, &Spans::USUAL, Some((&program, &["p"])));
    }
    let found = by_command(&builder.recording);
    let options = table::Options { width: 80, top: Some(5), file: Some("'a b.db'") };
    let text = plain(&table::render(&found, &options));
    assert!(text.contains("… 26 more rows: 26 launches"), "{text}");
    let command = "  spawnscope report --by command --top 0 'a b.db'";
    assert!(text.lines().any(|line| line == command), "{text}");
    assert!(!whole_table(&found, 80).contains("more rows"));
}
