//! The names of programs: what a launch is counted under. There is one rule for all programs: the
//! name is that of the file that was asked for. The kernel and `#!` lines obscure it in three ways.
//! `#!/usr/bin/env node` executes node in a second step, but `#!/usr/bin/node` does not. A file
//! that is executed through a descriptor has a path such as `/dev/fd/5`. And a program may execute
//! itself as `/proc/self/exe`.

use crate::model::launch::base_name;

/// The parts of an exec that determine its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedExec<'e> {
    pub(crate) path: &'e [u8],
    pub(crate) argv: &'e [u8],
    pub(crate) is_script: bool,
}

impl<'e> NamedExec<'e> {
    /// Returns the base name of the file. A path that names nothing is replaced by the first
    /// argument.
    pub(crate) fn file_name(&self) -> &'e [u8] {
        let own_name = self.own_name().filter(|_| is_reference(self.path));
        base_name(own_name.unwrap_or(self.path))
    }

    /// Returns the first argument, if it is a name.
    fn own_name(&self) -> Option<&'e [u8]> {
        self.arguments().next().filter(|name| !name.is_empty() && !is_reference(name))
    }

    fn arguments(&self) -> impl Iterator<Item = &'e [u8]> + use<'e> {
        self.argv.split(|byte| *byte == 0)
    }

    /// Whether the file is a script whose `#!` line or text passes it on to `next`, as
    /// `#!/usr/bin/env node` and `exec tclsh "$0"` do.
    fn is_passed_to(&self, next: &NamedExec<'_>) -> bool {
        self.is_script && next.arguments().skip(1).any(|argument| argument == self.path)
    }

    /// Whether the process executes the program that it runs already, without another name.
    fn is_same_program(&self) -> bool {
        is_running_program(self.path) && self.own_name().is_none()
    }
}

/// Returns the name of the program that a process runs after these execs, the last one first.
/// `born_as` is the name before the first exec.
pub(crate) fn name_after<'e>(execs: impl Iterator<Item = NamedExec<'e>>, born_as: &'e [u8]) -> &'e [u8] {
    let mut execs = execs.skip_while(NamedExec::is_same_program);
    let Some(last) = execs.next() else { return born_as };
    let script = execs.next().filter(|script| script.is_passed_to(&last));
    script.unwrap_or(last).file_name()
}

/// Whether a path refers to an open file or to a running program, and so has no name of its own.
fn is_reference(path: &[u8]) -> bool {
    let is_descriptor = path.starts_with(b"/proc/") && path.rsplit(|byte| *byte == b'/').nth(1) == Some(b"fd");
    path.starts_with(b"/dev/fd/") || is_descriptor || is_running_program(path)
}

fn is_running_program(path: &[u8]) -> bool {
    path.starts_with(b"/proc/") && path.ends_with(b"/exe")
}
