//! Repeats a failed live test up to twice, each time in a new process. Most live tests measure or race, and a stalled machine can spoil any
//! of them, but a bug in the product fails each time. Each failure is printed, and repeated tests are listed at the end. If many tests had
//! to be repeated, the suite fails, because a stall does not explain that.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::Duration;

use libtest_mimic::{Conclusion, Failed};

/// This variable has the name of the only test that this process should run.
const REPEATED: &str = "SPAWNSCOPE_TEST_REPEATED";
/// Pauses before the repetitions. They grow, so that not all share one load.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];
/// One test in this many may be repeated.
const ONE_IN: usize = 20;

static NEEDED_IT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Returns the test that this process repeats, if any. Call this while there is only one thread.
pub fn repeated() -> Option<String> {
    let name = std::env::var(REPEATED).ok()?;
    // SAFETY: this process has one thread.
    unsafe { std::env::remove_var(REPEATED) };
    Some(name)
}

/// Runs the test that this process should repeat.
pub fn alone(test: impl FnOnce() -> Result<(), Failed>) -> ExitCode {
    match catch_unwind(AssertUnwindSafe(test)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => {
            say(&failure);
            ExitCode::FAILURE
        }
        // The panic hook has printed the message.
        Err(_) => ExitCode::FAILURE,
    }
}

fn say(failure: &Failed) {
    eprintln!("{}", failure.message().unwrap_or("failed, without a reason"));
}

/// Runs a test, and repeats it in a new process if it fails. If all repetitions fail, the first failure is reported.
pub fn up_to_three_times(name: &str, test: impl FnOnce() -> Result<(), Failed>) -> Result<(), Failed> {
    let first = catch_unwind(AssertUnwindSafe(test));
    if let Ok(Ok(())) = first {
        return Ok(());
    }
    if let Ok(Err(failure)) = &first {
        say(failure);
    }
    for pause in PAUSES {
        sleep(pause);
        eprintln!("repeating `{name}` in a new process");
        let binary = std::env::current_exe().expect("this binary has a path");
        let status = Command::new(binary)
            .env(REPEATED, name)
            .status()
            .expect("this binary runs");
        if status.success() {
            NEEDED_IT
                .lock()
                .expect("no test panicked with it")
                .push(name.to_owned());
            return Ok(());
        }
    }
    first.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Returns libtest's result, unless too many tests were repeated.
pub fn verdict(conclusion: &Conclusion) -> ExitCode {
    let needed_it = NEEDED_IT.lock().expect("no test panicked with it");
    let run = usize::try_from(conclusion.num_passed + conclusion.num_failed).expect("fits");
    if needed_it.is_empty() {
        return conclusion.exit_code();
    }
    let count = needed_it.len();
    eprintln!("passed only when repeated, {count} of {run}: {}", needed_it.join(", "));
    if count <= run.div_ceil(ONE_IN) {
        return conclusion.exit_code();
    }
    eprintln!("that is more than one in {ONE_IN}, which load alone does not explain: the suite fails");
    ExitCode::FAILURE
}
