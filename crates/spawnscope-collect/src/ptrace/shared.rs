//! What the recorder and the tracing thread share. Events are passed in a list rather than a
//! channel, because the recorder takes all of them at once, and is woken only if there are many.

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use spawnscope_data::event::Event;

/// The recorder is woken once there are this many events.
const WAKE_AT_EVENTS: usize = 4096;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) events: Mutex<Vec<Event>>,
    pub(super) notices: Mutex<Vec<String>>,
    pub(super) command_status: Mutex<Option<i32>>,
    /// Whether the command has been stopped by a signal since the recorder asked.
    pub(super) command_stopped: AtomicBool,
    pub(super) should_detach: AtomicBool,
    /// An eventfd that is readable if there are many events.
    pub(super) many_events: OwnedFd,
    /// An eventfd that is readable once `should_detach` is set.
    pub(super) wake: OwnedFd,
}

impl Shared {
    pub(super) fn new() -> rustix::io::Result<Shared> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Shared {
            events: Mutex::default(),
            notices: Mutex::default(),
            command_status: Mutex::default(),
            command_stopped: AtomicBool::new(false),
            should_detach: AtomicBool::new(false),
            many_events: eventfd(0, flags)?,
            wake: eventfd(0, flags)?,
        })
    }

    pub(super) fn send(&self, new: &mut Vec<Event>) {
        let mut events = lock(&self.events);
        events.append(new);
        if events.len() >= WAKE_AT_EVENTS {
            signal(&self.many_events);
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn signal(eventfd: &OwnedFd) {
    // A write fails only if the counter is full, and then the eventfd is already readable.
    let _ = rustix::io::write(eventfd, &1u64.to_ne_bytes());
}
