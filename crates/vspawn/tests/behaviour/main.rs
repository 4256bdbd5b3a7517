//! What a child is given, and how it is waited for, killed and read: the good paths. Each file is one subject, each test a
//! process of its own (`support`); tests that cannot run here say why.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

fn main() -> std::process::ExitCode {
    let subjects = [];
    support::main(subjects.into_iter().flatten().collect())
}
