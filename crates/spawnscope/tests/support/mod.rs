//! Code that live tests share: the harness, requirements on the machine, the workloads, running the binary, and reading its output. This
//! code does not depend on a collector: the tests of each collector pass their own arguments.

pub mod attempts;
pub mod chains;
pub mod launches;
pub mod needs;
pub mod phases;
pub mod pty;
pub mod pythons;
pub mod recording;
pub mod rerun;
pub mod roots;
pub mod run;
pub mod texts;
pub mod workloads;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Trial};
pub use macro_rules_attribute::apply;

use needs::{Need, first_unmet};

/// A live test: its name as a sentence, its requirements, and the function, which is called with the name.
#[derive(Clone, Copy)]
pub struct LiveTest {
    pub name: &'static str,
    pub needs: &'static [Need],
    pub run: fn(&str),
    /// File and line. Tests run in this order.
    pub location: (&'static str, u32),
}

inventory::collect!(LiveTest);

/// Registers a function as a live test of the same name. `needs` lists the requirements:
///
/// ```
/// #[apply(live_test)]
/// #[needs(Ebpf, Cc)]
/// fn a_chain_of_execs_is_one_launch() { ... }
/// ```
///
/// Tests that are one call each are registered together:
///
/// ```
/// live_test! {
///     #[needs(Ebpf, Cc)]
///     fn a_read_waits_on_a_pipe = assert_waits_on_pipe("read");
///     fn a_poll_waits_on_a_pipe = assert_waits_on_pipe("poll");
/// }
/// ```
macro_rules! live_test {
    ($(#[needs $needs:tt] $(fn $name:ident = $call:expr;)+)+) => {
        $($($crate::support::live_test! { #[needs $needs] fn $name() { $call; } })+)+
    };
    ($(#[doc = $doc:literal])* $(#[needs($($need:ident),+)])? fn $name:ident() $body:block) => {
        $(#[doc = $doc])*
        fn $name() $body

        inventory::submit! {
            $crate::support::LiveTest {
                name: stringify!($name),
                needs: &[$($($crate::support::needs::Need::$need),+)?],
                run: |_| $name(),
                location: (file!(), line!()),
            }
        }
    };
}
pub(crate) use live_test;

/// Runs every `live_test` of this binary.
pub fn main() -> ExitCode {
    let mut tests: Vec<LiveTest> = inventory::iter::<LiveTest>.into_iter().copied().collect();
    // The tests of a table have the same line.
    tests.sort_by_key(|test| (test.location, test.name));
    run_all(tests)
}

/// Runs the tests one after the other, because most of them measure. Tests with unmet needs are ignored with the reason, or fail if
/// `SPAWNSCOPE_TEST_REQUIRE` names the need.
pub fn run_all(tests: Vec<LiveTest>) -> ExitCode {
    if let Some(name) = rerun::repeated_test() {
        let test = tests.iter().find(|test| test.name == name);
        let test = test.expect("a test of that name");
        let code = rerun::run_repeated(|| (test.run)(&name));
        workloads::remove_temporary();
        return code;
    }
    workloads::compile_if_kept();
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let conclusion = libtest_mimic::run(&arguments, tests.into_iter().map(trial).collect());
    let code = rerun::verdict(&conclusion);
    workloads::remove_temporary();
    code
}

fn trial(test: LiveTest) -> Trial {
    Trial::ignorable_test(test.name, move || {
        if let Some(reason) = first_unmet(test.needs)? {
            return Ok(Completion::ignored_with(reason));
        }
        rerun::run_up_to_three_times(test.name, || (test.run)(test.name));
        Ok(Completion::Completed)
    })
}
