//! The perf collector, which needs no privilege if `kernel.perf_event_paranoid` is at most 2. The kernel writes records of the command and
//! everything that it launches to ring buffers (`kernel`). A thread of the recorder reads the records (`reader`) and turns them into events
//! (`followed`). docs/design/collectors.md says what perf events can show.

mod cpu_time;
mod ends;
mod followed;
mod image;
mod kernel;
mod pace;
mod program_details;
mod programs;
mod reader;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use spawnscope_data::event::{Event, Loss, Missing};
use spawnscope_system::process::{is_readable_within, pidfd};

use self::reader::Reader;
use super::{CollectError, Collector, Follow, Refusal, Settings};

/// The recorder is woken once there are this many events.
const WAKE_AT_EVENTS: usize = 4096;

/// What the reading thread and the recorder share.
#[derive(Debug)]
struct Shared {
    events: Mutex<Vec<Event>>,
    notices: Mutex<Vec<String>>,
    /// The lost records; known once the reading thread has ended.
    losses: Mutex<Vec<Loss>>,
    /// Whether the command has ended and all records up to its end have become events.
    has_settled: AtomicBool,
    /// Whether to stop following.
    should_detach: AtomicBool,
    /// An eventfd that is readable if there are many events.
    many_events: OwnedFd,
    /// An eventfd that is readable once `should_detach` is set.
    wake: OwnedFd,
}

impl Shared {
    fn new() -> rustix::io::Result<Shared> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Shared {
            events: Mutex::default(),
            notices: Mutex::default(),
            losses: Mutex::default(),
            has_settled: AtomicBool::new(false),
            should_detach: AtomicBool::new(false),
            many_events: eventfd(0, flags)?,
            wake: eventfd(0, flags)?,
        })
    }

    fn send(&self, new: &mut Vec<Event>) {
        let mut events = lock(&self.events);
        events.append(new);
        if events.len() >= WAKE_AT_EVENTS {
            signal(&self.many_events);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn signal(eventfd: &OwnedFd) {
    // A write fails only if the counter is full, and then the eventfd is already readable.
    let _ = rustix::io::write(eventfd, &1u64.to_ne_bytes());
}

/// Follows a command with perf events.
#[derive(Debug)]
pub struct PerfCollector {
    missing: Vec<Missing>,
    shared: Arc<Shared>,
    /// A pidfd of the command, which is readable once the command has ended.
    command: OwnedFd,
    reader: Option<JoinHandle<()>>,
}

impl PerfCollector {
    /// Starts to follow the held command.
    ///
    /// # Errors
    /// If there is no command, or the kernel refuses the events or the memory for their ring buffers.
    pub fn attach(follow: Follow, settings: &Settings) -> Result<PerfCollector, CollectError> {
        let (Follow::Command(command), []) = (follow, settings.with.as_slice()) else {
            return Err(CollectError::CommandOnly);
        };
        let shared = Arc::new(Shared::new().map_err(|error| failed(&error.into()))?);
        let running = pidfd(command).map_err(|error| failed(&error))?;
        let reader_pidfd = running.try_clone().map_err(|error| failed(&error))?;
        let rings = kernel::follow(command, settings.buffer_bytes)
            .map_err(|refused| CollectError::Failed { action: "open perf events", detail: refused.reason() })?;
        let reader = Reader::new(rings, command, reader_pidfd, Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("perf reader".to_owned());
        let reader = thread.spawn(move || reader.run()).map_err(|error| failed(&error))?;
        Ok(PerfCollector { missing: missing(settings), shared, command: running, reader: Some(reader) })
    }
}

fn failed(error: &io::Error) -> CollectError {
    CollectError::Failed { action: "start to read perf events", detail: error.to_string() }
}

/// Returns what perf events do not report. Script lines and stacks count only if the settings request them.
fn missing(settings: &Settings) -> Vec<Missing> {
    let mut all = vec![
        (Missing::WAKERS, "what ends waits"),
        ("system calls", "create, setup, exec, reap, failed execs, the call that created a process, library search"),
        ("the ends of processes", "teardown, the exit status of every process but the command"),
    ];
    if settings.script_lines {
        all.push(("memory of the parent at a launch", "script lines"));
    }
    if settings.stacks || settings.sample.is_some() {
        all.push(("stacks", "native call chains and samples"));
    }
    all.into_iter().map(|(what, effect)| Missing { what: what.to_owned(), effect: effect.to_owned() }).collect()
}

impl Collector for PerfCollector {
    fn name(&self) -> &'static str {
        "perf"
    }

    fn missing(&self) -> &[Missing] {
        &self.missing
    }

    fn refusals(&self) -> &[Refusal] {
        &[]
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.shared.many_events.as_fd()
    }

    fn drain(&mut self, events: &mut Vec<Event>) -> Result<bool, CollectError> {
        let is_settling = self.reader.is_some()
            && !self.shared.has_settled.load(Ordering::Acquire)
            && is_readable_within(&self.command, Duration::ZERO);
        if is_settling {
            is_readable_within(&self.shared.many_events, Duration::from_millis(1));
        }
        let _ = rustix::io::read(&self.shared.many_events, &mut [0u8; 8]);
        events.append(&mut lock(&self.shared.events));
        Ok(is_settling)
    }

    fn losses(&self) -> Result<Vec<Loss>, CollectError> {
        Ok(lock(&self.shared.losses).clone())
    }

    fn terminal_used(&self) -> bool {
        true
    }

    /// Fails: perf events follow only the command, and add no overhead to a system call, so there is nothing to measure.
    fn as_followed(&self, _: &mut dyn FnMut()) -> Result<(), CollectError> {
        Err(CollectError::CommandOnly)
    }

    fn detach(&mut self) {
        self.shared.should_detach.store(true, Ordering::Release);
        signal(&self.shared.wake);
        if let Some(reader) = self.reader.take()
            && reader.join().is_err()
        {
            lock(&self.shared.losses)
                .push(Loss { kind: "all perf records after a failure of their reader".to_owned(), events: 1 });
        }
    }

    fn notices(&mut self) -> Vec<String> {
        std::mem::take(&mut lock(&self.shared.notices))
    }
}

impl Drop for PerfCollector {
    fn drop(&mut self) {
        self.detach();
    }
}

#[cfg(test)]
mod tests;
