//! Logs of strace. `files` reads lines, `line` and `call` parse them, and `processes` and `effects`
//! keep the state of each process, from which events come. This file decides to which thread a line
//! belongs.

mod call;
mod clock;
mod creations;
mod descriptors;
mod effects;
mod files;
mod line;
mod loader;
mod pace;
mod processes;
mod script;
#[cfg(test)]
mod tests;
mod waits;
mod work;

use std::path::PathBuf;

use spawnscope_data::event::{Calibration, Event, Missing, Nanos};
use spawnscope_data::rows::Scope;

use super::error::ImportError;
use super::input::{Count, Lines};
use super::{About, BATCH, Source};
use clock::TimeForm;
use files::Files;
use line::{What, what};
use processes::Tracker;

/// A log that is being read.
pub struct Log {
    files: Files,
    pub tracker: Tracker,
    /// The time of the last line so far.
    pub now: Nanos,
}

impl Log {
    /// Opens the files of a log, which together are one.
    pub fn open(paths: &[PathBuf]) -> Result<Log, ImportError> {
        Ok(Log::of(Files::open(paths)?))
    }

    /// Begins to read a log in one file.
    pub fn of_one(lines: Lines) -> Result<Log, ImportError> {
        Ok(Log::of(Files::of_one(lines)?))
    }

    fn of(files: Files) -> Log {
        Log { now: files.origin, files, tracker: Tracker::default() }
    }

    fn add_line(&mut self, index: usize) -> bool {
        let tracker = &mut self.tracker;
        let Some(stream) = self.files.stream(index) else {
            return true;
        };
        // A thread without a number in the log.
        let unnamed = -1 - index as i32;
        let tid = match stream.tid.or(stream.file_tid) {
            Some(tid) => {
                // A new thread is not the first process, unless strace attached to that one (-p).
                let is_new = stream.attached.iter().position(|attached| *attached == tid);
                is_new.map(|index| stream.attached.remove(index));
                let is_new = is_new.is_some() && tracker.root.is_some();
                if !is_new && is_first_mention(tracker, unnamed, tid, stream.rest()) {
                    tracker.rename(unnamed, tid);
                }
                tid
            }
            // If only one process is left, strace writes no number.
            None => match (tracker.only_task(), stream.last_tid) {
                (Some(only), _) => only,
                (None, Some(last)) if tracker.tasks.contains_key(&last) => last,
                _ => unnamed,
            },
        };
        stream.last_tid = Some(tid);
        tracker.add(tid, stream.at, stream.rest())
    }
}

impl Source for Log {
    fn read(&mut self) -> Result<bool, ImportError> {
        while self.tracker.events.len() < BATCH {
            let Some((at, index)) = self.files.next()? else {
                return Ok(false);
            };
            self.now = self.now.max(at);
            self.tracker.is_precise |= !self.files.stream(index).is_some_and(|stream| stream.is_coarse());
            if !self.add_line(index) {
                self.files.refuse(index);
            }
            self.files.advance(index)?;
        }
        Ok(true)
    }

    fn finish(&mut self) {
        self.tracker.finish();
    }

    fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.tracker.events)
    }

    fn count(&self) -> &Count {
        &self.files.count
    }

    fn about(&self) -> About {
        let started = i64::try_from(self.files.origin.0).ok().filter(|_| self.files.form == TimeForm::Unix);
        About {
            tool: "strace",
            scope: if self.tracker.root.is_some() { Scope::Command } else { Scope::Process },
            root: self.tracker.root,
            command: self.tracker.command.clone(),
            origin: self.files.origin,
            started_unix_ns: started.unwrap_or_default(),
            end: self.tracker.root_ended.unwrap_or(self.now),
            has_ended: self.tracker.root_ended.is_some(),
            allowed_cpus: self.tracker.allowed_cpus,
            missing: self.missing(),
            calibration: self.calibration(),
            ..About::default()
        }
    }
}

const ESTIMATED: &str =
    "strace slows launches 2 to 20 times: times are those of the log, savings are estimates without strace";
const NOT_ESTIMATED: &str =
    "strace slows launches 2 to 20 times: times and savings are those of the log, and its cost is unknown";

impl Log {
    /// Returns the cost of calls. Without most calls (`-e`), the times between them are work.
    fn calibration(&self) -> Vec<Calibration> {
        if self.tracker.has_loader_calls { self.tracker.pace.constants() } else { Vec::new() }
    }

    /// Returns what this log does not contain.
    fn missing(&self) -> Vec<(&'static str, &'static str)> {
        let mut all = vec![
            (Missing::SCHEDULER, "CPU times, waits for a CPU, and what ends some waits"),
            (Missing::FIRST_WAITS, "queue"),
            (Missing::UNTRACED_TIMES, if self.calibration().is_empty() { NOT_ESTIMATED } else { ESTIMATED }),
        ];
        if self.tracker.has_unseen_creations {
            all.push(("calls that create processes, and waits", "create and setup, and parents are assumed to wait"));
        }
        if !self.tracker.has_loader_calls {
            all.push(("the loader's system calls", "load"));
        }
        if self.files.form == TimeForm::None {
            all.push(("times", "all times (strace -ttt writes them)"));
        } else if !self.tracker.is_precise {
            all.push(("fractions of seconds", "all shorter times (strace -ttt writes them)"));
        }
        all
    }
}

/// Whether a number is that of the first process, whose lines had none while it was alone.
fn is_first_mention(tracker: &Tracker, unnamed: i32, tid: i32, rest: &[u8]) -> bool {
    let Some(task) = tracker.tasks.get(&unnamed) else {
        return false;
    };
    if tracker.tasks.contains_key(&tid) || tracker.held.contains_key(&tid) {
        return false;
    }
    // A thread that appears while another one is being created is the new one, unless it goes on
    // with the call that creates it.
    let resumed = match what(rest) {
        Some(What::Resumed { name, .. }) => Some(name),
        _ => None,
    };
    let begun = task.unfinished.as_ref().map(|begun| &begun.text);
    tracker.creating.is_empty() || resumed.zip(begun).is_some_and(|(name, begun)| begun.starts_with(name))
}
