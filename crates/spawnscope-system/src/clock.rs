//! The clock of all events and measurements.

use spawnscope_data::event::{Nanos, Pid};

/// Returns the current CLOCK_MONOTONIC time. Makes no system call if the kernel provides the clock
/// in the vDSO.
pub fn now() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    nanos(time.tv_sec, time.tv_nsec)
}

fn nanos(seconds: i64, nanos: i64) -> Nanos {
    Nanos(seconds as u64 * 1_000_000_000 + nanos as u64)
}

/// Returns the CPU time that all threads of a process have used so far; `None` if the process has
/// been reaped.
pub fn cpu_time_of(process: Pid) -> Option<Nanos> {
    // The id of a process's CPU-time clock contains the pid (clock_getcpuclockid(3)).
    const SCHEDULED: libc::clockid_t = 2;
    let clock = nix::time::ClockId::from_raw(!process.0 << 3 | SCHEDULED);
    nix::time::clock_gettime(clock).ok().map(|time| nanos(time.tv_sec(), time.tv_nsec()))
}

pub fn cpu_time_of_thread() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    nanos(time.tv_sec, time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_a_process_grows_while_it_works() {
        let this_process = Pid(std::process::id().cast_signed());
        let before = cpu_time_of(this_process).unwrap();
        let before_of_thread = cpu_time_of_thread();
        let until = now().0 + 5_000_000;
        while now().0 < until {}
        assert!(cpu_time_of(this_process).unwrap() > before);
        assert!(cpu_time_of_thread() > before_of_thread);
        assert_eq!(cpu_time_of(Pid(1 << 23)), None, "a pid above the largest possible one");
    }
}
