//! Tests with real permission scanners, those of ClamAV and fapolicyd, each in a mount namespace of its own: what is reported about them,
//! and what is not reported without them. Each file is one subject; tests that cannot run here say why.

#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "../support/mod.rs"]
mod support;

mod examinations;
#[expect(dead_code, reason = "shared with the doctor's live tests, which use the rest")]
#[path = "../live_doctor/examination.rs"]
mod examination;
mod lab;
mod recordings;
mod scanned_directory;

fn main() -> std::process::ExitCode {
    support::main()
}
