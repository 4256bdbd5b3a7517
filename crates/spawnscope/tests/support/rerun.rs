//! A live test that failed is run again, up to twice, each time in a new process: most measure or race, and a machine that stalls
//! can spoil any of them. What is wrong with the product is wrong each time. Each failure is printed, those that needed it are
//! listed at the end, and a suite where many did fails: that is no stall.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::Duration;

use libtest_mimic::{Conclusion, Failed};

/// In this variable, the name of the one test that this process is for.
const REPEATED: &str = "SPAWNSCOPE_TEST_REPEATED";
/// Before each repetition. They grow, so that not all share one load.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];
/// One test in so many may need another attempt.
const ONE_IN: usize = 20;

static NEEDED_IT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The test that this process repeats, and nothing else. To be asked while there is one thread.
pub fn repeated() -> Option<String> {
    let name = std::env::var(REPEATED).ok()?;
    // SAFETY: this process has one thread.
    unsafe { std::env::remove_var(REPEATED) };
    Some(name)
}

/// Runs the test that this process is for.
pub fn alone(test: impl FnOnce() -> Result<(), Failed>) -> ExitCode {
    match catch_unwind(AssertUnwindSafe(test)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => {
            say(&failure);
            ExitCode::FAILURE
        }
        // Said by the panic's hook.
        Err(_) => ExitCode::FAILURE,
    }
}

fn say(failure: &Failed) {
    eprintln!("{}", failure.message().unwrap_or("failed, without a reason"));
}

/// Runs a test of the suite that this binary is, and repeats it where it fails. The first failure is the one that counts.
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
        eprintln!("`{name}` again, in a process of its own");
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

/// How the suite ended: libtest's word, unless too many tests needed another attempt.
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
    eprintln!("that is more than one in {ONE_IN}, and not the load of the machine alone: the suite has failed");
    ExitCode::FAILURE
}
