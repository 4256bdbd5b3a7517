//! Where a child's standard streams come from and go to, and the parent's ends of its pipes.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use crate::error::{Error, Stage};
use crate::sys::syscall;

/// A standard stream of a child, as [`std::process::Stdio`].
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
    /// The parent's own stream.
    #[must_use]
    pub fn inherit() -> Stdio {
        Stdio(Source::Inherit)
    }

    /// `/dev/null`, opened by the child.
    #[must_use]
    pub fn null() -> Stdio {
        Stdio(Source::Null)
    }

    /// The file that has this number in the parent at the time of the spawn. It is not kept open: if the number is closed by then,
    /// the spawn fails with `EBADF` at [`Stage::Dup`].
    #[must_use]
    pub fn number(fd: RawFd) -> Stdio {
        Stdio(Source::Number(fd))
    }

    /// The same file as the child's standard output: `2>&1` for its standard error.
    #[must_use]
    pub fn stdout() -> Stdio {
        Stdio(Source::Stdout)
    }

    /// A new pipe, whose other end is in the [`Child`](crate::Child).
    #[must_use]
    pub fn piped() -> Stdio {
        Stdio(Source::Piped)
    }
}

/// Any file. It is kept open until the command and everything prepared from it are dropped.
impl<T: Into<OwnedFd>> From<T> for Stdio {
    fn from(file: T) -> Stdio {
        Stdio(Source::Fd(Arc::new(file.into())))
    }
}

/// The parent's end of a child's piped standard input. Closed when dropped.
#[derive(Debug)]
pub struct ChildStdin(File);
/// The parent's end of a child's piped standard output. Closed when dropped.
#[derive(Debug)]
pub struct ChildStdout(File);
/// The parent's end of a child's piped standard error. Closed when dropped.
#[derive(Debug)]
pub struct ChildStderr(File);

impl Write for ChildStdin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        (&self.0).write_vectored(buffers)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for &ChildStdin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        (&self.0).write_vectored(buffers)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

macro_rules! pipe_end {
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
pipe_end!(ChildStdin, ChildStdout, ChildStderr);

macro_rules! readable {
    ($($name:ident),*) => {$(
        impl Read for $name {
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
        // SAFETY: `fds` has room for the two numbers that the kernel stores, which have no other owner.
        unsafe {
            syscall!(SYS_pipe2, fds.as_mut_ptr(), libc::O_CLOEXEC)
                .map_err(|errno| Error::new(Stage::Pipe, errno, "make a pipe"))?;
            Ok(Pipe {
                reader: OwnedFd::from_raw_fd(fds[0]),
                writer: OwnedFd::from_raw_fd(fds[1]),
            })
        }
    }
}
