//! Names that a shell does not look up in PATH: builtins, reserved words and predefined aliases of
//! dash, bash and mksh, in all versions. Nearly all are in one list, so that a decision rarely
//! depends on the installed shell.

/// A shell with known builtins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    Dash,
    /// bash, also as `sh`.
    Bash,
    /// mksh, lksh.
    Mksh,
    /// Any program may be one of Busybox's applets.
    Busybox,
}

/// Sorted, for a binary search.
#[rustfmt::skip]
const BUILTINS: &[&str] = &[
    "!", ".", ":", "[", "[[", "]]", "alias", "autoload", "bg", "bind", "break", "builtin", "caller",
    "case", "cd", "chdir", "command", "compgen", "complete", "compopt", "continue", "coproc", "declare",
    "dirs", "disown", "do", "done", "echo", "elif", "else", "enable", "esac", "eval", "exec", "exit",
    "export", "false", "fc", "fg", "fi", "for", "function", "functions", "getopts", "global", "hash",
    "help", "hist", "histcmd", "history", "if", "in", "integer", "jobid", "jobs", "kill", "let", "local",
    "login", "logout", "mapfile", "nameref", "namespace", "newgrp", "popd", "print", "printf", "pushd",
    "pwd", "r", "read", "readarray", "readonly", "return", "select", "set", "setvar", "shift", "shopt",
    "source", "stop", "suspend", "test", "then", "time", "times", "trap", "true", "type", "typeset",
    "ulimit", "umask", "unalias", "unset", "until", "wait", "whence", "while", "wordexp", "{", "}",
];
/// Names that belong only to mksh, and are programs for the other shells.
const MKSH_BUILTINS: &[&str] = &["cat", "mknod", "nohup", "realpath", "rename", "sleep"];

/// Whether a shell might run the command of this name itself.
#[must_use]
pub fn is_builtin(name: &[u8], shell: Shell) -> bool {
    BUILTINS.binary_search_by(|known| known.as_bytes().cmp(name)).is_ok()
        || shell == Shell::Mksh && MKSH_BUILTINS.iter().any(|known| known.as_bytes() == name)
}

/// Whether the first word of a command is a program, not an option, a job or an assignment.
#[must_use]
pub fn is_program(word: &[u8]) -> bool {
    !matches!(word.first(), None | Some(b'%' | b'-' | b'+')) && !word.contains(&b'=')
}
