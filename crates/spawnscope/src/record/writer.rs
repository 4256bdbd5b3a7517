//! Writes a recording on a thread of its own, so that whoever reads the kernel's events never waits for the disk. It
//! decides when a batch is due and what happens when one cannot be written; the SQL is `store`'s, the joining
//! `assemble`'s.

use std::collections::VecDeque;
use std::mem;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::event::{Event, EventKind, LaunchId, Loss};
use crate::owner::{self, Acting, Owner};

use super::assemble::{Assembler, Batch};
use super::destination::Destination;
use super::error::RecordError;
use super::manner::Manner;
use super::redact::Redaction;
use super::rows::{Ending, Finished, Header};
use super::store::Store;

/// A batch is written this long after its first event, at the latest: what a killed recorder loses at most.
const BATCH_AGE: Duration = Duration::from_millis(300);
/// A batch is written when it has this many events, at the latest: about 2 MB of rows, a transaction of some 20 ms.
const BATCH_EVENTS: usize = 20_000;
/// What events are called that were too many to keep while another program held the file's lock for writing.
const LOST_TO_A_LOCK: &str = "locked out";
/// How long the end waits for such a program.
const END_PATIENCE: Duration = Duration::from_secs(10);

enum Message {
    Events(Vec<Event>),
    Root(LaunchId),
    Finish(Ending),
}

/// What the writing thread tells the others.
#[derive(Default)]
struct Progress {
    launches: AtomicU64,
    dropped_events: AtomicU64,
    /// Events that were too many to keep while another program held the lock for writing.
    locked_out: AtomicU64,
    failure: OnceLock<Arc<RecordError>>,
    finished: OnceLock<Finished>,
}

impl Progress {
    fn drop_events(&self, events: usize) {
        self.dropped_events.fetch_add(events as u64, Ordering::Relaxed);
    }

    /// The first failure is the one that is told.
    fn fail(&self, failure: RecordError) {
        let _ = self.failure.set(Arc::new(failure));
    }
}

/// A recording in the making. Dropped without `finish`, it keeps every event but not why it ended, as if it was cut off.
pub struct Recorder {
    sender: Option<Sender<Message>>,
    thread: Option<JoinHandle<()>>,
    progress: Arc<Progress>,
    place: Arc<Destination>,
    owner: Option<Owner>,
}

impl Recorder {
    /// Makes the file and starts to write. A recording that stands at `path` is kept as `<path>.old`; a file that is
    /// not a recording is left alone, and an error. With an owner, all of that is done as this user; without, as the
    /// recorder's own.
    ///
    /// # Errors
    /// `InTheWay`, `Full`, `Io` and others, when the file cannot be made.
    pub fn create(
        path: &Path,
        header: &Header,
        redaction: Redaction,
        manner: &Manner,
    ) -> Result<Recorder, RecordError> {
        let _acting = act_as(manner.owner.as_ref(), path)?;
        let store = Store::create(path, header, redaction, manner.memory)?;
        // The thread begins as the one that starts it is now: what SQLite opens and removes there, it does as the owner too.
        Recorder::start(store, Assembler::new(header.origin, redaction), manner)
            .map_err(|source| RecordError::io("start a thread to write", path, source))
    }

    fn start(store: Store, assembler: Assembler, manner: &Manner) -> std::io::Result<Recorder> {
        let place = store.place();
        let (sender, receiver) = mpsc::channel();
        let progress = Arc::new(Progress::default());
        let writer = Writer {
            store,
            assembler,
            progress: Arc::clone(&progress),
            pending_events: 0,
            unwritten: VecDeque::new(),
            unwritten_events: 0,
            most_unwritten: manner.memory.most_unwritten(BATCH_EVENTS),
            due: None,
        };
        let thread = thread::Builder::new()
            .name("recorder".into())
            .spawn(move || writer.run(&receiver))?;
        Ok(Recorder {
            sender: Some(sender),
            thread: Some(thread),
            progress,
            place,
            owner: manner.owner.clone(),
        })
    }

    /// Hands events over; never waits. After a failure they are counted and dropped.
    pub fn send(&self, events: Vec<Event>) {
        self.tell(Message::Events(events));
    }

    /// Says which launch is the command itself.
    pub fn note_root(&self, root: LaunchId) {
        self.tell(Message::Root(root));
    }

    /// Launches seen so far, the command's own included.
    #[must_use]
    pub fn launches_so_far(&self) -> u64 {
        self.progress.launches.load(Ordering::Relaxed)
    }

    /// Why nothing is written any more, as soon as that is so.
    #[must_use]
    pub fn failure(&self) -> Option<Arc<RecordError>> {
        self.progress.failure.get().cloned()
    }

    /// Events that were not written because of a failure.
    #[must_use]
    pub fn dropped_events(&self) -> u64 {
        self.progress.dropped_events.load(Ordering::Relaxed)
    }

    /// Writes what is left, and how it ended. The recording is complete when this returns, and says what it consists of.
    ///
    /// # Errors
    /// The failure that ended the recording early, if there was one: the file is readable up to the batch before it.
    pub fn finish(mut self, ending: Ending) -> Result<Finished, RecordError> {
        self.tell(Message::Finish(ending));
        self.join();
        match (self.progress.failure.get(), self.progress.finished.get()) {
            (Some(failure), _) => Err(failure.as_ref().clone()),
            (None, finished) => Ok(finished.cloned().unwrap_or(Finished::Whole)),
        }
    }

    /// Takes everything back: the file goes, and the recording that stood there before returns.
    ///
    /// # Errors
    /// When the files cannot be renamed.
    pub fn discard(mut self) -> Result<(), RecordError> {
        self.join();
        let _acting = act_as(self.owner.as_ref(), self.place.named())?;
        self.place.take_back()
    }

    fn tell(&self, message: Message) {
        // The thread drains the channel until this side closes it, whatever happens to the file.
        if let Some(sender) = &self.sender {
            let _ = sender.send(message);
        }
    }

    fn join(&mut self) {
        self.sender = None;
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
    }
}

fn act_as(owner: Option<&Owner>, path: &Path) -> Result<Option<Acting>, RecordError> {
    owner::act_as(owner).map_err(|source| RecordError::io("take on the ids of its user for", path, source))
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // A second panic while the first one unwinds would abort.
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The writing thread's side.
struct Writer {
    store: Store,
    assembler: Assembler,
    progress: Arc<Progress>,
    /// Events in the assembler.
    pending_events: usize,
    /// Batches that a lock kept from being written, with the events in each, the oldest first.
    unwritten: VecDeque<(Batch, usize)>,
    /// Events in those.
    unwritten_events: usize,
    /// Most of them; what is beyond is lost, and counted as such. Nobody who only reads holds that lock.
    most_unwritten: usize,
    /// When the batch is to be written; `None` while it is empty.
    due: Option<Instant>,
}

impl Writer {
    fn run(mut self, receiver: &Receiver<Message>) {
        if let Err(failure) = self.record(receiver) {
            self.progress.drop_events(self.pending_events + self.unwritten_events);
            self.store.note_failure(&failure);
            self.progress.fail(failure);
        }
        // It may be that the disk is full: then the recording stays in two files, as if it was cut off.
        match self.store.close() {
            Ok(finished) => drop(self.progress.finished.set(finished)),
            Err(failure) => self.progress.fail(failure),
        }
        // What comes later is counted: stopping to listen would drop it uncounted.
        for message in receiver {
            if let Message::Events(events) = message {
                self.progress.drop_events(events.len());
            }
        }
    }

    /// Takes messages to the end. After a failure, the file is as the batch before left it.
    fn record(&mut self, receiver: &Receiver<Message>) -> Result<(), RecordError> {
        while let Some(message) = self.next_message(receiver) {
            match message {
                Some(message) => self.take(message)?,
                None => self.write_batch()?,
            }
        }
        self.write_all()
    }

    /// Waits for a message, but not beyond the time when a batch is due: then `Some(None)`. An idle recorder sleeps.
    /// `None` when no message will ever come.
    fn next_message(&self, receiver: &Receiver<Message>) -> Option<Option<Message>> {
        let Some(due) = self.due else {
            return receiver.recv().ok().map(Some);
        };
        match receiver.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(message) => Some(Some(message)),
            Err(RecvTimeoutError::Timeout) => Some(None),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    fn take(&mut self, message: Message) -> Result<(), RecordError> {
        match message {
            Message::Root(root) => {
                self.assembler.note_root(root);
                Ok(())
            }
            Message::Events(events) => self.take_events(&events),
            Message::Finish(ending) => self.finish(ending),
        }
    }

    fn take_events(&mut self, events: &[Event]) -> Result<(), RecordError> {
        if self.unwritten_events >= self.most_unwritten {
            self.progress
                .locked_out
                .fetch_add(events.len() as u64, Ordering::Relaxed);
            return self.write_batch_if_due();
        }
        let mut launches = 0;
        for event in events {
            launches += u64::from(matches!(
                event.kind,
                EventKind::Launched(_) | EventKind::Released { .. }
            ));
            self.assembler.apply(event);
        }
        self.progress.launches.fetch_add(launches, Ordering::Relaxed);
        self.pending_events += events.len();
        if self.pending_events > 0 {
            self.due.get_or_insert_with(|| Instant::now() + BATCH_AGE);
        }
        self.write_batch_if_due()
    }

    fn write_batch_if_due(&mut self) -> Result<(), RecordError> {
        let is_due = self.due.is_some_and(|due| due <= Instant::now());
        if is_due || self.pending_events >= BATCH_EVENTS {
            self.write_batch()
        } else {
            Ok(())
        }
    }

    /// Writes everything that is not in the file yet. While another program holds the lock for writing, it is kept, and
    /// tried again in a while.
    fn write_batch(&mut self) -> Result<(), RecordError> {
        self.due = None;
        if self.pending_events > 0 || self.assembler.has_news() {
            let events = mem::take(&mut self.pending_events);
            self.unwritten.push_back((self.assembler.take_batch(), events));
            self.unwritten_events += events;
        }
        while let Some((batch, events)) = self.unwritten.front() {
            match self.store.write(batch) {
                Err(RecordError::Locked { .. }) => {
                    self.due = Some(Instant::now() + BATCH_AGE);
                    return Ok(());
                }
                written => written?,
            }
            self.unwritten_events -= events;
            self.unwritten.pop_front();
        }
        Ok(())
    }

    /// The same at the end, when there is no later.
    fn write_all(&mut self) -> Result<(), RecordError> {
        let deadline = Instant::now() + END_PATIENCE;
        loop {
            self.write_batch()?;
            if self.unwritten.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(self.store.is_locked());
            }
        }
    }

    fn finish(&mut self, mut ending: Ending) -> Result<(), RecordError> {
        self.write_all()?;
        let events = self.progress.locked_out.load(Ordering::Relaxed);
        if events > 0 {
            let kind = LOST_TO_A_LOCK.to_owned();
            ending.lost.push(Loss { kind, events });
        }
        let deadline = Instant::now() + END_PATIENCE;
        loop {
            match self.store.note_ending(&ending) {
                Err(RecordError::Locked { .. }) if Instant::now() < deadline => {}
                noted => return noted,
            }
        }
    }
}

#[cfg(test)]
mod tests;
