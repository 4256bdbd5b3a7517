//! File actions of a child. Like those of `posix_spawn`, they are carried out in the order of the requests. The descriptors of
//! [`Command::fd`] are put in place first. `carry_out` runs between clone and exec, under the rules of `child.rs`.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::child::{Failure, Step};
use crate::command::Command;
use crate::error::{Error, Stage};
use crate::sys::{Errno, syscall};

/// One file action. Descriptor numbers are the child's.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Open { target: i32, path: CString, flags: i32, mode: u32 },
    Close(i32),
    CloseFrom(i32),
    Dup { source: i32, target: i32 },
    ChangeDirectory(CString),
    ChangeDirectoryTo(i32),
    Foreground(i32),
}

impl Command {
    /// Lets the child open a file as its descriptor `target`, with `flags` and `mode` as for open(2).
    ///
    /// The child carries out the requests of this method and of the next six (`close` to `foreground`) in the order of the calls, after
    /// the descriptors of [`Command::fd`] and the standard streams are in place. All descriptor numbers are the child's.
    ///
    /// ```
    /// let mut command = vspawn::Command::new("cat");
    /// command.open(0, "/proc/self/comm", libc::O_RDONLY, 0);
    /// # use vspawn::Stdio;
    /// let output = command.stdin(Stdio::null()).output()?;
    /// assert!(!output.stdout.is_empty());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn open(&mut self, target: i32, path: impl AsRef<Path>, flags: i32, mode: u32) -> &mut Command {
        match self.c_path(path.as_ref().as_os_str()) {
            Some(path) => self.add_action(Action::Open { target, path, flags, mode }),
            None => self,
        }
    }

    /// Closes one descriptor of the child. As with `posix_spawn`, it is no error if the descriptor is already closed.
    ///
    /// ```
    /// let mut command = vspawn::Command::new("sh");
    /// command.args(["-c", "test ! -e /proc/self/fd/2"]).close(2);
    /// assert!(command.status()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn close(&mut self, fd: i32) -> &mut Command {
        self.add_action(Action::Close(fd))
    }

    /// Closes all descriptors of the child from this number on.
    ///
    /// ```
    /// assert!(vspawn::Command::new("true").close_from(3).status()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn close_from(&mut self, first: i32) -> &mut Command {
        self.add_action(Action::CloseFrom(first))
    }

    /// Copies a descriptor within the child. If `source` and `target` are equal, the descriptor stays open at the exec.
    ///
    /// ```
    /// let mut command = vspawn::Command::new("sh");
    /// command.args(["-c", "echo to error >&9"]).dup(1, 9);
    /// assert_eq!(command.output()?.stdout, b"to error\n");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn dup(&mut self, source: i32, target: i32) -> &mut Command {
        self.add_action(Action::Dup { source, target })
    }

    /// Changes the child's directory when this request is carried out: relative paths of later requests start there. The directory
    /// of [`Command::current_dir`], in contrast, is entered after the change of user.
    ///
    /// ```
    /// let mut command = vspawn::Command::new("cat");
    /// command.chdir("/proc/self").open(0, "comm", libc::O_RDONLY, 0);
    /// assert!(command.status()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn chdir(&mut self, directory: impl AsRef<Path>) -> &mut Command {
        match self.c_path(directory.as_ref().as_os_str()) {
            Some(path) => self.add_action(Action::ChangeDirectory(path)),
            None => self,
        }
    }

    /// Like [`Command::chdir`], but changes to the directory that a descriptor of the child refers to.
    ///
    /// ```
    /// let root = std::fs::File::open("/").unwrap();
    /// let mut command = vspawn::Command::new("pwd");
    /// command.fd(7, root).fchdir(7).close(7);
    /// assert_eq!(command.output()?.stdout, b"/\n");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn fchdir(&mut self, fd: i32) -> &mut Command {
        self.add_action(Action::ChangeDirectoryTo(fd))
    }

    /// Makes the child's process group the foreground group of a terminal (`tcsetpgrp`), before the program can read from it.
    /// `terminal` is a descriptor of the child. Shells combine this with [`process_group(0)`](Command::process_group).
    ///
    /// ```no_run
    /// vspawn::Command::new("vi").process_group(0).foreground(0).status()?;
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn foreground(&mut self, terminal: i32) -> &mut Command {
        self.add_action(Action::Foreground(terminal))
    }

    fn add_action(&mut self, action: Action) -> &mut Command {
        self.actions.push(action);
        self
    }

    fn c_path(&mut self, path: &OsStr) -> Option<CString> {
        let string = CString::new(path.as_bytes()).ok();
        if string.is_none() {
            let _first = self.mistake.get_or_insert_with(|| "open or enter a path that contains a NUL byte".to_owned());
        }
        string
    }
}

impl Action {
    /// Describes the action for an error message.
    pub(crate) fn describe(&self) -> String {
        match self {
            Action::Open { target, path, .. } => format!("open {} as {target}", path.to_string_lossy()),
            Action::Close(fd) => format!("close {fd}"),
            Action::CloseFrom(first) => format!("close all descriptors from {first} on"),
            Action::Dup { source, target } => format!("dup {source} to {target}"),
            Action::ChangeDirectory(path) => format!("chdir to {}", path.to_string_lossy()),
            Action::ChangeDirectoryTo(fd) => format!("chdir to the directory at descriptor {fd}"),
            Action::Foreground(fd) => format!("become the foreground group of the terminal at descriptor {fd}"),
        }
    }

    /// Returns an error for an action that no child could carry out.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let fds = match self {
            Action::Open { target: fd, .. }
            | Action::Close(fd)
            | Action::CloseFrom(fd)
            | Action::ChangeDirectoryTo(fd)
            | Action::Foreground(fd) => [*fd, 0],
            Action::Dup { source, target } => [*source, *target],
            Action::ChangeDirectory(_) => [0, 0],
        };
        match fds.iter().any(|fd| *fd < 0) {
            true => Err(Error::new(Stage::Prepare, libc::EBADF, self.describe())),
            false => Ok(()),
        }
    }
}

/// Carries out the actions, in the child.
pub(crate) unsafe fn carry_out(actions: &[Action]) -> Step {
    for (index, action) in actions.iter().enumerate() {
        // SAFETY: integers, and strings that the plan holds.
        unsafe { carry_out_one(action) }.map_err(|errno| Failure { stage: Stage::FileAction, index, errno })?;
    }
    Ok(())
}

unsafe fn carry_out_one(action: &Action) -> Result<(), Errno> {
    // SAFETY: as above.
    unsafe {
        match action {
            Action::Open { target, path, flags, mode } => return open(*target, path, *flags, *mode),
            // EBADF is ignored: the descriptor was already closed.
            Action::Close(fd) => drop(syscall!(SYS_close, *fd)),
            Action::CloseFrom(first) => return crate::descriptors::close_range(*first as u32, u32::MAX, 0),
            Action::Dup { source, target } if source == target => {
                let flags = syscall!(SYS_fcntl, *source, libc::F_GETFD)?;
                syscall!(SYS_fcntl, *source, libc::F_SETFD, flags & !(libc::FD_CLOEXEC as usize))?;
            }
            Action::Dup { source, target } => drop(syscall!(SYS_dup3, *source, *target, 0)?),
            Action::ChangeDirectory(path) => drop(syscall!(SYS_chdir, path.as_ptr())?),
            Action::ChangeDirectoryTo(fd) => drop(syscall!(SYS_fchdir, *fd)?),
            Action::Foreground(fd) => {
                // In a background group, SIGTTOU would stop the child here, but all signals are blocked.
                let group = syscall!(SYS_getpgid, 0)? as i32;
                syscall!(SYS_ioctl, *fd, libc::TIOCSPGRP, &raw const group)?;
            }
        }
    }
    Ok(())
}

/// Opens a file as descriptor `target`. Closes the target first, as POSIX requires, so that even a full table of descriptors has room
/// for the file.
unsafe fn open(target: i32, path: &CString, flags: i32, mode: u32) -> Result<(), Errno> {
    // SAFETY: a string that the plan holds, and integers.
    unsafe {
        let _ = syscall!(SYS_close, target);
        let fd = syscall!(SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, mode)? as i32;
        if fd != target {
            syscall!(SYS_dup3, fd, target, flags & libc::O_CLOEXEC)?;
            let _ = syscall!(SYS_close, fd);
        }
    }
    Ok(())
}
