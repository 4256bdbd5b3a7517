//! Tests of the lab: every experiment runs and has results, failures of children are detected, and
//! each output format contains the measurements. Times are compared only where one is larger than
//! the other even on a very busy machine.

#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "../support/mod.rs"]
mod support;

mod bench;
mod experiments;
mod forms;
mod hostile;
mod workers;

fn main() -> std::process::ExitCode {
    support::main(&[support::needs::Need::Quiet])
}
