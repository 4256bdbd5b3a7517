//! `spawnscope top`: a live view. It records to a small ring in a temporary directory, as `record
//! --keep` does, and a thread draws a view of the recorded rows. The thread owns the terminal,
//! which is in raw mode and shows the alternate screen meanwhile. The terminal is opened as
//! /dev/tty, because standard output may be redirected for the command.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, stderr, stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueHint};
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::{Frame, Terminal};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::args::RecordArguments;
use super::exit::Status;
use super::identity::{self, IdentityArguments};
use super::output::{self, print_message};
use super::record;
use super::session::Watcher;
use crate::analyze::live::LiveBoard;
use crate::clock;
use crate::event::Nanos;
use crate::owner::act_as;
use crate::present::text;
use crate::present::top::{ScreenStatus, View, draw};
use crate::record::{Follower, Header, RowReceiver, follow};
use crate::signals::{ArrivedSignal, Signals};

/// The size of the ring on disk, in bytes.
const RING_BYTES: u64 = 256 << 20;
/// How often the screen is drawn if no key is pressed.
const INTERVAL: Duration = Duration::from_millis(250);
/// How long to wait for a key before looking for new rows.
const KEY_TIMEOUT: Duration = Duration::from_millis(50);
/// How long the thread may take to restore the terminal after a signal.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(1);
/// Number of seconds whose launch rates are kept.
const HISTORY_SECONDS: usize = 600;

pub fn run(arguments: &TopArguments) -> Result<Status> {
    if arguments.command.is_empty() && arguments.pid.is_none() && !arguments.all {
        bail!("nothing to watch: give a command (`spawnscope top -- CMD`), a process (-p PID) or the machine (-a)");
    }
    // The output of a command may be redirected: the screen is drawn on /dev/tty.
    let is_redirected = arguments.command.is_empty() && !std::io::stdout().is_terminal();
    if is_redirected || !has_terminal() {
        bail!("top needs a terminal: without one, use `spawnscope record --metrics FILE` or `spawnscope report`");
    }
    let directory = temporary_directory(arguments)?;
    let output = directory.path().join("top.db");
    let signals = Signals::catch().context("failed to catch signals")?;
    let mut viewer =
        Viewer { followed: describe_followed(arguments), flags: Arc::default(), prepared: None, thread: None };
    let streams = SilencedStreams::silence(!arguments.command.is_empty())?;
    let recorded = record::record_watched(&record_arguments(arguments, output), &signals, Some(&mut viewer));
    drop(streams);
    let flags = Arc::clone(&viewer.flags);
    let drawn = viewer.finish(recorded.is_err(), &signals);
    let status = recorded?;
    if drawn? == ViewEnd::DuringRecording {
        // A signal was forwarded to the command, which may have ended.
        if !arguments.command.is_empty() && !flags.must_end.load(Ordering::Relaxed) {
            print_message("the command keeps running, unrecorded");
        }
        return Ok(Status::SUCCESS);
    }
    Ok(status)
}

/// Creates the directory of the recording. Like every recording, it belongs to the user that the
/// command runs as.
fn temporary_directory(arguments: &TopArguments) -> Result<tempfile::TempDir> {
    let identity = identity::decide(&arguments.identity)?.identity;
    let _owner_guard = act_as(identity.as_ref().map(identity::owner).as_ref())
        .context("failed to switch to the ids of the command's user")?;
    tempfile::tempdir().context("failed to create a temporary directory for the recording")
}

/// Describes what is followed, for the first line of the screen.
fn describe_followed(arguments: &TopArguments) -> String {
    match (arguments.all, arguments.pid) {
        (true, _) => "the machine".to_owned(),
        (false, Some(pid)) => format!("process {pid}"),
        (false, None) => {
            let words = arguments.command.iter();
            text::command_line(words.map(|word| std::os::unix::ffi::OsStrExt::as_bytes(word.as_os_str())), Some(200))
        }
    }
}

/// Returns the arguments for recording. The view shows no script lines, so they are not looked up.
fn record_arguments(arguments: &TopArguments, output: std::path::PathBuf) -> RecordArguments {
    RecordArguments {
        output,
        pid: arguments.pid,
        all: arguments.all,
        keep: Some(RING_BYTES),
        metrics_commands: 1,
        no_lines: true,
        quiet: true,
        identity: arguments.identity.clone(),
        command: arguments.command.clone(),
        ..RecordArguments::default()
    }
}

/// Flags that the recording thread and the drawing thread share.
#[derive(Debug, Default)]
struct Flags {
    has_quit: AtomicBool,
    /// A signal ends spawnscope, so the view must end without waiting for the user.
    must_end: AtomicBool,
}

/// Connects a recording to the drawing thread.
struct Viewer {
    followed: String,
    flags: Arc<Flags>,
    /// The data of the thread, until it is started.
    prepared: Option<DrawingThread>,
    thread: Option<JoinHandle<Result<ViewEnd>>>,
}

impl Watcher for Viewer {
    fn follower(&mut self, header: &Header) -> Follower {
        let (follower, receiver) = follow();
        self.prepared = Some(DrawingThread {
            receiver,
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

    /// Starts the drawing thread. From here on, the screen hides errors of the recording until it
    /// is closed.
    fn begin(&mut self) -> Result<()> {
        let Some(drawing) = self.prepared.take() else { return Ok(()) };
        let screen = Screen::open()?;
        let thread = thread::Builder::new().name("top".into());
        let thread = thread.spawn(move || drawing.run(screen));
        self.thread = Some(thread.context("failed to start the thread that draws the screen")?);
        Ok(())
    }

    fn has_quit(&self) -> bool {
        self.flags.has_quit.load(Ordering::Relaxed)
    }

    fn end_now(&self) {
        self.flags.must_end.store(true, Ordering::Relaxed);
    }
}

impl Viewer {
    /// Waits until the user quits or a signal arrives; if the recording failed, ends the view at
    /// once.
    fn finish(self, has_failed: bool, signals: &Signals) -> Result<ViewEnd> {
        if has_failed {
            self.end_now();
        }
        let Some(thread) = self.thread else { return Ok(ViewEnd::AfterRecording) };
        let mut deadline = None;
        while !thread.is_finished() {
            if signals.next().is_some_and(ArrivedSignal::should_end) {
                self.flags.must_end.store(true, Ordering::Relaxed);
            }
            if self.flags.must_end.load(Ordering::Relaxed)
                && Instant::now() >= *deadline.get_or_insert_with(|| Instant::now() + RESTORE_TIMEOUT)
            {
                // crossterm does not return from a terminal that has hung up. There is nothing to
                // restore then.
                return Ok(ViewEnd::DuringRecording);
            }
            thread::sleep(KEY_TIMEOUT);
        }
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// When the user or a signal ended the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ViewEnd {
    DuringRecording,
    AfterRecording,
}

struct DrawingThread {
    receiver: RowReceiver,
    board: LiveBoard,
    view: View,
    origin: Nanos,
    followed: String,
    flags: Arc<Flags>,
    rates: Rates,
    ended: Option<Nanos>,
}

impl DrawingThread {
    fn run(mut self, mut screen: Screen) -> Result<ViewEnd> {
        let drawn = self.draw_until_over(&mut screen);
        let view_end = self.ended.map_or(ViewEnd::DuringRecording, |_| ViewEnd::AfterRecording);
        // A failure counts as quitting, too: if the terminal is gone, no key can be pressed.
        self.flags.has_quit.store(true, Ordering::Relaxed);
        drawn.map(|()| view_end)
    }

    fn draw_until_over(&mut self, screen: &mut Screen) -> Result<()> {
        let mut page = 0;
        let mut due = Instant::now();
        loop {
            self.apply_new_rows();
            if Instant::now() >= due {
                due = Instant::now() + INTERVAL;
                let snapshot = self.board.snapshot();
                if self.ended.is_none() {
                    self.rates.update(Instant::now(), snapshot.started);
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

    fn apply_new_rows(&mut self) {
        while self.ended.is_none() {
            match self.receiver.next(Duration::ZERO) {
                Ok(rows) => self.board.apply(rows),
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => self.ended = Some(clock::now()),
            }
        }
    }

    fn draw(&mut self, screen: &mut Screen) -> Result<usize> {
        let status = ScreenStatus {
            followed: &self.followed,
            rates: &self.rates.per_second,
            now: self.ended.unwrap_or_else(clock::now).since(self.origin),
            skipped: self.receiver.skipped(),
            has_ended: self.ended.is_some(),
            has_colour: screen.has_colour(),
        };
        screen.draw(|frame| draw(frame, &self.view, &status))
    }
}

/// The number of launches in each of the last seconds.
#[derive(Debug, Default)]
struct Rates {
    /// The beginning of the current second, and the number of launches before it.
    current: Option<(Instant, u64)>,
    /// The launches of each second that is over, oldest first.
    per_second: Vec<u64>,
}

impl Rates {
    fn update(&mut self, now: Instant, started: u64) {
        let (mut start, mut before) = *self.current.get_or_insert((now, started));
        let elapsed_seconds = now.duration_since(start).as_secs();
        // If drawing took longer than a second, the launches are distributed evenly over the
        // elapsed seconds.
        if let Some(rate) = started.saturating_sub(before).checked_div(elapsed_seconds) {
            let count = usize::try_from(elapsed_seconds)
                .map_or(HISTORY_SECONDS, |elapsed_seconds| elapsed_seconds.min(HISTORY_SECONDS));
            self.per_second.extend(std::iter::repeat_n(rate, count));
            let surplus = self.per_second.len().saturating_sub(HISTORY_SECONDS);
            self.per_second.drain(..surplus);
            start += Duration::from_secs(elapsed_seconds);
            before = started;
        }
        self.current = Some((start, before));
    }
}

#[derive(Debug, Args)]
pub struct TopArguments {
    /// Watch the process PID and the processes that it launches from now on
    #[arg(short, long, value_name = "PID", value_hint = ValueHint::Other, conflicts_with_all = ["all", "command"], value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: Option<i32>,
    /// Watch every process on the machine
    #[arg(short, long, conflicts_with = "command")]
    pub all: bool,
    #[command(flatten)]
    pub identity: IdentityArguments,
    /// The command to watch and its arguments; its output to the terminal is discarded
    #[arg(value_name = "CMD", trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

pub(super) const EXAMPLES: &str = "\
Examples:
  sudo spawnscope top -a
  sudo spawnscope top -p $(pidof -s nagios)
  spawnscope top -- make -j8
  spawnscope top -- make -j8 > make.log 2>&1   # keep what make prints

Keys:
  q, Ctrl-C    quit; a command keeps running
  Tab          switch between the list of commands and the tree of processes
  Enter        details of the selected row
  p            select the parent, in the tree
  /            show only rows with this text
  Space        pause the display; recording continues
  t r c f n    sort by start-up time, time on the critical path, number
               started, failures, name

-a and -p need eBPF: root, or CAP_BPF and CAP_PERFMON.";

const TERMINAL: &str = "/dev/tty";

fn has_terminal() -> bool {
    open().is_ok()
}

fn open() -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).open(TERMINAL)
}

/// Replaces glyphs that the terminal or the locale cannot show.
fn replace_glyphs(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        let ascii = text::to_ascii(cell.symbol());
        cell.set_symbol(&ascii);
    }
}

/// The terminal. It is restored when this is dropped.
struct Screen {
    terminal: Terminal<CrosstermBackend<File>>,
    has_colour: bool,
    has_glyphs: bool,
}

impl Screen {
    fn open() -> Result<Screen> {
        let mut file = open().context("failed to open the terminal")?;
        enable_raw_mode().context("failed to change the mode of the terminal")?;
        let entered = execute!(file, EnterAlternateScreen).and_then(|()| Terminal::new(CrosstermBackend::new(file)));
        let terminal = entered.inspect_err(|_| drop(disable_raw_mode()));
        Ok(Screen {
            terminal: terminal.context("failed to draw on the terminal")?,
            // https://no-color.org: set and not empty.
            has_colour: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            has_glyphs: output::has_glyphs(),
        })
    }

    fn has_colour(&self) -> bool {
        self.has_colour
    }

    fn draw<T: Default>(&mut self, draw: impl FnOnce(&mut Frame<'_>) -> T) -> Result<T> {
        let mut result = T::default();
        let has_glyphs = self.has_glyphs;
        let drawn = self.terminal.draw(|frame| {
            result = draw(frame);
            if !has_glyphs {
                replace_glyphs(frame.buffer_mut());
            }
        });
        drawn.context("failed to draw on the terminal")?;
        Ok(result)
    }

    /// Waits for a key. Returns `None` early if the terminal is resized.
    fn next_key(&mut self, timeout: Duration) -> Result<Option<KeyEvent>> {
        let failure = "failed to read keys from the terminal";
        if !event::poll(timeout).context(failure)? {
            return Ok(None);
        }
        match event::read().context(failure)? {
            Event::Key(key) if key.kind != KeyEventKind::Release => Ok(Some(key)),
            _ => Ok(None),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing can be done if the terminal is gone.
        let _ = execute!(self.terminal.backend_mut(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// Duplicates of the streams that were replaced. The streams are restored when this is dropped.
struct SilencedStreams {
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
}

impl SilencedStreams {
    /// If there is a command, replaces the streams that are terminals by /dev/null.
    fn silence(has_command: bool) -> Result<SilencedStreams> {
        let mut streams = SilencedStreams { stdin: None, stdout: None, stderr: None };
        if !has_command {
            return Ok(streams);
        }
        let failure = "failed to keep the command's output off the screen";
        let dev_null = OpenOptions::new().read(true).write(true).open("/dev/null").context(failure)?;
        streams.stdin = replace_if_terminal(stdin(), || dup2_stdin(&dev_null)).context(failure)?;
        streams.stdout = replace_if_terminal(stdout(), || dup2_stdout(&dev_null)).context(failure)?;
        streams.stderr = replace_if_terminal(stderr(), || dup2_stderr(&dev_null)).context(failure)?;
        Ok(streams)
    }
}

/// Replaces a stream if it is a terminal. Returns a duplicate, which the command does not inherit.
fn replace_if_terminal(
    stream: impl AsFd + IsTerminal,
    replace: impl FnOnce() -> rustix::io::Result<()>,
) -> rustix::io::Result<Option<OwnedFd>> {
    let is_terminal = stream.is_terminal();
    let duplicate = is_terminal.then(|| rustix::io::fcntl_dupfd_cloexec(stream, 3)).transpose()?;
    duplicate.map(|duplicate| replace().map(|()| duplicate)).transpose()
}

impl Drop for SilencedStreams {
    fn drop(&mut self) {
        // Nothing can be done if this fails.
        let _ = self.stdin.take().map(dup2_stdin);
        let _ = self.stdout.take().map(dup2_stdout);
        let _ = self.stderr.take().map(dup2_stderr);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_per_whole_second_and_their_number_is_limited() {
        let mut rates = Rates::default();
        let start = Instant::now();
        for (milliseconds, started) in [(0, 100), (250, 120), (1000, 150), (1500, 160), (4000, 450)] {
            rates.update(start + Duration::from_millis(milliseconds), started);
        }
        assert_eq!(rates.per_second, [50, 100, 100, 100]);
        rates.update(start + Duration::from_secs(100_000), 500);
        assert_eq!(rates.per_second.len(), HISTORY_SECONDS);
    }
}
