//! Chains of execs in one process: the exec at which the chain to the last program starts, and the
//! purpose of each exec in it. A shell execs its last command, so a process may have done other
//! work before the chain.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::pipeline::is_captured;
use super::programs::has_property;
use super::shell_syntax::{Need, need_of};
use super::shells::{command_of, is_shell, wrapped_child};
use super::words::contains;
use crate::model::launch::{Exec, Launch, base_name};
use crate::model::phases::Phase;
use crate::model::timeline::Timelines;
use crate::model::tree::Forest;
use spawnscope_data::event::Nanos;

/// The purpose of an exec that is followed by another exec. The greatest link of a chain, in this
/// order, describes the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Link {
    /// `env PROGRAM` without changes to the environment.
    Env,
    /// `#!/usr/bin/env`, which searches for an interpreter along PATH.
    EnvLine,
    /// A wrapper script that only runs the program, or first sets up its environment.
    Wrapper,
    /// A program with the same name as the real program, at another path.
    Namesake,
    VersionManager,
}

impl Link {
    /// Returns the purpose of an exec that precedes the exec of `real`. `None` if it may do more
    /// than lead to the real program (nice, sudo, `sh -c`).
    pub(crate) fn of(exec: &Exec<'_>, real: &Exec<'_>) -> Option<Link> {
        let program = base_name(exec.path());
        if is_version_manager(exec) {
            return Some(Link::VersionManager);
        }
        if command_of(exec).is_some() {
            return None;
        }
        if program == base_name(real.path()) && exec.path() != real.path() {
            return Some(Link::Namesake);
        }
        if exec.interpreter().is_some() && exec.program_name() == b"env" {
            return Some(Link::EnvLine);
        }
        if program == b"env" {
            let first = exec.arguments().nth(1).unwrap_or_default();
            return (!first.starts_with(b"-") && !first.contains(&b'=')).then_some(Link::Env);
        }
        is_shell_script(exec).then_some(Link::Wrapper)
    }
}

/// Returns the index of the exec at which the chain to the last program starts, or of the last exec
/// if there is no chain. Earlier work of the process is not part of the chain, such as
/// that of a shell that executes its last command.
pub(crate) fn chain_start(forest: &Forest<'_>, timelines: &Timelines, launch: u32) -> usize {
    let execs = &forest.launches[launch as usize].execs;
    let last = execs.len().saturating_sub(1);
    let leading = (0..last).rev().take_while(|at| only_leads_to_next(forest, timelines, launch, *at));
    let leading: Vec<usize> = leading.collect();
    let known = leading.iter().take_while(|at| Link::of(&execs[**at], &execs[last]).is_some());
    known.last().or(leading.last()).copied().unwrap_or(last)
}

/// Whether a process launched more than short helpers before the chain to its last program.
pub(crate) fn did_other_work(forest: &Forest<'_>, timelines: &Timelines, launch: u32) -> bool {
    let execs = &forest.launches[launch as usize].execs;
    let until = execs.get(chain_start(forest, timelines, launch)).and_then(Exec::entered);
    until.is_some_and(|until| !are_helpers(forest, timelines, &created_between(forest, launch, Nanos(0), until)))
}

/// Returns the children that a process launched between two of its execs.
pub(crate) fn launched_between(forest: &Forest<'_>, launch: u32, from: usize, to: usize) -> Vec<usize> {
    let execs = &forest.launches[launch as usize].execs;
    let [from, to] = [from, to].map(|exec| execs.get(exec).and_then(Exec::entered));
    from.zip(to).map(|(from, to)| created_between(forest, launch, from, to)).unwrap_or_default()
}

/// Whether a program only led to the next program of the process, possibly with short helper
/// launches.
fn only_leads_to_next(forest: &Forest<'_>, timelines: &Timelines, launch: u32, at: usize) -> bool {
    let execs = &forest.launches[launch as usize].execs;
    if execs[at].entered().is_none() || execs[at + 1].entered().is_none() {
        return false;
    }
    if current_exec(&execs[..=at]).is_some_and(is_version_manager) {
        return true;
    }
    let launched = launched_between(forest, launch, at, at + 1);
    match command_of(&execs[at]) {
        Some(text) => need_of(text) != Need::Shell && launched.is_empty(),
        None => are_helpers(forest, timelines, &launched),
    }
}

/// Whether launches are helpers, such as `dirname` and `mkdir -p` in a wrapper: in total, those
/// whose output the parent does not read ran for no longer than their launch cost.
fn are_helpers(forest: &Forest<'_>, timelines: &Timelines, launches: &[usize]) -> bool {
    let not_read = launches.iter().filter(|index| !is_captured(forest, timelines, **index as u32));
    let (mut ran, mut launching) = (0, 0);
    for launch in not_read.map(|index| &forest.launches[*index]) {
        let Some(run) = launch.phases.get(Phase::Run) else { return false };
        ran += run.0;
        launching += launch.launch_cost().unwrap_or_default().0;
    }
    ran <= launching
}

fn created_between(forest: &Forest<'_>, launch: u32, from: Nanos, to: Nanos) -> Vec<usize> {
    let children = forest.children(launch as usize);
    // Children are in order of creation. Children with an unknown creation time come first, and do
    // not count.
    let [first, end] =
        [from, to].map(|at| children.partition_point(|child| forest.launches[*child].birth() < Some(at)));
    children[first..end.max(first)].to_vec()
}

/// Whether an ancestor of a launch is a version manager, whose scripts the user does not maintain.
pub(crate) fn is_in_version_manager(forest: &Forest<'_>, launch: u32) -> bool {
    let below = std::iter::once(launch as usize).chain(forest.ancestors(launch as usize));
    below.zip(forest.ancestors(launch as usize)).any(|(child, parent)| {
        let at = forest.launches[child].start().unwrap_or_default();
        current_exec(forest.launches[parent].execs_until(at)).is_some_and(is_version_manager)
    })
}

/// Returns the name and arguments of a version manager that was called directly. `None` if the
/// process is not a version manager, or runs the program that the manager chose.
pub(crate) fn direct_manager_call<'a>(launch: &Launch<'a>) -> Option<Vec<&'a [u8]>> {
    current_exec(&launch.execs).filter(|exec| is_version_manager(exec) && !is_shim(exec))?;
    let manager = launch.execs.iter().find(|exec| has_property(base_name(exec.path()), "version-manager"))?;
    let name = base_name(manager.path());
    let arguments = manager.arguments().skip_while(|argument| base_name(argument) != name);
    Some([name].into_iter().chain(arguments.skip(1)).collect())
}

/// Returns the exec of the program that a process runs after these execs. This is the last exec, or
/// the one before it if `#!/usr/bin/env` in a script executed the script's shell.
fn current_exec<'e, 'a>(execs: &'e [Exec<'a>]) -> Option<&'e Exec<'a>> {
    match execs {
        [.., script, shell] if script.program_name() == b"env" && is_shell(base_name(shell.path())) => Some(script),
        others => others.last(),
    }
}

/// Whether an exec runs a version manager: `pyenv`, its `pyenv-exec`, or one of its shims.
fn is_version_manager(exec: &Exec<'_>) -> bool {
    let program = base_name(exec.path());
    let name = program.split(|byte| *byte == b'-').next().unwrap_or_default();
    is_shim(exec) || has_property(name, "version-manager")
}

fn is_shim(exec: &Exec<'_>) -> bool {
    contains(exec.path(), b"/shims/") || exec.path().starts_with(b"shims/")
}

/// Whether an exec runs a shell on a file, rather than on the text after `-c`.
pub(crate) fn is_shell_script(exec: &Exec<'_>) -> bool {
    is_shell(exec.program_name())
        && (exec.interpreter().is_some() || exec.arguments().nth(1).is_some_and(|first| !first.starts_with(b"-")))
}

/// Whether a script that only launches one program is part of a recursion, because the program is
/// the script itself or one of its callers. Each level of a recursion is intended, so none is a
/// shim.
pub(crate) fn is_recursion(forest: &Forest<'_>, wrapper: u32, real: &Exec<'_>) -> bool {
    const MAX_SCRIPTS: usize = 64;
    let scripts = std::iter::successors(Some(wrapper), |script| {
        let parent = u32::try_from(forest.parent(*script as usize)?).ok()?;
        (wrapped_child(forest, parent) == Some(*script)).then_some(parent)
    });
    let execs = scripts.map(|script| &forest.launches[script as usize].execs[..]);
    let execs = execs.map_while(|execs| execs.last().filter(|exec| is_shell_script(exec)));
    execs.take(MAX_SCRIPTS).any(|exec| is_same_script(exec, real))
}

/// Whether two execs run the same script, regardless of how its path was written.
pub(crate) fn is_same_script(one: &Exec<'_>, other: &Exec<'_>) -> bool {
    is_shell_script(one) && is_shell_script(other) && script_path(one) == script_path(other)
}

/// Returns the file that a shell runs, as an absolute path if the working directory is known.
fn script_path(exec: &Exec<'_>) -> PathBuf {
    let argument = exec.arguments().nth(1).filter(|_| exec.interpreter().is_none());
    let path = Path::new(OsStr::from_bytes(argument.unwrap_or(exec.path())));
    let directory = Path::new(OsStr::from_bytes(exec.cwd().unwrap_or_default()));
    // `components` drops `.` and repeated slashes.
    directory.join(path).components().filter(|part| *part != Component::CurDir).collect()
}
