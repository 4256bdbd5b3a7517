//! How programs start others, by what runs them: which calls copy the parent's page tables, and which do not.

use super::RuleContext;
use crate::analyze::launch::base_name;
use crate::analyze::whatif::changes::is_shell;

/// What runs a program, as far as its name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runtime {
    Python,
    Ruby,
    Perl,
    Java,
    Node,
    Shell,
    /// Compiled, or unknown.
    Native,
}

/// Beginnings of the names of interpreters.
const NAMES: [(&str, Runtime); 6] = [
    ("python", Runtime::Python),
    ("pypy", Runtime::Python),
    ("ruby", Runtime::Ruby),
    ("perl", Runtime::Perl),
    ("java", Runtime::Java),
    ("node", Runtime::Node),
];

impl Runtime {
    /// What runs the parent of a launch, at the time it made that.
    pub(super) fn of_parent(context: &RuleContext<'_, '_>, launch: u32) -> Runtime {
        let name = context.launch(launch).birth_command.name;
        let parent = context.forest().parent(launch as usize);
        let execs = parent.map_or(&[][..], |parent| &context.forest().launches[parent].execs);
        // A script that begins with `#!` goes by its own name.
        let exec = execs.iter().rev().find(|exec| base_name(exec.path()) == name);
        let interpreter = exec.and_then(|exec| exec.interpreter());
        Runtime::named(interpreter.map_or(name, base_name))
    }

    fn named(name: &[u8]) -> Runtime {
        if is_shell(name) {
            return Runtime::Shell;
        }
        let Ok(name) = std::str::from_utf8(name) else {
            return Runtime::Native;
        };
        let known = NAMES.iter().find(|(begin, _)| is_version_of(name, begin));
        known.map_or(Runtime::Native, |(_, runtime)| *runtime)
    }

    /// What to do that launches are made without copying the parent's page tables.
    pub(super) fn without_copying(self) -> &'static [&'static str] {
        match self {
            Runtime::Python => &[
                "subprocess: leave out preexec_fn, user=, group= and extra_groups=: with any of them it forks, without it uses vfork \
                 (Python 3.10); start_new_session=, process_group=, umask= and cwd= do no harm",
                "what preexec_fn did is then for the program itself, or a wrapper: setpriv, prlimit, env --chdir",
                "os.fork() and os.exec*(): os.posix_spawn() or subprocess; pty.fork(): subprocess on what pty.openpty() gives",
                "multiprocessing: set_start_method(\"forkserver\") early, before the memory is there, or \"spawn\"",
            ],
            Runtime::Ruby => &[
                "fork { exec ... }: Process.spawn, system or Open3, which use vfork; what the block did goes into their options",
            ],
            Runtime::Perl => &[
                "system, exec and backticks always fork: Proc::FastSpawn or POSIX::RT::Spawn do not",
                "or start a small helper process before the memory is there, and let it launch",
            ],
            Runtime::Java => {
                &["java -Djdk.lang.Process.launchMechanism=POSIX_SPAWN (what it does by itself since JDK 13)"]
            }
            Runtime::Node => {
                &["start a small helper process before the memory is there (child_process.fork), and let it launch"]
            }
            Runtime::Shell => &[
                "unset arrays and variables that are not needed any more; read files line by line rather than into a variable",
                "launch before the large variables are there, or handle them in a program of their own",
            ],
            Runtime::Native => &[
                "C, C++: posix_spawn() in the place of fork() and exec(); or vfork(), with nothing but exec() and _exit() behind it",
                "Rust: Command without pre_exec, uid, gid and groups, the program with its path if env(\"PATH\") is set",
                "Go: os/exec does not copy; fork() in C code, or SysProcAttr with CLONE_NEWUSER, does",
            ],
        }
    }
}

/// `python` is `python3` and `python3.11`, but not `pythonista`.
fn is_version_of(name: &str, program: &str) -> bool {
    let rest = name.strip_prefix(program);
    rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_are_known_with_their_versions() {
        let cases = [
            ("python3.11", Runtime::Python),
            ("python", Runtime::Python),
            ("pythonista", Runtime::Native),
            ("perl5.36.0", Runtime::Perl),
            ("bash", Runtime::Shell),
            ("make", Runtime::Native),
        ];
        for (name, runtime) in cases {
            assert_eq!(Runtime::named(name.as_bytes()), runtime, "{name}");
        }
    }
}
