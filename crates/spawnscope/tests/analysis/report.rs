//! Counts, names and groups of launches.

use anstream::adapter::strip_str;
use serde_json::Value;
use spawnscope::analyze::phases::Phase;
use spawnscope::analyze::{GroupBy, Origin, Report, report};
use spawnscope::event::{LaunchId, Loss, Nanos};
use spawnscope::present::{json, summary, table};

use crate::builder::{Builder, ROOT, Spans, blank};

fn shown(report: &Report, options: &table::Options) -> String {
    strip_str(&table::render(report, options)).to_string()
}

#[test]
fn counts_exclude_processes_that_existed_before() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    builder.launch(ROOT, 0, &Spans::USUAL, Some(("/bin/true", &["true"])));
    builder.launch(ROOT, 0, &Spans::USUAL, None);
    builder
        .recording
        .launches
        .push(blank(LaunchId(4), None, Origin::Existed));
    builder
        .recording
        .launches
        .push(blank(LaunchId(5), None, Origin::Orphan));
    builder.failed_exec_at(ROOT, "/a/x", libc::ENOENT, 1_000);
    let all = report(&builder.recording, GroupBy::Command).all;
    assert_eq!(
        (all.count, all.forks_without_exec, all.failed_execs, all.orphans),
        (4, 1, 1, 1)
    );
    assert_eq!(all.unfinished, 1, "the orphan");
}

#[test]
fn the_tax_is_everything_but_run() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    builder.launch(ROOT, 0, &Spans::USUAL, Some(("/bin/true", &["true"])));
    let found = report(&builder.recording, GroupBy::Command);
    let group = found.groups.iter().find(|group| group.label == b"true").unwrap();
    assert_eq!(group.sums.tax, Some(Nanos(Spans::USUAL.total() - Spans::USUAL.run)));
    assert_eq!(group.sums.total, Nanos(Spans::USUAL.total()));
    assert_eq!(group.sums.phases.get(Phase::Run).time, Some(Nanos(Spans::USUAL.run)));
}

#[test]
fn a_phase_that_is_known_for_no_launch_is_null_and_not_zero() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    builder.launch(ROOT, 0, &Spans::USUAL, Some(("/bin/true", &["true"])));
    for exec in &mut builder.recording.execs {
        exec.load_end = None;
    }
    let found = report(&builder.recording, GroupBy::Command);
    let parsed: serde_json::Value = serde_json::from_str(&json::render(&found)).unwrap();
    assert!(parsed["phases"]["load"].is_null() && parsed["phases"]["run"].is_null());
    assert_eq!(parsed["phases_unknown"]["load"], 2);
    assert_eq!(parsed["phases"]["exec"], 600_000);
    let text = shown(&found, &table::Options::default());
    let legend: Vec<&str> = text
        .lines()
        .find(|line| line.contains("▚ load"))
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(
        legend,
        ["▚", "load", "-", "-", "-", "400", "us"],
        "the CPU time is known, although the time of the phase is not"
    );
}

/// The recording is like one of an unprivileged collector: the exec phase is known only for the command.
#[test]
fn a_phase_that_is_known_only_for_the_command_is_unknown_and_the_tax_is_a_lower_bound() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 50_000_000);
    for number in 0..20 {
        let start = number * 2_000_000;
        builder.launch(ROOT, start, &Spans::USUAL, Some(("/bin/true", &["true"])));
    }
    for exec in &mut builder.recording.execs[1..] {
        (exec.enter, exec.returned) = (None, None);
    }
    let mut found = report(&builder.recording, GroupBy::Command);
    let exec = found.all.phases.get(Phase::Exec);
    assert_eq!((exec.known, exec.unknown), (1, 20));
    let line_of = |text: &str, phase: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.contains(phase)).unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    };
    let full = shown(&found, &table::Options::default());
    assert_eq!(line_of(&full, "▒ exec")[2..5], ["-", "-", "-"], "{full}");
    let screen = |found: &Report| strip_str(&summary::render(found, 200, None)).to_string();
    assert!(screen(&found).contains("▒ exec -"), "{}", screen(&found));
    let bar = full.lines().find(|line| line.contains('█')).unwrap();
    assert!(!bar.contains('▒'), "{full}");
    assert!(full.contains("  launch tax  ") && screen(&found).contains(" launch tax "));
    found.sees_scheduler = false;
    let full = shown(&found, &table::Options::default());
    assert!(full.contains("  launch tax, at least "), "{full}");
    assert!(screen(&found).contains(" launch tax at least "), "{}", screen(&found));
}

#[test]
fn a_mean_counts_only_launches_that_have_the_phase() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    for number in 0..3 {
        let id = builder.launch(ROOT, number * 9_000_000, &Spans::USUAL, Some(("/bin/true", &["true"])));
        builder.launch(id, number * 9_000_000 + 2_000_000, &Spans::USUAL, None);
    }
    let static_program = builder.recording.execs.last_mut().unwrap();
    (static_program.has_loader, static_program.load_end) = (Some(false), None);
    let found = report(&builder.recording, GroupBy::Command);
    let mean_and_counts = |phase| {
        let sum = found.all.phases.get(phase);
        (sum.mean().map(|mean| mean.0), sum.known, sum.unknown)
    };
    assert_eq!(mean_and_counts(Phase::Create), (Some(120_000), 6, 0));
    assert_eq!(
        mean_and_counts(Phase::Setup),
        (Some(40_000), 3, 0),
        "forks have no setup, and that of the command is unknown"
    );
    assert_eq!(
        mean_and_counts(Phase::Exec),
        (Some(300_000), 4, 0),
        "forks have no exec"
    );
    assert_eq!(
        mean_and_counts(Phase::Load),
        (Some(400_000), 3, 0),
        "the static program has no load"
    );
    let forks = found.groups.iter().find(|group| group.label == b"(true)").unwrap();
    assert_eq!(forks.sums.phases.get(Phase::Exec).mean(), None);
    let parsed: serde_json::Value = serde_json::from_str(&json::render(&found)).unwrap();
    let row = parsed["commands"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["command"] == "(true)");
    assert_eq!(
        row.unwrap()["phases"]["exec"],
        0,
        "the forks have no exec, so its time is 0 and not null"
    );
}

#[test]
fn the_setup_of_the_command_is_neither_known_nor_counted_as_unknown() {
    let builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    let setup = report(&builder.recording, GroupBy::Command)
        .all
        .phases
        .get(Phase::Setup);
    assert_eq!((setup.time, setup.known, setup.unknown), (None, 0, 0));
}

#[test]
fn launches_can_be_grouped_by_their_parents() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    let make = builder.launch(
        ROOT,
        0,
        &Spans {
            run: 500_000_000,
            ..Spans::USUAL
        },
        Some(("/usr/bin/make", &["make"])),
    );
    builder.launch(make, 10_000_000, &Spans::USUAL, Some(("/usr/bin/cc", &["cc"])));
    builder.launch(make, 20_000_000, &Spans::USUAL, Some(("/usr/bin/ld", &["ld"])));
    let found = report(&builder.recording, GroupBy::Parent);
    let mut rows: Vec<(&[u8], u64)> = found
        .groups
        .iter()
        .map(|group| (group.label.as_slice(), group.sums.count))
        .collect();
    rows.sort_unstable();
    assert_eq!(rows, [(b"(recorder)".as_slice(), 1), (b"bash", 1), (b"make", 2)]);
}

#[test]
fn launches_can_be_grouped_by_their_arguments() {
    let mut builder = Builder::command("/bin/bash", &["bash", "build.sh"], 1_000_000_000);
    for (start, argument) in [(0, "a.c"), (10_000_000, "b.c"), (20_000_000, "a.c")] {
        builder.launch(
            ROOT,
            start,
            &Spans::USUAL,
            Some(("/usr/bin/cc", &["cc", "-c", argument])),
        );
    }
    builder.launch(ROOT, 30_000_000, &Spans::USUAL, None);
    let found = report(&builder.recording, GroupBy::Arguments);
    let mut rows: Vec<(&[u8], u64)> = found
        .groups
        .iter()
        .map(|group| (group.label.as_slice(), group.sums.count))
        .collect();
    rows.sort_unstable();
    assert_eq!(
        rows,
        [
            (b"(bash)".as_slice(), 1),
            (b"bash build.sh", 1),
            (b"cc -c a.c", 2),
            (b"cc -c b.c", 1)
        ]
    );
    let text = shown(&found, &table::Options::default());
    assert!(text.contains("cc -c a.c"), "{text}");
    let parsed: Value = serde_json::from_str(&json::render(&found)).unwrap();
    assert_eq!(parsed["by"], "args");
}

#[test]
fn a_launch_of_unknown_parent_is_not_the_command_itself() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    builder.launch(LaunchId(99), 0, &Spans::USUAL, Some(("/bin/a", &["a"])));
    let found = report(&builder.recording, GroupBy::Parent);
    let orphans = found.groups.iter().find(|group| group.label == b"-").unwrap();
    assert_eq!((orphans.sums.count, found.groups.len()), (1, 2));
}

#[test]
fn a_sum_of_tax_that_exceeds_the_wall_is_not_a_share_of_it() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 10_000_000);
    for _ in 0..100 {
        builder.launch(ROOT, 1_000_000, &Spans::USUAL, Some(("/bin/true", &["true"])));
    }
    let text = shown(
        &report(&builder.recording, GroupBy::Command),
        &table::Options::default(),
    );
    let tax = "  launch tax               95.8 ms   9.6 times the wall, summed over launches\n";
    assert!(text.contains(tax) && !text.contains("% of the wall"), "{text}");
}

#[test]
fn overlapping_launches_are_marked_and_serial_ones_are_not() {
    let storm = |interval_ns: u64| {
        let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
        for number in 0..50 {
            builder.launch(
                ROOT,
                1_000_000 + number * interval_ns,
                &Spans::USUAL,
                Some(("/bin/true", &["true"])),
            );
        }
        shown(
            &report(&builder.recording, GroupBy::Command),
            &table::Options::default(),
        )
    };
    assert!(storm(2_000_000).contains("4.8 % of the wall: all phases but run"));
    assert!(storm(400_000).contains("4.8 % of the wall, summed over launches"));
}

#[test]
fn a_live_recording_is_not_called_cut_off() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    let info = &mut builder.recording.info;
    (info.wall, info.ended, info.is_live) = (None, None, true);
    let found = report(&builder.recording, GroupBy::Command);
    let text = shown(&found, &table::Options::default());
    assert!(!found.is_cut_off() && !text.contains("cut off"), "{text}");
    assert!(
        text.contains("  still being recorded: figures include everything up to the last batch\n"),
        "{text}"
    );
    let parsed: serde_json::Value = serde_json::from_str(&json::render(&found)).unwrap();
    assert_eq!(parsed["is_live"], true);
}

/// Returns a report with numbers of maximum width.
fn wide_figures() -> Report {
    let mut builder = Builder::command("/bin/bash", &["bash"], 40_000_000_000_000_000);
    for number in 0..1_100 {
        let spans = Spans {
            create: 987_600_000_000,
            run: 40_000_000_000_000,
            ..Spans::USUAL
        };
        let id = builder.launch(ROOT, number * 1_000_000, &spans, Some(("/bin/true", &["true"])));
        builder.failed_exec_at(id, "/usr/local/bin/true", libc::ENOENT, number * 1_000_000);
    }
    let mut found = report(&builder.recording, GroupBy::Command);
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
        let text = shown(&found, &table::Options::all(width));
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
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    builder.launch(ROOT, 0, &Spans::USUAL, Some(("/bin/true", &["true"])));
    let found = report(&builder.recording, GroupBy::Command);
    let titles = |width, first: &str| {
        let text = shown(&found, &table::Options::all(width));
        let line = text.lines().find(|line| line.trim_start().starts_with(first)).unwrap();
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    let commands = [80, 70, 55, 42, 40].map(|width| titles(width, "command"));
    assert_eq!(
        commands,
        [
            "count total mean tax critical largest phase failed",
            "count total mean tax critical",
            "count total tax critical",
            "count tax critical",
            "count tax critical"
        ]
    );
    let wide = wide_figures();
    let text = shown(&wide, &table::Options::all(40));
    assert!(
        text.lines()
            .any(|line| line.split_whitespace().eq(["command", "count", "tax"])),
        "{text}"
    );
    let phases = [80, 60, 48, 40].map(|width| titles(width, "phase"));
    assert_eq!(
        phases,
        ["total share mean cpu", "total share mean", "total share", "total share"]
    );
}

#[test]
fn the_wall_of_a_recording_that_was_cut_off_ends_at_its_last_event() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    let info = &mut builder.recording.info;
    (info.wall, info.ended, info.last_event) = (None, None, Nanos(700_000_000));
    let found = report(&builder.recording, GroupBy::Command);
    assert!(found.is_cut_off());
    assert_eq!(found.wall, Nanos(700_000_000));
    assert!(shown(&found, &table::Options::default()).contains("the recorder did not finish"));
}

#[test]
fn lost_events_are_always_printed() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    let lost = [("launch", 3), ("slice", 1_200)].map(|(kind, events)| Loss {
        kind: kind.to_owned(),
        events,
    });
    builder.recording.info.lost = lost.to_vec();
    let text = shown(
        &report(&builder.recording, GroupBy::Command),
        &table::Options::default(),
    );
    assert!(text.contains("1,203 events (3 launch, 1,200 slice)"), "{text}");
}

#[test]
fn a_recording_without_launches_has_a_report() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    builder.recording.launches.clear();
    let found = report(&builder.recording, GroupBy::Command);
    assert_eq!((found.all.count, found.all.tax), (0, None));
    let text = shown(&found, &table::Options::default());
    assert!(
        text.contains("launches                       0") && text.contains("\n  no launches\n"),
        "{text}"
    );
    assert!(!text.contains("launch tax"), "{text}");
    serde_json::from_str::<serde_json::Value>(&json::render(&found)).unwrap();
}

#[test]
fn rows_beyond_the_top_are_summed_in_one_line() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    for number in 0..30u64 {
        builder.launch(
            ROOT,
            number * 2_000_000,
            &Spans::USUAL,
            Some((&format!("/bin/p{number}"), &["p"])),
        );
    }
    let found = report(&builder.recording, GroupBy::Command);
    let text = shown(
        &found,
        &table::Options {
            width: 80,
            top: Some(5),
            file: Some("'a b.db'"),
        },
    );
    assert!(text.contains("… 26 more rows: 26 launches"), "{text}");
    assert!(
        text.lines()
            .any(|line| line == "  spawnscope report --by command --top 0 'a b.db'"),
        "{text}"
    );
    assert!(!shown(&found, &table::Options::all(80)).contains("more rows"));
}
