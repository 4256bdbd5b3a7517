//! A harness that runs each test in its own process: it starts this binary again, with the test's
//! name in a variable. Changes that a test makes to its process (filters, limits, closed streams)
//! end with the process. State that a spawn must not change is compared before and after the test.
//! Contains no tests.

pub mod helper;
pub mod kernel;
pub mod needs;
pub mod seccomp;
pub mod state;

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};

use needs::{Need, required};
use state::State;

/// The environment variable with the name of the one test that this process runs.
const TEST_NAME_VARIABLE: &str = "VSPAWN_TEST_ALONE";
/// The timeout of a test.
const TIMEOUT: Duration = Duration::from_secs(150);
/// The environment variable with the seconds to add to the timeout, for emulated machines.
const EXTRA_SECONDS_VARIABLE: &str = "VSPAWN_TEST_PATIENCE";

pub struct Test {
    name: String,
    needs: Vec<Need>,
    /// Whether the harness checks that the process has the same `State` after the test. False for
    /// tests that change this state themselves.
    compares_state: bool,
    /// Whether the test is started only by another test, with `run_alone`.
    is_inner: bool,
    run: Box<dyn Fn()>,
}

pub fn test(name: impl Into<String>, run: impl Fn() + 'static) -> Test {
    Test {
        name: name.into(),
        needs: vec![Need::SharedMemory],
        compares_state: true,
        is_inner: false,
        run: Box::new(run),
    }
}

impl Test {
    pub fn needs(mut self, needs: &[Need]) -> Test {
        self.needs.extend(needs);
        self
    }

    pub fn changes_its_process(mut self) -> Test {
        self.compares_state = false;
        self
    }

    pub fn inner(mut self) -> Test {
        self.is_inner = true;
        self
    }
}

pub fn shell(script: &str) -> vspawn::Command {
    let mut command = vspawn::Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

/// Checks the stage and the errno of a failure, and returns it.
#[track_caller]
pub fn expect_error<T>(result: Result<T, vspawn::Error>, stage: vspawn::Stage, errno: i32) -> vspawn::Error {
    let error = result.err().expect("a failure");
    assert_eq!((error.stage(), error.raw_os_error()), (stage, errno), "{error}");
    error
}

/// Runs the one test of this process, or all tests, each in its own process.
pub fn main(tests: Vec<Test>) -> ExitCode {
    if let Ok(name) = std::env::var(TEST_NAME_VARIABLE) {
        // SAFETY: this process has one thread.
        unsafe { std::env::remove_var(TEST_NAME_VARIABLE) };
        run_in_this_process(tests.iter().find(|test| test.name == name).expect("a test of that name"));
        return ExitCode::SUCCESS;
    }
    helper::build();
    let trials = tests.into_iter().filter(|test| !test.is_inner).map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn timeout() -> Duration {
    let extra = std::env::var(EXTRA_SECONDS_VARIABLE).ok();
    TIMEOUT + Duration::from_secs(extra.map_or(0, |extra| extra.parse().expect("a number of seconds")))
}

fn run_in_this_process(test: &Test) {
    // The program that started the tests may have passed on open files.
    kernel::close_all_above(2);
    let before = State::now();
    (test.run)();
    if test.compares_state {
        assert_eq!(before, State::now(), "state that a spawn must not change");
    }
}

fn trial(test: Test) -> Trial {
    let missing = test.needs.iter().find_map(|need| Some((*need, need.check().err()?)));
    let name = test.name;
    let Some((need, why)) = missing else {
        return Trial::test(name.clone(), move || run_alone(&[], &name).map_err(Failed::from));
    };
    match required(need) {
        Ok(false) => Trial::test(name, || Ok(())).with_kind(why.clone()).with_ignored_flag(true),
        Ok(true) => Trial::test(name, move || Err(Failed::from(format!("needs {}: {why}", need.name())))),
        Err(mistake) => Trial::test(name, move || Err(Failed::from(mistake.as_str()))),
    }
}

/// Runs a test in its own process. `wrapper` is a command that executes that process, such as
/// `unshare --pid`; it may be empty.
pub fn run_alone(wrapper: &[&str], name: &str) -> Result<(), String> {
    let output = tempfile::NamedTempFile::new().unwrap();
    let log = File::options().append(true).open(output.path()).unwrap();
    let this = std::env::current_exe().unwrap();
    let line: Vec<PathBuf> = wrapper.iter().map(PathBuf::from).chain([this]).collect();
    let mut child = Command::new(&line[0])
        .args(&line[1..])
        .env(TEST_NAME_VARIABLE, name)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .process_group(0)
        .spawn()
        .map_err(|error| format!("{}: {error}", line[0].display()))?;
    let (begin, timeout) = (Instant::now(), timeout());
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.to_string();
        }
        if begin.elapsed() > timeout {
            kernel::kill(-(child.id() as i32), libc::SIGKILL);
            child.wait().unwrap();
            break format!("hung for {timeout:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    if status == "exit status: 0" {
        return Ok(());
    }
    Err(format!("{name}: {status}\n{}", std::fs::read_to_string(output.path()).unwrap()))
}
