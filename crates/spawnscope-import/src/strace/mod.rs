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
mod processes;
mod script;
mod status;
#[cfg(test)]
mod tests;
mod text;
mod waits;

use std::path::PathBuf;

use spawnscope_data::event::{Event, Nanos};

use super::BATCH;
use super::error::ImportError;
use clock::TimeForm;
use files::Files;
pub use files::Refused;
use line::{What, what};
use processes::Tracker;

/// A log that is being read.
pub struct Log {
    files: Files,
    pub tracker: Tracker,
    /// The time of the last line so far.
    pub now: Nanos,
    /// Whether all times are whole seconds.
    pub is_coarse: bool,
    understood: u64,
}

impl Log {
    /// Opens the files of a log, which together are one.
    pub fn open(paths: &[PathBuf]) -> Result<Log, ImportError> {
        let files = Files::open(paths)?;
        Ok(Log { now: files.origin, files, tracker: Tracker::default(), is_coarse: true, understood: 0 })
    }

    /// Reads lines until there are many events. Returns false at the end.
    pub fn read(&mut self) -> Result<bool, ImportError> {
        while self.tracker.events.len() < BATCH {
            let Some((at, index)) = self.files.next()? else {
                return Ok(false);
            };
            self.now = self.now.max(at);
            self.is_coarse &= at.0 % 1_000_000_000 == 0;
            let is_understood = self.add_line(index);
            if !is_understood {
                self.files.refuse(index);
            }
            self.understood += u64::from(is_understood);
            self.files.advance(index)?;
        }
        Ok(true)
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
                if is_first_mention(tracker, unnamed, tid, stream.rest()) {
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

    /// Reports what is known at the end of the log.
    pub fn finish(&mut self) {
        self.tracker.finish();
    }

    /// Returns the events so far, and forgets them.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.tracker.events)
    }

    /// The time of the first line.
    pub fn origin(&self) -> Nanos {
        self.files.origin
    }

    /// When the log began, in nanoseconds since 1970; zero if it does not say.
    pub fn started_unix_ns(&self) -> i64 {
        let is_known = self.files.form == TimeForm::Unix;
        i64::try_from(self.files.origin.0).ok().filter(|_| is_known).unwrap_or_default()
    }

    pub fn has_no_times(&self) -> bool {
        self.files.form == TimeForm::None
    }

    /// Number of lines so far.
    pub fn lines(&self) -> u64 {
        self.files.count.lines
    }

    pub fn refused(&self) -> Option<&Refused> {
        self.files.count.refused.as_ref()
    }
}

/// Whether a number is that of the first process, whose lines had none while it was alone.
fn is_first_mention(tracker: &Tracker, unnamed: i32, tid: i32, rest: &[u8]) -> bool {
    let Some(task) = tracker.tasks.get(&unnamed) else {
        return false;
    };
    if tracker.tasks.contains_key(&tid) || tracker.is_held(tid) {
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

/// Returns a log in memory, for tests. `None` if it has no line of strace.
#[cfg(any(test, fuzzing))]
pub fn log_of_text(text: &[u8]) -> Option<Log> {
    let files = Files::of_text(text).ok()?;
    Some(Log { now: files.origin, files, tracker: Tracker::default(), is_coarse: true, understood: 0 })
}
