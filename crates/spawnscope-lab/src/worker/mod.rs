//! The workers: processes that launch. The cost of a launch depends on the parent's memory,
//! descriptors and threads, so each parent is a separate process. It executes spawnscope with a
//! hidden verb. `protocol` defines the messages.

pub mod protocol;
pub mod serve;

mod ballast;
mod environment;
mod launcher;
mod mechanism;
mod operations;
mod raw;

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub use environment::Environment;
pub use mechanism::Mechanism;

use self::protocol::{Reply, Request, Setting};
use super::LabError;

/// The hidden verb that runs spawnscope as a worker.
pub const VERB: &str = "lab-worker";

/// A process that launches on request. Dropping the `Worker` ends the process. If the process dies,
/// it is started again for the next request, so that one case cannot affect the others.
pub struct Worker {
    setting: String,
    environment: Environment,
    process: RefCell<Option<Process>>,
}

impl Worker {
    pub fn start(setting: &Setting) -> Result<Worker, LabError> {
        Worker::start_with(setting, Environment::default())
    }

    /// Starts a worker with an environment that differs from that of bench.
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
    pub fn request(&self, request: &Request) -> Result<Vec<f64>, LabError> {
        let mut line = serde_json::to_string(request).map_err(|error| LabError::Invalid(error.to_string()))?;
        line.push('\n');
        let mut process = match self.process.take() {
            Some(process) => process,
            None => self.start_process()?,
        };
        // If writing fails, there is no reply either, which is handled below.
        let _ = process.input.write_all(line.as_bytes());
        match process.read_reply() {
            Some(reply) => {
                self.process.replace(Some(process));
                reply
            }
            None => Err(process.end()),
        }
    }

    /// Starts a process, and waits until it reports that it is ready.
    fn start_process(&self) -> Result<Process, LabError> {
        loop {
            let mut process = self.spawn()?;
            match process.read_reply() {
                Some(reply) => return reply.map(|_| process),
                // Ctrl-C arrived before the worker was in its own process group; try again.
                None if process.child.wait().is_ok_and(|status| status.signal() == Some(libc::SIGINT)) => {}
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
            (Some(input), Some(output)) => Ok(Process { child, input, output: BufReader::new(output) }),
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
    /// Reads a reply; returns `None` if the process has ended.
    fn read_reply(&mut self) -> Option<Result<Vec<f64>, LabError>> {
        let mut line = String::new();
        self.output.read_line(&mut line).ok()?;
        Some(match serde_json::from_str(&line).ok()? {
            Reply::Done(values) => Ok(values),
            Reply::Unavailable(reason) => Err(LabError::Unavailable(reason)),
            Reply::Invalid(reason) => Err(LabError::Invalid(reason)),
        })
    }

    /// Ends the process by closing its input. Returns an error with its exit status, for callers
    /// that did not expect the end.
    fn end(self) -> LabError {
        let Process { mut child, input, .. } = self;
        drop(input);
        let how = match child.wait() {
            Ok(status) => match status.signal() {
                Some(libc::SIGKILL) => "the launching process was killed, possibly out of memory".to_owned(),
                _ => format!("the launching process ended with {status}"),
            },
            Err(error) => format!("failed to wait for the launching process: {error}"),
        };
        LabError::Invalid(how)
    }
}
