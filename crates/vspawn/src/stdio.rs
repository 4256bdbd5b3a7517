//! The sources of a child's standard streams, and the parent's ends of the child's pipes.

use std::fs::File;
use std::io::{self, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use crate::error::{Error, Stage};
use crate::sys::syscall;

/// A standard stream of a child, like [`std::process::Stdio`].
///
/// ```
/// use vspawn::{Command, Stdio};
///
/// let (reader, writer) = std::io::pipe().unwrap();
/// let mut command = Command::new("echo");
/// command.arg("hello").stdin(Stdio::null()).stdout(writer).stderr(Stdio::inherit());
/// assert!(command.status()?.success());
/// drop(command); // closes the last writer of the pipe
/// assert_eq!(std::io::read_to_string(reader).unwrap(), "hello\n");
/// # Ok::<(), vspawn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Stdio(pub(crate) Source);

#[derive(Clone, Debug)]
pub(crate) enum Source {
    Inherit,
    Null,
    Piped,
    Fd(Arc<OwnedFd>),
    /// The file that has this number in the parent at the time of the spawn.
    Number(RawFd),
    /// The same file as the child's standard output.
    Stdout,
}

impl Stdio {
    /// Lets the child inherit the parent's own stream.
    ///
    /// ```
    /// assert!(vspawn::Command::new("true").stdin(vspawn::Stdio::inherit()).status()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    #[must_use]
    pub fn inherit() -> Stdio {
        Stdio(Source::Inherit)
    }

    /// Uses `/dev/null`, which the child opens.
    ///
    /// ```
    /// assert!(vspawn::Command::new("ls").stdout(vspawn::Stdio::null()).status()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    #[must_use]
    pub fn null() -> Stdio {
        Stdio(Source::Null)
    }

    /// Uses the file that has this number in the parent at the time of the spawn. The command does
    /// not keep it open: if the number is closed by then, the spawn fails with `EBADF` at
    /// [`Stage::Dup`].
    ///
    /// ```
    /// use vspawn::{Command, Stdio};
    ///
    /// let error = Command::new("true").stdin(Stdio::number(12345)).status().unwrap_err();
    /// assert_eq!((error.stage(), error.raw_os_error()), (vspawn::Stage::Dup, libc::EBADF));
    /// ```
    #[must_use]
    pub fn number(fd: RawFd) -> Stdio {
        Stdio(Source::Number(fd))
    }

    /// Uses the same file as the child's standard output. For standard error, this means `2>&1`.
    ///
    /// ```
    /// let mut command = vspawn::Command::new("sh");
    /// command.args(["-c", "echo error >&2"]).stderr(vspawn::Stdio::stdout());
    /// assert_eq!(command.output()?.stdout, b"error\n");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    #[must_use]
    pub fn stdout() -> Stdio {
        Stdio(Source::Stdout)
    }

    /// Makes a new pipe, whose other end is in the [`Child`](crate::Child).
    ///
    /// ```
    /// use vspawn::{Command, Stdio};
    ///
    /// let child = Command::new("pwd").current_dir("/").stdout(Stdio::piped()).spawn()?;
    /// assert_eq!(child.wait_with_output()?.stdout, b"/\n");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    #[must_use]
    pub fn piped() -> Stdio {
        Stdio(Source::Piped)
    }
}

/// Uses any file, which stays open until the command and everything prepared from it are dropped.
impl<T: Into<OwnedFd>> From<T> for Stdio {
    fn from(file: T) -> Stdio {
        Stdio(Source::Fd(Arc::new(file.into())))
    }
}

/// The parent's end of a child's piped standard input. Closed when dropped.
///
/// ```
/// use std::io::Write;
/// use vspawn::{Command, Stdio};
///
/// let mut child = Command::new("grep").args(["-q", "b"]).stdin(Stdio::piped()).spawn()?;
/// child.stdin.take().unwrap().write_all(b"a\nb\n").unwrap();
/// assert!(child.wait()?.success());
/// # Ok::<(), vspawn::Error>(())
/// ```
#[derive(Debug)]
pub struct ChildStdin(File);
/// The parent's end of a child's piped standard output. Closed when dropped.
///
/// ```
/// use std::io::{BufRead, BufReader};
/// use vspawn::{Command, Stdio};
///
/// let mut command = Command::new("sh");
/// let mut child = command.args(["-c", "printf 'one\\ntwo\\n'"]).stdout(Stdio::piped()).spawn()?;
/// let lines: Vec<String> = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap).collect();
/// assert_eq!(lines, ["one", "two"]);
/// child.wait()?;
/// # Ok::<(), vspawn::Error>(())
/// ```
#[derive(Debug)]
pub struct ChildStdout(File);
/// The parent's end of a child's piped standard error. Closed when dropped. See [`ChildStdout`].
#[derive(Debug)]
pub struct ChildStderr(File);

/// Implements `Write` for types with a `File`, or for shared references to them.
macro_rules! writable {
    ($($type:ty),*) => {$(
        impl Write for $type {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                (&self.0).write(bytes)
            }

            fn write_vectored(&mut self, buffers: &[io::IoSlice<'_>]) -> io::Result<usize> {
                (&self.0).write_vectored(buffers)
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
    )*};
}
pub(crate) use writable;
writable!(ChildStdin, &ChildStdin);

/// Implements the conversions of a type with a `File` to and from descriptors.
macro_rules! descriptor_owner {
    ($($name:ident),*) => {$(
        impl From<OwnedFd> for $name {
            fn from(fd: OwnedFd) -> Self {
                Self(File::from(fd))
            }
        }
        impl From<$name> for OwnedFd {
            fn from(end: $name) -> Self {
                end.0.into()
            }
        }
        impl AsFd for $name {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.0.as_fd()
            }
        }
        impl AsRawFd for $name {
            fn as_raw_fd(&self) -> RawFd {
                self.0.as_raw_fd()
            }
        }
        impl IntoRawFd for $name {
            fn into_raw_fd(self) -> RawFd {
                self.0.into_raw_fd()
            }
        }
    )*};
}
pub(crate) use descriptor_owner;
descriptor_owner!(ChildStdin, ChildStdout, ChildStderr);

macro_rules! readable {
    ($($name:ident),*) => {$(
        impl Read for $name {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                (&*self).read(buffer)
            }

            fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                (&*self).read_vectored(buffers)
            }

            fn read_to_end(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
                (&*self).read_to_end(buffer)
            }
        }
        impl Read for &$name {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                (&self.0).read(buffer)
            }

            fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                (&self.0).read_vectored(buffers)
            }

            fn read_to_end(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
                (&self.0).read_to_end(buffer)
            }
        }
    )*};
}
readable!(ChildStdout, ChildStderr);

/// Both ends of a new pipe, closed on exec.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) reader: OwnedFd,
    pub(crate) writer: OwnedFd,
}

impl Pipe {
    pub(crate) fn new() -> Result<Pipe, Error> {
        let mut fds = [0i32; 2];
        // SAFETY: `fds` has room for the two numbers that the kernel stores, which have no other
        // owner.
        unsafe {
            syscall!(SYS_pipe2, fds.as_mut_ptr(), libc::O_CLOEXEC)
                .map_err(|errno| Error::new(Stage::Pipe, errno, "make a pipe"))?;
            Ok(Pipe { reader: OwnedFd::from_raw_fd(fds[0]), writer: OwnedFd::from_raw_fd(fds[1]) })
        }
    }
}
