//! Language runtimes: which of their calls copy the page tables of the parent, and how to avoid
//! that. Also finds which call of Python made a launch.

use std::sync::LazyLock;

use super::shells::{command_of, is_in_needless_shell, is_shell, wrapped_child};
use super::words::{contains, rows};
use crate::model::frames::{Frame, is_standard_library};
use crate::model::launch::{Launch, base_name, is_version_of};
use crate::model::tree::Forest;
use spawnscope_data::event::Language;

spawnscope_data::named_enum! {
    /// The runtime of a program, derived from its name. Each has the name of its language in a
    /// sentence.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Runtime {
        Python = "Python",
        Ruby = "Ruby",
        Perl = "Perl",
        Raku = "Raku",
        Java = "Java",
        Node = "Node.js",
        Php = "PHP",
        Fish = "fish",
        Lua = "Lua",
        Tcl = "Tcl",
        Awk = "awk",
        CMake = "CMake",
        R = "R",
        Emacs = "Emacs Lisp",
        Make = "make",
        Go = "Go",
        Rust = "Rust",
        Shell = "the shell",
        /// Compiled from another language, or unknown.
        Native = "the program",
    }
}

/// Names of interpreters, without a version.
static INTERPRETERS: LazyLock<Vec<(&[u8], Runtime)>> = LazyLock::new(|| {
    let names = |runtime: Runtime| runtime.row()[0].split_whitespace().map(move |name| (name.as_bytes(), runtime));
    Runtime::ALL.into_iter().flat_map(names).collect()
});

/// Parts of function names that occur only in programs of one compiled language.
const FUNCTIONS: [(&[u8], Runtime); 4] = [
    (b"os/exec.", Runtime::Go),
    (b"syscall.forkExec", Runtime::Go),
    (b"std::process::", Runtime::Rust),
    (b"std::sys::process::", Runtime::Rust),
];

impl Runtime {
    /// Returns the runtime of the code that made the launch, also if that used a shell which does
    /// nothing else.
    pub(crate) fn of_parent(forest: &Forest<'_>, launch: u32) -> Runtime {
        Runtime::of_launcher(forest, shell_between(forest, launch).unwrap_or(launch))
    }

    /// Returns the runtime of the process that made the launch. A fork of a `#!` script still runs
    /// that script.
    fn of_launcher(forest: &Forest<'_>, launch: u32) -> Runtime {
        let exec = forest.launcher(launch as usize);
        // The interpreter of `#!/usr/bin/env python3` is env, whose argument is the real
        // interpreter.
        let program = match exec.map(|exec| (exec.program_name(), exec.arguments().next())) {
            Some((b"env", Some(argument))) => base_name(argument),
            Some((program, _)) => program,
            None => forest.launches[launch as usize].birth_command.name,
        };
        match Runtime::named(program) {
            Runtime::Native => Runtime::from_functions(forest, &forest.launches[launch as usize]),
            known => known,
        }
    }

    /// Returns the language of a compiled program, recognized by the functions in the launch's call
    /// chain.
    fn from_functions(forest: &Forest<'_>, launch: &Launch<'_>) -> Runtime {
        let mut names = forest.frames(launch.native_stack).filter_map(|frame| frame.function);
        let language = names.find_map(|name| {
            let mut functions = FUNCTIONS.iter();
            let (_, runtime) = functions.find(|(part, _)| contains(name, part))?;
            Some(*runtime)
        });
        language.unwrap_or(Runtime::Native)
    }

    pub(crate) fn named(name: &[u8]) -> Runtime {
        if is_shell(name) {
            return Runtime::Shell;
        }
        let known = INTERPRETERS.iter().find(|(begin, _)| is_version_of(name, begin));
        known.map_or(Runtime::Native, |(_, runtime)| *runtime)
    }

    /// Returns what the table has in the columns after the name.
    fn row(self) -> [&'static str; 3] {
        let row = rows(include_str!("runtimes.tsv")).find(|[name, ..]: &[&str; 4]| *name == self.name());
        row.map_or([""; 3], |[_, columns @ ..]| columns)
    }

    /// Whether the runtime's programs allocate memory with the C library's `malloc`.
    pub(crate) fn uses_malloc(self) -> bool {
        self.row()[1] == "malloc"
    }

    /// Returns how to shorten the start of an interpreter. Empty if that is unknown.
    pub(crate) fn shorter_start(self) -> &'static str {
        self.row()[2]
    }
}

/// Returns the shell that code of another language started only to launch this program: `sh -c
/// 'program arguments'`.
pub(crate) fn shell_between(forest: &Forest<'_>, launch: u32) -> Option<u32> {
    let shell = shell_of_line(forest, launch)?;
    let is_code = Runtime::of_launcher(forest, shell) != Runtime::Native;
    // Other shells have more children, and are not read.
    (is_code && wrapped_child(forest, shell) == Some(launch) && is_in_needless_shell(forest, launch)).then_some(shell)
}

/// Returns the shell that runs a line for another program, if the line launches this program,
/// perhaps with others: `sh -c 'program arguments | sed 1q'`.
pub(crate) fn shell_of_line(forest: &Forest<'_>, launch: u32) -> Option<u32> {
    let shell = forest.parent(launch as usize)? as u32;
    forest.parent(shell as usize)?;
    let text = forest.launches[shell as usize].execs.first().and_then(command_of)?;
    let has_line = !text.trim_ascii_end().contains(&b'\n');
    let is_code = || !matches!(Runtime::of_launcher(forest, shell), Runtime::Shell | Runtime::Fish | Runtime::Make);
    (has_line && is_code()).then_some(shell)
}

/// The Python call that forked. Functions of the standard library have Python frames; built-in
/// functions have only native frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PythonCall {
    Subprocess,
    Multiprocessing,
    Pty,
    OsFork,
    /// A built-in function or an extension, called by code outside of the standard library.
    Direct,
}

impl PythonCall {
    /// Identifies the call from the call chains of a launch. `None` if they are inconclusive.
    pub(crate) fn of(forest: &Forest<'_>, launch: &Launch<'_>) -> Option<PythonCall> {
        let innermost = forest.frames(launch.script_stack).next();
        let innermost = innermost.filter(|frame| frame.language == Language::Python)?;
        let file = innermost.file.map(base_name)?;
        let in_library = is_standard_library(&innermost);
        match file {
            b"subprocess.py" if in_library => Some(PythonCall::Subprocess),
            b"popen_fork.py" if in_library => Some(PythonCall::Multiprocessing),
            b"pty.py" if in_library => Some(PythonCall::Pty),
            _ if forest.frames(launch.native_stack).any(|frame| is_os_fork(&frame)) => Some(PythonCall::OsFork),
            _ if in_library => None,
            _ => Some(PythonCall::Direct),
        }
    }

    /// Describes the call, and when it copies page tables.
    pub(crate) fn description(self) -> &'static str {
        match self {
            PythonCall::Subprocess => {
                "subprocess, which forks for preexec_fn, user=, group= and extra_groups=, and always before Python 3.10"
            }
            PythonCall::Multiprocessing => "multiprocessing with the start method \"fork\"",
            PythonCall::Pty => "pty.fork()",
            PythonCall::OsFork => "os.fork()",
            PythonCall::Direct => "os.fork(), or a function of an extension",
        }
    }
}

fn is_os_fork(frame: &Frame<'_>) -> bool {
    frame.function.is_some_and(|name| matches!(name, b"os_fork" | b"os_fork_impl" | b"os_forkpty" | b"os_forkpty_impl"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_are_recognized_with_their_versions() {
        let cases = [
            ("python3.11", Runtime::Python),
            ("python", Runtime::Python),
            ("pythonista", Runtime::Native),
            ("perl5.36.0", Runtime::Perl),
            ("bash", Runtime::Shell),
            ("make", Runtime::Make),
            ("raku", Runtime::Raku),
            ("nodejs", Runtime::Node),
            ("ninja", Runtime::Native),
        ];
        for (name, runtime) in cases {
            assert_eq!(Runtime::named(name.as_bytes()), runtime, "{name}");
        }
        assert!(rows(include_str!("runtimes.tsv")).all(|[name]| Runtime::ALL.iter().any(|each| each.name() == name)));
    }
}
