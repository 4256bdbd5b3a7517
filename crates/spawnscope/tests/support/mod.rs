//! Shared by live tests: requirements on the machine, the workloads, running the binary, reading its output. This code knows no collector:
//! the tests of each collector pass their own arguments.

pub mod attempts;
pub mod chains;
pub mod launches;
pub mod needs;
pub mod pty;
pub mod pythons;
pub mod recording;
pub mod rerun;
pub mod roots;
pub mod run;
pub mod workloads;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use needs::{Need, unmet};

/// A live test: its name as a sentence, its requirements, and the test function.
#[derive(Clone, Copy)]
pub struct LiveTest {
    pub name: &'static str,
    pub needs: &'static [Need],
    pub run: fn(),
}

/// Runs the tests one after the other, because most of them measure. Tests with unmet needs are ignored with the reason, or fail if
/// `SPAWNSCOPE_TEST_REQUIRE` names the need.
pub fn main(tests: Vec<LiveTest>) -> ExitCode {
    if let Some(name) = rerun::repeated() {
        let test = tests
            .iter()
            .find(|test| test.name == name)
            .expect("a test of that name");
        let code = rerun::alone(|| done(test.run));
        workloads::remove();
        return code;
    }
    workloads::keep();
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let conclusion = libtest_mimic::run(&arguments, tests.into_iter().map(trial).collect());
    workloads::remove();
    rerun::verdict(&conclusion)
}

fn trial(test: LiveTest) -> Trial {
    Trial::ignorable_test(test.name, move || {
        if let Some(reason) = unmet(test.needs)? {
            return Ok(Completion::ignored_with(reason));
        }
        rerun::up_to_three_times(test.name, || done(test.run))?;
        Ok(Completion::Completed)
    })
}

fn done(test: fn()) -> Result<(), Failed> {
    test();
    Ok(())
}
