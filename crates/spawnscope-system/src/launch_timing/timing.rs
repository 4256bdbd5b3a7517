//! Timing: of one piece of work, of a launch, of system calls, and rounds that are repeated while there is time. Usable in measuring
//! processes.

use std::time::Duration;

use crate::clock::now;
use spawnscope_data::event::Nanos;

/// How long `work` takes.
pub fn timed(work: impl FnOnce()) -> Nanos {
    let began = now();
    work();
    now().since(began)
}

/// The times of one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchTimes {
    /// How long the call that creates the child took.
    pub call: Nanos,
    /// The time from the beginning of that call until the parent had waited for the child.
    pub wall: Nanos,
}

/// Times one launch.
#[derive(Clone, Copy, Debug)]
pub struct LaunchTimer {
    began: Nanos,
    call: Nanos,
}

impl LaunchTimer {
    /// The parent enters the call that creates the child.
    #[must_use]
    pub fn begin() -> LaunchTimer {
        LaunchTimer {
            began: now(),
            call: Nanos(0),
        }
    }

    /// The call has returned.
    pub fn note_call(&mut self) {
        self.call = now().since(self.began);
    }

    /// When the call began.
    #[must_use]
    pub fn began(self) -> Nanos {
        self.began
    }

    /// The parent has waited for the child.
    #[must_use]
    pub fn end(self) -> LaunchTimes {
        LaunchTimes {
            call: self.call,
            wall: now().since(self.began),
        }
    }
}

/// Makes system calls that do nothing.
pub fn make_system_calls(count: u32) {
    for _ in 0..count {
        // SAFETY: a plain system call without arguments.
        unsafe { libc::syscall(libc::SYS_getppid) };
    }
}

/// A time limit from now on.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Nanos);

impl Deadline {
    /// The time `limit` from now.
    #[must_use]
    pub fn after(limit: Duration) -> Deadline {
        Deadline(Nanos(now().0.saturating_add(limit.as_nanos() as u64)))
    }

    /// Up to `most` rounds, none of which begins after the deadline.
    pub fn rounds(self, most: usize) -> impl Iterator<Item = usize> {
        (0..most).take_while(move |_| now() < self.0)
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
        let began = deadline
            .rounds(usize::MAX)
            .inspect(|_| std::thread::sleep(Duration::from_millis(1)));
        assert!(began.count() <= 2);
    }

    #[test]
    fn a_launch_is_timed_from_the_call_to_the_end_of_the_wait() {
        let pause = || std::thread::sleep(Duration::from_millis(2));
        let mut timer = LaunchTimer::begin();
        pause();
        timer.note_call();
        pause();
        let times = timer.end();
        assert!(times.call.0 >= 2_000_000, "{times:?}");
        assert!(times.wall.0 >= times.call.0 + 2_000_000, "{times:?}");
    }
}
