//! Children and pseudo-terminals on tokio's reactor. A pidfd becomes readable when its process
//! ends.

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::{Pin, pin};
use std::process::{ExitStatus, Output};
use std::task::{Context, Poll};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, Interest, ReadBuf};
use tokio::net::unix::pipe;

use crate::capture::exchange::set_nonblocking;
use crate::command::Command;
use crate::error::{Error, Stage};
use crate::process::Child;
use crate::process::handle::{Handle, POLL_INTERVAL};
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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), vspawn::Error> {
    /// let mut child = vspawn::Command::new("true").spawn()?;
    /// assert!(child.wait_async().await?.success());
    /// # Ok(()) }
    /// ```
    pub async fn wait_async(&mut self) -> Result<ExitStatus, Error> {
        drop(self.stdin.take());
        let Some(pidfd) = self.pidfd() else { return self.wait_by_polling().await };
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

/// A child on tokio's reactor, with its pipes.
///
/// ```
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use vspawn::{AsyncChild, Command, Stdio};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), std::io::Error> {
/// let mut command = Command::new("tr");
/// command.args(["a-z", "A-Z"]).stdin(Stdio::piped()).stdout(Stdio::piped());
/// let mut child = AsyncChild::new(command.spawn()?)?.kill_on_drop(true);
/// child.stdin.take().unwrap().write_all(b"text").await?; // closed at the end of the statement
/// let mut printed = String::new();
/// child.stdout.take().unwrap().read_to_string(&mut printed).await?;
/// assert_eq!(printed, "TEXT");
/// assert!(child.wait().await?.success());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct AsyncChild {
    child: Child,
    kill_on_drop: bool,
    /// The parent's end of the child's piped standard input.
    pub stdin: Option<pipe::Sender>,
    /// The parent's end of the child's piped standard output.
    pub stdout: Option<pipe::Receiver>,
    /// The parent's end of the child's piped standard error.
    pub stderr: Option<pipe::Receiver>,
}

impl AsyncChild {
    /// Makes a child's pipes non-blocking and registers them with the reactor.
    ///
    /// # Errors
    /// [`Stage::Communicate`] if the reactor cannot watch a pipe.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O enabled, if the child has a pipe.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), vspawn::Error> {
    /// let child = vspawn::AsyncChild::new(vspawn::Command::new("true").spawn()?)?;
    /// assert!(child.wait_with_output().await?.status.success());
    /// # Ok(()) }
    /// ```
    pub fn new(mut child: Child) -> Result<AsyncChild, Error> {
        let stdin = child.stdin.take().map(|end| pipe::Sender::from_owned_fd(end.into())).transpose();
        let outputs = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
        let [stdout, stderr] = outputs.map(|end| end.map(pipe::Receiver::from_owned_fd).transpose());
        Ok(AsyncChild {
            child,
            kill_on_drop: false,
            stdin: stdin.map_err(|error| pipe_error(&error))?,
            stdout: stdout.map_err(|error| pipe_error(&error))?,
            stderr: stderr.map_err(|error| pipe_error(&error))?,
        })
    }

    /// Sets whether the child is killed when this value is dropped before the child was waited for.
    /// A task of the runtime then waits for it, so that no zombie remains.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), vspawn::Error> {
    /// let child = vspawn::Command::new("sleep").arg("60").spawn()?;
    /// drop(vspawn::AsyncChild::new(child)?.kill_on_drop(true));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn kill_on_drop(mut self, kill: bool) -> AsyncChild {
        self.kill_on_drop = kill;
        self
    }

    /// Returns the child, for its id and for signals to it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), vspawn::Error> {
    /// let mut child = vspawn::AsyncChild::new(vspawn::Command::new("sleep").arg("60").spawn()?)?;
    /// child.get_mut().kill()?;
    /// assert!(!child.wait().await?.success());
    /// # Ok(()) }
    /// ```
    pub fn get_mut(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Closes the child's standard input and waits until the child has ended.
    /// See [`Child::wait_async`].
    ///
    /// # Errors
    /// The same as [`Child::wait_async`].
    pub async fn wait(&mut self) -> Result<ExitStatus, Error> {
        drop(self.stdin.take());
        self.child.wait_async().await
    }

    /// Closes the child's standard input, reads both outputs to their ends at the same time, and
    /// waits for the child.
    ///
    /// # Errors
    /// The same as [`Child::wait_async`], and [`Stage::Communicate`].
    ///
    /// ```
    /// use vspawn::{AsyncChild, Command, Stdio};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), vspawn::Error> {
    /// let child = AsyncChild::new(Command::new("echo").arg("hello").stdout(Stdio::piped()).spawn()?)?;
    /// assert_eq!(child.wait_with_output().await?.stdout, b"hello\n");
    /// # Ok(()) }
    /// ```
    pub async fn wait_with_output(mut self) -> Result<Output, Error> {
        drop(self.stdin.take());
        let mut reads = [pin!(read(self.stdout.take())), pin!(read(self.stderr.take()))];
        let mut outputs = [None, None];
        poll_fn(|context| {
            for (read, output) in reads.iter_mut().zip(&mut outputs) {
                if output.is_none()
                    && let Poll::Ready(result) = read.as_mut().poll(context)
                {
                    *output = Some(result);
                }
            }
            if outputs.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let [stdout, stderr] = outputs.map(|output| output.unwrap_or_else(|| Ok(Vec::new())));
        Ok(Output {
            status: self.wait().await?,
            stdout: stdout.map_err(|error| pipe_error(&error))?,
            stderr: stderr.map_err(|error| pipe_error(&error))?,
        })
    }
}

impl Drop for AsyncChild {
    fn drop(&mut self) {
        if !self.kill_on_drop || self.child.was_waited_for() || self.child.kill().is_err() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && let Some(Ok(pidfd)) = self.child.pidfd().map(|pidfd| pidfd.try_clone_to_owned())
        {
            runtime.spawn(reap(self.child.id(), pidfd));
        }
    }
}

/// Waits for a killed child.
async fn reap(pid: u32, pidfd: OwnedFd) {
    // SAFETY: as in `wait_async`.
    if let Ok(watched) = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }
        && watched.readable().await.is_ok()
    {
        let _ = Handle { pid, pidfd: Some(watched.into_inner()) }.wait(libc::WNOHANG);
    }
}

async fn read(pipe: Option<pipe::Receiver>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

fn pipe_error(error: &io::Error) -> Error {
    Error::new(Stage::Communicate, error.raw_os_error().unwrap_or(libc::EIO), "exchange data with the child")
}

impl Command {
    /// Runs the command on tokio's reactor and captures its output, like [`Command::output`]. The
    /// child is killed if the future is dropped.
    ///
    /// # Errors
    /// The same as [`Command::output`].
    ///
    /// # Panics
    /// As for [`Child::wait_async`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), vspawn::Error> {
    /// let output = vspawn::Command::new("echo").arg("hello").output_async().await?;
    /// assert_eq!(output.stdout, b"hello\n");
    /// # Ok(()) }
    /// ```
    pub async fn output_async(&self) -> Result<Output, Error> {
        let child = self.with_captured_streams().spawn()?;
        AsyncChild::new(child)?.kill_on_drop(true).wait_with_output().await
    }
}

/// A [`Pty`] on tokio's reactor.
///
/// ```
/// use tokio::io::AsyncReadExt;
/// use vspawn::pty::{AsyncPty, Pty, Size};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), std::io::Error> {
/// let pty = Pty::open(Size::new(24, 80)).map_err(std::io::Error::from)?;
/// let mut child = pty.spawn(vspawn::Command::new("tty")).map_err(std::io::Error::from)?;
/// let mut printed = String::new();
/// AsyncPty::new(pty)?.read_to_string(&mut printed).await?;
/// assert!(printed.starts_with("/dev/pts/"));
/// child.wait_async().await?;
/// # Ok(()) }
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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), std::io::Error> {
    /// use vspawn::pty::{AsyncPty, Pty, Size};
    ///
    /// let terminal = AsyncPty::new(Pty::open(Size::new(24, 80))?)?;
    /// # drop(terminal);
    /// # Ok(()) }
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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), std::io::Error> {
    /// use vspawn::pty::{AsyncPty, Pty, Size};
    ///
    /// let terminal = AsyncPty::new(Pty::open(Size::new(24, 80))?)?;
    /// terminal.get_ref().resize(Size::new(50, 120))?;
    /// # Ok(()) }
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
