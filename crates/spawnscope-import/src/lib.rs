//! Turns logs of process launches that other tools wrote into recordings. `input` opens logs, which
//! may be compressed. `strace` reads the lines of `strace -f`, keeps the state of each process, and
//! emits events like every collector. This file passes the events to the recorder.

mod error;
#[cfg(fuzzing)]
mod fuzz;
mod input;
mod strace;

use std::path::{Path, PathBuf};

use spawnscope_data::event::{Loss, Missing};
use spawnscope_data::rows::Scope;
use spawnscope_recording::{Ending, Header, Recorder, Redaction, WriterOptions};

pub use error::ImportError;
#[cfg(fuzzing)]
pub use fuzz::fuzz_strace;
use strace::{Log, Refused};

/// Number of events that are passed to the recorder at once.
const BATCH: usize = 4_096;

/// What was imported.
#[derive(Debug)]
pub struct Imported {
    /// Lines that could not be read: how many, and the first one.
    pub refused: Option<Refused>,
    /// Number of lines that were read.
    pub lines: u64,
    /// Number of launches, including the command.
    pub launches: u64,
}

/// Reads logs, which together are one, and writes a recording. `-` is standard input.
///
/// # Errors
/// If a log cannot be opened, is something else, or has no lines of strace, or if the recording
/// cannot be written. If it cannot be finished, an earlier recording at this path is kept.
pub fn import(logs: &[PathBuf], output: &Path, redaction: Redaction) -> Result<Imported, ImportError> {
    let mut log = Log::open(logs)?;
    let mut writer = Writer { recorder: None, output, redaction };
    match writer.copy(&mut log) {
        Ok(()) => writer.finish(&log),
        Err(error) => {
            if let Some(recorder) = writer.recorder {
                recorder.discard()?;
            }
            Err(error)
        }
    }
}

struct Writer<'a> {
    recorder: Option<Recorder>,
    output: &'a Path,
    redaction: Redaction,
}

impl Writer<'_> {
    /// Reads the log to its end, and writes its events.
    fn copy(&mut self, log: &mut Log) -> Result<(), ImportError> {
        while log.read()? {
            self.write(log)?;
        }
        log.finish();
        self.write(log)
    }

    /// Writes events. The recording is created with the first ones, because its header needs to
    /// know what kind of log it is.
    fn write(&mut self, log: &mut Log) -> Result<(), ImportError> {
        let events = log.take_events();
        let recorder = match &mut self.recorder {
            Some(recorder) => recorder,
            none => {
                let options = WriterOptions { is_elsewhere: true, ..WriterOptions::default() };
                let recorder = Recorder::create(self.output, &header(log), self.redaction, &options)?;
                log.tracker.root().into_iter().for_each(|root| recorder.set_root(root));
                none.insert(recorder)
            }
        };
        recorder.send_and_wait(events);
        Ok(())
    }

    fn finish(self, log: &Log) -> Result<Imported, ImportError> {
        let refused = log.refused().cloned();
        let lost = refused.iter().map(|refused| Loss { kind: "unreadable line".to_owned(), events: refused.count });
        let end = log.tracker.root_ended.unwrap_or(log.now);
        let ending = Ending {
            wall: Some(end.since(log.origin())),
            ended: if log.tracker.root_ended.is_some() { "exited" } else { "interrupted" }.to_owned(),
            allowed_cpus: log.tracker.allowed_cpus.map(f64::from),
            lost: lost.collect(),
            calibration: Vec::new(),
        };
        let launches = match self.recorder {
            Some(recorder) => {
                let launches = recorder.launches_so_far();
                recorder.finish(ending)?;
                launches
            }
            None => 0,
        };
        Ok(Imported { refused, lines: log.lines(), launches })
    }
}

fn header(log: &Log) -> Header {
    Header {
        collector: "import:strace".to_owned(),
        scope: if log.tracker.root().is_some() { Scope::Command } else { Scope::Process },
        command: log.tracker.command.clone(),
        cwd: Vec::new(),
        kernel: String::new(),
        // The numbers of system calls are those of x86-64, wherever the log is from.
        arch: "x86_64".to_owned(),
        hostname: String::new(),
        labels: Vec::new(),
        cpus: 0,
        allowed_cpus: None,
        started_unix_ns: log.started_unix_ns(),
        origin: log.origin(),
        missing: missing(log),
        calibration: Vec::new(),
    }
}

/// Returns what this log does not contain.
fn missing(log: &Log) -> Vec<Missing> {
    let mut all = vec![
        (Missing::SCHEDULER, "CPU times, waits for a CPU, and what ends some waits"),
        (Missing::FIRST_WAITS, "queue"),
        (Missing::UNTRACED_TIMES, "strace slows launches 2 to 6 times, so times and savings are those of the log"),
    ];
    if !log.tracker.has_loader_calls {
        all.push(("the loader's system calls", "load"));
    }
    if log.has_no_times() {
        all.push(("times", "all times (strace -ttt writes them)"));
    } else if log.is_coarse {
        all.push(("fractions of seconds", "all shorter times (strace -ttt writes them)"));
    }
    all.into_iter().map(|(what, effect)| Missing { what: what.to_owned(), effect: effect.to_owned() }).collect()
}
