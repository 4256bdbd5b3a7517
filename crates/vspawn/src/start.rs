//! The methods of a command that start it: after preparation, with or without waiting for its exec, in place of this process, or to
//! capture its output.

use std::process::{ExitStatus, Output};

use crate::capture::Capture;
use crate::command::Command;
use crate::environment::Inheritance;
use crate::error::{Error, Stage};
use crate::launch::Start;
use crate::prepared::Prepared;
use crate::process::Child;

impl Command {
    /// Prepares everything, so that [`Prepared::spawn`] allocates nothing. Reads the environment and PATH now, not at each spawn.
    ///
    /// # Errors
    /// [`Stage::Prepare`](crate::Stage::Prepare), for example with `EINVAL` for a NUL byte, an empty program, or a request that requires
    /// another one.
    ///
    /// ```
    /// let prepared = vspawn::Command::new("true").prepare()?;
    /// for _ in 0..3 {
    ///     assert!(prepared.spawn()?.wait()?.success());
    /// }
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn prepare(&self) -> Result<Prepared, Error> {
        Prepared::new(self, Inheritance::Copied)
    }

    /// Starts the process. Returns after its exec.
    ///
    /// If the command neither sets nor removes variables and the process has one thread, the kernel reads the variables directly from C's
    /// `environ`, as with C's `posix_spawn`, without a copy. With several threads, they are copied under std's lock, since another thread may
    /// call [`std::env::set_var`] meanwhile. [`Command::env_unlocked`] avoids the copy; [`Command::prepare`] makes one copy for many spawns.
    ///
    /// # Errors
    /// The step that failed, with its errno. No process remains.
    ///
    /// ```
    /// let mut child = vspawn::Command::new("sh").args(["-c", "exit 3"]).spawn()?;
    /// assert_eq!(child.wait()?.code(), Some(3));
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn spawn(&self) -> Result<Child, Error> {
        match Prepared::new(self, Inheritance::InPlace)?.start(Start::Waited) {
            // EFAULT: another thread changed `environ` while the kernel read it. (No other argument can cause EFAULT.)
            Err(error) if error.stage() == Stage::Exec && error.raw_os_error() == libc::EFAULT => {
                self.prepare()?.start(Start::Waited)
            }
            result => result,
        }
    }

    /// Starts the process and returns at once: see [`Prepared::spawn_nowait`].
    ///
    /// # Errors
    /// The same as [`Prepared::spawn_nowait`].
    ///
    /// ```
    /// let mut child = vspawn::Command::new("/nowhere").spawn_nowait()?;
    /// assert_eq!(child.wait().unwrap_err().raw_os_error(), libc::ENOENT);
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn spawn_nowait(&self) -> Result<Child, Error> {
        self.prepare()?.spawn_nowait()
    }

    /// Replaces this process by the command, after the steps that a child would take before its exec. Returns only if a step or the exec
    /// fails. Changes that were already made (descriptors, user, directory, limits) then remain. Pipes are invalid here, and so is a
    /// cgroup, since both need a new process.
    ///
    /// ```no_run
    /// let error = vspawn::Command::new("/bin/sh").arg("-l").exec();
    /// eprintln!("failed to {error}");
    /// ```
    pub fn exec(&mut self) -> Error {
        match Prepared::new(self, Inheritance::InPlace) {
            Ok(prepared) => prepared.exec(),
            Err(error) => error,
        }
    }

    /// Starts the process and waits until it has ended.
    ///
    /// # Errors
    /// The same as [`Command::spawn`] and [`Child::wait`].
    ///
    /// ```
    /// assert_eq!(vspawn::Command::new("false").status()?.code(), Some(1));
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn status(&mut self) -> Result<ExitStatus, Error> {
        self.spawn()?.wait()
    }

    /// Starts the process, reads its standard output and error to their ends, and waits for it. As with std, these are piped and
    /// its standard input is empty, unless the command says otherwise. For input, limits or a timeout, see
    /// [`Command::capture`].
    ///
    /// # Errors
    /// The same as [`Command::spawn`] and [`Child::wait`], and [`Stage::Communicate`](crate::Stage::Communicate).
    ///
    /// ```
    /// let output = vspawn::Command::new("sh").args(["-c", "echo out; echo error >&2"]).output()?;
    /// assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"out\n"[..], &b"error\n"[..]));
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn output(&mut self) -> Result<Output, Error> {
        self.capture().run()
    }

    /// Prepares to run the command like [`Command::output`], but with input, a limit on the output, or a timeout.
    ///
    /// ```
    /// assert_eq!(vspawn::Command::new("cat").capture().input(b"text").run()?.stdout, b"text");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn capture(&self) -> Capture<'_> {
        Capture::new(self)
    }
}
