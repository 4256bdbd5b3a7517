//! The processes that launch. What a launch costs depends on the parent's memory, descriptors and threads, so the parents are
//! processes of their own: spawnscope again, with a hidden verb. `protocol` is what is said between the two.

pub mod protocol;
pub mod serve;

mod ballast;
mod launcher;
mod mechanism;
mod operations;
mod raw;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub use mechanism::Mechanism;

use self::protocol::{Reply, Request, Setting};
use super::LabError;

/// The hidden verb that makes spawnscope a worker.
pub const VERB: &str = "lab-worker";

/// A process that launches what it is told to; it ends when this is dropped.
pub struct Worker {
    child: Child,
    pipes: RefCell<Option<(ChildStdin, BufReader<ChildStdout>)>>,
}

impl Worker {
    /// Starts one that is as the setting says.
    ///
    /// # Errors
    /// When it cannot be started, or cannot be made so.
    pub fn start(setting: &Setting) -> Result<Worker, LabError> {
        Worker::start_with(setting, &[])
    }

    /// The same with variables of the environment.
    ///
    /// # Errors
    /// As above.
    pub fn start_with(setting: &Setting, variables: &[(&str, &OsStr)]) -> Result<Worker, LabError> {
        let setting = serde_json::to_string(setting).map_err(|error| LabError::Untrusted(error.to_string()))?;
        loop {
            let mut worker = Worker::spawn(&setting, variables)?;
            // It says so when it is as it should be.
            match worker.reply() {
                Ok(_) => return Ok(worker),
                // A Ctrl-C that came before it was in a group of its own.
                Err(_) if worker.ended_by(libc::SIGINT) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn spawn(setting: &str, variables: &[(&str, &OsStr)]) -> Result<Worker, LabError> {
        let mut child = Command::new("/proc/self/exe")
            .args([VERB, setting])
            .envs(variables.iter().copied())
            // Ctrl-C is for us, who end it in good order.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(LabError::doing("start a worker"))?;
        let pipes = child.stdin.take().zip(child.stdout.take().map(BufReader::new));
        Ok(Worker {
            child,
            pipes: RefCell::new(pipes),
        })
    }

    /// Whether a signal ended it, where it has ended or is about to.
    fn ended_by(&mut self, signal: i32) -> bool {
        self.pipes.borrow_mut().take();
        self.child.wait().is_ok_and(|status| status.signal() == Some(signal))
    }

    /// Has it do something.
    ///
    /// # Errors
    /// When it could not, or when what it did cannot be trusted.
    pub fn ask(&self, request: &Request) -> Result<Vec<f64>, LabError> {
        let mut line = serde_json::to_string(request).map_err(|error| LabError::Untrusted(error.to_string()))?;
        line.push('\n');
        if let Some((input, _)) = self.pipes.borrow_mut().as_mut() {
            input
                .write_all(line.as_bytes())
                .map_err(LabError::doing("ask a worker"))?;
        }
        self.reply()
    }

    fn reply(&self) -> Result<Vec<f64>, LabError> {
        let mut line = String::new();
        if let Some((_, output)) = self.pipes.borrow_mut().as_mut() {
            output.read_line(&mut line).map_err(LabError::doing("hear a worker"))?;
        }
        let gone = |_| LabError::Untrusted("the launching process ended, perhaps for want of memory".to_owned());
        match serde_json::from_str(&line).map_err(gone)? {
            Reply::Done(values) => Ok(values),
            Reply::Unavailable(reason) => Err(LabError::Unavailable(reason)),
            Reply::Untrusted(reason) => Err(LabError::Untrusted(reason)),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The end of its input ends it.
        self.pipes.borrow_mut().take();
        let _ = self.child.wait();
    }
}
