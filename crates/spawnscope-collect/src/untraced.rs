//! Watches processes that are no longer traced or followed but still running. Only their end is
//! recorded, which a pidfd reports.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use spawnscope_data::event::{LaunchId, Nanos, Pid};
use spawnscope_system::clock;
use spawnscope_system::process::{is_readable_within, pidfd};

#[derive(Debug, Default)]
pub(crate) struct UntracedProcesses(Vec<(LaunchId, OwnedFd)>);

impl UntracedProcesses {
    /// Begins to watch a process. Returns `false` if the process is gone, or the kernel refuses. A
    /// tracer must call this before it releases the process, because another process may have the
    /// pid after that.
    pub(crate) fn add(&mut self, process: Pid, launch: LaunchId) -> bool {
        let pidfd = pidfd(process).ok();
        let is_watched = pidfd.is_some();
        self.0.extend(pidfd.map(|pidfd| (launch, pidfd)));
        is_watched
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns descriptors, each of which is readable once its process has ended.
    pub(crate) fn readiness(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().map(|(_, pidfd)| pidfd.as_fd())
    }

    /// Returns the processes that have ended since the last call, with the times.
    pub(crate) fn ended(&mut self) -> Vec<(LaunchId, Nanos)> {
        let ended = self.0.extract_if(.., |(_, pidfd)| is_readable_within(pidfd, Duration::ZERO));
        ended.map(|(launch, _)| (launch, clock::now())).collect()
    }
}
