//! Writes a recording on its own thread, so that the thread that reads the kernel's events never
//! waits for the disk. This module decides when a batch is written, and what happens if writing
//! fails. `store` contains the SQL, and `assemble` combines events into rows.

use std::collections::VecDeque;
use std::mem;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use spawnscope_data::event::{Event, EventKind, LaunchId, Loss};
use spawnscope_system::owner::{self, Owner, OwnerGuard};

use super::assemble::{Assembler, Batch};
use super::destination::Destination;
use super::error::RecordError;
use super::follower::Follower;
use super::ninja::Logs;
use super::redact::Redaction;
use super::store::Store;
use crate::ends::{Ending, FinishedFiles, Header, WriterOptions};

/// Maximum time between the first event of a batch and the writing of the batch. A killed recorder
/// loses at most the events of this time.
const MAX_BATCH_AGE: Duration = Duration::from_millis(300);
/// The same for the first batch, so that a recorder that is killed early leaves what it saw. Each
/// batch may be twice as old as the one before.
const FIRST_BATCH_AGE: Duration = Duration::from_millis(5);
/// Maximum number of events in a batch: about 2 MB of rows, which take a transaction of some 20 ms.
const MAX_BATCH_EVENTS: usize = 20_000;
/// The kind of lost events that could not be kept while another program held the write lock.
const LOST_TO_A_LOCK: &str = "locked out";
/// How long the end of the recording waits for a program that holds the write lock.
const END_TIMEOUT: Duration = Duration::from_secs(10);

enum Message {
    Events(Vec<Event>),
    /// All earlier messages have been handled when this one is dropped.
    Handled {
        _done: SyncSender<()>,
    },
    Root(LaunchId),
    Follow(Follower),
    Finish(Ending),
}

/// State that the writing thread shares with other threads.
#[derive(Default)]
struct Progress {
    launches: AtomicU64,
    dropped_events: AtomicU64,
    /// Events that could not be kept while another program held the write lock.
    locked_out: AtomicU64,
    failure: OnceLock<Arc<RecordError>>,
    finished: OnceLock<FinishedFiles>,
}

impl Progress {
    fn drop_events(&self, events: usize) {
        self.dropped_events.fetch_add(events as u64, Ordering::Relaxed);
    }

    /// Stores the failure unless there is an earlier one.
    fn fail(&self, failure: RecordError) {
        let _ = self.failure.set(Arc::new(failure));
    }
}

/// A recording that is being written. If it is dropped without `finish`, every event is written,
/// but not why the recording ended, as if the recorder had been killed.
pub struct Recorder {
    sender: Option<Sender<Message>>,
    thread: Option<JoinHandle<()>>,
    progress: Arc<Progress>,
    destination: Arc<Destination>,
    owner: Option<Owner>,
}

impl Recorder {
    /// Creates the file and starts to write. An existing recording at `path` is kept as
    /// `<path>.old`. A file that is not a recording is left alone and causes an error. If `options`
    /// name an owner, all file operations use the ids of that user.
    ///
    /// # Errors
    /// `InTheWay`, `Full`, `Io` and others, if the file cannot be created.
    pub fn create(
        path: &Path,
        header: &Header,
        redaction: Redaction,
        options: &WriterOptions,
    ) -> Result<Recorder, RecordError> {
        let _owner_guard = act_as(options.owner.as_ref(), path)?;
        let store = Store::create(path, header, redaction, options.memory)?;
        // The writing thread inherits the ids of this thread, so SQLite opens and removes files as
        // the owner there, too.
        Recorder::start(store, Assembler::new(header.origin, redaction), options)
            .map_err(|source| RecordError::io("start a thread to write", path, source))
    }

    fn start(store: Store, assembler: Assembler, options: &WriterOptions) -> std::io::Result<Recorder> {
        let destination = store.destination();
        let (sender, receiver) = mpsc::channel();
        let progress = Arc::new(Progress::default());
        let writer = Writer {
            store,
            assembler,
            logs: (!options.is_elsewhere).then(Logs::default),
            progress: Arc::clone(&progress),
            has_command: false,
            pending_events: 0,
            unwritten: VecDeque::new(),
            unwritten_events: 0,
            max_unwritten: options.memory.max_unwritten_events(MAX_BATCH_EVENTS),
            batch_age: FIRST_BATCH_AGE,
            due: None,
            follower: None,
        };
        let thread = thread::Builder::new().name("recorder".into()).spawn(move || writer.run(&receiver))?;
        Ok(Recorder { sender: Some(sender), thread: Some(thread), progress, destination, owner: options.owner.clone() })
    }

    /// Sends events to the writing thread, without waiting. After a failure, events are counted and
    /// dropped.
    pub fn send(&self, events: Vec<Event>) {
        self.send_message(Message::Events(events));
    }

    /// Sends events, and waits until the writing thread has taken them. For a source that may be
    /// faster than the disk.
    pub fn send_and_wait(&self, events: Vec<Event>) {
        self.send(events);
        let (done, handled) = mpsc::sync_channel(0);
        self.send_message(Message::Handled { _done: done });
        // Fails when the message is dropped.
        let _ = handled.recv();
    }

    /// Sets which launch is the command.
    pub fn set_root(&self, root: LaunchId) {
        self.send_message(Message::Root(root));
    }

    /// Passes the rows of each batch to a follower, after the batch was written. Must be called
    /// before the first event is sent.
    pub fn follow(&self, follower: Follower) {
        self.send_message(Message::Follow(follower));
    }

    /// Returns the number of launches so far, including the command.
    pub fn launches_so_far(&self) -> u64 {
        self.progress.launches.load(Ordering::Relaxed)
    }

    /// Returns the error that has ended the writing; `None` if there was none so far.
    pub fn failure(&self) -> Option<Arc<RecordError>> {
        self.progress.failure.get().cloned()
    }

    /// Returns the number of events that were not written because of a failure.
    pub fn dropped_events(&self) -> u64 {
        self.progress.dropped_events.load(Ordering::Relaxed)
    }

    /// Writes the remaining events and how the recording ended. When this returns, the recording is
    /// complete. The result says which files the recording consists of.
    ///
    /// # Errors
    /// If writing has failed, now or earlier. The file is readable up to the last batch before the
    /// failure.
    pub fn finish(mut self, ending: Ending) -> Result<FinishedFiles, RecordError> {
        self.send_message(Message::Finish(ending));
        self.join();
        match (self.progress.failure.get(), self.progress.finished.get()) {
            (Some(failure), _) => Err(failure.as_ref().clone()),
            (None, finished) => Ok(finished.cloned().unwrap_or(FinishedFiles::Whole)),
        }
    }

    /// Discards the recording: removes the file and restores the earlier recording at this path.
    ///
    /// # Errors
    /// If the files cannot be renamed.
    pub fn discard(mut self) -> Result<(), RecordError> {
        self.join();
        let _owner_guard = act_as(self.owner.as_ref(), &self.destination.path)?;
        self.destination.restore_earlier()
    }

    fn send_message(&self, message: Message) {
        // Sending succeeds even after a failure, because the thread receives messages until this
        // side closes the channel.
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

fn act_as(owner: Option<&Owner>, path: &Path) -> Result<Option<OwnerGuard>, RecordError> {
    owner::act_as(owner).map_err(|source| RecordError::io("switch to the ids of the owner of", path, source))
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // A second panic during unwinding would abort.
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state of the writing thread.
struct Writer {
    store: Store,
    assembler: Assembler,
    /// The logs of ninja, unless the processes ran elsewhere.
    logs: Option<Logs>,
    progress: Arc<Progress>,
    /// Whether the command was counted. An import reports it again when it learns its number.
    has_command: bool,
    pending_events: usize,
    /// Batches that could not be written because another program held the write lock, each with its
    /// number of events, oldest first.
    unwritten: VecDeque<(Batch, usize)>,
    unwritten_events: usize,
    /// Maximum of `unwritten_events`. Further events are lost and counted as lost. Readers cannot
    /// cause this, because they never hold the write lock.
    max_unwritten: usize,
    /// How old the next batch may become.
    batch_age: Duration,
    /// When to write the batch; `None` while it is empty.
    due: Option<Instant>,
    /// The follower that gets the rows that were written.
    follower: Option<Follower>,
}

impl Writer {
    fn run(mut self, receiver: &Receiver<Message>) {
        if let Err(failure) = self.record(receiver) {
            self.progress.drop_events(self.pending_events + self.unwritten_events);
            self.store.store_failure(&failure);
            self.progress.fail(failure);
        }
        // If the disk is full, the recording stays in two files, as if the recorder had been
        // killed.
        match self.store.close() {
            Ok(finished) => drop(self.progress.finished.set(finished)),
            Err(failure) => self.progress.fail(failure),
        }
        // Receives the remaining messages, so that events after a failure are counted.
        for message in receiver {
            if let Message::Events(events) = message {
                self.progress.drop_events(events.len());
            }
        }
    }

    /// Processes messages until the end. After a failure, the file contains the batches before it.
    fn record(&mut self, receiver: &Receiver<Message>) -> Result<(), RecordError> {
        while let Some(message) = self.next_message(receiver) {
            match message {
                Some(message) => self.handle(message)?,
                None => self.write_batch()?,
            }
        }
        self.write_all()
    }

    /// Waits for a message. Returns `Some(None)` if a batch is due before one arrives, and `None`
    /// once no more messages can arrive.
    fn next_message(&self, receiver: &Receiver<Message>) -> Option<Option<Message>> {
        let Some(due) = self.due else { return receiver.recv().ok().map(Some) };
        match receiver.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(message) => Some(Some(message)),
            Err(RecvTimeoutError::Timeout) => Some(None),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    fn handle(&mut self, message: Message) -> Result<(), RecordError> {
        match message {
            Message::Root(root) => {
                self.assembler.set_root(root);
                Ok(())
            }
            Message::Follow(follower) => {
                self.follower = Some(follower);
                Ok(())
            }
            Message::Events(events) => self.add_events(&events),
            Message::Handled { .. } => Ok(()),
            Message::Finish(ending) => self.finish(ending),
        }
    }

    fn add_events(&mut self, events: &[Event]) -> Result<(), RecordError> {
        if self.unwritten_events >= self.max_unwritten {
            self.progress.locked_out.fetch_add(events.len() as u64, Ordering::Relaxed);
            return self.write_batch_if_due();
        }
        let mut launches = 0;
        for event in events {
            launches += match event.kind {
                EventKind::Launched(_) => 1,
                EventKind::Released { .. } => u64::from(!mem::replace(&mut self.has_command, true)),
                _ => 0,
            };
            self.assembler.apply(event);
        }
        self.progress.launches.fetch_add(launches, Ordering::Relaxed);
        self.pending_events += events.len();
        if self.pending_events > 0 {
            self.due.get_or_insert_with(|| Instant::now() + self.batch_age);
        }
        self.write_batch_if_due()
    }

    fn write_batch_if_due(&mut self) -> Result<(), RecordError> {
        let is_due = self.due.is_some_and(|due| due <= Instant::now());
        if is_due || self.pending_events >= MAX_BATCH_EVENTS { self.write_batch() } else { Ok(()) }
    }

    /// Writes everything that is not in the file yet. While another program holds the write lock,
    /// batches are kept and written later.
    fn write_batch(&mut self) -> Result<(), RecordError> {
        self.due = None;
        self.batch_age = age_after(self.batch_age);
        self.find_edges(false);
        if self.pending_events > 0 || self.assembler.has_rows_without_events() {
            let events = mem::take(&mut self.pending_events);
            self.unwritten.push_back((self.assembler.take_batch(), events));
            self.unwritten_events += events;
        }
        while let Some((batch, events)) = self.unwritten.front() {
            match self.store.write(batch) {
                Err(RecordError::Locked { .. }) => {
                    self.due = Some(Instant::now() + MAX_BATCH_AGE);
                    return Ok(());
                }
                written => written?,
            }
            self.unwritten_events -= events;
            let written = self.unwritten.pop_front();
            if let (Some(follower), Some((batch, _))) = (&self.follower, written) {
                follower.send(batch.into_new_rows());
            }
        }
        Ok(())
    }

    /// Finds, for each ninja that has ended, the edges of its commands in its log. This is done
    /// before the end of the recording, because the logs may be removed soon. If the recording
    /// ends, all invocations have ended.
    fn find_edges(&mut self, recording_ends: bool) {
        let ended = self.assembler.take_ended_invocations(recording_ends);
        if let Some(logs) = &mut self.logs {
            self.assembler.add_edges(&logs.edges(ended));
        }
    }

    /// Writes everything at the end of the recording, and waits for a lock, because there is no
    /// later batch.
    fn write_all(&mut self) -> Result<(), RecordError> {
        let deadline = Instant::now() + END_TIMEOUT;
        loop {
            self.write_batch()?;
            if self.unwritten.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(self.store.locked_error());
            }
        }
    }

    fn finish(&mut self, mut ending: Ending) -> Result<(), RecordError> {
        self.find_edges(true);
        self.write_all()?;
        let events = self.progress.locked_out.load(Ordering::Relaxed);
        if events > 0 {
            let kind = LOST_TO_A_LOCK.to_owned();
            ending.lost.push(Loss { kind, events });
        }
        let deadline = Instant::now() + END_TIMEOUT;
        loop {
            match self.store.store_ending(&ending) {
                Err(RecordError::Locked { .. }) if Instant::now() < deadline => {}
                stored => return stored,
            }
        }
    }
}

/// Returns how old the batch after one that was `age` old may become.
fn age_after(age: Duration) -> Duration {
    (2 * age).min(MAX_BATCH_AGE)
}

#[cfg(test)]
mod tests;
