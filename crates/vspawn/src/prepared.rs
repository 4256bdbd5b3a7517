//! Turns a command into a plan: checks it, builds the strings for the kernel, and searches PATH. All allocation happens here.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use crate::actions::Action;
use crate::command::{Command, Mechanism};
use crate::environment::{Environment, Inheritance};
use crate::error::Error;
use crate::launch::{Start, launch, replace};
use crate::plan::{Identity, Placement, Plan, StringArray, StringArrayBuilder};
use crate::process::Child;
use crate::stdio::Source;
use crate::workspace::MAX_MOVES;

/// The search path if PATH is not set (glibc's default).
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A prepared command. It can be spawned many times, even by several threads at once, without any allocation.
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
    pub(crate) fn new(command: &Command, inheritance: Inheritance) -> Result<Prepared, Error> {
        check(command)?;
        if command.identity.is_some() {
            crate::dumpable::watch_forks();
        }
        Ok(Prepared(Arc::new(Plan {
            program: command.program.to_string_lossy().into_owned(),
            candidates: candidates(command)?,
            argv: arguments(command)?,
            envp: Environment::new(command, inheritance)?,
            cwd: match c_path(command.cwd.as_deref(), "the working directory")? {
                // As in std. Otherwise, the child would keep a working directory outside of its root.
                None if command.chroot.is_some() => Some(c"/".to_owned()),
                cwd => cwd,
            },
            chroot: c_path(command.chroot.as_deref(), "the root directory")?,
            placements: placements(command),
            highest_target: command.fds.keys().next_back().map_or(2, |target| *target.max(&2)),
            kept_descriptors: kept_descriptors(command),
            close_others: command.close_others,
            actions: command.actions.clone(),
            umask: command.umask,
            new_session: command.new_session,
            controlling_terminal: command.controlling_terminal,
            process_group: command.process_group,
            limits: command.limits.clone(),
            nice: command.nice,
            scheduler: command.scheduler,
            affinity: command.affinity.clone(),
            no_new_privileges: command.no_new_privileges,
            identity: command.identity.clone().map(without_roots_groups),
            signal_mask: command.signal_mask,
            default_signals: command.default_signals,
            ignored_signals: command.ignored_signals,
            cgroup: command.cgroup.clone(),
            parent_death_signal: command.parent_death_signal,
            pre_exec: command.pre_exec.clone(),
            fork: command.mechanism == Mechanism::Fork,
        })))
    }

    /// Starts a child. Returns after the child's exec, or with an error if the exec or a step before it failed.
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

    /// Starts a child and returns at once, before the child's exec. This takes about a third of the time of
    /// [`Prepared::spawn`]. If the child fails before its exec, [`Child::started`] and the waits return the error.
    ///
    /// # Errors
    /// If the process cannot be created. [`Stage::Prepare`](crate::Stage::Prepare) for [`Mechanism::Fork`], and for a change of user, for
    /// which the parent must wait to restore its dumpable flag.
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
        let request = match (&self.0.identity, self.0.fork) {
            (Some(_), _) => "change the user or group",
            (_, true) => "fork",
            _ => return self.start(Start::Detached),
        };
        Err(Error::invalid(format!("{request} without waiting for exec: use spawn, not spawn_nowait")))
    }

    pub(crate) fn exec(&self) -> Error {
        replace(&self.0)
    }

    pub(crate) fn start(&self, start: Start) -> Result<Child, Error> {
        launch(&self.0, start)
    }
}

/// Rejects invalid requests, before anything is started.
fn check(command: &Command) -> Result<(), Error> {
    if let Some(mistake) = &command.mistake {
        return Err(Error::invalid(mistake.clone()));
    }
    if command.program.is_empty() {
        return Err(Error::invalid("run a program without a name"));
    }
    if command.pre_exec.is_some() && command.mechanism != Mechanism::Fork {
        return Err(Error::invalid(
            "run a pre_exec function in memory shared with the parent: it needs Command::mechanism(Mechanism::Fork)",
        ));
    }
    if let Some(target) = command.fds.keys().find(|target| **target < 0) {
        return Err(Error::invalid(format!("give the child descriptor {target}")));
    }
    for source in command.fds.values() {
        if let Source::Number(fd @ ..0) = source {
            return Err(Error::invalid(format!("give the child the parent's descriptor {fd}")));
        }
    }
    command.actions.iter().try_for_each(Action::check)?;
    if command.fds.len() > MAX_MOVES {
        let count = command.fds.len();
        return Err(Error::invalid(format!("give the child {count} descriptors: at most {MAX_MOVES} are supported")));
    }
    if command.new_session && command.process_group.is_some() {
        return Err(Error::invalid("join a process group and begin a session: a session's leader has its own group"));
    }
    Ok(())
}

fn c_path(path: Option<&Path>, what: &str) -> Result<Option<CString>, Error> {
    path.map(|path| c_string(path.as_os_str(), what)).transpose()
}

fn c_string(text: &OsStr, what: &str) -> Result<CString, Error> {
    CString::new(text.as_bytes()).map_err(|_| Error::nul(what))
}

fn arguments(command: &Command) -> Result<StringArray, Error> {
    let bytes = command.args.iter().map(|arg| arg.len()).sum::<usize>();
    let name = command.name.as_ref().unwrap_or(&command.program);
    let mut strings = StringArrayBuilder::with_capacity(command.args.len() + 1, name.len() + bytes)?;
    for (index, arg) in std::iter::once(name).chain(&command.args).enumerate() {
        if !strings.push(&[arg]) {
            return Err(match index {
                0 => Error::nul("argv[0]"),
                _ => Error::nul(&format!("argument {index}")),
            });
        }
    }
    Ok(strings.finish())
}

/// Returns the candidates for execve, in order: the program itself if it has a slash, otherwise the program in each directory of the
/// child's PATH. An empty directory is the current one, as in execvp.
fn candidates(command: &Command) -> Result<StringArray, Error> {
    let program = &command.program;
    if program.as_bytes().contains(&b'/') {
        let mut one = StringArrayBuilder::with_capacity(1, program.len())?;
        return push_path(&mut one, &[program]).map(|()| one.finish());
    }
    let path = match command.env.get(OsStr::new("PATH")) {
        Some(changed) => changed.clone(),
        None if command.clear_env => None,
        None => std::env::var_os("PATH"),
    };
    let path = path.unwrap_or_else(|| DEFAULT_PATH.into());
    let directories = path.as_bytes().split(|byte| *byte == b':');
    let count = directories.clone().count();
    let mut candidates = StringArrayBuilder::with_capacity(count, path.len() + count * (program.len() + 1))?;
    for directory in directories {
        if directory.is_empty() {
            push_path(&mut candidates, &[program])?;
        // As in glibc, a directory longer than any path is skipped. Its ENAMETOOLONG would end the search.
        } else if directory.len() + program.len() + 1 < libc::PATH_MAX as usize {
            push_path(&mut candidates, &[OsStr::from_bytes(directory), OsStr::new("/"), program])?;
        }
    }
    Ok(candidates.finish())
}

fn push_path(strings: &mut StringArrayBuilder, parts: &[&OsStr]) -> Result<(), Error> {
    match strings.push(parts) {
        true => Ok(()),
        false => Err(Error::nul("the program")),
    }
}

fn placements(command: &Command) -> Vec<Placement> {
    let given = command.fds.iter().filter(|(_, source)| !matches!(source, Source::Inherit));
    given.map(|(target, source)| Placement { source: source.clone(), target: *target }).collect()
}

/// Returns the descriptors that `close_others` leaves open: the standard streams and the files that the command gives the child.
fn kept_descriptors(command: &Command) -> Vec<i32> {
    let mut kept: Vec<i32> = command.fds.keys().copied().chain(0..3).collect();
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// Removes root's supplementary groups if the child becomes another user, as std does.
fn without_roots_groups(mut identity: Identity) -> Identity {
    // SAFETY: takes nothing, cannot fail.
    let is_root = unsafe { libc::getuid() } == 0;
    if identity.groups.is_none() && identity.uid.is_some() && is_root {
        identity.groups = Some(Vec::new());
    }
    identity
}
