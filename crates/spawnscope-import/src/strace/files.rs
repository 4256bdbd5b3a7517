//! The files of a log, merged by their times: one with all threads (`-f`), or one for each (`-ff`).
//! Thousands of files may not be open at the same time, so each is opened when its first line is
//! due. Lines that strace did not write, and torn ones, are counted here.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use spawnscope_data::event::Nanos;

use super::call::{Call, take_duration};
use super::clock::{Clock, TimeForm};
use super::effects::is_creation;
use super::line::{What, front, what};
use crate::ImportError;
use crate::input::{Count, Lines};
use crate::text::{after, find, number, split_at_any};

/// Number of lines at the beginning among which one must be of strace.
const MAX_STRANGE_LINES: u64 = 1_000;

/// Maximum number of words in front of a line that are not of strace. journald writes five.
const MAX_FOREIGN_WORDS: usize = 6;

/// Maximum number of new threads that are remembered until they write a line.
const MAX_ATTACHED: usize = 256;

/// A file that has been opened, and its next line.
pub struct Stream {
    lines: Lines,
    clock: Clock,
    /// The thread whose lines are in this file (`-ff`).
    pub file_tid: Option<i32>,
    pub last_tid: Option<i32>,
    /// The thread that the next line names.
    pub tid: Option<i32>,
    /// The time of the next line.
    pub at: Nanos,
    line: Vec<u8>,
    /// Where the call begins in the line.
    rest: usize,
    /// A line that a message of strace has divided, up to that message.
    head: Vec<u8>,
    /// The number of words in front of each line that are not of strace: marks of a quotation, or
    /// what a CI system adds. The first line of strace shows it.
    foreign_words: Option<usize>,
    /// The threads that strace said were new, and that have not written a line. Only the latest.
    pub attached: VecDeque<i32>,
}

impl Stream {
    fn open(path: &Path, clock: Clock) -> Result<Stream, ImportError> {
        Ok(Stream::new(Lines::open(path)?, clock))
    }

    fn new(lines: Lines, clock: Clock) -> Stream {
        let (at, line, head) = (Nanos(0), Vec::new(), Vec::new());
        let file_tid = tid_of_file(&lines.path);
        Stream {
            lines,
            clock,
            file_tid,
            last_tid: None,
            tid: None,
            at,
            line,
            rest: 0,
            head,
            foreign_words: None,
            attached: VecDeque::new(),
        }
    }

    /// Whether all times so far are whole seconds.
    pub fn is_coarse(&self) -> bool {
        !self.clock.has_fractions
    }

    /// The next line, without what stands in front of it.
    pub fn rest(&self) -> &[u8] {
        &self.line[self.rest..]
    }

    /// Reads the next line that strace wrote, and returns its time.
    fn advance(&mut self, count: &mut Count) -> Result<Option<Nanos>, ImportError> {
        while self.lines.next(&mut self.line)? {
            count.lines += 1;
            self.cut_foreign_words();
            self.join_divided_line(count);
            if let Some(at) = self.examine(count) {
                return Ok(Some(at));
            }
            let is_strange = count.lines == MAX_STRANGE_LINES && self.clock.now() == Nanos(0);
            if is_strange && count.refused.as_ref().is_some_and(|refused| refused.count == count.lines) {
                return Err(self.lines.not_of("strace"));
            }
        }
        Ok(None)
    }

    fn cut_foreign_words(&mut self) {
        let shown = || (0..=MAX_FOREIGN_WORDS).find(|words| after_words(&self.line, *words).is_some_and(is_of_strace));
        self.foreign_words = self.foreign_words.or_else(shown);
        if let Some(words) = self.foreign_words.filter(|words| *words > 0)
            && let Some(rest) = after_words(&self.line, words)
        {
            self.line.drain(..self.line.len() - rest.len());
        }
    }

    /// On a terminal's stream, strace writes the message about a new thread into the line of the
    /// call that creates it, and then the rest of that line.
    fn join_divided_line(&mut self, count: &mut Count) {
        if !self.head.is_empty() {
            let is_new = self.line.starts_with(b"[pid") || self.line.first().is_some_and(u8::is_ascii_digit);
            if is_new {
                count.refuse(&self.lines.path, self.lines.number - 1, &self.head);
            } else {
                self.head.append(&mut self.line);
                std::mem::swap(&mut self.head, &mut self.line);
            }
            self.head.clear();
        }
        if self.line.ends_with(b" attached")
            && let Some(at) = message_in(&self.line).filter(|at| *at > 0)
        {
            self.head = self.line.drain(..at).collect();
        }
    }

    /// Returns how much later a line of a file with one thread is due. There, a call has one line,
    /// with the time of its beginning, although other threads may have ended the call.
    fn delay(&self) -> u64 {
        let is_due_at_once = match what(self.rest()) {
            Some(What::Call { name, .. }) => is_creation(name),
            _ => true,
        };
        let is_alone = self.file_tid.is_some() && self.tid.is_none();
        if is_due_at_once || !is_alone { 0 } else { take_duration(self.rest()).1.unwrap_or_default() }
    }

    /// Returns when the line is due, if it is one of a thread.
    fn examine(&mut self, count: &mut Count) -> Option<Nanos> {
        let (front, rest) = front(&self.line);
        let found = what(rest);
        if found == Some(What::Message)
            && let Some((tid, b" attached")) = after(rest, b"Process ").and_then(number)
        {
            self.attached.truncate(MAX_ATTACHED - 1);
            self.attached.push_front(tid as i32);
        }
        if matches!(found, Some(What::Message)) || rest.is_empty() && front.stamp.is_none() {
            return None;
        }
        // If a log has times, each line has one.
        let has_time = front.stamp.is_some() || self.clock.form == TimeForm::None;
        let at = found.filter(|_| has_time).and_then(|_| self.clock.at(front.stamp));
        if at.is_none() {
            count.refuse(&self.lines.path, self.lines.number, &self.line);
        }
        self.tid = front.tid;
        self.rest = self.line.len() - rest.len();
        self.at = at?;
        if !self.clock.has_fractions && matches!(found, Some(What::Call { .. })) {
            self.clock.pass(take_duration(rest).1.unwrap_or_default());
        }
        Some(Nanos(self.at.0.saturating_add(self.delay())))
    }
}

/// Returns what follows a number of words, unless there are fewer.
fn after_words(line: &[u8], words: usize) -> Option<&[u8]> {
    (0..words).try_fold(line, |rest, _| split_at_any(rest.trim_ascii_start(), b" \t").map(|(_, rest)| rest))
}

/// Whether a line is certainly of strace: prose may contain `name(1)`.
fn is_of_strace(line: &[u8]) -> bool {
    match what(front(line).1) {
        Some(What::Call { text, .. }) => Call::parse(text).is_some(),
        found => found.is_some(),
    }
}

/// Returns where a message about a new thread begins. In front of it is the name by which strace
/// was started, which may be a path.
fn message_in(line: &[u8]) -> Option<usize> {
    let Some(at) = find(line, b"strace: Process ") else {
        return find(line, b"Process ");
    };
    let word =
        line[..at].iter().rposition(|byte| matches!(byte, b' ' | b'(' | b',' | b'|')).map_or(0, |before| before + 1);
    Some(line[word..at].iter().position(|byte| *byte == b'/').map_or(at, |slash| word + slash))
}

/// Returns the thread of a file that `strace -ff -o LOG` wrote: `LOG.1234`, also when it is
/// compressed.
fn tid_of_file(path: &Path) -> Option<i32> {
    let name = path.file_name()?.as_bytes();
    let (_, parts) = split_at_any(name, b".")?;
    let tid = parts.rsplit(|byte| *byte == b'.').find_map(|part| {
        let (tid, rest) = number(part)?;
        i32::try_from(tid).ok().filter(|tid| rest.is_empty() && *tid > 0)
    });
    tid.filter(|_| !name.ends_with(b".log"))
}

/// A file whose first line is not due yet.
struct Waiting {
    first: Nanos,
    path: PathBuf,
    clock: Clock,
}

/// The files of a log.
#[derive(Default)]
pub struct Files {
    /// By the times of their first lines, the latest first.
    waiting: Vec<Waiting>,
    streams: Vec<Option<Stream>>,
    /// The times of the next lines.
    queue: BinaryHeap<Reverse<(Nanos, usize)>>,
    pub count: Count,
    /// The time of the first line.
    pub origin: Nanos,
    pub form: TimeForm,
}

impl Files {
    pub fn open(paths: &[PathBuf]) -> Result<Files, ImportError> {
        let mut files = Files::default();
        files.sort(paths)?;
        Ok(files)
    }

    /// Begins with a single file. Standard input cannot be opened twice, as `sort` does it.
    pub fn of_one(lines: Lines) -> Result<Files, ImportError> {
        let mut stream = Stream::new(lines, Clock::default());
        let mut files = Files::default();
        let first = stream.advance(&mut files.count)?;
        let due = first.ok_or_else(|| stream.lines.not_of("strace"))?;
        files.origin = stream.at;
        files.form = stream.clock.form;
        files.start(stream, due);
        Ok(files)
    }

    /// Reads the first line of each file, and sorts the files.
    fn sort(&mut self, paths: &[PathBuf]) -> Result<(), ImportError> {
        let mut strange = None;
        for path in paths {
            let mut stream = Stream::open(path, Clock::default())?;
            if stream.advance(&mut Count::default())?.is_none() {
                strange = strange.or(Some(stream.lines.not_of("strace")));
                continue;
            }
            let first = stream.at;
            self.form = stream.clock.form;
            if !matches!(self.form, TimeForm::Unix | TimeForm::OfDay) {
                return Err(ImportError::NoCommonTimes { path: path.clone() });
            }
            self.waiting.push(Waiting { first, path: path.clone(), clock: Clock::default() });
        }
        let latest = self.waiting.iter().map(|waiting| waiting.first).max().unwrap_or_default();
        for waiting in self.waiting.iter_mut().filter(|_| self.form == TimeForm::OfDay) {
            waiting.clock.begin_on_day_of(&mut waiting.first, latest);
        }
        self.waiting.sort_by(|a, b| (b.first, &b.path).cmp(&(a.first, &a.path)));
        match (self.waiting.last(), strange) {
            (None, Some(strange)) => return Err(strange),
            (earliest, _) => self.origin = earliest.map(|waiting| waiting.first).unwrap_or_default(),
        }
        Ok(())
    }

    fn start(&mut self, stream: Stream, at: Nanos) {
        let free = self.streams.iter().position(Option::is_none);
        let index = free.unwrap_or(self.streams.len());
        if free.is_none() {
            self.streams.push(None);
        }
        self.streams[index] = Some(stream);
        self.queue.push(Reverse((at, index)));
    }

    /// Returns the file with the next line, and the time of that line. The caller must pass the
    /// file to `advance` afterwards.
    pub fn next(&mut self) -> Result<Option<(Nanos, usize)>, ImportError> {
        let due = self.queue.peek().map(|Reverse((at, _))| *at);
        while let Some(waiting) = self.waiting.pop_if(|waiting| due.is_none_or(|due| waiting.first <= due)) {
            let mut stream = Stream::open(&waiting.path, waiting.clock)?;
            if let Some(at) = stream.advance(&mut self.count)? {
                self.start(stream, at);
                return self.next();
            }
        }
        Ok(self.queue.pop().map(|Reverse(next)| next))
    }

    pub fn stream(&mut self, index: usize) -> Option<&mut Stream> {
        self.streams.get_mut(index)?.as_mut()
    }

    /// Reads the next line of a file, and closes it at its end.
    pub fn advance(&mut self, index: usize) -> Result<(), ImportError> {
        let Some(stream) = self.streams.get_mut(index).and_then(Option::as_mut) else {
            return Ok(());
        };
        match stream.advance(&mut self.count)? {
            Some(at) => self.queue.push(Reverse((at, index))),
            None => self.streams[index] = None,
        }
        Ok(())
    }

    /// Counts the current line of a file as refused.
    pub fn refuse(&mut self, index: usize) {
        if let Some(stream) = self.streams.get(index).and_then(Option::as_ref) {
            self.count.refuse(&stream.lines.path, stream.lines.number, &stream.line);
        }
    }
}
