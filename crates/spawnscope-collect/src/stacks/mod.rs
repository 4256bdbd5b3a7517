//! Turns the stacks that a collector copies into native call chains. `mappings` says which file's
//! code is mapped where. `files` opens the files as the process sees them, and `opener` does so
//! without delay. `bounded` limits how much of a file is read, and `modules` caches the open files.
//! `tables` reads their unwind tables, with which `unwind` walks a stack. `symbols` finds the names
//! of functions in files, and `kernel` those of kernel code. Code that a process generates has no
//! names. This file owns the threads that do all this, so that the reading of events is not
//! delayed.

mod bounded;
mod files;
mod kernel;
mod mappings;
mod modules;
mod opener;
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
use spawnscope_data::event::{Event, LaunchId, Nanos, Pid, TaskId};

/// The input of the threads that open files and unwind stacks.
#[derive(Debug)]
pub(super) enum StackInput {
    /// One executable mapping of an image. All mappings of an image precede the launch stacks that
    /// need them, or precede `ImageEnd`.
    Mapping { image: ImageId, pid: Pid, mapping: Mapping },
    /// A stack. The stack of a sample may precede its image.
    Stack(Box<CopiedStack>),
    /// The end of the mappings of an image that earlier samples refer to. `is_complete`: all
    /// mappings could be reported.
    ImageEnd { image: ImageId, is_complete: bool },
    /// The mappings of an image must be read now, because the process is about to wait, and may end
    /// after the wait.
    UnreadImage { image: ImageId, pid: Pid, start_stack: u64 },
    /// The file of a mapping that follows. It is added by `opener`.
    File { id: FileId, file: File },
}

/// The stack of a thread that requested a launch or was sampled.
#[derive(Clone, Debug)]
pub(super) struct CopiedStack {
    /// When the stack was copied.
    pub(super) at: Nanos,
    /// The requested launch; for a sample, the thread's own process.
    pub(super) launch: LaunchId,
    /// The new process's first thread; for a sample, the thread itself.
    pub(super) task: TaskId,
    /// The mappings at that time, if they were reported.
    pub(super) image: Option<ImageId>,
    /// The address where exec put the stack of the process's first thread.
    pub(super) start_stack: u64,
    /// The process that requested the launch, or was sampled.
    pub(super) pid: Pid,
    /// The thread's registers in user space.
    pub(super) registers: Registers,
    /// The stack from the stack pointer upwards.
    pub(super) bytes: Vec<u8>,
    /// The other data of a sample; `None` for a launch.
    pub(super) sample: Option<Sample>,
}

/// The data of a sample besides the user part of the stack.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// The time that the sample represents.
    pub(super) span: Nanos,
    /// Whether the thread was waiting rather than on a CPU.
    pub(super) is_waiting: bool,
    /// The kernel part of the stack: addresses, innermost first.
    pub(super) kernel: Vec<u64>,
    pub(super) is_kernel_truncated: bool,
    /// Whether the registers are known.
    pub(super) has_user_part: bool,
}

/// Maximum number of copied bytes that wait to be unwound: enough for a few seconds of very many
/// launches, while large debug information is read.
const MAX_WAITING_BYTES: usize = 256 << 20;

/// Maximum number of open files that the worker has not taken yet.
const MAX_WAITING_FILES: usize = 200;

/// Who reads the mappings of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MappingSource {
    /// The BPF programs, when a stack is copied.
    Kernel,
    /// The recorder, from /proc, soon after a stack is copied. The process may have ended before
    /// that.
    Recorder,
}

/// What the threads count together.
#[derive(Default)]
struct SharedCounts {
    /// Number of copied bytes of stacks that wait to be unwound.
    bytes: AtomicUsize,
    /// Number of open files that the worker has not taken yet.
    files: AtomicUsize,
    /// Number of stacks of launches that were dropped because the process had ended before its
    /// mappings were read.
    unreadable: AtomicU64,
}

/// Threads that turn stacks into `Called` and `Sampled` events. One opens files at once, because
/// processes may end soon; the other unwinds and finds names without time pressure.
pub(super) struct Unwinder {
    sender: Option<Sender<StackInput>>,
    events: Receiver<Event>,
    threads: Vec<JoinHandle<()>>,
    counts: Arc<SharedCounts>,
    /// Number of stacks that were passed to the threads or lost.
    stacks: u64,
    /// Number of chains that the threads have returned.
    chains: u64,
}

impl Unwinder {
    /// Starts the threads.
    ///
    /// # Errors
    /// If a thread cannot be created.
    pub(super) fn start(mapping_source: MappingSource) -> std::io::Result<Unwinder> {
        let (sender, input) = mpsc::channel();
        let (opened_sender, opened) = mpsc::channel();
        let (events_sender, events) = mpsc::channel();
        let counts = Arc::new(SharedCounts::default());
        let (opener_counts, worker_counts) = (Arc::clone(&counts), Arc::clone(&counts));
        let opener = thread::Builder::new().name("opener".to_owned());
        let opener = opener.spawn(move || open(input, &opened_sender, Opener::new(mapping_source), &opener_counts))?;
        let worker = thread::Builder::new().name("unwinder".to_owned());
        let worker = worker.spawn(move || unwind(opened, &events_sender, &worker_counts))?;
        Ok(Unwinder { sender: Some(sender), events, threads: vec![opener, worker], counts, stacks: 0, chains: 0 })
    }

    /// Passes input to the threads, without blocking. A stack is lost if too many bytes are already
    /// waiting.
    pub(super) fn send(&mut self, input: StackInput) {
        let bytes = input.bytes();
        self.stacks += u64::from(matches!(input, StackInput::Stack(_)));
        if bytes > 0 && self.counts.bytes.load(Ordering::Relaxed) > MAX_WAITING_BYTES {
            return;
        }
        self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(sender) = &self.sender {
            // If the thread has ended, there will be no chain, so the stack counts as lost.
            let _ = sender.send(input);
        }
    }

    /// Moves the finished chains into `events`.
    pub(super) fn drain(&mut self, events: &mut Vec<Event>) {
        let before = events.len();
        events.extend(self.events.try_iter());
        self.chains += (events.len() - before) as u64;
    }

    /// Waits until all input is unwound.
    pub(super) fn finish(&mut self) {
        self.sender = None;
        for thread in self.threads.drain(..) {
            // A thread can fail only by a panic. Its chains are then missing, so their stacks count
            // as lost.
            let _ = thread.join();
        }
    }

    /// Returns the number of stacks that have no chain, not even a truncated one, although their
    /// mappings were known. The number is correct only after `finish` and `drain`.
    pub(super) fn lost_stacks(&self) -> u64 {
        self.stacks - self.chains - self.counts.unreadable.load(Ordering::Relaxed)
    }
}

fn open(input: Receiver<StackInput>, opened: &Sender<StackInput>, mut opener: Opener, counts: &SharedCounts) {
    for input in input {
        // Sending fails only if the recording was abandoned and the receiver dropped.
        opener.forward(input, counts, &|input| drop(opened.send(input)));
    }
}

fn unwind(input: Receiver<StackInput>, events: &Sender<Event>, counts: &SharedCounts) {
    let mut worker = Worker::default();
    for input in input {
        let (bytes, files) = (input.bytes(), input.files());
        // Sending may fail, as above.
        worker.process(input).into_iter().for_each(|event| drop(events.send(event)));
        counts.bytes.fetch_sub(bytes, Ordering::Relaxed);
        counts.files.fetch_sub(files, Ordering::Relaxed);
    }
    worker.finish().into_iter().for_each(|event| drop(events.send(event)));
}

impl Drop for Unwinder {
    fn drop(&mut self) {
        self.finish();
    }
}

impl StackInput {
    fn bytes(&self) -> usize {
        match self {
            StackInput::Stack(stack) => stack.bytes.len(),
            _ => 0,
        }
    }

    fn files(&self) -> usize {
        usize::from(matches!(self, StackInput::File { .. }))
    }
}
