//! How long another thread of the parent stands still during a launch: a neighbour that needs the memory's lock, as fork does.
//! And how long in a pause without one, since a thread that waits for a CPU stands still too.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Mechanism;
use super::launcher::Launcher;
use super::operations::nanos;
use super::protocol::Program;
use crate::lab::LabError;
use crate::statistics::median;

/// A new thread is under way after so many turns: a fork of a large parent could be over before it has begun.
const TURNS_TO_BEGIN: u64 = 16;

/// Another thread, which maps, touches and unmaps a page without end.
#[derive(Default)]
struct Neighbour {
    ended: AtomicBool,
    batches: AtomicU64,
    /// Nanoseconds of the longest turn.
    longest: AtomicU64,
}

impl Neighbour {
    fn live(&self) {
        let mut last = Instant::now();
        while !self.ended.load(Ordering::Relaxed) {
            map_and_unmap();
            let now = Instant::now();
            self.longest
                .fetch_max((now - last).as_nanos() as u64, Ordering::Relaxed);
            self.batches.fetch_add(1, Ordering::Relaxed);
            last = now;
        }
    }

    /// Waits for so many more of its turns to end.
    fn await_turns(&self, count: u64) {
        let from = self.batches.load(Ordering::Relaxed);
        while self.batches.load(Ordering::Relaxed) < from + count {
            thread::yield_now();
        }
    }
}

/// Medians over launches: wall, the neighbour's longest turn, and time inside the call.
pub fn stall(mechanism: Mechanism, program: &Program, count: u32) -> Result<Vec<f64>, LabError> {
    let mut launcher = Launcher::new(mechanism, program)?;
    beside_a_neighbour(|neighbour| {
        launcher.warm_up(mechanism, count)?;
        repeated(neighbour, count, || {
            let began = Instant::now();
            let running = launcher.start(mechanism)?;
            let call = began.elapsed();
            launcher.finish(mechanism, running)?;
            Ok(call)
        })
    })
}

/// Medians over pauses of so long, in which nothing is launched: wall, the neighbour's longest turn, and once more wall.
pub fn idle(pause_ns: f64, count: u32) -> Result<Vec<f64>, LabError> {
    let pause = Duration::from_nanos(pause_ns as u64);
    let _exact = ExactTimers::set();
    beside_a_neighbour(|neighbour| {
        repeated(neighbour, count, || {
            thread::sleep(pause);
            Ok(pause)
        })
    })
}

/// The kernel lets timers be late by 50 us, half a launch, unless it is told otherwise.
struct ExactTimers;

impl ExactTimers {
    fn set() -> ExactTimers {
        // SAFETY: a plain system call, about this thread.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        ExactTimers
    }
}

impl Drop for ExactTimers {
    /// Children inherit it: nothing stands for what was before.
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 0) };
    }
}

fn beside_a_neighbour(act: impl FnOnce(&Neighbour) -> Result<Vec<f64>, LabError>) -> Result<Vec<f64>, LabError> {
    let neighbour = Neighbour::default();
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, || neighbour.live());
        let thread = thread.map_err(LabError::doing("start a thread"))?;
        neighbour.await_turns(TURNS_TO_BEGIN);
        let outcome = act(&neighbour);
        neighbour.ended.store(true, Ordering::Relaxed);
        match thread.join() {
            Ok(()) => outcome,
            Err(_) => Err(LabError::Untrusted("the other thread died".to_owned())),
        }
    })
}

/// Medians over so many acts: wall, the neighbour's longest turn, and the time that the act tells.
fn repeated(
    neighbour: &Neighbour,
    count: u32,
    mut act: impl FnMut() -> Result<Duration, LabError>,
) -> Result<Vec<f64>, LabError> {
    let (mut walls, mut stalls, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        neighbour.longest.store(0, Ordering::Relaxed);
        let began = Instant::now();
        calls.push(nanos(act()?));
        walls.push(nanos(began.elapsed()));
        // A stall that outlasts the act is told when it ends.
        neighbour.await_turns(1);
        stalls.push(neighbour.longest.load(Ordering::Relaxed) as f64);
    }
    let medians = [walls, stalls, calls].map(|values| median(values).unwrap_or_default());
    Ok(medians.to_vec())
}

fn map_and_unmap() {
    const BYTES: usize = 4096;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: memory of our own, written within its bounds and given back.
    unsafe {
        let start: *mut c_void = libc::mmap(std::ptr::null_mut(), BYTES, protection, flags, -1, 0);
        if start != libc::MAP_FAILED {
            start.cast::<u8>().write_volatile(1);
            libc::munmap(start, BYTES);
        }
    }
}
