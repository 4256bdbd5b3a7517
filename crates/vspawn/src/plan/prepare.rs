//! Turns a command into a plan: checks it, builds the strings for the kernel, and searches PATH.
//! All allocation happens here.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::environment::{Environment, Inheritance};
use super::strings::{StringArray, StringArrayBuilder};
use super::{Placement, Plan};
use crate::command::Command;
use crate::error::Error;
use crate::request::{Action, Attributes, Identity};
use crate::stdio::Source;

/// The search path if PATH is not set (glibc's default).
const DEFAULT_PATH: &str = "/bin:/usr/bin";

impl Plan {
    pub(crate) fn new(command: &Command, inheritance: Inheritance) -> Result<Plan, Error> {
        check(command)?;
        let attributes = command.attributes.clone();
        Ok(Plan {
            program: command.program.to_string_lossy().into_owned(),
            candidates: candidates(command)?,
            argv: arguments(command)?,
            envp: Environment::new(command, inheritance)?,
            cwd: match c_path(command.cwd.as_deref(), "the working directory")? {
                // As in std. Otherwise, the child would keep a working directory outside of its
                // root.
                None if command.chroot.is_some() => Some(c"/".to_owned()),
                cwd => cwd,
            },
            chroot: c_path(command.chroot.as_deref(), "the root directory")?,
            placements: placements(command),
            highest_target: command.fds.keys().next_back().map_or(2, |target| *target.max(&2)),
            kept_descriptors: kept_descriptors(command),
            attributes: Attributes { identity: attributes.identity.map(without_roots_groups), ..attributes },
        })
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
    if command.attributes.pre_exec.is_some() && !command.attributes.forks() {
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
    command.attributes.actions.iter().try_for_each(Action::check)?;
    if command.attributes.new_session && command.attributes.process_group.is_some() {
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

/// Returns the candidates for execve, in order: the program itself if it has a slash, otherwise the
/// program in each directory of the child's PATH. An empty directory is the current one, as in
/// execvp.
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
        // As in glibc, a directory longer than any path is skipped. Its ENAMETOOLONG would end the
        // search.
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

/// Returns the descriptors that `close_others` leaves open: the standard streams and the files that
/// the command gives the child.
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
