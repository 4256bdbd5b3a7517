//! Tests of the success paths: a child's properties, and how it is waited for, killed and read.
//! Each file covers one subject; each test runs in its own process (`support`). Tests that cannot
//! run print the reason.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "the tests in `faults` use more of it")]
#[path = "../support/mod.rs"]
mod support;

#[cfg(feature = "tokio")]
mod asynchronous;
mod attributes;
mod capturing;
mod identities;
mod killing;
mod parity;
mod ptys;
mod waiting;

fn main() -> std::process::ExitCode {
    let subjects = [
        attributes::tests(),
        identities::tests(),
        waiting::tests(),
        killing::tests(),
        capturing::tests(),
        parity::tests(),
        ptys::tests(),
        #[cfg(feature = "tokio")]
        asynchronous::tests(),
    ];
    support::main(subjects.into_iter().flatten().collect())
}
