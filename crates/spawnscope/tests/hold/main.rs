//! Tests of `hold`: real debuggers attach to held processes, and other processes are not affected.
//! They need ptrace, but no privilege. Each file is one subject; tests that cannot run here report
//! why.

#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "../support/mod.rs"]
mod support;

mod debuggers;
mod endings;
mod holding;
mod matching;
mod run;
mod terminal;
mod users;

fn main() -> std::process::ExitCode {
    support::main(&[support::needs::Need::Ptrace, support::needs::Need::Cc])
}
