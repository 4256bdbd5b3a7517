//! Shells as parents: which dialect the program that made a launch speaks. What a script is told to write depends on it.

use crate::analyze::tree::Forest;
use crate::analyze::whatif::changes::chains::runs;

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

impl Dialect {
    /// By the base name of a program. bash under the name of sh keeps its extensions, but a script for sh must not use them.
    pub(super) fn of_program(name: &[u8]) -> Option<Dialect> {
        match name {
            b"sh" | b"dash" | b"ash" | b"busybox" | b"posh" | b"yash" | b"oksh" | b"pdksh" => Some(Dialect::Posix),
            b"bash" | b"rbash" => Some(Dialect::Bash),
            b"ksh" | b"ksh93" | b"mksh" | b"lksh" => Some(Dialect::Ksh),
            b"zsh" => Some(Dialect::Zsh),
            _ => None,
        }
    }

    /// The shell that made a launch; `None` when its parent is none.
    pub(super) fn of_parent(forest: &Forest<'_>, index: usize) -> Option<Dialect> {
        Dialect::of_program(runs(forest.launcher(index)?))
    }
}
