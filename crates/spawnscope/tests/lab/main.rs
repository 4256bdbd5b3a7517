//! Tests of the lab: every experiment runs and its figures are there, children that do not run are noticed, each form of
//! the report holds what was measured. Nothing is timed; where an order is checked, it holds on the busiest machine.

#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "../support/mod.rs"]
mod support;

mod bench;
mod comparisons;
mod environment;
mod experiments;
mod forms;
mod hostile;
mod terminals;
mod workers;

fn main() -> std::process::ExitCode {
    let subjects = [
        comparisons::tests(),
        environment::tests(),
        experiments::tests(),
        forms::tests(),
        hostile::tests(),
        terminals::tests(),
        workers::tests(),
    ];
    support::main(subjects.into_iter().flatten().collect())
}
