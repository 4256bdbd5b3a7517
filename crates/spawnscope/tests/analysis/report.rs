use anstream::adapter::strip_str;
use spawnscope::analyze::phases::Phase;
use spawnscope::analyze::{GroupBy, Origin, Report, report};
use spawnscope::event::{LaunchId, Loss, Nanos};
use spawnscope::present::{json, table};

use crate::builder::{Builder, ROOT, Spans, blank};

fn shown(report: &Report, options: &table::Options) -> String {
    strip_str(&table::render(report, options)).to_string()
}

#[test]
fn counts_hold_launches_and_not_what_existed_before() {
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
        "CPU time has its own sources"
    );
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
    let of = |phase| {
        let sum = found.all.phases.get(phase);
        (sum.mean().map(|mean| mean.0), sum.known, sum.unknown)
    };
    assert_eq!(of(Phase::Create), (Some(120_000), 6, 0));
    assert_eq!(of(Phase::Setup), (Some(40_000), 3, 0), "neither forks nor the command");
    assert_eq!(of(Phase::Exec), (Some(300_000), 4, 0), "not the forks");
    assert_eq!(of(Phase::Load), (Some(400_000), 3, 0), "nor the static program");
    let forks = found.groups.iter().find(|group| group.label == b"(true)").unwrap();
    assert_eq!(forks.sums.phases.get(Phase::Exec).mean(), None);
    let parsed: serde_json::Value = serde_json::from_str(&json::render(&found)).unwrap();
    let row = parsed["commands"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["command"] == "(true)");
    assert_eq!(row.unwrap()["phases"]["exec"], 0, "what is absent takes no time");
}

#[test]
fn the_set_up_of_the_command_is_the_recorders_and_not_owed() {
    let builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    let setup = report(&builder.recording, GroupBy::Command)
        .all
        .phases
        .get(Phase::Setup);
    assert_eq!((setup.time, setup.known, setup.unknown), (None, 0, 0));
}

#[test]
fn launches_can_be_grouped_by_the_program_that_made_them() {
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
    assert_eq!(rows, [(b"-".as_slice(), 1), (b"bash", 1), (b"make", 2)]);
}

#[test]
fn a_cut_off_recorder_leaves_a_wall_up_to_its_last_event() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    let info = &mut builder.recording.info;
    (info.wall, info.ended, info.last) = (None, None, Nanos(700_000_000));
    let found = report(&builder.recording, GroupBy::Command);
    assert!(found.is_cut_off());
    assert_eq!(found.wall, Nanos(700_000_000));
    assert!(shown(&found, &table::Options::default()).contains("the recorder was cut off"));
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
fn a_recording_without_any_launch_is_a_report_all_the_same() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    builder.recording.launches.clear();
    let found = report(&builder.recording, GroupBy::Command);
    assert_eq!((found.all.count, found.all.tax), (0, None));
    assert!(shown(&found, &table::Options::default()).contains("launches                       0"));
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
        },
    );
    assert!(text.contains("… 26 more rows: 26 launches"), "{text}");
    assert!(!shown(&found, &table::Options { width: 80, top: None }).contains("more rows"));
}
