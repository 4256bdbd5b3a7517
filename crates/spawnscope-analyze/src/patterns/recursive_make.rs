//! Makes that the recipe of another make starts, directly or through shells, and the generators of
//! such makefiles.

use super::runtimes::Runtime;
use super::shells::is_shell;
use crate::model::tree::Forest;

/// A program that generates recursive makefiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generator {
    CMake,
    Automake,
}

impl Generator {
    /// Returns the generator of the makefile that a make runs. It is recognized by arguments that
    /// only its makefiles pass.
    pub(crate) fn of(forest: &Forest<'_>, index: usize) -> Option<Generator> {
        let exec = forest.launches[index].execs.last()?;
        exec.arguments().find_map(|argument| {
            let is_of_automake = matches!(argument, b"all-am" | b"all-recursive" | b"check-am" | b"install-am");
            let automake = is_of_automake.then_some(Generator::Automake);
            if argument.starts_with(b"CMakeFiles/") { Some(Generator::CMake) } else { automake }
        })
    }
}

/// Whether a launch is a make whose ancestor is another make, with only shells in between.
pub(crate) fn is_sub_make(forest: &Forest<'_>, index: usize) -> bool {
    let launch = &forest.launches[index];
    if launch.execs.is_empty() || Runtime::named(launch.command.name) != Runtime::Make {
        return false;
    }
    let mut programs = forest.ancestors(index).map(|parent| forest.launches[parent].command.name);
    programs.find(|program| !is_shell(program)).is_some_and(|program| Runtime::named(program) == Runtime::Make)
}
