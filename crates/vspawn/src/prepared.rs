//! From what was asked to a plan: strings for the kernel, the PATH search, checks. All allocation is here.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use crate::command::{Command, Mechanism};
use crate::error::Error;
use crate::launch::{Start, launch};
use crate::plan::{Identity, Placement, Plan, StringArray};
use crate::process::Child;
use crate::stdio::Source;
use crate::workspace::MOST_MOVES;

/// Where programs are searched for when there is no PATH (glibc's choice).
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A command made ready: it can be spawned many times, also by several threads at once, without any allocation.
#[derive(Clone, Debug)]
pub struct Prepared(Arc<Plan>);

impl Prepared {
    pub(crate) fn new(command: &Command) -> Result<Prepared, Error> {
        check(command)?;
        let env = environment(command);
        let name = command.name.as_ref().unwrap_or(&command.program);
        let mut argv = vec![c_string(name, || "argv[0]".to_owned())?];
        for (index, arg) in command.args.iter().enumerate() {
            argv.push(c_string(arg, || format!("argument {}", index + 1))?);
        }
        let path = |path: &Option<std::path::PathBuf>, what: &str| -> Result<Option<CString>, Error> {
            let path = path.as_ref().map(|path| path_string(path, what));
            path.transpose()
        };
        Ok(Prepared(Arc::new(Plan {
            program: command.program.to_string_lossy().into_owned(),
            candidates: candidates(&command.program, env.get(OsStr::new("PATH")))?,
            argv: StringArray::new(argv),
            envp: StringArray::new(env_strings(&env)?),
            cwd: path(&command.cwd, "the working directory")?,
            chroot: path(&command.chroot, "the root directory")?,
            placements: placements(command),
            highest_target: command.fds.keys().next_back().map_or(2, |target| *target.max(&2)),
            kept: kept(command),
            close_others: command.close_others,
            umask: command.umask,
            new_session: command.new_session,
            controlling_terminal: command.controlling_terminal,
            process_group: command.process_group,
            limits: command.limits.clone(),
            nice: command.nice,
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

    /// Starts a child; returns after its exec, or with the reason why there is none.
    ///
    /// # Errors
    /// The step that failed, with its errno; no process is left.
    pub fn spawn(&self) -> Result<Child, Error> {
        self.start(Start::Waited)
    }

    /// Starts a child and returns at once, while it is still on its way to its exec: about a third of the time of
    /// [`Prepared::spawn`]. If it fails on its way, [`Child::started`] and the waits say so.
    ///
    /// # Errors
    /// When the process cannot be created. [`Stage::Prepare`](crate::Stage::Prepare) for a change of user, which needs
    /// the parent to wait and put its dumpable flag back, and for [`Mechanism::Fork`].
    pub fn spawn_nowait(&self) -> Result<Child, Error> {
        let request = match (&self.0.identity, self.0.fork) {
            (Some(_), _) => "change the user or group",
            (_, true) => "fork",
            _ => return self.start(Start::Detached),
        };
        Err(Error::invalid(format!(
            "{request} without waiting for exec: use spawn, not spawn_nowait"
        )))
    }

    pub(crate) fn start(&self, start: Start) -> Result<Child, Error> {
        launch(&self.0, start)
    }
}

/// What can be known to be wrong before anything is started.
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
    if let Some((target, _)) = command.fds.iter().find(|(target, _)| **target < 0) {
        return Err(Error::invalid(format!("give the child descriptor {target}")));
    }
    let negative = command
        .fds
        .values()
        .find(|source| matches!(source, Source::Number(..0)));
    if let Some(Source::Number(source)) = negative {
        return Err(Error::invalid(format!(
            "give the child the parent's descriptor {source}"
        )));
    }
    if command.fds.len() > MOST_MOVES {
        let count = command.fds.len();
        return Err(Error::invalid(format!(
            "give the child {count} descriptors: at most {MOST_MOVES} can be"
        )));
    }
    if command.new_session && command.process_group.is_some() {
        return Err(Error::invalid(
            "join a process group and begin a session: a session's leader has its own group",
        ));
    }
    Ok(())
}

fn c_string(text: &OsStr, what: impl Fn() -> String) -> Result<CString, Error> {
    CString::new(text.as_bytes()).map_err(|_| Error::invalid(format!("pass {}: it contains a NUL byte", what())))
}

fn path_string(path: &Path, what: &str) -> Result<CString, Error> {
    c_string(path.as_os_str(), || what.to_owned())
}

/// The child's variables. Sorted only where they were changed; else as they are.
fn environment(command: &Command) -> BTreeMap<OsString, OsString> {
    let mut env: BTreeMap<OsString, OsString> = BTreeMap::new();
    if !command.clear_env {
        env.extend(std::env::vars_os());
    }
    for (key, value) in &command.env {
        match value {
            Some(value) => env.insert(key.clone(), value.clone()),
            None => env.remove(key),
        };
    }
    env
}

fn env_strings(env: &BTreeMap<OsString, OsString>) -> Result<Vec<CString>, Error> {
    env.iter()
        .map(|(key, value)| {
            let name = || format!("variable {}", key.to_string_lossy());
            if key.is_empty() || key.as_bytes()[1..].contains(&b'=') {
                return Err(Error::invalid(format!("pass {}: that is no name", name())));
            }
            let mut text = OsString::with_capacity(key.len() + value.len() + 1);
            text.push(key);
            text.push("=");
            text.push(value);
            c_string(&text, name)
        })
        .collect()
}

/// What execve is to try, in order: the program itself if it has a slash, else it in each directory of the child's
/// PATH. An empty directory is the current one, as in execvp.
fn candidates(program: &OsStr, path: Option<&OsString>) -> Result<Vec<CString>, Error> {
    if program.as_bytes().contains(&b'/') {
        return Ok(vec![c_string(program, || "the program".to_owned())?]);
    }
    let path = path.map_or(DEFAULT_PATH.as_bytes(), |path| path.as_bytes());
    path.split(|byte| *byte == b':')
        .map(|directory| {
            let mut candidate = OsStr::from_bytes(directory).to_owned();
            if !directory.is_empty() {
                candidate.push("/");
            }
            candidate.push(program);
            c_string(&candidate, || "the program".to_owned())
        })
        .collect()
}

fn placements(command: &Command) -> Vec<Placement> {
    let given = command
        .fds
        .iter()
        .filter(|(_, source)| !matches!(source, Source::Inherit));
    given
        .map(|(target, source)| Placement {
            source: source.clone(),
            target: *target,
        })
        .collect()
}

/// The standard streams and what was given.
fn kept(command: &Command) -> Vec<i32> {
    let mut kept: Vec<i32> = command.fds.keys().copied().chain(0..3).collect();
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// As std: root's supplementary groups do not follow into another user.
fn without_roots_groups(mut identity: Identity) -> Identity {
    // SAFETY: takes nothing, cannot fail.
    let is_root = unsafe { libc::getuid() } == 0;
    if identity.groups.is_none() && identity.uid.is_some() && is_root {
        identity.groups = Some(Vec::new());
    }
    identity
}
