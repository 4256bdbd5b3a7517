//! Shells: their names and dialects, the commands that they get with `-c`, and launches through an
//! unnecessary shell.

use super::runtimes::shell_between;
use super::shell_syntax::{Need, need_of};
use crate::model::launch::{Exec, base_name};
use crate::model::tree::Forest;

pub(crate) fn is_shell(name: &[u8]) -> bool {
    Dialect::of_program(name).is_some()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartByShell {
    /// The shell execed the program in its own process. Contains the index of the shell's exec.
    Exec(usize),
    /// The shell launched the program and waited for it. Contains the index of the launch.
    Launch(u32),
}

/// Returns how an unnecessary `sh -c 'program arguments'` started the program. `None` if the launch
/// is not through such a shell.
pub(crate) fn needless_shell(forest: &Forest<'_>, index: u32) -> Option<StartByShell> {
    let launch = &forest.launches[index as usize];
    let at = launch.execs.iter().position(|exec| command_of(exec).is_some())?;
    let command = command_of(&launch.execs[at])?;
    if need_of(command) == Need::Shell {
        return None;
    }
    if at + 1 < launch.execs.len() {
        let replaced = launch.execs[at + 1].enter.get();
        let has_helpers = forest.children(index as usize).iter().any(|child| {
            replaced.is_none_or(|replaced| forest.launches[*child].instants.created.get() < Some(replaced))
        });
        return (!has_helpers).then_some(StartByShell::Exec(at));
    }
    wrapped_child(forest, index).map(StartByShell::Launch)
}

/// Whether an unnecessary shell launched a program. One that executed a script in its own process
/// did not launch what the script launches.
pub(crate) fn is_in_needless_shell(forest: &Forest<'_>, index: u32) -> bool {
    let shell = forest.parent(index as usize);
    shell.is_some_and(|shell| needless_shell(forest, shell as u32) == Some(StartByShell::Launch(index)))
}

/// Returns the command of a shell: the string after `-c`.
pub(crate) fn command_of<'a>(exec: &Exec<'a>) -> Option<&'a [u8]> {
    if !is_shell(base_name(exec.path())) {
        return None;
    }
    let mut arguments = exec.arguments().skip(1).skip_while(|argument| *argument == b"sh" || *argument == b"ash");
    let options = arguments.next()?;
    let is_command = options.starts_with(b"-") && !options.starts_with(b"--") && options.ends_with(b"c");
    if is_command { arguments.next() } else { None }
}

/// Returns the child of a launch if there is only one and it runs a program.
pub(crate) fn wrapped_child(forest: &Forest<'_>, index: u32) -> Option<u32> {
    match forest.children(index as usize) {
        [child] if !forest.launches[*child].execs.is_empty() => Some(*child as u32),
        _ => None,
    }
}

/// The syntax that a shell understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Dialect {
    /// Only POSIX syntax, as in dash.
    Posix,
    /// bash under its own name.
    Bash,
    /// ksh93, mksh and similar shells.
    Ksh,
    Zsh,
}

impl Dialect {
    /// Returns the dialect for the base name of a program. bash named sh keeps its extensions, but
    /// a script for sh must not use them.
    pub(crate) fn of_program(name: &[u8]) -> Option<Dialect> {
        match name {
            b"sh" | b"dash" | b"ash" | b"busybox" | b"posh" | b"yash" | b"oksh" | b"pdksh" => Some(Dialect::Posix),
            b"bash" | b"rbash" => Some(Dialect::Bash),
            b"ksh" | b"ksh93" | b"mksh" | b"lksh" => Some(Dialect::Ksh),
            b"zsh" => Some(Dialect::Zsh),
            _ => None,
        }
    }

    /// Returns the dialect of the code that launches something. `None` if the parent is not a
    /// shell, or one that code of another language uses only for this.
    pub(crate) fn of_parent(forest: &Forest<'_>, index: usize) -> Option<Dialect> {
        let dialect = Dialect::of_program(forest.launcher(index)?.program_name())?;
        shell_between(forest, index as u32).is_none().then_some(())?;
        let file = forest.frames(forest.launches[index].script_stack).next().and_then(|frame| frame.file);
        Some(if file.is_some_and(is_read_by_any_shell) { Dialect::Posix } else { dialect })
    }
}

/// Whether the login shells of all users read a file, whichever shell that is.
fn is_read_by_any_shell(file: &[u8]) -> bool {
    matches!(base_name(file), b"profile" | b".profile") || file.starts_with(b"/etc/profile.d/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_login_shells_may_be_read_by_dash() {
        let files: [(&[u8], bool); 5] = [
            (b"/etc/profile", true),
            (b"/home/me/.profile", true),
            (b"/etc/profile.d/vte.sh", true),
            (b"/home/me/.bash_profile", false),
            (b"/srv/profile.sh", false),
        ];
        for (file, expected) in files {
            assert_eq!(is_read_by_any_shell(file), expected, "{}", file.escape_ascii());
        }
    }
}
