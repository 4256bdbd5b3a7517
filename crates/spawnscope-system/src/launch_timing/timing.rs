//! Times a piece of work or a launch, makes system calls to be timed, and repeats rounds while there is time. Usable in measuring processes.

use std::time::Duration;

use crate::clock::now;
use spawnscope_data::event::Nanos;

/// Returns how long `work` takes.
pub fn timed(work: impl FnOnce()) -> Nanos {
    let began = now();
    work();
    now().since(began)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchTimes {
    /// How long the call that created the child took.
    pub call: Nanos,
    /// The time from the beginning of that call until the parent had reaped the child.
    pub wall: Nanos,
}

#[derive(Clone, Copy, Debug)]
pub struct LaunchTimer {
    began: Nanos,
    call: Nanos,
}

impl LaunchTimer {
    /// Starts the timer. Call this right before the call that creates the child.
    #[must_use]
    pub fn begin() -> LaunchTimer {
        LaunchTimer { began: now(), call: Nanos(0) }
    }

    pub fn end_call(&mut self) {
        self.call = now().since(self.began);
    }

    pub fn began(self) -> Nanos {
        self.began
    }

    /// Stops the timer. Call this when the parent has reaped the child.
    pub fn end(self) -> LaunchTimes {
        LaunchTimes { call: self.call, wall: now().since(self.began) }
    }
}

/// Makes `count` system calls that do almost nothing.
pub fn make_system_calls(count: u32) {
    for _ in 0..count {
        // SAFETY: a plain system call without arguments.
        unsafe { libc::syscall(libc::SYS_getppid) };
    }
}

/// A time after which no further round begins.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Nanos);

impl Deadline {
    pub fn after(limit: Duration) -> Deadline {
        Deadline(Nanos(now().0.saturating_add(limit.as_nanos() as u64)))
    }

    /// Returns the numbers of up to `max_rounds` rounds, and ends early at the deadline.
    pub fn rounds(self, max_rounds: usize) -> impl Iterator<Item = usize> {
        (0..max_rounds).take_while(move |_| now() < self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_round_begins_after_the_deadline() {
        assert_eq!(Deadline::after(Duration::from_secs(60)).rounds(3).count(), 3);
        assert_eq!(Deadline::after(Duration::ZERO).rounds(3).count(), 0);
        let deadline = Deadline::after(Duration::from_millis(2));
        let began = deadline.rounds(usize::MAX).inspect(|_| std::thread::sleep(Duration::from_millis(1)));
        assert!(began.count() <= 2);
    }

    #[test]
    fn a_launch_is_timed_from_the_call_to_the_end_of_the_wait() {
        let mut timer = LaunchTimer::begin();
        std::thread::sleep(Duration::from_millis(2));
        timer.end_call();
        std::thread::sleep(Duration::from_millis(2));
        let times = timer.end();
        assert!(times.call.0 >= 2_000_000, "{times:?}");
        assert!(times.wall.0 >= times.call.0 + 2_000_000, "{times:?}");
    }
}
