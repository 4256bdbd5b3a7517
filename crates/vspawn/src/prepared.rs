//! The ways to start a command: prepared or at once, with or without waiting for its exec, or in
//! place of this process.

use std::process::ExitStatus;
use std::sync::Arc;

use crate::command::Command;
use crate::error::{Error, Stage};
use crate::launch::dumpable::watch_forks;
use crate::launch::{Start, launch, replace};
use crate::plan::Plan;
use crate::plan::environment::Inheritance;
use crate::process::Child;
use crate::workspace::MAX_MOVES;

/// A prepared command. It can be spawned many times, even by several threads at once, without any
/// allocation.
///
/// ```
/// let prepared = vspawn::Command::new("/bin/true").close_others(true).prepare()?;
/// std::thread::scope(|scope| {
///     for _ in 0..2 {
///         scope.spawn(|| assert!(prepared.spawn().unwrap().wait().unwrap().success()));
///     }
/// });
/// # Ok::<(), vspawn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Prepared(Arc<Plan>);

impl Prepared {
    fn new(command: &Command, inheritance: Inheritance) -> Result<Prepared, Error> {
        if command.fds.len() > MAX_MOVES {
            let count = command.fds.len();
            return Err(Error::invalid(format!(
                "give the child {count} descriptors: at most {MAX_MOVES} are supported"
            )));
        }
        let plan = Plan::new(command, inheritance)?;
        if plan.attributes.identity.is_some() {
            watch_forks();
        }
        Ok(Prepared(Arc::new(plan)))
    }

    /// Starts a child. Returns after the child's exec, or with an error if the exec or a step
    /// before it failed.
    ///
    /// # Errors
    /// The step that failed, with its errno. No process remains.
    ///
    /// ```
    /// let prepared = vspawn::Command::new("true").prepare()?;
    /// assert!(prepared.spawn()?.wait()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn spawn(&self) -> Result<Child, Error> {
        self.start(Start::Waited)
    }

    /// Starts a child and returns at once, before the child's exec. This takes about a third of the
    /// time of [`Prepared::spawn`]. If the child fails before its exec, [`Child::started`] and the
    /// waits return the error.
    ///
    /// # Errors
    /// If the process cannot be created. [`Stage::Prepare`](crate::Stage::Prepare) for
    /// [`Mechanism::Fork`](crate::Mechanism::Fork), and for a change of user, for which the parent
    /// must wait to restore its dumpable flag.
    ///
    /// ```
    /// let prepared = vspawn::Command::new("true").prepare()?;
    /// let mut children = [prepared.spawn_nowait()?, prepared.spawn_nowait()?];
    /// for child in &mut children {
    ///     assert!(child.wait()?.success());
    /// }
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn spawn_nowait(&self) -> Result<Child, Error> {
        let request = match (&self.0.attributes.identity, self.0.attributes.forks()) {
            (Some(_), _) => "change the user or group",
            (_, true) => "fork",
            _ => return self.start(Start::Detached),
        };
        Err(Error::invalid(format!("{request} without waiting for exec: use spawn, not spawn_nowait")))
    }

    fn start(&self, start: Start) -> Result<Child, Error> {
        launch(&self.0, start)
    }
}

impl Command {
    /// Prepares everything, so that [`Prepared::spawn`] allocates nothing. Reads the environment
    /// and PATH now, not at each spawn.
    ///
    /// # Errors
    /// [`Stage::Prepare`](crate::Stage::Prepare), for example with `EINVAL` for a NUL byte, an
    /// empty program, or a request that requires another one.
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
    /// If the command neither sets nor removes variables and the process has one thread, the kernel
    /// reads the variables directly from C's `environ`, as with C's `posix_spawn`, without a copy.
    /// With several threads, they are copied under std's lock, since another thread may call
    /// [`std::env::set_var`] meanwhile. [`Command::env_unlocked`] avoids the copy;
    /// [`Command::prepare`] makes one copy for many spawns.
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
            // EFAULT: another thread changed `environ` while the kernel read it. (No other argument
            // can cause EFAULT.)
            Err(error) if error.stage() == Stage::Exec && error.raw_os_error() == libc::EFAULT => {
                self.prepare()?.start(Start::Waited)
            }
            result => result,
        }
    }

    /// Starts the process and returns at once. See [`Prepared::spawn_nowait`].
    ///
    /// # Errors
    /// The same as [`Prepared::spawn_nowait`].
    pub fn spawn_nowait(&self) -> Result<Child, Error> {
        self.prepare()?.spawn_nowait()
    }

    /// Replaces this process by the command, after the steps that a child would take before its
    /// exec. Returns only if a step or the exec fails. Changes that were already made (descriptors,
    /// user, directory, limits) then remain. Pipes are invalid here, and so is a cgroup, since both
    /// need a new process.
    ///
    /// ```no_run
    /// let error = vspawn::Command::new("/bin/sh").arg("-l").exec();
    /// eprintln!("failed to {error}");
    /// ```
    pub fn exec(&mut self) -> Error {
        match Prepared::new(self, Inheritance::InPlace) {
            Ok(prepared) => replace(&prepared.0),
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
}
