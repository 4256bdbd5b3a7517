//! The small process that launches others and takes the times. It is forked from the doctor, so it follows the rules of such a
//! process: only system calls on memory that was prepared before, nothing that allocates, locks or panics.

use std::ffi::c_int;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::unistd::{ForkResult, fork};

use super::image::{Image, execute_in_memory};
use crate::collect::shared::{Shareable, Shared};
use crate::collect::{now, pidfd};
use crate::doctor::programs::is_readable_within;
use crate::event::{Nanos, Pid};

/// Most times of one kind.
pub(super) const MOST_TIMES: usize = 48;
/// Kinds of launches that are timed together.
const SERIES: usize = 4;

/// Times that the small process leaves where the doctor can read them. All zeroes is empty.
#[repr(C)]
pub(super) struct Board {
    pub(super) series: [Series; SERIES],
}

/// Times of one kind.
#[repr(C)]
pub(super) struct Series {
    complete: AtomicU64,
    times: [AtomicU64; MOST_TIMES],
}

impl Series {
    /// Adds a time; one too many is dropped.
    pub(super) fn add(&self, time: Nanos) {
        let number = self.complete.load(Ordering::Relaxed);
        if let Some(place) = self.times.get(number as usize) {
            place.store(time.0, Ordering::Relaxed);
            self.complete.store(number + 1, Ordering::Release);
        }
    }

    pub(super) fn times(&self) -> Vec<Nanos> {
        let complete = self.complete.load(Ordering::Acquire) as usize;
        let times = self.times.iter().take(complete);
        times.map(|time| Nanos(time.load(Ordering::Relaxed))).collect()
    }
}

// SAFETY: nothing but atomic numbers, which may be zero.
unsafe impl Shareable for Board {}

/// What a small process has left.
pub(super) struct Measurement {
    pub(super) board: Shared<Board>,
    /// Whether it came to its end by itself.
    pub(super) is_in_time: bool,
}

/// Has `work` done by a small process, for so long at most. What it put on the board until then counts.
pub(super) fn measure(limit: Duration, work: impl FnOnce(&Board) -> Option<()>) -> io::Result<Measurement> {
    let board = Shared::<Board>::map()?;
    // SAFETY: the child makes only system calls on memory that was prepared before, and never returns.
    let child = match unsafe { fork() }? {
        ForkResult::Child => {
            become_small();
            let _ = work(&board);
            // SAFETY: leaves at once; nothing of the doctor's runs here.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => Child(child.as_raw()),
    };
    let ended = pidfd(Pid(child.0))?;
    let is_in_time = is_readable_within(&ended, limit);
    drop(child);
    Ok(Measurement { board, is_in_time })
}

/// What a child does.
#[derive(Clone, Copy)]
pub(super) enum Work<'a> {
    /// It only exits.
    Exit,
    /// It executes a file.
    Execute(&'a Image),
    /// It executes a file without a name.
    ExecuteInMemory(c_int),
}

/// Launches a child and waits for it; `None` unless it proves by its status that it ran.
pub(super) fn launch(work: Work<'_>) -> Option<Nanos> {
    let began = now();
    let child = start(work)?;
    let (reaped, succeeded) = reap(child)?;
    (reaped == child && succeeded).then(|| now().since(began))
}

/// Launches programs all at once; the times from then to the end of each, in the order of their ends.
pub(super) fn launch_together<const N: usize>(images: &[Image; N], ends: &Series) -> Option<()> {
    let began = now();
    for image in images {
        start(Work::Execute(image))?;
    }
    for _ in images {
        let (_, succeeded) = reap(-1)?;
        if !succeeded {
            return None;
        }
        ends.add(now().since(began));
    }
    Some(())
}

fn start(work: Work<'_>) -> Option<c_int> {
    // The bare call: that of the C library would run the handlers of a process with threads.
    // SAFETY: as fork; the child only makes system calls.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    if pid != 0 {
        return (pid > 0).then_some(pid as c_int);
    }
    die_with_parent();
    match work {
        Work::Execute(image) => image.execute(),
        Work::ExecuteInMemory(file) => execute_in_memory(file),
        // SAFETY: leaves at once.
        Work::Exit => unsafe { libc::_exit(0) },
    }
}

fn reap(child: c_int) -> Option<(c_int, bool)> {
    let mut status = 0;
    // SAFETY: `status` has room for a status.
    let reaped = unsafe { libc::waitpid(child, &raw mut status, 0) };
    (reaped > 0).then_some((reaped, status == 0))
}

/// No descriptor of the doctor's, nobody to write to, and wait calls that see children.
fn become_small() {
    die_with_parent();
    // SAFETY: plain system calls in a process of our own.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for standard in 0..3 {
            libc::dup2(null, standard);
        }
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
    }
}

fn die_with_parent() {
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// A child of ours that nobody else reaps; killed, and waited for, when it is dropped.
struct Child(c_int);

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: plain system calls; the pid is that of a child that was not reaped, so it is nobody else's.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}
