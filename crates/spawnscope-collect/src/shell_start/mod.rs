//! Starts a shell in a pseudo-terminal, as a terminal would, and observes it until it waits for
//! input at its prompt; then presses Enter, again and again. `terminal` has the terminal, and
//! `observer` finds out what the shell does, without stopping it.
//!
//! The shell is killed at the end, so that it does not write its history. Nothing is typed but
//! Enter.

mod fish;
mod observer;
mod terminal;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use spawnscope_data::event::{Frame, Nanos};
use spawnscope_data::shell_start::{Activity, LaunchedProgram, Observed};

use self::fish::Trace;
use self::observer::{Observer, State};
use self::terminal::Terminal;
use crate::ptrace::lines::Interpreters;

const INTERVAL: Duration = Duration::from_millis(1);
/// A start-up file that waits for input that long asks the user a question.
const QUESTION: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct ShellCommand {
    /// The file of the shell, and its arguments.
    pub words: Vec<OsString>,
    /// The number of prompts after the first one.
    pub prompts: u32,
    /// How long to wait for each prompt.
    pub timeout: Duration,
}

#[derive(Clone, Debug, Default)]
pub struct Start {
    /// The time to the first prompt, and then that of each further prompt.
    pub prompts: Vec<Nanos>,
    /// What the shell did, if it was observed.
    pub observed: Vec<Observed>,
    /// Why a prompt did not come.
    pub failure: Option<Failure>,
}

/// Why a prompt did not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The shell has ended, with this wait status.
    Ended(i32),
    /// A start-up file asks for input at these lines.
    Asks(Vec<Frame>),
    /// The time was over. The shell was at these lines, and waited for this program.
    Busy(Vec<Frame>, Option<LaunchedProgram>),
}

#[derive(Debug)]
pub struct Starter {
    interpreters: Interpreters,
}

impl Starter {
    /// Examines the file of the shell. Without it, the lines of a dash may be unknown.
    #[must_use]
    pub fn new(file: Option<&File>) -> Starter {
        Starter { interpreters: Interpreters::with(file) }
    }

    /// Starts the shell once. With `observes`, also finds out what it does, which takes some of its
    /// time.
    ///
    /// # Errors
    /// When there is no terminal, or the shell cannot be executed.
    pub fn start(&mut self, command: &ShellCommand, observes: bool) -> io::Result<Start> {
        let is_fish = Path::new(&command.words[0]).file_name() == Some(OsStr::new("fish"));
        let trace = is_fish.then(Trace::new).transpose()?;
        let words =
            trace.as_ref().map_or_else(|| command.words.clone(), |trace| trace.command_line(&command.words, observes));
        let began = Instant::now();
        let terminal = Terminal::start(&words)?;
        let observer = Observer::new(terminal.shell(), &mut self.interpreters, trace);
        let mut session = Session { terminal, observer, observes, times: HashMap::new() };
        let mut start = Start::default();
        let mut since = began;
        for prompt in 0..=command.prompts {
            match session.wait_for_prompt(since, command.timeout, prompt > 0)? {
                Ok(time) => start.prompts.push(Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))),
                Err(failure) => {
                    start.failure = Some(failure);
                    break;
                }
            }
            if prompt < command.prompts {
                since = Instant::now();
                session.terminal.press_enter()?;
            }
        }
        let observed = session.times.into_iter();
        start.observed =
            observed.map(|(activity, time)| Observed { activity, time: Nanos(time.as_nanos() as u64) }).collect();
        Ok(start)
    }
}

struct Session<'i> {
    terminal: Terminal,
    observer: Observer<'i>,
    observes: bool,
    times: HashMap<Activity, Duration>,
}

impl Session<'_> {
    /// Waits until the shell has shown a prompt, and waits for input. Returns the time since
    /// `since`. The shell is at its prompt if it is seen waiting twice, because it also looks for
    /// input at other times, and executes no line of a start-up file.
    fn wait_for_prompt(
        &mut self,
        since: Instant,
        timeout: Duration,
        after_prompt: bool,
    ) -> io::Result<Result<Duration, Failure>> {
        let (mut last, mut has_output, mut waiting_since) = (since, false, None);
        loop {
            let has_ended = !self.terminal.read_until(last + INTERVAL, &mut has_output)?;
            if has_ended {
                return Ok(Err(Failure::Ended(self.terminal.reap()?)));
            }
            let now = Instant::now();
            let is_foreground = self.terminal.shell_is_foreground();
            let state = self.observer.state(&self.terminal, is_foreground && has_output);
            if state != State::WaitsForInput {
                waiting_since = None;
            } else if let Some(waiting) = waiting_since {
                let frames = self.observer.asking_frames();
                if frames.is_empty() {
                    return Ok(Ok(Instant::duration_since(&waiting, since)));
                }
                if now.duration_since(waiting) > QUESTION.min(timeout / 2) {
                    return Ok(Err(Failure::Asks(frames)));
                }
            } else {
                waiting_since = Some(now);
            }
            if now.duration_since(since) > timeout {
                return Ok(Err(Failure::Busy(self.observer.frames(), self.observer.program())));
            }
            if self.observes && waiting_since.is_none() {
                let frames = self.observer.frames();
                let program = if state == State::Waits { self.observer.program() } else { None };
                let activity = Activity { after_prompt, frames, program };
                *self.times.entry(activity).or_default() += now.duration_since(last);
            }
            last = now;
        }
    }
}

#[cfg(test)]
mod tests;
