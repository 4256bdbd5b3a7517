//! The doctor on the real machine: scanners that delay real launches, and conditions that tests set
//! up in namespaces or by environment variables. Each file is one subject; tests that cannot run
//! here report why.

#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "../support/mod.rs"]
mod support;

mod conditions;
#[expect(dead_code, reason = "shared with the tests of real scanners, which use the rest")]
mod examination;
mod hanging;
mod scanners;
mod temporary_files;
mod whole_machine;

fn main() -> std::process::ExitCode {
    support::main(&[support::needs::Need::Quiet])
}
