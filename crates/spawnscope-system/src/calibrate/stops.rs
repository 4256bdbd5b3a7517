//! Measures what a stop costs a traced process beyond the work of its tracer: the stop itself, the
//! wake-up of the tracer, and the wake-up of the process. The tracer of a recording can measure
//! only its own work. A measuring process makes system calls untraced, and again traced. It works
//! before each call, as programs do, so that the CPU of its waiting tracer goes to sleep: waking it
//! takes most of the time. Tracer and process have a CPU each, as far as there are two: on the same
//! CPU, a stop costs a fifth of what it adds to recorded programs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use spawnscope_data::event::{Nanos, Pid};

use crate::clock::now;
use crate::launch_timing::measuring_process::MeasuringProcess;
use crate::launch_timing::shared::Shareable;
use crate::launch_timing::timing::{make_system_calls, timed};
use crate::ptrace::{Event, Options, Resume, Tracer};

/// Number of rounds. Only the fastest one counts, because other programs delay the others.
const ROUNDS: u32 = 5;
/// Number of system calls in a round; each stops the traced process twice. All rounds together take
/// 8 ms.
const CALLS: u32 = 4;
/// Storms of launches stop every 100 to 200 us. The kernel of a virtual machine may keep a waiting
/// CPU awake for 50 us.
const WORK_NS: u64 = 150_000;
/// Maximum time of the measurement. A process that is delayed longer would say nothing about
/// others.
const LIMIT: Duration = Duration::from_millis(50);

#[repr(C)]
struct Shared {
    /// Time of the fastest untraced round, in nanoseconds; 0: not measured yet.
    untraced: AtomicU64,
    /// Not 0: the process is traced, and continues with the traced calls.
    go: AtomicU64,
    /// Time of the fastest traced round, in nanoseconds; 0: not measured.
    traced: AtomicU64,
}

// SAFETY: all fields are atomic integers, for which zero is valid.
unsafe impl Shareable for Shared {}

/// Returns the cost of a stop. `None` if it cannot be measured. The calling thread must trace
/// nothing and have no other children.
pub fn stop_latency() -> Option<Nanos> {
    let allowed = sched_getaffinity(None).ok()?;
    let (cpu, mut own, mut others) = (sched_getcpu(), CpuSet::new(), allowed);
    own.set(cpu);
    others.unset(cpu);
    sched_setaffinity(None, &own).ok()?;
    let latency = latency_on(if others.count() > 0 { &others } else { &own });
    let _ = sched_setaffinity(None, &allowed);
    latency
}

/// Returns the cost of a stop of a process on these CPUs.
fn latency_on(cpus: &CpuSet) -> Option<Nanos> {
    let until = Instant::now() + LIMIT;
    let process = MeasuringProcess::<Shared>::start(|shared| {
        sched_setaffinity(None, cpus).ok()?;
        shared.untraced.store(fastest_round(), Ordering::Release);
        while shared.go.load(Ordering::Acquire) == 0 {
            std::hint::spin_loop();
        }
        shared.traced.store(fastest_round(), Ordering::Release);
        Some(())
    });
    let process = process.ok()?;
    trace_calls(&process, until);
    let results = process.end(until).results;
    let [untraced, traced] = [&results.untraced, &results.traced].map(|time| time.load(Ordering::Acquire));
    let added = traced.checked_sub(untraced)?;
    Some(Nanos(added / u64::from(2 * CALLS)))
}

fn fastest_round() -> u64 {
    let rounds = (0..ROUNDS).map(|_| {
        timed(|| {
            for _ in 0..CALLS {
                let end = now().0 + WORK_NS;
                while now().0 < end {}
                make_system_calls(1);
            }
        })
        .0
    });
    rounds.min().unwrap_or_default().max(1)
}

/// Traces the process until its calls are over, and detaches from it.
fn trace_calls(process: &MeasuringProcess<Shared>, until: Instant) {
    let pid = Pid(process.pid());
    let mut tracer = Tracer::new();
    while process.results.untraced.load(Ordering::Acquire) == 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_micros(100));
    }
    if tracer.seize(pid, Options::SYSTEM_CALLS).is_err() {
        return;
    }
    tracer.interrupt_all();
    // The stop after PTRACE_INTERRUPT, and two for each call but the last.
    for stop in 0..2 * CALLS * ROUNDS {
        let Some(Event::Stopped(thread, _)) = tracer.await_event() else { return };
        if stop == 0 {
            process.results.go.store(1, Ordering::Release);
        }
        tracer.resume(thread, Resume::ToSystemCall(0));
    }
    if let Some(Event::Stopped(thread, stop)) = tracer.await_event() {
        tracer.resume(thread, stop.transparent_detach());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_takes_longer_than_a_system_call() {
        // Another thread of this process may create children, so the measurement has a thread of
        // its own.
        let latency = std::thread::spawn(stop_latency).join().unwrap();
        // A busy machine delays the measurement too much.
        assert!(latency.is_none_or(|latency| latency > Nanos(300)), "{latency:?}");
    }
}
