//! Checks our traces with Perfetto's own classes, through `perfetto_check.py`. The need is `perfetto`.

#![expect(clippy::unwrap_used, reason = "the builder of recordings: a panic is the failure")]

#[expect(dead_code, reason = "shared with the analysis tests, which use the rest")]
#[path = "../../spawnscope-analyze/tests/analysis/builder.rs"]
mod builder;
#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "support/mod.rs"]
mod support;

use std::path::Path;
use std::process::{Command, Output};

use builder::{Builder, ROOT, Spans};
use spawnscope::analyze::Forest;
use spawnscope::event::Nanos;
use spawnscope::present::perfetto;
use spawnscope::record::reader::Recording;
use support::needs::python;
use support::{apply, live_test};

fn main() -> std::process::ExitCode {
    support::main()
}

fn trace_of(recording: &Recording) -> Vec<u8> {
    let mut trace = Vec::new();
    perfetto::write(&mut trace, &Forest::grow(recording)).unwrap();
    trace
}

fn check(trace: &[u8], wanted: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.pftrace");
    std::fs::write(&file, trace).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perfetto_check.py");
    let mut command = Command::new(python());
    command.arg(script).arg(&file).args(wanted).output().unwrap()
}

fn expect_valid(recording: &Recording, wanted: &[&str]) {
    let output = check(&trace_of(recording), wanted);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn storm() -> Builder {
    let mut builder = Builder::command("/bin/bash", &["bash", "-c", "a\x1b[2J\u{202e}"], 1_000_000_000);
    for number in 0..101 {
        let fork = builder.launch(ROOT, 1_000_000 + number * 5_000_000, &Spans::USUAL, None);
        builder.launch(
            fork,
            1_200_000 + number * 5_000_000,
            &Spans::USUAL,
            Some(("/bin/true", &["true"])),
        );
    }
    // One pid used twice, and one process still running.
    builder.row(spawnscope::event::LaunchId(5)).pid = Some(spawnscope::event::Pid(4002));
    builder.leave_running(spawnscope::event::LaunchId(7));
    builder
}

#[apply(live_test)]
#[needs(Perfetto)]
fn every_process_has_a_track_and_every_child_an_arrow() {
    // The command has 4 known phases, each fork 5 that took time, each `true` 8; the one left running lacks 2.
    let phases = (4 + 101 * (5 + 8) - 2).to_string();
    let wanted = [
        "--processes",
        "203",
        "--launches",
        "203",
        "--flows",
        "202",
        "--phases",
        &phases,
    ];
    expect_valid(&storm().recording, &wanted);
}

#[apply(live_test)]
#[needs(Perfetto)]
fn boundaries_out_of_order_leave_slices_nested() {
    let mut recording = storm().recording;
    for (number, row) in recording.launches.iter_mut().enumerate().skip(1) {
        let shift = |at: Option<Nanos>, by: usize| at.map(|at| Nanos(at.0.saturating_sub(200_000 * by as u64)));
        (row.created, row.zombie) = (shift(row.created, number % 4), shift(row.zombie, number % 3));
        row.create = if number % 5 == 0 { None } else { row.create };
        row.reaped = shift(row.reaped, number % 7);
    }
    expect_valid(&recording, &["--launches", "203"]);
}

#[apply(live_test)]
#[needs(Perfetto)]
fn a_slice_without_an_end_is_found() {
    let mut trace = trace_of(&storm().recording);
    // The last packet is the end of the last launch: tag, length, and that many bytes.
    let cut =
        (2..40).find(|back| usize::from(trace[trace.len() - back + 1]) == back - 2 && trace[trace.len() - back] == 10);
    trace.truncate(trace.len() - cut.expect("the last packet"));
    let output = check(&trace, &[]);
    let complaint = String::from_utf8_lossy(&output.stderr);
    let is_found = output.status.code() == Some(1) && complaint.contains("without an end");
    assert!(is_found, "{complaint}");
}
