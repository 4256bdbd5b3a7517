//! Pseudo-terminals: a child with a controlling terminal, without a fork. `posix_spawn` has no
//! TIOCSCTTY, so other libraries fork for it, which costs a copy of the parent's page tables.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use crate::command::Command;
use crate::error::{Error, Stage};
use crate::process::Child;
use crate::stdio::{Source, descriptor_owner, writable};
use crate::sys::{Errno, syscall};

/// The size of a terminal, in characters and, if known, in pixels (0: unknown).
///
/// ```
/// let mut size = vspawn::pty::Size::new(24, 80);
/// (size.pixel_width, size.pixel_height) = (640, 384);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Size {
    /// The number of lines.
    pub rows: u16,
    /// The number of characters per line.
    pub columns: u16,
    /// The width in pixels.
    pub pixel_width: u16,
    /// The height in pixels.
    pub pixel_height: u16,
}

impl Size {
    /// Creates a size in characters, with unknown pixels.
    ///
    /// ```
    /// assert_eq!(vspawn::pty::Size::new(24, 80).columns, 80);
    /// ```
    #[must_use]
    pub fn new(rows: u16, columns: u16) -> Size {
        Size { rows, columns, pixel_width: 0, pixel_height: 0 }
    }
}

/// The program's side of a pseudo-terminal (its master). Bytes written to it are typed on the
/// terminal; reads return what the children print. Reads reach the end of the data when no process
/// has the terminal open any more. A descriptor that becomes a `Pty` must be an open `/dev/ptmx`.
///
/// ```
/// use std::io::Read;
/// use vspawn::pty::{Pty, Size};
///
/// let mut pty = Pty::open(Size::new(24, 80))?;
/// let mut child = pty.spawn(vspawn::Command::new("tty"))?;
/// let mut printed = String::new();
/// pty.read_to_string(&mut printed).unwrap();
/// assert!(printed.starts_with("/dev/pts/"));
/// assert!(child.wait()?.success());
/// # Ok::<(), vspawn::Error>(())
/// ```
#[derive(Debug)]
pub struct Pty(File);

impl Pty {
    /// Creates a pseudo-terminal.
    ///
    /// # Errors
    /// [`Stage::Pty`], for instance with `ENOSPC` if there are too many
    /// (`/proc/sys/kernel/pty/max`), or `ENOENT` without `/dev/ptmx`.
    ///
    /// ```
    /// use vspawn::pty::{Pty, Size};
    ///
    /// assert_eq!(Pty::open(Size::new(24, 80))?.size()?, Size::new(24, 80));
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn open(size: Size) -> Result<Pty, Error> {
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        // SAFETY: a constant string and integers; the new descriptor has no other owner; the kernel
        // reads one integer.
        let pty = unsafe {
            let path = c"/dev/ptmx".as_ptr();
            let opened = syscall!(SYS_openat, libc::AT_FDCWD, path, flags, 0).map_err(failed("open /dev/ptmx"))?;
            let pty = Pty::from(OwnedFd::from_raw_fd(opened as i32));
            let locked = 0i32;
            syscall!(SYS_ioctl, opened, libc::TIOCSPTLCK, &raw const locked)
                .map_err(failed("unlock a pseudo-terminal"))?;
            pty
        };
        pty.resize(size)?;
        Ok(pty)
    }

    /// Returns the size of the terminal.
    ///
    /// # Errors
    /// [`Stage::Pty`].
    ///
    /// ```
    /// use vspawn::pty::{Pty, Size};
    ///
    /// assert_eq!(Pty::open(Size::new(24, 80))?.size()?.columns, 80);
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn size(&self) -> Result<Size, Error> {
        let mut found = winsize(Size::new(0, 0));
        // SAFETY: the kernel writes one `winsize`.
        unsafe { syscall!(SYS_ioctl, self.as_raw_fd(), libc::TIOCGWINSZ, &raw mut found) }
            .map_err(failed("read the size of a terminal"))?;
        Ok(Size {
            rows: found.ws_row,
            columns: found.ws_col,
            pixel_width: found.ws_xpixel,
            pixel_height: found.ws_ypixel,
        })
    }

    /// Sets the size. If it differs from the current one, the foreground processes get SIGWINCH.
    ///
    /// # Errors
    /// [`Stage::Pty`].
    ///
    /// ```
    /// use vspawn::pty::{Pty, Size};
    ///
    /// let pty = Pty::open(Size::new(24, 80))?;
    /// pty.resize(Size::new(50, 120))?;
    /// assert_eq!(pty.size()?, Size::new(50, 120));
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn resize(&self, size: Size) -> Result<(), Error> {
        let wanted = winsize(size);
        // SAFETY: the kernel reads one `winsize`.
        unsafe { syscall!(SYS_ioctl, self.as_raw_fd(), libc::TIOCSWINSZ, &raw const wanted) }
            .map_err(failed("set the size of a terminal"))?;
        Ok(())
    }

    /// Opens the terminal itself, which is the children's side. While it is open, reading the
    /// [`Pty`] does not come to an end.
    ///
    /// # Errors
    /// [`Stage::Pty`].
    ///
    /// ```
    /// use std::io::IsTerminal;
    /// use vspawn::pty::{Pty, Size};
    ///
    /// assert!(Pty::open(Size::new(24, 80))?.terminal()?.is_terminal());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn terminal(&self) -> Result<OwnedFd, Error> {
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        // Not opened by its name in /dev/pts, which may belong to another mount namespace.
        // SAFETY: integers; the new descriptor has no other owner.
        unsafe {
            syscall!(SYS_ioctl, self.as_raw_fd(), libc::TIOCGPTPEER, flags)
                .map(|fd| OwnedFd::from_raw_fd(fd as i32))
                .map_err(failed("open the terminal of a pseudo-terminal"))
        }
    }

    /// Starts a command in a session of its own, with this terminal as its controlling terminal,
    /// and as each standard stream that the command does not set. As for every command, memory is
    /// shared with the parent, so the cost does not depend on the parent's size.
    ///
    /// # Errors
    /// The same as [`Command::spawn`], and [`Stage::Pty`].
    ///
    /// ```
    /// use std::io::Write;
    /// use vspawn::pty::{Pty, Size};
    ///
    /// let mut pty = Pty::open(Size::new(24, 80))?;
    /// let mut command = vspawn::Command::new("sh");
    /// command.args(["-c", "read -r line && test \"$line\" = typed"]);
    /// let mut child = pty.spawn(&command)?;
    /// pty.write_all(b"typed\n").unwrap();
    /// assert!(child.wait()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn spawn(&self, command: impl std::borrow::Borrow<Command>) -> Result<Child, Error> {
        let terminal = Arc::new(self.terminal()?);
        let mut command = command.borrow().clone();
        command.controlling_terminal(terminal.as_raw_fd());
        for stream in 0..3 {
            let given = command.fds.entry(stream);
            given.or_insert_with(|| Source::Fd(Arc::clone(&terminal)));
        }
        command.spawn()
    }

    /// Returns another handle for the same pseudo-terminal, for instance to read in one thread and
    /// write in another.
    ///
    /// # Errors
    /// If no descriptor is left.
    ///
    /// ```
    /// use std::io::{Read, Write};
    /// use vspawn::pty::{Pty, Size};
    ///
    /// let pty = Pty::open(Size::new(24, 80))?;
    /// let mut child = pty.spawn(vspawn::Command::new("cat"))?;
    /// let mut typing = pty.try_clone().unwrap();
    /// let typed = std::thread::spawn(move || typing.write_all(b"text\n\x04").unwrap()); // Ctrl-D
    /// let shown = std::io::read_to_string(&pty).unwrap();
    /// typed.join().unwrap();
    /// assert_eq!(shown.replace("\r\n", "\n"), "text\ntext\n"); // the terminal's echo, and cat's
    /// # child.wait()?;
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn try_clone(&self) -> io::Result<Pty> {
        self.0.try_clone().map(Pty)
    }
}

fn winsize(size: Size) -> libc::winsize {
    libc::winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: size.pixel_width, ws_ypixel: size.pixel_height }
}

fn failed(action: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| Error::new(Stage::Pty, errno, action)
}

/// Turns EIO into the end of the data. The kernel reports EIO when the last process has closed the
/// terminal.
pub(crate) fn eio_as_end(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(error) if error.raw_os_error() == Some(libc::EIO) => Ok(0),
        result => result,
    }
}

impl Read for &Pty {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        eio_as_end((&self.0).read(buffer))
    }
}

impl Read for Pty {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

writable!(Pty, &Pty);
descriptor_owner!(Pty);
