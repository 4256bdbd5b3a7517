//! The processes that launch. What a launch costs depends on the parent's memory, descriptors and threads, so the parents are
//! processes of their own: spawnscope again, with a hidden verb. `protocol` is what is said between the two.

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

/// The hidden verb that makes spawnscope a worker.
pub const VERB: &str = "lab-worker";

/// A process that launches what it is told to; it ends when this is dropped. One that died is started again for the next
/// request, so that what one case did to it is not the end of others.
pub struct Worker {
    setting: String,
    environment: Environment,
    process: RefCell<Option<Process>>,
}

impl Worker {
    /// Starts one that is as the setting says.
    ///
    /// # Errors
    /// When it cannot be started, or cannot be made so.
    pub fn start(setting: &Setting) -> Result<Worker, LabError> {
        Worker::start_with(setting, Environment::default())
    }

    /// The same with an environment that is not that of bench.
    ///
    /// # Errors
    /// As above.
    pub fn start_with(setting: &Setting, environment: Environment) -> Result<Worker, LabError> {
        let worker = Worker {
            setting: serde_json::to_string(setting).map_err(|error| LabError::Untrusted(error.to_string()))?,
            environment,
            process: RefCell::new(None),
        };
        worker.process.replace(Some(worker.ready()?));
        Ok(worker)
    }

    /// Has it do something.
    ///
    /// # Errors
    /// When it could not, or when what it did cannot be trusted.
    pub fn ask(&self, request: &Request) -> Result<Vec<f64>, LabError> {
        let mut line = serde_json::to_string(request).map_err(|error| LabError::Untrusted(error.to_string()))?;
        line.push('\n');
        let mut process = match self.process.take() {
            Some(process) => process,
            None => self.ready()?,
        };
        // Where it cannot be told anything, it does not answer either.
        let _ = process.input.write_all(line.as_bytes());
        match process.answer() {
            Some(answer) => {
                self.process.replace(Some(process));
                answer
            }
            None => Err(process.end()),
        }
    }

    /// A process that has said that it is as it should be.
    fn ready(&self) -> Result<Process, LabError> {
        loop {
            let mut process = self.spawn()?;
            match process.answer() {
                Some(answer) => return answer.map(|_| process),
                // A Ctrl-C that came before it was in a group of its own.
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
            // Ctrl-C is for us, who end it in good order.
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
            _ => Err(LabError::Untrusted("a worker has no pipes".to_owned())),
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
    /// What it answers; nothing when it has ended.
    fn answer(&mut self) -> Option<Result<Vec<f64>, LabError>> {
        let mut line = String::new();
        self.output.read_line(&mut line).ok()?;
        Some(match serde_json::from_str(&line).ok()? {
            Reply::Done(values) => Ok(values),
            Reply::Unavailable(reason) => Err(LabError::Unavailable(reason)),
            Reply::Untrusted(reason) => Err(LabError::Untrusted(reason)),
        })
    }

    /// The end of its input ends it. How it ended, for those whom that surprises.
    fn end(self) -> LabError {
        let Process { mut child, input, .. } = self;
        drop(input);
        let how = match child.wait() {
            Ok(status) => match status.signal() {
                Some(libc::SIGKILL) => "was killed, perhaps for want of memory".to_owned(),
                _ => format!("ended with {}", ending(status.into_raw())),
            },
            Err(error) => format!("is lost: {error}"),
        };
        LabError::Untrusted(format!("the launching process {how}"))
    }
}
