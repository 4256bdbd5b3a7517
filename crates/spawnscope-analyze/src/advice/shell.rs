//! The shell dialect of the program that requested a launch. It decides which syntax the advice may suggest.

use crate::tree::Forest;
use crate::whatif::changes::chains::runs;

/// The syntax that a shell understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dialect {
    /// Only POSIX syntax, as in dash.
    Posix,
    /// bash under its own name.
    Bash,
    /// ksh93, mksh and others.
    Ksh,
    Zsh,
}

impl Dialect {
    /// Returns the dialect for the base name of a program. bash named sh keeps its extensions, but a script for sh must not use them.
    pub(super) fn of_program(name: &[u8]) -> Option<Dialect> {
        match name {
            b"sh" | b"dash" | b"ash" | b"busybox" | b"posh" | b"yash" | b"oksh" | b"pdksh" => Some(Dialect::Posix),
            b"bash" | b"rbash" => Some(Dialect::Bash),
            b"ksh" | b"ksh93" | b"mksh" | b"lksh" => Some(Dialect::Ksh),
            b"zsh" => Some(Dialect::Zsh),
            _ => None,
        }
    }

    /// Returns the dialect of the parent of a launch. `None` when the parent is not a shell.
    pub(super) fn of_parent(forest: &Forest<'_>, index: usize) -> Option<Dialect> {
        Dialect::of_program(runs(forest.launcher(index)?))
    }
}
