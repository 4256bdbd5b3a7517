//! Turns logs of process launches that other tools wrote into recordings. `input` opens logs, which
//! may be compressed, and finds out their format. Each format is a `Source`: it reads lines, keeps
//! the state of each process, and emits events like every collector. This file passes the events to
//! the recorder.

mod error;
mod eslogger;
#[cfg(fuzzing)]
mod fuzz;
mod input;
mod scans;
mod sched;
mod steps;
mod strace;
mod text;

use std::path::{Path, PathBuf};

use spawnscope_data::event::{Calibration, Event, LaunchId, Loss, Missing, Nanos};
use spawnscope_data::rows::Scope;
use spawnscope_recording::{Ending, Header, Recorder, Redaction, WriterOptions};

pub use error::ImportError;
#[cfg(fuzzing)]
pub use fuzz::{fuzz, fuzz_scans, fuzz_steps};
use input::{Count, Lines};
pub use input::{Format, Refused};
use scans::Scans;
pub use steps::build_steps;

/// Number of events that are passed to the recorder at once.
const BATCH: usize = 4_096;

/// A log that is being read.
trait Source {
    /// Reads lines until there are many events. Returns false at the end.
    fn read(&mut self) -> Result<bool, ImportError>;
    /// Adds the events that are known only at the end of the log.
    fn finish(&mut self);
    /// Returns the events so far, and forgets them.
    fn take_events(&mut self) -> Vec<Event>;
    /// The numbers of lines so far.
    fn count(&self) -> &Count;
    /// What is known so far about the log as a whole.
    fn about(&self) -> About;
}

/// A log as a whole.
#[derive(Default)]
struct About {
    /// The tool that wrote it.
    tool: &'static str,
    scope: Scope,
    root: Option<LaunchId>,
    command: Vec<Vec<u8>>,
    /// The time of the first line.
    origin: Nanos,
    /// When the log began, in nanoseconds since 1970; zero if it does not say.
    started_unix_ns: i64,
    /// When the command, or the log, ended.
    end: Nanos,
    /// Whether the command ended.
    has_ended: bool,
    /// The CPUs that appear in the log; zero if it does not name them.
    cpus: u32,
    allowed_cpus: Option<u32>,
    /// How many scans belong to a launch, and how many there are in all, if there is a log of
    /// scans.
    scans: Option<(u64, u64)>,
    /// What the log does not contain, and what is unknown as a result.
    missing: Vec<(&'static str, &'static str)>,
    /// Events that the tool says were lost.
    lost: u64,
    /// What the tool's own work adds to calls, launches and execs.
    calibration: Vec<Calibration>,
}

/// What was imported.
#[derive(Debug)]
pub struct Imported {
    /// Lines that could not be read: how many, and the first one.
    pub refused: Option<Refused>,
    /// Number of lines that were read.
    pub lines: u64,
    /// Number of launches, including the command.
    pub launches: u64,
    /// How many scans belong to a launch, and how many there are in all, if there is a log of
    /// scans.
    pub scans: Option<(u64, u64)>,
}

/// Reads logs, which together are one, and writes a recording. `-` is standard input. `scans` is
/// the log of macOS's scanner beside a log of eslogger.
///
/// # Errors
/// If a log cannot be opened, is something else, or has no lines of its format, or if the recording
/// cannot be written. If it cannot be finished, an earlier recording at this path is kept.
pub fn import(
    logs: &[PathBuf],
    format: Option<Format>,
    scans: Option<&Path>,
    output: &Path,
    redaction: Redaction,
) -> Result<Imported, ImportError> {
    let mut log = open(logs, format, scans)?;
    let mut writer = Writer { recorder: None, output, redaction };
    match writer.copy(&mut *log) {
        Ok(()) => writer.finish(&*log),
        Err(error) => {
            if let Some(recorder) = writer.recorder {
                recorder.discard()?;
            }
            Err(error)
        }
    }
}

/// Opens logs of one format, which is found out unless it is given.
fn open(logs: &[PathBuf], format: Option<Format>, scans: Option<&Path>) -> Result<Box<dyn Source>, ImportError> {
    let scans = scans.map(Scans::read).transpose()?;
    let [only] = logs else {
        return Ok(Box::new(strace::Log::open(logs)?));
    };
    let mut lines = Lines::open(only)?;
    Ok(match (format.map_or_else(|| lines.format(), Ok)?, scans) {
        (Format::Eslogger, scans) => Box::new(eslogger::Log::of_one(lines, scans)?),
        (_, Some(_)) => return Err(ImportError::ScansOfOther { path: lines.path }),
        (Format::Strace, None) => Box::new(strace::Log::of_one(lines)?),
        (Format::Perf, None) => Box::new(sched::Log::of_one(lines)?),
    })
}

struct Writer<'a> {
    recorder: Option<Recorder>,
    output: &'a Path,
    redaction: Redaction,
}

impl Writer<'_> {
    /// Reads the log to its end, and writes its events.
    fn copy(&mut self, log: &mut dyn Source) -> Result<(), ImportError> {
        while log.read()? {
            self.write(log)?;
        }
        log.finish();
        self.write(log)
    }

    /// Writes events. The recording is created with the first ones, because its header needs to
    /// know what kind of log it is.
    fn write(&mut self, log: &mut dyn Source) -> Result<(), ImportError> {
        let events = log.take_events();
        let recorder = match &mut self.recorder {
            Some(recorder) => recorder,
            none => {
                let options = WriterOptions { is_elsewhere: true, ..WriterOptions::default() };
                let about = log.about();
                let recorder = Recorder::create(self.output, &header(&about), self.redaction, &options)?;
                about.root.into_iter().for_each(|root| recorder.set_root(root));
                none.insert(recorder)
            }
        };
        recorder.send_and_wait(events);
        Ok(())
    }

    fn finish(self, log: &dyn Source) -> Result<Imported, ImportError> {
        let (about, count) = (log.about(), log.count());
        let refused = count.refused.clone();
        let unread = refused.as_ref().map_or(0, |refused| refused.count);
        let lost = [("unreadable line", unread), ("event of the log", about.lost)].into_iter();
        let lost = lost.filter(|(_, events)| *events > 0);
        let ending = Ending {
            wall: Some(about.end.since(about.origin)),
            ended: if about.has_ended { "exited" } else { "interrupted" }.to_owned(),
            allowed_cpus: about.allowed_cpus.map(f64::from),
            lost: lost.map(|(kind, events)| Loss { kind: kind.to_owned(), events }).collect(),
            calibration: about.calibration,
        };
        let launches = match self.recorder {
            Some(recorder) => {
                let launches = recorder.launches_so_far();
                recorder.finish(ending)?;
                launches
            }
            None => 0,
        };
        Ok(Imported { refused, lines: count.lines, launches, scans: about.scans })
    }
}

fn header(about: &About) -> Header {
    let missing = about.missing.iter();
    Header {
        collector: format!("import:{}", about.tool),
        scope: about.scope,
        command: about.command.clone(),
        // The numbers of system calls are those of x86-64, wherever the log is from.
        arch: "x86_64".to_owned(),
        cpus: about.cpus,
        started_unix_ns: about.started_unix_ns,
        origin: about.origin,
        missing: missing
            .map(|(what, effect)| Missing { what: (*what).to_owned(), effect: (*effect).to_owned() })
            .collect(),
        ..Header::default()
    }
}
