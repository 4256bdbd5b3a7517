//! Waiting on tokio's reactor: a pidfd becomes readable when its process ends.

use std::os::fd::OwnedFd;
use std::process::ExitStatus;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::error::{Error, Stage};
use crate::handle::ASK_AGAIN;
use crate::process::Child;

impl Child {
    /// Waits for the child's end without blocking the thread. Safe to cancel: if the future is dropped before it is ready, nothing has
    /// changed. The child's standard input is closed first, as with [`Child::wait`].
    ///
    /// # Errors
    /// As [`Child::wait`]; [`Stage::Wait`] if the pidfd cannot be watched.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O enabled; without a pidfd ([`Child::pidfd`]), with time enabled.
    pub async fn wait_async(&mut self) -> Result<ExitStatus, Error> {
        drop(self.stdin.take());
        let failed = |error: std::io::Error| {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            Error::new(Stage::Wait, errno, format!("watch process {}", self.id()))
        };
        let Some(pidfd) = self.pidfd() else {
            return self.wait_by_asking().await;
        };
        let watched: OwnedFd = pidfd.try_clone_to_owned().map_err(failed)?;
        // SAFETY: an `OwnedFd` names the same open file during its lifetime, which covers the time that it is watched.
        let watched = unsafe { AsyncFd::register_with_interest(watched, Interest::READABLE) };
        let watched = watched.map_err(|error| failed(error.into()))?;
        let _ready = watched.readable().await.map_err(failed)?;
        self.wait()
    }

    async fn wait_by_asking(&mut self) -> Result<ExitStatus, Error> {
        loop {
            match self.try_wait()? {
                Some(status) => return Ok(status),
                None => tokio::time::sleep(ASK_AGAIN).await,
            }
        }
    }
}
