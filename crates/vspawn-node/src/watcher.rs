//! Reports the ends of children. One thread waits for the pidfds of all children of the process, so
//! neither an event loop nor a thread of libuv's pool waits, and SIGCHLD stays Node's.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use napi::Status;
use napi::bindgen_prelude::FnArgs;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;
use vspawn::Child;
use vspawn::pty::Pty;

/// The id of a child; its exit code; the signal that ended it, or 0; the errno if its status is not
/// known, or 0.
pub(crate) type Ended = (u32, i32, i32, i32);
pub(crate) type Reporter =
    ThreadsafeFunction<FnArgs<Ended>, (), FnArgs<Ended>, Status, /* CalleeHandled */ false, /* Weak */ true>;

pub(crate) struct Watcher {
    epoll: OwnedFd,
    children: Mutex<HashMap<u32, Watched>>,
    next_id: AtomicU32,
}

struct Watched {
    child: Child,
    /// The threads of `terminal` own it.
    pty: Weak<Pty>,
    reporter: Arc<Reporter>,
}

static WATCHER: LazyLock<io::Result<Watcher>> = LazyLock::new(|| {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    thread::Builder::new().name("vspawn".to_owned()).spawn(|| {
        if let Ok(watcher) = &*WATCHER {
            watcher.run();
        }
    })?;
    Ok(Watcher { epoll, children: Mutex::default(), next_id: AtomicU32::new(1) })
});

/// The interval at which a child without a pidfd is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

impl Watcher {
    /// Returns the watcher of this process. The first call starts its thread.
    pub(crate) fn get() -> napi::Result<&'static Watcher> {
        WATCHER.as_ref().map_err(|error| napi::Error::from_reason(format!("cannot watch children: {error}")))
    }

    /// Takes over a child, and returns its id. Unlike a pid, an id is not used again.
    pub(crate) fn watch(&'static self, child: Child, pty: Weak<Pty>, reporter: &Arc<Reporter>) -> io::Result<u32> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut children = self.lock();
        // One report is enough: while another child shares the table of descriptors, until its
        // exec, a pidfd that is closed here stays in the epoll set.
        let once = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
        let data = epoll::EventData::new_u64(id.into());
        let is_watched = child.pidfd().is_some_and(|pidfd| epoll::add(&self.epoll, pidfd, data, once).is_ok());
        children.insert(id, Watched { child, pty, reporter: Arc::clone(reporter) });
        drop(children);
        if !is_watched {
            thread::Builder::new().spawn(move || {
                while !self.report(id) {
                    thread::sleep(POLL_INTERVAL);
                }
            })?;
        }
        Ok(id)
    }

    /// Calls a function with a child that has not been reported. Returns an errno, or 0.
    pub(crate) fn control(&self, id: u32, function: impl FnOnce(&mut Child) -> Result<(), vspawn::Error>) -> i32 {
        match self.lock().get_mut(&id).map(|watched| function(&mut watched.child)) {
            None => Errno::SRCH.raw_os_error(),
            Some(result) => result.err().map_or(0, |error| error.raw_os_error()),
        }
    }

    /// Returns the pseudo-terminal of a child, if it is still open.
    pub(crate) fn pty(&self, id: u32) -> Option<Arc<Pty>> {
        self.lock().get(&id)?.pty.upgrade()
    }

    fn run(&self) {
        let mut events = Vec::with_capacity(64);
        loop {
            events.clear();
            // The only possible error is EINTR.
            let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), None);
            for event in &events {
                // Ids are made from u32.
                self.report(event.data.u64() as u32);
            }
        }
    }

    /// Waits for a child and reports it, if it has ended. Returns false if it has not. A child
    /// whose worker is gone is waited for, too: otherwise, it would stay a zombie.
    fn report(&self, id: u32) -> bool {
        let mut children = self.lock();
        let Some(watched) = children.get_mut(&id) else { return true };
        let ended = match watched.child.try_wait() {
            Ok(None) => return false,
            Ok(Some(status)) => (id, status.code().unwrap_or(-1), status.signal().unwrap_or(0), 0),
            Err(error) => (id, -1, 0, error.raw_os_error()),
        };
        let watched = children.remove(&id);
        drop(children);
        if let Some(watched) = watched {
            watched.reporter.call(ended.into(), ThreadsafeFunctionCallMode::NonBlocking);
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Watched>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
