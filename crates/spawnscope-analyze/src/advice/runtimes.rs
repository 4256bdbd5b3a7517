//! Language runtimes: which of their calls copy the page tables of the parent, and which do not.

use super::RuleContext;
use crate::launch::base_name;
use crate::whatif::changes::is_shell;

/// The runtime of a program, derived from its name.
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

/// Prefixes of interpreter names.
const NAMES: [(&str, Runtime); 6] = [
    ("python", Runtime::Python),
    ("pypy", Runtime::Python),
    ("ruby", Runtime::Ruby),
    ("perl", Runtime::Perl),
    ("java", Runtime::Java),
    ("node", Runtime::Node),
];

impl Runtime {
    /// Returns the runtime of the parent at the time of the launch.
    pub(super) fn of_parent(context: &RuleContext<'_, '_>, launch: u32) -> Runtime {
        let name = context.launch(launch).birth_command.name;
        let parent = context.forest().parent(launch as usize);
        let execs = parent.map_or(&[][..], |parent| &context.forest().launches[parent].execs);
        // A process that runs a `#!` script has the name of the script.
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

    /// Returns instructions for launching without a copy of the page tables.
    pub(super) fn without_copying(self) -> &'static [&'static str] {
        match self {
            Runtime::Python => &[
                "subprocess: do not pass preexec_fn, user=, group= or extra_groups=: with any of them it forks, otherwise it uses vfork \
                 (Python 3.10); start_new_session=, process_group=, umask= and cwd= are harmless",
                "do the work of preexec_fn in the program itself or in a wrapper: setpriv, prlimit, env --chdir",
                "os.fork() and os.exec*(): use os.posix_spawn() or subprocess; pty.fork(): use subprocess with a terminal from \
                 pty.openpty()",
                "multiprocessing: call set_start_method(\"forkserver\") or (\"spawn\") early, before the memory is allocated",
            ],
            Runtime::Ruby => &[
                "fork { exec ... }: use Process.spawn, system or Open3, which use vfork; replace the code in the block with their options",
            ],
            Runtime::Perl => &[
                "system, exec and backticks always fork; Proc::FastSpawn and POSIX::RT::Spawn do not",
                "or start a small helper process before the memory is allocated, and launch from it",
            ],
            Runtime::Java => &["java -Djdk.lang.Process.launchMechanism=POSIX_SPAWN (the default since JDK 13)"],
            Runtime::Node => &[
                "start a small helper process before the memory is allocated (child_process.fork), and launch from it",
            ],
            Runtime::Shell => &[
                "unset arrays and variables that are no longer needed; read files line by line instead of into a variable",
                "launch before the large variables are filled, or handle them in a separate program",
            ],
            Runtime::Native => &[
                "C, C++: posix_spawn() instead of fork() and exec(); or vfork(), followed by nothing but exec() and _exit()",
                "Rust: Command without pre_exec, uid, gid and groups; give the path of the program if env(\"PATH\") is set",
                "Go: os/exec does not copy page tables; fork() in C code and SysProcAttr with CLONE_NEWUSER do",
            ],
        }
    }
}

/// Whether `name` is `program` with an optional version: `python3` and `python3.11` are `python`, `pythonista` is not.
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
