//! Tests with the real permission scanners of ClamAV and fapolicyd, each in a mount namespace of
//! its own: the doctor names them, and the lab shows their delay. `live_ebpf/waits.rs` tests with a
//! scanner of its own that a recording names the one that a launch waits for.

#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "../support/mod.rs"]
mod support;

#[expect(dead_code, reason = "shared with the doctor's live tests, which use the rest")]
#[path = "../live_doctor/examination.rs"]
mod examination;
mod examinations;
mod scanned_directory;

fn main() -> std::process::ExitCode {
    support::main(&[])
}
