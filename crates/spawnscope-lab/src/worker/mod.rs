//! The launching processes. The cost of a launch depends on the parent's memory, descriptors and threads, so each parent is a separate
//! process: spawnscope again, with a hidden verb. `protocol` defines the messages.

pub mod protocol;
pub mod serve;

mod ballast;
mod ending;
mod environment;
mod launcher;
mod mechanism;
mod operations;
mod raw;
mod rewrite;
mod stall;
mod throughput;

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub use environment::Environment;
pub use mechanism::Mechanism;

use self::ending::ending;
use self::protocol::{Reply, Request, Setting};
use super::LabError;

/// The hidden verb that runs spawnscope as a worker.
pub const VERB: &str = "lab-worker";

/// A process that launches on request; dropping this ends it. If it died, it is started again for the next request, so that one case cannot
/// affect the others.
pub struct Worker {
    setting: String,
    environment: Environment,
    process: RefCell<Option<Process>>,
}

impl Worker {
    /// Starts a worker with this setting.
    ///
    /// # Errors
    /// If it cannot be started, or cannot take on the setting.
    pub fn start(setting: &Setting) -> Result<Worker, LabError> {
        Worker::start_with(setting, Environment::default())
    }

    /// Starts a worker with another environment than that of bench.
    ///
    /// # Errors
    /// As `start`.
    pub fn start_with(setting: &Setting, environment: Environment) -> Result<Worker, LabError> {
        let worker = Worker {
            setting: serde_json::to_string(setting).map_err(|error| LabError::Invalid(error.to_string()))?,
            environment,
            process: RefCell::new(None),
        };
        worker.process.replace(Some(worker.start_process()?));
        Ok(worker)
    }

    /// Sends a request, and returns the values of the reply.
    ///
    /// # Errors
    /// If the request failed, or if its result cannot be trusted.
    pub fn ask(&self, request: &Request) -> Result<Vec<f64>, LabError> {
        let mut line = serde_json::to_string(request).map_err(|error| LabError::Invalid(error.to_string()))?;
        line.push('\n');
        let mut process = match self.process.take() {
            Some(process) => process,
            None => self.start_process()?,
        };
        // If writing fails, there is no reply either, which is handled below.
        let _ = process.input.write_all(line.as_bytes());
        match process.answer() {
            Some(answer) => {
                self.process.replace(Some(process));
                answer
            }
            None => Err(process.end()),
        }
    }

    /// Starts a process, which has reported that it is ready.
    fn start_process(&self) -> Result<Process, LabError> {
        loop {
            let mut process = self.spawn()?;
            match process.answer() {
                Some(answer) => return answer.map(|_| process),
                // Ctrl-C may arrive before the worker is in its own process group; try again.
                None if process
                    .child
                    .wait()
                    .is_ok_and(|status| status.signal() == Some(libc::SIGINT)) => {}
                None => return Err(process.end()),
            }
        }
    }

    fn spawn(&self) -> Result<Process, LabError> {
        let mut command = Command::new("/proc/self/exe");
        self.environment.apply(&mut command);
        let mut child = command
            .args([VERB, &self.setting])
            // Ctrl-C must only reach bench, which ends workers in an orderly way.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(LabError::doing("start a worker"))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Process {
                child,
                input,
                output: BufReader::new(output),
            }),
            _ => Err(LabError::Invalid("no pipes to a worker".to_owned())),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.end();
        }
    }
}

struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Its reply; `None` if it has ended.
    fn answer(&mut self) -> Option<Result<Vec<f64>, LabError>> {
        let mut line = String::new();
        self.output.read_line(&mut line).ok()?;
        Some(match serde_json::from_str(&line).ok()? {
            Reply::Done(values) => Ok(values),
            Reply::Unavailable(reason) => Err(LabError::Unavailable(reason)),
            Reply::Invalid(reason) => Err(LabError::Invalid(reason)),
        })
    }

    /// Ends it by closing its input, and returns an error with its status, in case its end was unexpected.
    fn end(self) -> LabError {
        let Process { mut child, input, .. } = self;
        drop(input);
        let how = match child.wait() {
            Ok(status) => match status.signal() {
                Some(libc::SIGKILL) => "the launching process was killed, possibly out of memory".to_owned(),
                _ => format!("the launching process ended with {}", ending(status.into_raw())),
            },
            Err(error) => format!("failed to wait for the launching process: {error}"),
        };
        LabError::Invalid(how)
    }
}
