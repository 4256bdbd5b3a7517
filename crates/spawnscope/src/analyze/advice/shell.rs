//! Shells as parents: which dialect the program that made a launch speaks. What a script is told to write depends on it.

use crate::analyze::launch::{Exec, base_name};
use crate::analyze::tree::Forest;
use crate::event::Nanos;

/// What a shell understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dialect {
    /// Only what POSIX has, as dash.
    Posix,
    /// bash under its own name.
    Bash,
    /// ksh93, mksh and others.
    Ksh,
    /// zsh.
    Zsh,
}

/// Subshells within subshells that are looked through for the program that they are forks of.
const DEEPEST: usize = 16;

impl Dialect {
    /// By the base name of a program. bash under the name of sh keeps its extensions, but a script for sh must not use them.
    pub(super) fn of_program(name: &[u8]) -> Option<Dialect> {
        match name {
            b"sh" | b"dash" | b"ash" | b"busybox" | b"posh" | b"yash" => Some(Dialect::Posix),
            b"bash" | b"rbash" => Some(Dialect::Bash),
            b"ksh" | b"ksh93" | b"mksh" | b"lksh" | b"oksh" | b"pdksh" => Some(Dialect::Ksh),
            b"zsh" => Some(Dialect::Zsh),
            _ => None,
        }
    }

    /// The shell that made a launch; `None` when its parent is none.
    pub(super) fn of_parent(forest: &Forest<'_>, index: usize) -> Option<Dialect> {
        Dialect::of_program(runs(parent_program(forest, index)?))
    }
}

/// The program that a process really runs: of a `#!` script, its interpreter.
pub(super) fn runs<'a>(exec: &Exec<'a>) -> &'a [u8] {
    base_name(exec.interpreter.unwrap_or(exec.path))
}

/// What the maker of a launch had last executed when it made it; what forks without exec copy is their parent's.
pub(super) fn parent_program<'f, 'a>(forest: &'f Forest<'a>, index: usize) -> Option<&'f Exec<'a>> {
    let mut child = index;
    for _ in 0..DEEPEST {
        let parent = forest.parent(child)?;
        let at = &forest.launches[child].instants;
        let execs = &forest.launches[parent].execs;
        let done = execs.partition_point(|exec| is_before(exec, at.create.or(at.created)));
        if done > 0 {
            return execs.get(done - 1);
        }
        child = parent;
    }
    None
}

fn is_before(exec: &Exec<'_>, at: Option<Nanos>) -> bool {
    at.is_none_or(|at| exec.enter.or(exec.returned).is_none_or(|entered| entered <= at))
}
