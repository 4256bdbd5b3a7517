//! Checks exported traces with Perfetto's own classes, through `perfetto_check.py`. The tests need
//! these classes (`Perfetto`).

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

#[expect(dead_code, reason = "shared with the analysis tests, which use the rest")]
#[path = "../../spawnscope-analyze/tests/analysis/builder.rs"]
mod builder;
#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "support/mod.rs"]
mod support;

#[allow(dead_code, reason = "as above")]
#[path = "../../spawnscope-analyze/tests/analysis/slices.rs"]
mod slices;

use std::path::Path;
use std::process::{Command, Output};

use builder::{Builder, ROOT, Spans};
use slices::{created, ended, slice};
use spawnscope::analyze::path::critical_path::stretches;
use spawnscope::analyze::predict::replay::Parameters;
use spawnscope::analyze::waits::attribution::waits_of_parents;
use spawnscope::analyze::{Causes, Forest, GroupBy, SliceCollection, Slices, report_on};
use spawnscope::event::{Language, LaunchId, Nanos, Pid, TaskId};
use spawnscope::present::perfetto::{self, Contents};
use spawnscope::record::reader::{Recording, SliceRow, WakerRow};

use support::needs::python;
use support::{apply, live_test};

const WAIT4: u16 = 61;

fn main() -> std::process::ExitCode {
    support::main(&[])
}

/// Returns the trace of a recording, and the length of the critical path in its report.
fn trace_of(recording: &Recording, slices: &[SliceRow]) -> (Vec<u8>, Nanos) {
    let forest = Forest::build(recording);
    let mut all = Slices::default();
    slices.iter().for_each(|slice| all.push(*slice));
    let timelines = SliceCollection::new(&forest, &[]).finish(all);
    let causes = Causes::find(recording, &forest, &timelines);
    let report = report_on(recording, &forest, causes.as_ref(), GroupBy::Command);
    let wall = Parameters::of(recording).unwrap().wall;
    let contents = Contents {
        forest: &forest,
        report: &report,
        critical_path: &stretches(&forest, &timelines, wall).unwrap(),
        waits_of_parents: &waits_of_parents(recording, &forest, &timelines),
        run_queue: &timelines.run_queue_times(),
    };
    let mut trace = Vec::new();
    perfetto::write(&mut trace, &contents).unwrap();
    let spent = report.where_the_wall_went.iter().map(|(_, time)| time.0);
    (trace, Nanos(spent.sum()))
}

fn check(trace: &[u8], wanted: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace.pftrace");
    std::fs::write(&file, trace).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perfetto_check.py");
    let mut command = Command::new(python());
    command.arg(script).arg(&file).args(wanted).output().unwrap()
}

fn expect_valid(recording: &Recording, wanted: &[&str]) {
    expect_valid_with(recording, &[], wanted);
}

fn expect_valid_with(recording: &Recording, slices: &[SliceRow], wanted: &[&str]) {
    let output = check(&trace_of(recording, slices).0, wanted);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn storm() -> Builder {
    let mut builder = Builder::command("/bin/bash", &["bash", "-c", "a\x1b[2J\u{202e}"], 1_000_000_000);
    for number in 0..101 {
        let fork = builder.launch(ROOT, 1_000_000 + number * 5_000_000, &Spans::USUAL, None);
        builder.launch(fork, 1_200_000 + number * 5_000_000, &Spans::USUAL, Some(("/bin/true", &["true"])));
    }
    // One pid used twice, and one process still running.
    builder.row(LaunchId(5)).pid = Some(Pid(4002));
    builder.leave_running(LaunchId(7));
    builder
}

#[apply(live_test)]
#[needs(Perfetto)]
fn every_launch_is_drawn_and_every_child_has_an_arrow() {
    // The command has 4 known phases, each fork 5 that took time, each `true` 8; the launch that is
    // still running lacks 2.
    let phases = (4 + 101 * (5 + 8) - 2).to_string();
    let wanted = ["--launches", "203", "--flows", "202", "--phases", &phases];
    expect_valid(&storm().recording, &wanted);
}

#[apply(live_test)]
#[needs(Perfetto)]
fn boundaries_out_of_order_leave_slices_nested() {
    let mut recording = storm().recording;
    for (number, row) in recording.launches.iter_mut().enumerate().skip(1) {
        (row.created, row.zombie) = (earlier(row.created, number % 4), earlier(row.zombie, number % 3));
        row.create = if number % 5 == 0 { None } else { row.create };
        row.reaped = earlier(row.reaped, number % 7);
    }
    expect_valid(&recording, &["--launches", "203"]);
}

fn earlier(at: Option<Nanos>, steps: usize) -> Option<Nanos> {
    at.map(|at| Nanos(at.0.saturating_sub(200_000 * steps as u64)))
}

/// Returns the recording of a shell loop. Each round launches `sed`, and a subshell that launches
/// `tr` and waits for it.
fn shell_loop(rounds: u64) -> Builder {
    let mut builder = Builder::command("/bin/bash", &["bash", "loop"], (rounds + 1) * 10_000_000);
    for round in 0..rounds {
        let at = 1_000_000 + round * 10_000_000;
        builder.launch(ROOT, at, &Spans::USUAL, Some(("/bin/sed", &["sed", "s/a/b/"])));
        let spans = Spans { run: 4_000_000, ..Spans::USUAL };
        let subshell = builder.launch(ROOT, at + 2_000_000, &spans, None);
        builder.launch(subshell, at + 2_500_000, &Spans::USUAL, Some(("/bin/tr", &["tr", "a", "b"])));
    }
    builder
}

#[apply(live_test)]
#[needs(Perfetto)]
fn a_loop_takes_a_few_tracks() {
    // The root, the critical path, bash, and one track each for sed, subshells and tr.
    let wanted = ["--tracks", "6", "--launches", "3001", "--flows", "3000"];
    expect_valid(&shell_loop(1000).recording, &wanted);
}

#[apply(live_test)]
#[needs(Perfetto)]
fn launchers_have_tracks_of_their_own() {
    // Each of the 3 subshells has a track, with a nested track for its tr.
    expect_valid(&shell_loop(3).recording, &["--tracks", "10", "--launches", "10"]);
    // At most two launches of cc overlap.
    let mut builder = Builder::command("/bin/make", &["make"], 1_000_000_000);
    for number in 0..50 {
        builder.launch(ROOT, 1_000_000 + number * 700_000, &Spans::USUAL, Some(("/bin/cc", &["cc"])));
    }
    expect_valid(&builder.recording, &["--tracks", "5", "--launches", "51"]);
}

#[apply(live_test)]
#[needs(Perfetto)]
fn a_chain_of_launches_is_nested() {
    let mut builder = Builder::command("/bin/sh", &["sh"], 10_000_000_000);
    let mut parent = ROOT;
    for depth in 0..2_000 {
        let spans = Spans { run: 9_000_000_000 - depth * 2_000_000, ..Spans::USUAL };
        parent = builder.launch(parent, 1_000_000 + depth * 1_000_000, &spans, Some(("/bin/sh", &["sh"])));
    }
    expect_valid(&builder.recording, &["--launches", "2001", "--flows", "2000"]);
}

/// Returns the recording of a shell that launches `true` twice and waits for it.
fn shell_that_waits() -> (Builder, Vec<SliceRow>) {
    const WALL: u64 = 10_000_000;
    let mut builder = Builder::command("/bin/sh", &["sh", "-c", "x"], WALL);
    let spans = Spans::USUAL;
    let (mut slices, mut on) = (Vec::new(), 0);
    for start in [1_000_000, 5_000_000] {
        let child = builder.launch(ROOT, start, &spans, Some(("/bin/true", &["true", "it's"])));
        builder.row(child).parent_task = Some(TaskId(ROOT.0));
        let made = start + spans.create;
        let zombie = start + spans.total() - spans.reap;
        let waker = Some(WakerRow::Task(TaskId(child.0)));
        let off = made + 5_000;
        slices.push(slice(ROOT.0, on, off, [zombie - off, spans.reap], WAIT4, waker));
        slices.push(created(child.0, made, spans.queue));
        slices.push(ended(child.0, made + spans.queue, zombie + 1_000));
        on = zombie + spans.reap;
    }
    slices.push(ended(ROOT.0, on, WALL));
    (builder, slices)
}

#[apply(live_test)]
#[needs(Perfetto)]
fn the_critical_path_is_as_long_as_in_the_report() {
    let (builder, slices) = shell_that_waits();
    let (trace, critical) = trace_of(&builder.recording, &slices);
    assert_eq!(Some(critical), builder.recording.info.wall);
    let output = check(&trace, &["--critical-ns", &critical.0.to_string()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[apply(live_test)]
#[needs(Perfetto)]
fn the_slice_of_a_launch_has_its_arguments() {
    let (mut builder, slices) = shell_that_waits();
    let line = builder.line(Language::Bash, "/src/build.sh", 12, "");
    builder.set_call_chain(LaunchId(2), &[line]);
    builder.row(LaunchId(2)).wait_status = Some(9);
    // The parent waits from 5 us after the child's creation until it is back on a CPU.
    let spans = Spans::USUAL;
    let waited = format!("parent_wait_ns={}", spans.total() - spans.create - 5_000);
    let queued = format!("run_queue_ns={}", spans.queue);
    let wanted = [
        "--arguments", "true", "pid=4002", "argv=true \"it's\"", "cwd=/home/user", "exit=SIGKILL",
        "call_site=build.sh:12", "mechanism=fork", &waited, &queued,
    ];
    expect_valid_with(&builder.recording, &slices, &wanted);
}

#[apply(live_test)]
#[needs(Perfetto)]
fn the_check_finds_a_slice_without_an_end() {
    let (mut trace, _) = trace_of(&storm().recording, &[]);
    // The last packet is the end of the last launch: tag, length, and that many bytes.
    let cut =
        (2..40).find(|back| usize::from(trace[trace.len() - back + 1]) == back - 2 && trace[trace.len() - back] == 10);
    trace.truncate(trace.len() - cut.expect("the last packet"));
    let output = check(&trace, &[]);
    let complaint = String::from_utf8_lossy(&output.stderr);
    let is_found = output.status.code() == Some(1) && complaint.contains("without an end");
    assert!(is_found, "{complaint}");
}
