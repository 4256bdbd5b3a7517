//! The workers: processes that launch. The cost of a launch depends on the parent's memory,
//! descriptors and threads, so each parent is a separate process. It executes spawnscope with a
//! hidden verb. `protocol` defines the messages.

mod launcher;
pub mod protocol;
pub mod serve;

use std::cell::RefCell;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::rc::Rc;

use self::protocol::{Reply, Request, Setting};
use crate::LabError;
use crate::asked::AskedChild;

pub const VERB: &str = "lab-worker";

/// A process that launches on request. Dropping the `Worker` ends the process. If the process dies,
/// it is started again for the next request, so that one case cannot affect the others.
pub struct Worker {
    setting: String,
    environment: Environment,
    process: RefCell<Option<AskedChild>>,
}

impl Worker {
    pub fn start(setting: &Setting) -> Result<Rc<Worker>, LabError> {
        Worker::start_with(setting, Environment::default())
    }

    /// Starts a worker with an environment that differs from that of bench.
    pub fn start_with(setting: &Setting, environment: Environment) -> Result<Rc<Worker>, LabError> {
        let setting = serde_json::to_string(setting).map_err(LabError::doing("write a setting"))?;
        let worker = Worker { setting, environment, process: RefCell::new(None) };
        worker.process.replace(Some(worker.start_process()?));
        Ok(Rc::new(worker))
    }

    pub fn request(&self, request: &Request) -> Result<Vec<f64>, LabError> {
        let line = serde_json::to_string(request).map_err(LabError::doing("write a request"))?;
        let mut process = match self.process.take() {
            Some(process) => process,
            None => self.start_process()?,
        };
        // If writing fails, there is no reply either, which is handled below.
        let _ = process.ask(&line);
        match read_reply(&mut process) {
            Some(reply) => {
                self.process.replace(Some(process));
                reply
            }
            None => Err(end(process)),
        }
    }

    fn start_process(&self) -> Result<AskedChild, LabError> {
        loop {
            let mut command = Command::new("/proc/self/exe");
            for (name, value) in &self.environment {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
            let mut process = AskedChild::start(command.args([VERB, &self.setting]), "a worker")?;
            match read_reply(&mut process) {
                Some(reply) => return reply.map(|_| process),
                // Ctrl-C arrived before the worker was in its own process group; try again.
                None if process.child.wait().is_ok_and(|status| status.signal() == Some(libc::SIGINT)) => {}
                None => return Err(end(process)),
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.process.take().map(end);
    }
}

/// Reads a reply; returns `None` if the process has ended.
fn read_reply(process: &mut AskedChild) -> Option<Reply> {
    serde_json::from_str(&process.answer().ok()?).ok()
}

/// Ends a process by closing its input. Returns an error with its exit status, for callers that did
/// not expect the end.
fn end(process: AskedChild) -> LabError {
    LabError::Invalid(match process.close().wait() {
        Ok(status) if status.signal() == Some(libc::SIGKILL) => {
            "the launching process was killed, possibly out of memory".to_owned()
        }
        Ok(status) => format!("the launching process ended with {status}"),
        Err(error) => format!("failed to wait for the launching process: {error}"),
    })
}

const LOADER_PREFIX: &[u8] = b"LD_";

/// Variables with new values. Those without a value are removed.
pub type Environment = Vec<(OsString, Option<OsString>)>;

/// Removes the loader's variables, for experiments whose cases themselves set the search path, the
/// preloaded libraries and the binding mode.
pub fn without_loader_variables() -> Environment {
    without_loader_variables_among(std::env::vars_os().map(|(name, _)| name))
}

fn without_loader_variables_among(names: impl Iterator<Item = OsString>) -> Environment {
    let mut removed: Vec<OsString> = names.filter(|name| name.as_encoded_bytes().starts_with(LOADER_PREFIX)).collect();
    removed.sort();
    removed.into_iter().map(|name| (name, None)).collect()
}

/// Returns a note for the reader about variables that children lack; `None` if no variable is
/// removed.
pub fn removal_note(environment: &Environment) -> Option<String> {
    let removed = environment.iter().filter(|(_, value)| value.is_none());
    let names: Vec<_> = removed.map(|(name, _)| name.to_string_lossy()).collect();
    let names = (!names.is_empty()).then(|| names.join(", "))?;
    Some(format!("removed from the environment of launched programs: {names}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loader_variables_are_removed() {
        let names = ["LD_PRELOAD", "LDFLAGS", "PATH", "LD_BIND_NOW"].map(OsString::from);
        let removed = without_loader_variables_among(names.into_iter());
        assert_eq!(removed, ["LD_BIND_NOW", "LD_PRELOAD"].map(|name| (name.into(), None)));
        let note = removal_note(&removed).unwrap();
        assert!(note.ends_with("launched programs: LD_BIND_NOW, LD_PRELOAD"), "{note}");
        assert_eq!(removal_note(&vec![("LD_LIBRARY_PATH".into(), Some("/a".into()))]), None);
    }
}
