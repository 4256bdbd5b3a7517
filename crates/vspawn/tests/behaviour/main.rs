//! What a child is given, and how it is waited for, killed and read: the good paths. Each file is one subject, each test a
//! process of its own (`support`); tests that cannot run here say why.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "the faults need more of it")]
#[path = "../support/mod.rs"]
mod support;

#[cfg(feature = "tokio")]
mod asynchronous;
mod attributes;
mod capturing;
mod identities;
mod killing;
mod pipelines;
mod waiting;

fn main() -> std::process::ExitCode {
    let subjects = [
        attributes::tests(),
        identities::tests(),
        waiting::tests(),
        killing::tests(),
        capturing::tests(),
        pipelines::tests(),
        #[cfg(feature = "tokio")]
        asynchronous::tests(),
    ];
    support::main(subjects.into_iter().flatten().collect())
}
