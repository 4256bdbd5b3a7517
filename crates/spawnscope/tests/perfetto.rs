//! Checks our traces with Perfetto's own classes, through `perfetto_check.py`. Without the PyPI packages it is reported
//! as ignored, and fails when SPAWNSCOPE_TEST_REQUIRE names `perfetto`. SPAWNSCOPE_TEST_PYTHON chooses the interpreter.

#![expect(clippy::unwrap_used, reason = "the builder of recordings: a panic is the failure")]

#[allow(dead_code, reason = "shared with the analysis tests, which use the rest")]
#[path = "analysis/builder.rs"]
mod builder;

use std::path::Path;
use std::process::{Command, Output};

use builder::{Builder, ROOT, Spans};
use libtest_mimic::{Arguments, Failed, Trial};
use spawnscope::analyze::Forest;
use spawnscope::event::Nanos;
use spawnscope::present::perfetto;
use spawnscope::record::reader::Recording;

fn main() {
    let is_required =
        std::env::var("SPAWNSCOPE_TEST_REQUIRE").is_ok_and(|names| names.split(',').any(|name| name == "perfetto"));
    let is_available = python()
        .args(["-c", "import perfetto.protos.perfetto.trace.perfetto_trace_pb2"])
        .output();
    let is_ignored = !is_required && !is_available.is_ok_and(|output| output.status.success());
    let kind = if is_ignored {
        "needs PyPI's perfetto and protobuf"
    } else {
        ""
    };
    let trial = |name: &str, test: fn() -> Result<(), Failed>| {
        Trial::test(name, test).with_kind(kind).with_ignored_flag(is_ignored)
    };
    let trials = vec![
        trial(
            "every_process_has_a_track_and_every_child_an_arrow",
            every_process_has_a_track_and_every_child_an_arrow,
        ),
        trial(
            "boundaries_out_of_order_leave_slices_nested",
            boundaries_out_of_order_leave_slices_nested,
        ),
        trial("a_slice_without_an_end_is_found", a_slice_without_an_end_is_found),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn python() -> Command {
    Command::new(std::env::var_os("SPAWNSCOPE_TEST_PYTHON").unwrap_or_else(|| "python3".into()))
}

fn trace_of(recording: &Recording) -> Result<Vec<u8>, Failed> {
    let mut trace = Vec::new();
    perfetto::write(&mut trace, &Forest::grow(recording))?;
    Ok(trace)
}

fn check(trace: &[u8], wanted: &[&str]) -> Result<Output, Failed> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("trace.pftrace");
    std::fs::write(&file, trace)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perfetto_check.py");
    Ok(python().arg(script).arg(&file).args(wanted).output()?)
}

fn expect_valid(recording: &Recording, wanted: &[&str]) -> Result<(), Failed> {
    let output = check(&trace_of(recording)?, wanted)?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned().into())
    }
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

fn every_process_has_a_track_and_every_child_an_arrow() -> Result<(), Failed> {
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
    expect_valid(&storm().recording, &wanted)
}

fn boundaries_out_of_order_leave_slices_nested() -> Result<(), Failed> {
    let mut recording = storm().recording;
    for (number, row) in recording.launches.iter_mut().enumerate().skip(1) {
        let shift = |at: Option<Nanos>, by: usize| at.map(|at| Nanos(at.0.saturating_sub(200_000 * by as u64)));
        (row.created, row.zombie) = (shift(row.created, number % 4), shift(row.zombie, number % 3));
        row.create = if number % 5 == 0 { None } else { row.create };
        row.reaped = shift(row.reaped, number % 7);
    }
    expect_valid(&recording, &["--launches", "203"])
}

fn a_slice_without_an_end_is_found() -> Result<(), Failed> {
    let mut trace = trace_of(&storm().recording)?;
    // The last packet is the end of the last launch: tag, length, and that many bytes.
    let cut =
        (2..40).find(|back| usize::from(trace[trace.len() - back + 1]) == back - 2 && trace[trace.len() - back] == 10);
    trace.truncate(trace.len() - cut.ok_or("the last packet is not where it should be")?);
    let output = check(&trace, &[])?;
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_found = output.status.code() == Some(1) && complaint.contains("without an end");
    if is_found { Ok(()) } else { Err(complaint.into()) }
}
