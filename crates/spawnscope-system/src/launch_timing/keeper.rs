//! The keeper of a directory: a process that removes the directory when the keeper's creator ends,
//! even if the creator is killed. The creator has the other end of a connection open, which the
//! kernel closes when the creator ends. This code obeys the rules for measuring processes if
//! `remove` does.

use std::ffi::c_int;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The signals with which a user or a terminal ends a group of processes.
const REQUESTS_TO_END: [c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Ignores the signals that ask a process to end, because they are meant for the creator.
pub fn ignore_requests_to_end() {
    for signal in REQUESTS_TO_END {
        // SAFETY: ignores the signal; no handler is installed.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Waits until the other end of the connection is closed, then calls `remove` up to `attempts`
/// times, until it succeeds. Returns whether it has succeeded. One attempt may not suffice, because
/// processes that write to the directory end after its creator, but not immediately.
pub fn remove_when_closed(
    connection: BorrowedFd<'_>,
    attempts: usize,
    interval: Duration,
    mut remove: impl FnMut() -> bool,
) -> bool {
    // A byte would be ignored.
    while rustix::io::read(connection, &mut [0u8]).is_ok_and(|count| count > 0) {}
    (0..attempts).any(|_| {
        let is_removed = remove();
        if !is_removed {
            pause(interval);
        }
        is_removed
    })
}

/// Sleeps for `interval`, which must be less than a second. A caught signal ends the sleep early.
pub fn pause(interval: Duration) {
    let time = rustix::thread::Timespec { tv_sec: 0, tv_nsec: interval.subsec_nanos().into() };
    let _ = rustix::thread::nanosleep(&time);
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn nothing_is_removed_before_the_close_and_failures_are_retried() {
        let (keeper_end, creator_end) = std::io::pipe().unwrap();
        let is_closed = AtomicBool::new(false);
        let mut attempts = 0;
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(20));
                is_closed.store(true, Ordering::Relaxed);
                drop(creator_end);
            });
            let is_removed = remove_when_closed(keeper_end.as_fd(), 5, Duration::from_millis(1), || {
                attempts += 1;
                assert!(is_closed.load(Ordering::Relaxed));
                attempts == 3
            });
            assert!(is_removed);
        });
        assert_eq!(attempts, 3);
        assert!(!remove_when_closed(keeper_end.as_fd(), 2, Duration::ZERO, || false));
    }
}
