//! Writes a recording on a thread of its own, so that whoever reads the kernel's events never waits for the disk. It
//! decides when a batch is due and what happens when one cannot be written; the SQL is `store`'s, the joining
//! `assemble`'s.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::event::{Event, EventKind, LaunchId};

use super::aside::Place;
use super::assemble::Assembler;
use super::error::RecordError;
use super::redact::Redaction;
use super::rows::{Ending, Header};
use super::store::Store;

/// A batch is written this long after its first event, at the latest: what a killed recorder loses at most.
const BATCH_AGE: Duration = Duration::from_millis(300);
/// A batch is written when it has this many events, at the latest: about 2 MB of rows, a transaction of some 20 ms.
const BATCH_EVENTS: usize = 20_000;

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
    failure: OnceLock<Arc<RecordError>>,
}

/// A recording in the making. Dropped without `finish`, it keeps every event but not why it ended, as if it was cut off.
pub struct Recorder {
    sender: Option<Sender<Message>>,
    thread: Option<JoinHandle<()>>,
    progress: Arc<Progress>,
    place: Arc<Place>,
}

impl Recorder {
    /// Makes the file and starts to write. A recording that stands at `path` is kept as `<path>.old`; a file that is
    /// not a recording is left alone, and an error.
    ///
    /// # Errors
    /// `InTheWay`, `Full`, `Io` and others, when the file cannot be made.
    pub fn create(path: &Path, header: &Header, redaction: Redaction) -> Result<Recorder, RecordError> {
        let store = Store::create(path, header, redaction)?;
        Recorder::start(store, Assembler::new(header.origin, redaction))
            .map_err(|source| RecordError::io("start a thread to write", path, source))
    }

    fn start(store: Store, assembler: Assembler) -> std::io::Result<Recorder> {
        let place = store.place();
        let (sender, receiver) = mpsc::channel();
        let progress = Arc::new(Progress::default());
        let writer = Writer {
            store,
            assembler,
            progress: Arc::clone(&progress),
            pending_events: 0,
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

    /// Writes what is left, and how it ended. The file is complete when this returns.
    ///
    /// # Errors
    /// The failure that ended the recording early, if there was one: the file is readable up to the batch before it.
    pub fn finish(mut self, ending: Ending) -> Result<(), RecordError> {
        self.tell(Message::Finish(ending));
        self.join();
        self.progress
            .failure
            .get()
            .map_or(Ok(()), |failure| Err(failure.as_ref().clone()))
    }

    /// Takes everything back: the file goes, and the recording that stood there before returns.
    ///
    /// # Errors
    /// When the files cannot be renamed.
    pub fn discard(mut self) -> Result<(), RecordError> {
        self.join();
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
    pending_events: usize,
    /// When the batch is to be written; `None` while it is empty.
    due: Option<Instant>,
}

impl Writer {
    fn run(mut self, receiver: &Receiver<Message>) {
        while let Some(message) = self.next_message(receiver) {
            let outcome = match message {
                Some(message) => self.take(message),
                None => self.write_batch(),
            };
            if let Err(failure) = outcome {
                return self.give_up(failure, receiver);
            }
        }
        if let Err(failure) = self.write_batch() {
            self.give_up(failure, receiver);
        }
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
            Message::Root(root) => self.store.note_root(root),
            Message::Events(events) => self.take_events(&events),
            Message::Finish(ending) => {
                self.write_batch()?;
                self.store.finish(&ending)
            }
        }
    }

    fn take_events(&mut self, events: &[Event]) -> Result<(), RecordError> {
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
        let is_due = self.due.is_some_and(|due| due <= Instant::now());
        if is_due || self.pending_events >= BATCH_EVENTS {
            self.write_batch()
        } else {
            Ok(())
        }
    }

    fn write_batch(&mut self) -> Result<(), RecordError> {
        if self.pending_events > 0 {
            self.store.write(&self.assembler.take_batch())?;
        }
        self.pending_events = 0;
        self.due = None;
        Ok(())
    }

    /// The batch was rolled back, so the file is as the batch before left it. What comes later is counted: stopping to
    /// listen would drop it uncounted.
    fn give_up(self, failure: RecordError, receiver: &Receiver<Message>) {
        let count = |events: usize| self.progress.dropped_events.fetch_add(events as u64, Ordering::Relaxed);
        count(self.pending_events);
        self.store.note_failure(&failure);
        // Only this thread sets it, and only once.
        let _ = self.progress.failure.set(Arc::new(failure));
        for message in receiver {
            if let Message::Events(events) = message {
                count(events.len());
            }
        }
    }
}

#[cfg(test)]
mod tests;
