//! Makes native call chains of the stacks that a collector copies: `mappings` says which file's code lies where, `files`
//! opens those files as the process saw them, `tables` has their unwind tables, `unwind` walks a stack with these, and
//! `symbols` names what was found. This file owns the thread that does it, off the way of the kernel's events.

mod files;
mod mappings;
mod perf_map;
mod recent;
mod symbols;
mod tables;
mod unwind;
mod worker;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

pub(super) use self::mappings::{FileId, ImageId, MappedFile, Mapping};
pub(super) use self::unwind::Registers;
use self::worker::Worker;
use crate::event::{Event, LaunchId, Nanos, Pid, TaskId};

/// What a collector tells.
#[derive(Clone, Debug)]
pub(super) enum Told {
    /// One of an image's executable mappings; all come before the stacks that need them.
    Mapping {
        image: ImageId,
        pid: Pid,
        mapping: Mapping,
    },
    /// A stack.
    Stack(CopiedStack),
}

/// The stack of a thread that asked for a launch.
#[derive(Clone, Debug)]
pub(super) struct CopiedStack {
    /// When.
    pub(super) at: Nanos,
    /// What it asked for.
    pub(super) launch: LaunchId,
    /// The new process's first thread.
    pub(super) task: TaskId,
    /// What was mapped, if that was told.
    pub(super) image: Option<ImageId>,
    /// Where exec put the process's first stack.
    pub(super) start_stack: u64,
    /// The process that asked.
    pub(super) pid: Pid,
    /// The thread's registers in user space.
    pub(super) registers: Registers,
    /// The stack from the stack pointer upwards.
    pub(super) bytes: Vec<u8>,
}

/// Copied bytes that may wait to be unwound: some seconds of the worst storm, while large debug information is read.
const MOST_WAITING_BYTES: usize = 256 << 20;

/// A thread that turns stacks into `Called` events.
pub(super) struct Unwinder {
    sender: Option<Sender<Told>>,
    events: Receiver<Event>,
    thread: Option<JoinHandle<()>>,
    waiting_bytes: Arc<AtomicUsize>,
    stacks: u64,
    chains: u64,
}

impl Unwinder {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there can be no more threads.
    pub(super) fn start() -> std::io::Result<Unwinder> {
        let (sender, receiver) = mpsc::channel::<Told>();
        let (events_sender, events) = mpsc::channel();
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let waiting = Arc::clone(&waiting_bytes);
        let thread = thread::Builder::new().name("unwinder".into()).spawn(move || {
            let mut worker = Worker::default();
            for told in receiver {
                let bytes = told.bytes();
                if let Some(event) = worker.take(told) {
                    // Nobody listens any more when the recording is given up.
                    let _ = events_sender.send(event);
                }
                waiting.fetch_sub(bytes, Ordering::Relaxed);
            }
        })?;
        Ok(Unwinder {
            sender: Some(sender),
            events,
            thread: Some(thread),
            waiting_bytes,
            stacks: 0,
            chains: 0,
        })
    }

    /// Hands over what was told; never waits. Where too much waits already, the stack is lost.
    pub(super) fn take(&mut self, told: Told) {
        let bytes = told.bytes();
        self.stacks += u64::from(matches!(told, Told::Stack(_)));
        if bytes > 0 && self.waiting_bytes.load(Ordering::Relaxed) > MOST_WAITING_BYTES {
            return;
        }
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(sender) = &self.sender {
            // A thread that is gone tells no chain, which counts as lost.
            let _ = sender.send(told);
        }
    }

    /// Moves the chains that are ready into `events`.
    pub(super) fn drain(&mut self, events: &mut Vec<Event>) {
        let before = events.len();
        events.extend(self.events.try_iter());
        self.chains += (events.len() - before) as u64;
    }

    /// Waits until all that was told is unwound.
    pub(super) fn finish(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // It can only fail by a panic, and then its chains are missing, which counts as lost.
            let _ = thread.join();
        }
    }

    /// Stacks of which no chain came, not even a truncated one. Right only after `finish` and `drain`.
    pub(super) fn lost(&self) -> u64 {
        self.stacks - self.chains
    }
}

impl Drop for Unwinder {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Told {
    fn bytes(&self) -> usize {
        match self {
            Told::Mapping { .. } => 0,
            Told::Stack(stack) => stack.bytes.len(),
        }
    }
}
