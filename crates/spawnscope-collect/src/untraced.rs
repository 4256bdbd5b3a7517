//! Processes that are no longer traced or followed, and still run. Only their end is recorded, which a pidfd reports.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use spawnscope_data::event::{LaunchId, Nanos, Pid};
use spawnscope_system::clock;
use spawnscope_system::process::{pidfd, wait_until};

/// The released processes, by launch.
#[derive(Debug, Default)]
pub(crate) struct Untraced(Vec<(LaunchId, OwnedFd)>);

impl Untraced {
    /// Watches a process. Must be called before it is released: afterwards, another process may have its pid.
    pub(crate) fn add(&mut self, process: Pid, launch: LaunchId) {
        // Without a descriptor, its end stays unknown.
        self.0.extend(pidfd(process).ok().map(|pidfd| (launch, pidfd)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Readable when one of them has ended.
    pub(crate) fn readiness(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().map(|(_, pidfd)| pidfd.as_fd())
    }

    /// Returns the processes that have ended since the last call, with the times.
    pub(crate) fn ended(&mut self) -> Vec<(LaunchId, Nanos)> {
        let ended = self.0.extract_if(.., |(_, pidfd)| {
            let mut watched = [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)];
            wait_until(&mut watched, std::time::Instant::now())
        });
        ended.map(|(launch, _)| (launch, clock::now())).collect()
    }
}
