//! Measures how long a thread that needs the address space's mmap lock stalls while another thread launches, because a fork holds that lock.
//! Also measures how long it stalls without a launch, because a thread that waits for a CPU stalls too.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Mechanism;
use super::launcher::Launcher;
use super::protocol::Program;
use crate::LabError;
use spawnscope_data::event::Nanos;
use spawnscope_data::statistics::median;
use spawnscope_system::launch_timing::timing::{LaunchTimes, timed};

/// The number of turns after which a new thread counts as running. Without this wait, a fork of a large parent could be over before the
/// thread has started.
const START_TURNS: u64 = 16;

/// Another thread, which maps, writes to and unmaps a page in a loop. One pass through the loop is a turn.
#[derive(Default)]
struct Neighbour {
    /// Whether the thread must end.
    must_end: AtomicBool,
    /// The number of turns so far.
    turns: AtomicU64,
    /// The longest turn in nanoseconds.
    longest_ns: AtomicU64,
}

impl Neighbour {
    fn run(&self) {
        let mut last = Instant::now();
        while !self.must_end.load(Ordering::Relaxed) {
            map_and_unmap();
            let now = Instant::now();
            self.longest_ns.fetch_max((now - last).as_nanos() as u64, Ordering::Relaxed);
            self.turns.fetch_add(1, Ordering::Relaxed);
            last = now;
        }
    }

    /// Waits until this many more turns have ended.
    fn await_turns(&self, count: u64) {
        let from = self.turns.load(Ordering::Relaxed);
        while self.turns.load(Ordering::Relaxed) < from + count {
            thread::yield_now();
        }
    }
}

/// Returns medians over launches: wall, the neighbour's longest turn, and time inside the call.
pub fn stall(mechanism: Mechanism, program: &Program, count: u32) -> Result<Vec<f64>, LabError> {
    let mut launcher = Launcher::new(mechanism, program)?;
    with_neighbour(|neighbour| {
        launcher.warm_up(mechanism, count)?;
        measure_repeatedly(neighbour, count, || launcher.time(mechanism))
    })
}

/// Returns medians over pauses of this length without a launch: wall, the neighbour's longest turn, and the pause.
pub fn idle(pause_ns: f64, count: u32) -> Result<Vec<f64>, LabError> {
    let pause = Duration::from_nanos(pause_ns as u64);
    let _exact = ExactTimers::set();
    with_neighbour(|neighbour| {
        measure_repeatedly(neighbour, count, || {
            let wall = timed(|| thread::sleep(pause));
            let call = Nanos(pause.as_nanos() as u64);
            Ok(LaunchTimes { call, wall })
        })
    })
}

/// Sets the timer slack to 1 ns while it exists. By default, timers expire up to 50 us late, which is half the time of a launch.
struct ExactTimers;

impl ExactTimers {
    fn set() -> ExactTimers {
        // SAFETY: a plain system call for this thread.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        ExactTimers
    }
}

impl Drop for ExactTimers {
    /// Restores the default, because children would inherit the setting.
    fn drop(&mut self) {
        // SAFETY: see above.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 0) };
    }
}

fn with_neighbour(act: impl FnOnce(&Neighbour) -> Result<Vec<f64>, LabError>) -> Result<Vec<f64>, LabError> {
    let neighbour = Neighbour::default();
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, || neighbour.run());
        let thread = thread.map_err(LabError::doing("start a thread"))?;
        neighbour.await_turns(START_TURNS);
        let outcome = act(&neighbour);
        neighbour.must_end.store(true, Ordering::Relaxed);
        match thread.join() {
            Ok(()) => outcome,
            Err(_) => Err(LabError::Invalid("the other thread died".to_owned())),
        }
    })
}

/// Returns medians over `count` calls of `act`: wall, the neighbour's longest turn, and time inside the call.
fn measure_repeatedly(
    neighbour: &Neighbour,
    count: u32,
    mut act: impl FnMut() -> Result<LaunchTimes, LabError>,
) -> Result<Vec<f64>, LabError> {
    let (mut walls, mut stalls, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        neighbour.longest_ns.store(0, Ordering::Relaxed);
        let times = act()?;
        calls.push(times.call.0 as f64);
        walls.push(times.wall.0 as f64);
        // Wait for the end of a stall that lasts longer than `act`.
        neighbour.await_turns(1);
        stalls.push(neighbour.longest_ns.load(Ordering::Relaxed) as f64);
    }
    let medians = [walls, stalls, calls].map(|values| median(values).unwrap_or_default());
    Ok(medians.to_vec())
}

fn map_and_unmap() {
    const BYTES: usize = 4096;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the mapping is new, is written within its bounds, and is unmapped at the end.
    unsafe {
        let start: *mut c_void = libc::mmap(std::ptr::null_mut(), BYTES, protection, flags, -1, 0);
        if start != libc::MAP_FAILED {
            start.cast::<u8>().write_volatile(1);
            libc::munmap(start, BYTES);
        }
    }
}
