//! The ptrace collector, which needs no privilege. A thread of the recorder traces the command and
//! everything that it launches (`tracing`, `stops`). This file starts that thread and collects its
//! events. docs/design/collectors.md says what ptrace can observe.

pub(crate) mod blocked;
mod calls;
mod counters;
mod creations;
mod filters;
mod first_stop;
mod idle;
mod image;
mod launchers;
pub(crate) mod lines;
mod processes;
mod programs;
mod setup;
mod shared;
mod stop_latency;
mod stop_times;
mod stops;
mod tracing;
mod waits;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use spawnscope_data::event::{Event, Loss, Missing, Pid};
use spawnscope_system::process::{is_readable_within, reap_ended};
use spawnscope_system::ptrace::refusal;
use spawnscope_system::signals::{ChildChanges, ThreadWaker};

use self::lines::Interpreters;
use self::shared::{Shared, lock, signal};
use self::tracing::Tracing;
use super::{CollectError, Collector, Follow, Refusal, Settings};

/// Maximum time to wait until all traced processes are released. Most are released within a
/// millisecond; a parent that is blocked in vfork cannot be released.
const DETACH_TIMEOUT: Duration = Duration::from_millis(500);
/// Time after which the tracing thread is woken again, because it may have been between two system
/// calls the first time.
const REWAKE_INTERVAL: Duration = Duration::from_millis(2);
/// How long to wait for the tracing thread to report the status of a command that has ended.
const REAP_TIMEOUT: Duration = Duration::from_secs(5);
#[derive(Debug)]
pub struct PtraceCollector {
    missing: Vec<Missing>,
    shared: Arc<Shared>,
    waker: ThreadWaker,
    /// Disconnected when the tracing thread has released all processes.
    detached: Receiver<()>,
}

impl PtraceCollector {
    pub fn attach(follow: Follow, settings: &Settings) -> Result<PtraceCollector, CollectError> {
        let (Follow::Command(command), []) = (follow, settings.with.as_slice()) else {
            return Err(CollectError::CommandOnly);
        };
        let shared = Arc::new(Shared::new().map_err(|error| failed(&error.into()))?);
        let children = ChildChanges::catch().map_err(|error| failed(&error))?;
        let interpreters = Interpreters::new(settings);
        let (seized_sender, seized) = sync_channel(1);
        let (detached_sender, detached) = sync_channel(0);
        let (thread_shared, its_settings) = (Arc::clone(&shared), settings.clone());
        // Only the thread that seizes a process can trace it.
        let thread = std::thread::Builder::new().name("tracer".to_owned()).spawn(move || {
            let _dropped_at_the_end = detached_sender;
            let waker = ThreadWaker::of_this_thread();
            let tracing = Tracing::seize(command, thread_shared, children, &its_settings, interpreters);
            match (tracing, waker) {
                (Ok(tracing), Ok(waker)) => {
                    let _ = seized_sender.send(Ok(waker));
                    tracing.run();
                }
                (Err(error), _) | (_, Err(error)) => drop(seized_sender.send(Err(error))),
            }
        });
        thread.map_err(|error| failed(&error))?;
        let waker = match seized.recv() {
            Ok(Ok(waker)) => waker,
            Ok(Err(_)) => return Err(refused(command)),
            Err(_) => return Err(failed(&io::Error::other("the tracing thread has ended"))),
        };
        Ok(PtraceCollector { missing: missing(settings), shared, waker, detached })
    }
}

fn refused(command: Pid) -> CollectError {
    CollectError::Failed { action: "trace the command", detail: refusal::reason(command) }
}

fn failed(error: &io::Error) -> CollectError {
    CollectError::Failed { action: "start to trace", detail: error.to_string() }
}

/// Returns what ptrace cannot report, and what the settings exclude.
fn missing(settings: &Settings) -> Vec<Missing> {
    let unknown = if settings.launcher_calls {
        "what ends waits, create and reap of threads that rarely launch"
    } else {
        "create, most reaps, what ends waits"
    };
    let mut all = vec![(Missing::SCHEDULER, unknown), ("the loader's system calls", "library search")];
    if !counters::are_counted() {
        all.push((Missing::FIRST_WAITS, "queue"));
    }
    all.push(if settings.failed_execs {
        ("system calls of programs", "time and failures of later execs")
    } else {
        ("system calls before an exec", "setup, exec, failed execs")
    });
    if settings.stacks || settings.sample.is_some() {
        all.push(("stacks", "native call chains and samples"));
    }
    all.into_iter().map(|(what, effect)| Missing { what: what.to_owned(), effect: effect.to_owned() }).collect()
}

impl Collector for PtraceCollector {
    fn name(&self) -> &'static str {
        "ptrace"
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
        let _ = rustix::io::read(&self.shared.many_events, &mut [0u8; 8]);
        events.append(&mut lock(&self.shared.events));
        Ok(false)
    }

    fn losses(&self) -> Result<Vec<Loss>, CollectError> {
        Ok(Vec::new())
    }

    /// Fails: the recorder's own thread cannot be traced. What tracing adds is known from the
    /// stops.
    fn as_followed(&self, _: &mut dyn FnMut()) -> Result<(), CollectError> {
        Err(CollectError::CommandOnly)
    }

    fn detach(&mut self) {
        self.shared.should_detach.store(true, Ordering::Release);
        signal(&self.shared.wake);
        let until = Instant::now() + DETACH_TIMEOUT;
        while Instant::now() < until {
            self.waker.wake();
            // The thread sends nothing, but the channel is disconnected when the thread ends.
            if self.detached.recv_timeout(REWAKE_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    /// Waits until the tracing thread has reaped the command: if the parent is also the tracer,
    /// only one wait returns the status. After detaching, this thread may reap the command itself.
    fn reap(&mut self, command: Pid) -> Option<i32> {
        let until = Instant::now() + REAP_TIMEOUT;
        while Instant::now() < until {
            if let Some(status) = *lock(&self.shared.command_status) {
                return Some(status);
            }
            if self.shared.should_detach.load(Ordering::Acquire)
                && let Some(status) = reap_ended(command)
            {
                return Some(status);
            }
            is_readable_within(&self.shared.many_events, Duration::from_millis(1));
        }
        None
    }

    fn has_stopped(&mut self, _: Pid) -> bool {
        self.shared.command_stopped.swap(false, Ordering::AcqRel)
    }

    fn notices(&mut self) -> Vec<String> {
        std::mem::take(&mut lock(&self.shared.notices))
    }
}

impl Drop for PtraceCollector {
    fn drop(&mut self) {
        self.detach();
    }
}
