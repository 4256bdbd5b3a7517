//! Tests with the real permission scanners of ClamAV and fapolicyd, each in a mount namespace of
//! its own: spawnscope reports them, and reports no scanner if they watch nothing. Each file is one
//! subject; tests that cannot run here report why.

#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "../support/mod.rs"]
mod support;

#[expect(dead_code, reason = "shared with the doctor's live tests, which use the rest")]
#[path = "../live_doctor/examination.rs"]
mod examination;
mod examinations;
mod recordings;
mod scanned_directory;

fn main() -> std::process::ExitCode {
    support::main(&[])
}
