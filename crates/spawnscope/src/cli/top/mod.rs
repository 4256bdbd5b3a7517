//! `spawnscope top`: a live view. It records to a small ring in a temporary directory, as `record --keep` does, and a thread draws what the rows
//! of that ring say. The thread owns the terminal; `screen` leaves it as it was.

mod quiet;
mod screen;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use self::quiet::QuietCommand;
use self::screen::Screen;
use super::args::{CollectorChoice, RecordArguments, TopArguments};
use super::identity;
use super::output::print_message;
use super::record::{self, Watcher};
use crate::analyze::live::LiveBoard;
use crate::clock;
use crate::event::Nanos;
use crate::owner::act_as;
use crate::present::text;
use crate::present::top::{ScreenStatus, View, draw};
use crate::record::{Follower, Following, Header, follow};
use crate::signals::{Arrived, Signals};

/// The size of the ring on disk.
const KEEP: u64 = 256 << 20;
/// How often the screen is drawn without a key.
const INTERVAL: Duration = Duration::from_millis(250);
/// How long to wait for a key before looking for rows.
const KEY_TIMEOUT: Duration = Duration::from_millis(50);
/// How long the thread may take to restore the terminal after a signal.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(1);
/// The seconds of which the rate is kept.
const SECONDS: usize = 600;

/// Runs the verb.
///
/// # Errors
/// When there is no terminal, and when spawnscope itself fails. A failure of the command is not an error.
pub fn run(arguments: &TopArguments) -> Result<ExitCode> {
    if arguments.command.is_empty() && arguments.pid.is_none() && !arguments.all {
        bail!("nothing to watch: give a command (`spawnscope top -- CMD`), a process (-p PID) or the machine (-a)");
    }
    let is_on_terminal = !arguments.command.is_empty() || std::io::stdout().is_terminal();
    if !is_on_terminal || !screen::has_terminal() {
        bail!("top needs a terminal: use `spawnscope record --metrics FILE` or `spawnscope report` without one");
    }
    let directory = temporary_directory(arguments)?;
    let output = directory.path().join("top.db");
    let signals = Signals::catch().context("failed to catch signals")?;
    let mut viewer = Viewer {
        followed: followed(arguments),
        flags: Arc::default(),
        waiting: None,
        thread: None,
    };
    let quiet = QuietCommand::begin(!arguments.command.is_empty())?;
    let recorded = record::watched(&as_record(arguments, output), &signals, Some(&mut viewer));
    drop(quiet);
    let flags = Arc::clone(&viewer.flags);
    let drawn = viewer.finish(recorded.is_err(), &signals);
    let status = recorded?;
    if drawn? == Left::Early {
        // A signal was forwarded to the command, which may have ended.
        if !arguments.command.is_empty() && !flags.must_end.load(Ordering::Relaxed) {
            print_message("the command keeps running, unrecorded");
        }
        return Ok(ExitCode::SUCCESS);
    }
    Ok(status)
}

/// Creates the directory of the recording, which belongs to the user that the command runs as, like every recording.
fn temporary_directory(arguments: &TopArguments) -> Result<tempfile::TempDir> {
    let identity = identity::decide(arguments.identity.choice())?.identity;
    let _acting =
        act_as(identity.as_ref().map(identity::owner).as_ref()).context("failed to act as the command's user")?;
    tempfile::tempdir().context("failed to create a temporary directory for the recording")
}

fn followed(arguments: &TopArguments) -> String {
    match (arguments.all, arguments.pid) {
        (true, _) => "the machine".to_owned(),
        (false, Some(pid)) => format!("process {pid}"),
        (false, None) => {
            let words = arguments.command.iter();
            text::command_line(
                words.map(|word| std::os::unix::ffi::OsStrExt::as_bytes(word.as_os_str())),
                Some(200),
            )
        }
    }
}

/// What `record` would be called with. The view shows no script lines, so they are not looked up.
fn as_record(arguments: &TopArguments, output: std::path::PathBuf) -> RecordArguments {
    RecordArguments {
        output,
        runs: None,
        pid: arguments.pid,
        with: Vec::new(),
        all: arguments.all,
        duration: None,
        wait_for_all: false,
        collector: CollectorChoice::Auto,
        no_failed_execs: false,
        launcher_calls: false,
        node_lines: false,
        stacks: false,
        sample: None,
        keep: Some(KEEP),
        metrics: None,
        metrics_commands: 1,
        otlp: None,
        otlp_spans: 0,
        buffer: None,
        labels: Vec::new(),
        no_lines: true,
        no_redact: false,
        json: None,
        quiet: true,
        verbose: false,
        identity: arguments.identity.clone(),
        command: arguments.command.clone(),
    }
}

/// What the threads tell each other.
#[derive(Debug, Default)]
struct Flags {
    /// The user wants to quit.
    quits: AtomicBool,
    /// The screen must go, whatever the user does: a signal ends spawnscope.
    must_end: AtomicBool,
}

/// The connection between a recording and the thread that draws.
struct Viewer {
    followed: String,
    flags: Arc<Flags>,
    waiting: Option<Drawing>,
    thread: Option<JoinHandle<Result<Left>>>,
}

impl Watcher for Viewer {
    fn follower(&mut self, header: &Header) -> Follower {
        let (follower, following) = follow(header.started_unix_ns);
        self.waiting = Some(Drawing {
            following,
            board: LiveBoard::new(header.missing.clone()),
            view: View::default(),
            origin: header.origin,
            followed: format!("{} ({})", self.followed, header.collector),
            flags: Arc::clone(&self.flags),
            rates: Rates::default(),
            ended: None,
        });
        follower
    }

    /// From here on, errors of the recording hide behind the screen until it goes.
    fn begin(&mut self) -> Result<()> {
        let Some(drawing) = self.waiting.take() else {
            return Ok(());
        };
        let screen = Screen::open()?;
        let thread = thread::Builder::new().name("top".into());
        let thread = thread.spawn(move || drawing.run(screen));
        self.thread = Some(thread.context("failed to start a thread that draws")?);
        Ok(())
    }

    fn has_quit(&self) -> bool {
        self.flags.quits.load(Ordering::Relaxed)
    }

    /// The screen does not wait for the user.
    fn end_now(&self) {
        self.flags.must_end.store(true, Ordering::Relaxed);
    }
}

impl Viewer {
    /// Waits until the user has quit or a signal arrives, unless the recording failed.
    fn finish(self, has_failed: bool, signals: &Signals) -> Result<Left> {
        if has_failed {
            self.end_now();
        }
        let Some(thread) = self.thread else {
            return Ok(Left::AtTheEnd);
        };
        let mut deadline = None;
        while !thread.is_finished() {
            if signals.next().is_some_and(Arrived::should_end) {
                self.flags.must_end.store(true, Ordering::Relaxed);
            }
            if self.flags.must_end.load(Ordering::Relaxed)
                && Instant::now() >= *deadline.get_or_insert_with(|| Instant::now() + RESTORE_TIMEOUT)
            {
                // crossterm does not return from a terminal that has hung up. There is nothing to restore then.
                return Ok(Left::Early);
            }
            thread::sleep(KEY_TIMEOUT);
        }
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// When the user, or a signal, ended the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// While the recording went on.
    Early,
    /// After its end.
    AtTheEnd,
}

/// The state of the thread that draws.
struct Drawing {
    following: Following,
    board: LiveBoard,
    view: View,
    origin: Nanos,
    followed: String,
    flags: Arc<Flags>,
    rates: Rates,
    /// When the recording ended.
    ended: Option<Nanos>,
}

impl Drawing {
    fn run(mut self, mut screen: Screen) -> Result<Left> {
        let drawn = self.draw_until_over(&mut screen);
        let left = self.ended.map_or(Left::Early, |_| Left::AtTheEnd);
        // This includes the case that the terminal is gone, because no key can be pressed any more.
        self.flags.quits.store(true, Ordering::Relaxed);
        drawn.map(|()| left)
    }

    fn draw_until_over(&mut self, screen: &mut Screen) -> Result<()> {
        let mut page = 0;
        let mut due = Instant::now();
        loop {
            self.take_rows();
            if Instant::now() >= due {
                due = Instant::now() + INTERVAL;
                let snapshot = self.board.snapshot();
                if self.ended.is_none() {
                    self.rates.note(Instant::now(), snapshot.started);
                }
                self.view.update(snapshot);
                page = self.draw(screen)?;
            }
            if let Some(key) = screen.next_key(KEY_TIMEOUT)? {
                self.view.press(key, page);
                due = Instant::now();
            }
            if self.view.is_over || self.flags.must_end.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }

    fn take_rows(&mut self) {
        while self.ended.is_none() {
            match self.following.next(Duration::ZERO) {
                Ok(rows) => self.board.apply(rows),
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => self.ended = Some(clock::now()),
            }
        }
    }

    fn draw(&mut self, screen: &mut Screen) -> Result<usize> {
        let status = ScreenStatus {
            followed: &self.followed,
            rates: self.rates.whole_seconds(),
            now: self.ended.unwrap_or_else(clock::now).since(self.origin),
            skipped: self.following.skipped(),
            has_ended: self.ended.is_some(),
            has_colour: screen.has_colour(),
        };
        screen.draw(|frame| draw(frame, &self.view, &status))
    }
}

/// Launches in each of the last seconds.
#[derive(Debug, Default)]
struct Rates {
    /// The beginning of the current second, and the launches before it.
    current: Option<(Instant, u64)>,
    seconds: Vec<u64>,
}

impl Rates {
    fn note(&mut self, now: Instant, started: u64) {
        let (mut began, mut before) = *self.current.get_or_insert((now, started));
        let whole = now.duration_since(began).as_secs();
        // Drawing may have taken longer than a second: then the launches are spread over it.
        if let Some(rate) = started.saturating_sub(before).checked_div(whole) {
            let many = usize::try_from(whole).map_or(SECONDS, |whole| whole.min(SECONDS));
            self.seconds.extend(std::iter::repeat_n(rate, many));
            let surplus = self.seconds.len().saturating_sub(SECONDS);
            self.seconds.drain(..surplus);
            began += Duration::from_secs(whole);
            before = started;
        }
        self.current = Some((began, before));
    }

    fn whole_seconds(&self) -> &[u64] {
        &self.seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_whole_seconds_and_bounded() {
        let mut rates = Rates::default();
        let start = Instant::now();
        for (milliseconds, started) in [(0, 100), (250, 120), (1000, 150), (1500, 160), (4000, 450)] {
            rates.note(start + Duration::from_millis(milliseconds), started);
        }
        assert_eq!(rates.whole_seconds(), [50, 100, 100, 100]);
        rates.note(start + Duration::from_secs(100_000), 500);
        assert_eq!(rates.whole_seconds().len(), SECONDS);
    }
}
