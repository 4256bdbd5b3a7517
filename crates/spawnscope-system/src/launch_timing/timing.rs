//! Times a piece of work, makes system calls to be timed, and repeats rounds while there is time.
//! Usable in measuring processes.

use std::time::Duration;

use crate::clock::now;
use spawnscope_data::event::Nanos;

pub fn timed(work: impl FnOnce()) -> Nanos {
    let began = now();
    work();
    now().since(began)
}

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
}
