//! Invalid input and faults: the error of a spawn, and the unchanged state of its process. Each
//! file covers one subject; each test runs in its own process (`support`). Tests that cannot run
//! print the reason.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod cancelled;
mod closed_streams;
mod descriptors;
mod exhausted;
mod fallbacks;
mod held;
mod namespaces;
mod programs;
mod refused;
mod side_effects;
mod signals;
mod stress;

fn main() -> std::process::ExitCode {
    let subjects = [
        refused::tests(),
        programs::tests(),
        closed_streams::tests(),
        descriptors::tests(),
        exhausted::tests(),
        fallbacks::tests(),
        held::tests(),
        signals::tests(),
        side_effects::tests(),
        namespaces::tests(),
        cancelled::tests(),
        stress::tests(),
    ];
    support::main(subjects.into_iter().flatten().collect())
}
