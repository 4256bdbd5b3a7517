//! Makes native call chains of the stacks that a collector copies: `mappings` says which file's code lies where, `files`
//! opens those files as the process saw them, `opener` does so at once, `bounded` reads no more of them than is sound, `modules` keeps them, `tables` has their unwind tables, `unwind` walks a stack
//! with these, and `symbols` (for code without a file, `perf_map`, for the kernel's, `kernel`) names what was found. This file owns the threads that do
//! it, off the way of the kernel's events.

mod bounded;
mod files;
mod kernel;
mod mappings;
mod modules;
mod opener;
mod perf_map;
mod processor;
mod recent;
mod symbols;
mod tables;
mod unwind;
mod worker;

#[cfg(fuzzing)]
pub(super) use self::unwind::fuzz as fuzz_unwinder;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

pub(super) use self::mappings::{FileId, ImageId, MappedFile, Mapping};
use self::opener::Opener;
pub(super) use self::unwind::Registers;
use self::worker::Worker;
use crate::event::{Event, LaunchId, Nanos, Pid, TaskId};

/// What a collector tells.
#[derive(Debug)]
pub(super) enum Told {
    /// One of an image's executable mappings; all come before the stacks that need them, or before `Image`.
    Mapping { image: ImageId, pid: Pid, mapping: Mapping },
    /// A stack. A sample's may come before its image.
    Stack(Box<CopiedStack>),
    /// Of an image that samples named before, all mappings were told, or could not be.
    Image { image: ImageId, is_whole: bool },
    /// The mappings of an image are to be read now: the process is about to wait, and may end after that.
    Unread { image: ImageId, pid: Pid, start_stack: u64 },
    /// Not by the collector: the file of a mapping that comes next.
    File { id: FileId, file: File },
    /// Likewise: the names of the code that a process made.
    PerfMap { image: ImageId, file: File },
}

/// The stack of a thread that asked for a launch, or was looked at.
#[derive(Clone, Debug)]
pub(super) struct CopiedStack {
    /// When.
    pub(super) at: Nanos,
    /// What it asked for; of a sample, its own process.
    pub(super) launch: LaunchId,
    /// The new process's first thread; of a sample, the thread itself.
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
    /// What else a sample tells; `None` of a launch.
    pub(super) sample: Option<Sample>,
}

/// What a sample tells besides the user's part of the stack.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// The time that it stands for.
    pub(super) span: Nanos,
    /// Whether the thread waited, or had a CPU.
    pub(super) is_waiting: bool,
    /// The kernel's part of the stack: addresses, the innermost first.
    pub(super) kernel: Vec<u64>,
    /// Whether more of them follow.
    pub(super) is_kernel_cut: bool,
    /// Whether the registers are known.
    pub(super) has_user_part: bool,
}

/// Copied bytes that may wait to be unwound: some seconds of the worst storm, while large debug information is read.
const MOST_WAITING_BYTES: usize = 256 << 20;

/// Files that may be open before the worker knows them.
const MOST_WAITING_FILES: usize = 200;

/// Who finds out what processes have mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhoTells {
    /// The collector's programs in the kernel, when a stack is copied.
    Kernel,
    /// The recorder, from /proc, soon afterwards. The process may have ended by then.
    Recorder,
}

/// What waits to be worked on.
#[derive(Default)]
struct Waiting {
    bytes: AtomicUsize,
    files: AtomicUsize,
    /// Not waiting any more: stacks of launches whose process had ended before its mappings were read.
    unreadable: AtomicU64,
}

/// Threads that turn stacks into `Called` and `Sampled` events: one opens files at once, since processes end soon; the other one takes its
/// time to unwind and name.
pub(super) struct Unwinder {
    sender: Option<Sender<Told>>,
    events: Receiver<Event>,
    threads: Vec<JoinHandle<()>>,
    waiting: Arc<Waiting>,
    stacks: u64,
    chains: u64,
}

impl Unwinder {
    /// Starts the threads.
    ///
    /// # Errors
    /// When there can be no more threads.
    pub(super) fn start(who_tells: WhoTells) -> std::io::Result<Unwinder> {
        let (sender, told) = mpsc::channel();
        let (opened_sender, opened) = mpsc::channel();
        let (events_sender, events) = mpsc::channel();
        let waiting = Arc::new(Waiting::default());
        let named = |name: &str| thread::Builder::new().name(name.into());
        let (of_opener, of_worker) = (Arc::clone(&waiting), Arc::clone(&waiting));
        let opener = named("opener").spawn(move || open(told, &opened_sender, Opener::new(who_tells), &of_opener))?;
        let worker = named("unwinder").spawn(move || unwind(opened, &events_sender, &of_worker))?;
        Ok(Unwinder {
            sender: Some(sender),
            events,
            threads: vec![opener, worker],
            waiting,
            stacks: 0,
            chains: 0,
        })
    }

    /// Hands over what was told; never waits. Where too much waits already, the stack is lost.
    pub(super) fn take(&mut self, told: Told) {
        let bytes = told.bytes();
        self.stacks += u64::from(matches!(told, Told::Stack(_)));
        if bytes > 0 && self.waiting.bytes.load(Ordering::Relaxed) > MOST_WAITING_BYTES {
            return;
        }
        self.waiting.bytes.fetch_add(bytes, Ordering::Relaxed);
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
        for thread in self.threads.drain(..) {
            // It can only fail by a panic, and then its chains are missing, which counts as lost.
            let _ = thread.join();
        }
    }

    /// Stacks of which no chain came, not even a truncated one, though their mappings were known. Right only after `finish`
    /// and `drain`.
    pub(super) fn lost(&self) -> u64 {
        self.stacks - self.chains - self.waiting.unreadable.load(Ordering::Relaxed)
    }
}

fn open(told: Receiver<Told>, opened: &Sender<Told>, mut opener: Opener, waiting: &Waiting) {
    // Nobody listens any more when the recording is given up.
    let hand_on = |told| drop(opened.send(told));
    for told in told {
        opener.take(told, waiting, &hand_on);
    }
}

fn unwind(told: Receiver<Told>, events: &Sender<Event>, waiting: &Waiting) {
    let mut worker = Worker::default();
    for told in told {
        let (bytes, files) = (told.bytes(), told.files());
        // As above.
        worker.take(told).into_iter().for_each(|event| drop(events.send(event)));
        waiting.bytes.fetch_sub(bytes, Ordering::Relaxed);
        waiting.files.fetch_sub(files, Ordering::Relaxed);
    }
    worker.finish().into_iter().for_each(|event| drop(events.send(event)));
}

impl Drop for Unwinder {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Told {
    fn bytes(&self) -> usize {
        match self {
            Told::Stack(stack) => stack.bytes.len(),
            _ => 0,
        }
    }

    fn files(&self) -> usize {
        usize::from(matches!(self, Told::File { .. } | Told::PerfMap { .. }))
    }
}
