//! Code that live tests share: the harness, requirements on the machine, the workloads, running the
//! binary, and reading its output. This code does not depend on a collector: the tests of each
//! collector pass their own arguments.

pub mod attempts;
pub mod chains;
pub mod inherited;
pub mod job_control;
pub mod launches;
pub mod needs;
pub mod phases;
pub mod pty;
pub mod pythons;
pub mod recording;
pub mod roots;
pub mod run;
pub mod texts;
pub mod workloads;

/// What most live tests use.
#[allow(unused_imports, reason = "each suite uses a part")]
pub mod prelude {
    pub use super::attempts::{best_of_three, ok_if, rounds, with_growing_lengths};
    pub use super::launches::{Launch, Launches, PHASES};
    pub use super::recording::{advice, contains, launches, read, report, row_of};
    pub use super::run::{
        Finished, PublicDirectory, Record, Running, SPAWNSCOPE, as_nobody, await_some, run, spawnscope, write_program,
    };
    pub use super::texts::assert_contains;
    pub use super::workloads::{Truth, path, script, word};
    pub(crate) use super::{apply, live_test};
}

use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use libtest_mimic::{Arguments, Completion, Trial};
pub use macro_rules_attribute::apply;

use attempts::side_by_side::{beside_others, without_others};
use needs::{Need, first_unmet, is_selected};

/// A live test: its name as a sentence, its requirements, and the function, which is called with
/// the name.
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

/// Runs every `live_test` of this binary. Each has these needs, too.
pub fn main(needs: &[Need]) -> ExitCode {
    let tests = registered().into_iter();
    run_all(tests.map(|test| LiveTest { needs: [test.needs, needs].concat().leak(), ..test }).collect())
}

fn registered() -> Vec<LiveTest> {
    let mut tests: Vec<LiveTest> = inventory::iter::<LiveTest>.into_iter().copied().collect();
    // The tests of a table have the same line.
    tests.sort_by_key(|test| (test.location, test.name));
    tests
}

/// A test that takes longer says in a comment what it shows that a cheaper test cannot show.
const SLOW: Duration = Duration::from_secs(5);
/// The tests that took longer, with their durations.
static SLOW_TESTS: Mutex<Vec<(Duration, &str)>> = Mutex::new(Vec::new());

/// Runs as many tests at a time as there are CPUs (`side_by_side` says which), and lists the slow
/// ones. Tests with unmet needs are ignored with the reason, or fail if `SPAWNSCOPE_TEST_REQUIRE`
/// names the need.
pub fn run_all(tests: Vec<LiveTest>) -> ExitCode {
    workloads::compile_if_kept();
    let selected = tests.into_iter().filter(|test| is_selected(test.needs));
    let conclusion = libtest_mimic::run(&Arguments::from_args(), selected.map(trial).collect());
    print_slow_tests();
    workloads::remove_temporary();
    conclusion.exit_code()
}

fn trial(test: LiveTest) -> Trial {
    Trial::ignorable_test(test.name, move || {
        if let Some(reason) = first_unmet(test.needs)? {
            return Ok(Completion::ignored_with(reason));
        }
        let run = || (test.run)(test.name);
        let took = if test.needs.contains(&Need::Quiet) { without_others(run) } else { beside_others(run) };
        if took > SLOW {
            SLOW_TESTS.lock().expect("no test panics with it").push((took, test.name));
        }
        Ok(Completion::Completed)
    })
}

fn print_slow_tests() {
    let mut slow = SLOW_TESTS.lock().expect("no test panics with it");
    slow.sort_unstable_by(|one, other| other.cmp(one));
    for (took, name) in slow.iter() {
        println!("slow: {:5.1} s  {name}", took.as_secs_f64());
    }
}
