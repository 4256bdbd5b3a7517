//! Language runtimes: which of their calls copy the page tables of the parent, and how to avoid
//! that. Also finds which call of Python made a launch.

use super::shells::{StartByShell, is_shell, needless_shell, wrapped_child};
use super::words::contains;
use crate::model::frames::{Frame, is_standard_library};
use crate::model::launch::{Launch, base_name, is_version_of};
use crate::model::tree::Forest;
use spawnscope_data::event::Language;

/// The runtime of a program, derived from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
    Python,
    Ruby,
    Perl,
    Raku,
    Java,
    Node,
    Php,
    Fish,
    Lua,
    Tcl,
    Awk,
    CMake,
    R,
    Emacs,
    Make,
    Go,
    Rust,
    Shell,
    /// Compiled from another language, or unknown.
    Native,
}

/// Names of interpreters, without a version.
pub(crate) const NAMES: [(&[&[u8]], Runtime); 15] = [
    (&[b"python", b"pypy"], Runtime::Python),
    (&[b"ruby"], Runtime::Ruby),
    (&[b"perl"], Runtime::Perl),
    (&[b"java"], Runtime::Java),
    (&[b"node", b"nodejs", b"bun", b"deno"], Runtime::Node),
    (&[b"raku", b"rakudo", b"perl6", b"moar"], Runtime::Raku),
    (&[b"php"], Runtime::Php),
    (&[b"fish"], Runtime::Fish),
    (&[b"lua", b"luajit", b"nvim"], Runtime::Lua),
    (&[b"tclsh", b"wish", b"expect"], Runtime::Tcl),
    (&[b"awk", b"gawk", b"mawk", b"original-awk"], Runtime::Awk),
    (&[b"cmake", b"ccmake"], Runtime::CMake),
    (&[b"R", b"Rscript"], Runtime::R),
    (&[b"emacs"], Runtime::Emacs),
    (&[b"make", b"gmake"], Runtime::Make),
];

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
        let known = NAMES.iter().find(|(names, _)| names.iter().any(|begin| is_version_of(name, begin)));
        known.map_or(Runtime::Native, |(_, runtime)| *runtime)
    }

    /// Returns the name of the language in a sentence.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Runtime::Python => "Python",
            Runtime::Ruby => "Ruby",
            Runtime::Perl => "Perl",
            Runtime::Raku => "Raku",
            Runtime::Java => "Java",
            Runtime::Node => "Node.js",
            Runtime::Php => "PHP",
            Runtime::Lua => "Lua",
            Runtime::Tcl => "Tcl",
            Runtime::CMake => "CMake",
            Runtime::R => "R",
            Runtime::Emacs => "Emacs Lisp",
            Runtime::Go => "Go",
            Runtime::Rust => "Rust",
            Runtime::Shell => "the shell",
            Runtime::Native => "the program",
            Runtime::Awk => "awk",
            Runtime::Fish => "fish",
            Runtime::Make => "make",
        }
    }

    /// Returns how to shorten the start of an interpreter.
    pub(crate) fn shorter_start(self) -> Option<&'static str> {
        match self {
            Runtime::Python => Some(
                "python3 -X importtime lists the imports and how long each takes; import what is rarely needed inside functions",
            ),
            Runtime::Node => Some("node --snapshot-blob, or NODE_COMPILE_CACHE=DIRECTORY (Node 22)"),
            Runtime::Ruby => Some("ruby --disable-gems, or bootsnap"),
            Runtime::Php => Some("php -n ignores php.ini and its extensions; opcache.file_cache"),
            Runtime::Java => Some("-XX:SharedArchiveFile (class data sharing), or -XX:TieredStopAtLevel=1"),
            Runtime::R => Some("Rscript --vanilla"),
            _ => None,
        }
    }

    /// Whether the runtime's programs allocate memory with the C library's `malloc`. Other runtimes
    /// map their heaps themselves.
    pub(crate) fn uses_malloc(self) -> bool {
        matches!(
            self,
            Runtime::Python
                | Runtime::Ruby
                | Runtime::Perl
                | Runtime::Shell
                | Runtime::Make
                | Runtime::Emacs
                | Runtime::Tcl
                | Runtime::Awk
                | Runtime::CMake
                | Runtime::Rust
                | Runtime::Native
        )
    }
}

/// Returns the shell that code of another language started only to launch this program: `sh -c
/// 'program arguments'`.
pub(crate) fn shell_between(forest: &Forest<'_>, launch: u32) -> Option<u32> {
    let shell = forest.parent(launch as usize)? as u32;
    // Other shells have more children, and are not read.
    wrapped_child(forest, shell).filter(|child| *child == launch)?;
    let is_only_child = needless_shell(forest, shell) == Some(StartByShell::Launch(launch));
    let is_code = || {
        let runtime = Runtime::of_launcher(forest, shell);
        !matches!(runtime, Runtime::Shell | Runtime::Fish | Runtime::Make | Runtime::Native)
    };
    (is_only_child && is_code()).then_some(shell)
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
    }
}
