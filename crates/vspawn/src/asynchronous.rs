//! Children and pseudo-terminals on tokio's reactor. A pidfd becomes readable when its process
//! ends.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::process::ExitStatus;
use std::task::{Context, Poll};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

use crate::capture::exchange::set_nonblocking;
use crate::error::{Error, Stage};
use crate::process::Child;
use crate::process::handle::POLL_INTERVAL;
use crate::terminal::Pty;

impl Child {
    /// Waits until the child has ended, without blocking the thread. Closes the child's standard
    /// input first, like [`Child::wait`]. Safe to cancel: if the future is dropped before it is
    /// ready, the child can still be waited for.
    ///
    /// # Errors
    /// The same as [`Child::wait`]; [`Stage::Wait`] if the pidfd cannot be watched.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O enabled. For a child without a pidfd ([`Child::pidfd`]),
    /// the runtime needs time enabled instead.
    ///
    /// ```
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    /// # runtime.block_on(async {
    /// let mut child = vspawn::Command::new("true").spawn()?;
    /// assert!(child.wait_async().await?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// # })?;
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub async fn wait_async(&mut self) -> Result<ExitStatus, Error> {
        drop(self.stdin.take());
        let Some(pidfd) = self.pidfd() else {
            return self.wait_by_polling().await;
        };
        let watched: OwnedFd = pidfd.try_clone_to_owned().map_err(|error| self.watch_error(&error))?;
        // SAFETY: an `OwnedFd` names the same open file during its lifetime, which covers the time
        // that it is watched.
        let watched = unsafe { AsyncFd::register_with_interest(watched, Interest::READABLE) };
        let watched = watched.map_err(|error| self.watch_error(&error.into()))?;
        let _ready = watched.readable().await.map_err(|error| self.watch_error(&error))?;
        self.wait()
    }

    fn watch_error(&self, error: &io::Error) -> Error {
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        Error::new(Stage::Wait, errno, format!("watch process {}", self.id()))
    }

    async fn wait_by_polling(&mut self) -> Result<ExitStatus, Error> {
        loop {
            match self.try_wait()? {
                Some(status) => return Ok(status),
                None => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }
}

/// A [`Pty`] on tokio's reactor.
///
/// ```
/// use tokio::io::AsyncReadExt;
/// use vspawn::pty::{AsyncPty, Pty, Size};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let pty = Pty::open(Size::new(24, 80)).map_err(std::io::Error::from)?;
/// let mut child = pty.spawn(vspawn::Command::new("tty")).map_err(std::io::Error::from)?;
/// let mut printed = String::new();
/// AsyncPty::new(pty)?.read_to_string(&mut printed).await?;
/// assert!(printed.starts_with("/dev/pts/"));
/// child.wait_async().await?;
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct AsyncPty(AsyncFd<Pty>);

impl AsyncPty {
    /// Makes a pseudo-terminal non-blocking and registers it with the reactor.
    ///
    /// # Errors
    /// If the reactor cannot watch the pseudo-terminal.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O enabled.
    ///
    /// ```
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    /// # runtime.block_on(async {
    /// use vspawn::pty::{AsyncPty, Pty, Size};
    ///
    /// let terminal = AsyncPty::new(Pty::open(Size::new(24, 80))?)?;
    /// # drop(terminal);
    /// # Ok::<(), std::io::Error>(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(pty: Pty) -> io::Result<AsyncPty> {
        set_nonblocking(pty.as_fd()).map_err(io::Error::from_raw_os_error)?;
        // SAFETY: a `Pty` owns one open file during its lifetime, which covers the time that it is
        // watched.
        let watched = unsafe { AsyncFd::register(pty) };
        watched.map(AsyncPty).map_err(io::Error::from)
    }

    /// Returns the pseudo-terminal, for instance to resize it or to start further commands.
    ///
    /// ```
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    /// # runtime.block_on(async {
    /// use vspawn::pty::{AsyncPty, Pty, Size};
    ///
    /// let terminal = AsyncPty::new(Pty::open(Size::new(24, 80))?)?;
    /// terminal.get_ref().resize(Size::new(50, 120))?;
    /// # Ok::<(), std::io::Error>(())
    /// # })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn get_ref(&self) -> &Pty {
        self.0.get_ref()
    }
}

impl AsyncRead for AsyncPty {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut ready = std::task::ready!(self.0.poll_read_ready(context))?;
            if let Ok(read) = ready.try_io(|pty| pty.get_ref().read(buffer.initialize_unfilled())) {
                return Poll::Ready(read.map(|bytes| buffer.advance(bytes)));
            }
        }
    }
}

impl AsyncWrite for AsyncPty {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = std::task::ready!(self.0.poll_write_ready(context))?;
            if let Ok(written) = ready.try_io(|pty| pty.get_ref().write(bytes)) {
                return Poll::Ready(written);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
