//! Requests for file actions. Like those of `posix_spawn`, the child carries them out in the order
//! of the requests, after the descriptors of [`Command::fd`] are in place.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::command::Command;
use crate::request::Action;

impl Command {
    /// Lets the child open a file as its descriptor `target`, with `flags` and `mode` as for
    /// open(2).
    ///
    /// The child carries out the requests of this method and of the next six (`close` to
    /// `foreground`) in the order of the calls, after the descriptors of [`Command::fd`] and the
    /// standard streams are in place. All descriptor numbers are the child's.
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

    /// Closes one descriptor of the child. As with `posix_spawn`, it is no error if the descriptor
    /// is already closed.
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

    /// Copies a descriptor within the child. If `source` and `target` are equal, the descriptor
    /// stays open at the exec.
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

    /// Changes the child's directory when this request is carried out: relative paths of later
    /// requests start there. The directory of [`Command::current_dir`], in contrast, is entered
    /// after the change of user.
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

    /// Like [`Command::chdir`], but changes to the directory that a descriptor of the child refers
    /// to.
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

    /// Makes the child's process group the foreground group of a terminal (`tcsetpgrp`), before the
    /// program can read from it. `terminal` is a descriptor of the child. Shells combine this with
    /// [`process_group(0)`](Command::process_group).
    ///
    /// ```no_run
    /// vspawn::Command::new("vi").process_group(0).foreground(0).status()?;
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn foreground(&mut self, terminal: i32) -> &mut Command {
        self.add_action(Action::Foreground(terminal))
    }

    fn add_action(&mut self, action: Action) -> &mut Command {
        self.attributes.actions.push(action);
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
