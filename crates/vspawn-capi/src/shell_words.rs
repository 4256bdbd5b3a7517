//! Splits a command for `sh -c` into words if nothing in it needs a shell; otherwise refuses it.
//!
//! Accepts a program with arguments: plain words and simple quoting, separated by blanks. Refuses everything that any of the known
//! shells would expand, interpret, or run itself, and everything that is not listed here as plain.
//! Differences from a shell remain: variables that shells set (PWD, SHLVL, _), and a program that cannot be executed is
//! an error of the call (a shell returns status 126 or 127).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::failure::Failure;

/// The kernel's limit on the size of a string, including its NUL (MAX_ARG_STRLEN). A shell could not get a longer command either.
const MAX_STRING_BYTES: usize = 128 * 1024;

/// A shell with known built-in commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shell {
    Dash,
    Bash,
    Mksh,
    /// The name of any program may be that of one of Busybox's applets.
    Busybox,
}

/// Words that dash, bash or both run themselves: reserved words, and built-in commands of any kind.
#[rustfmt::skip]
const SHELL_WORDS: &[&str] = &[
    "if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in",
    "function", "time", "coproc", "namespace",
    ".", ":", "alias", "autoload", "bg", "bind", "break", "builtin", "caller", "cd", "chdir", "command", "compgen",
    "complete", "compopt", "continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exec", "exit", "export",
    "false", "fc", "fg", "functions", "getopts", "global", "hash", "help", "hist", "history", "integer", "jobs", "kill",
    "let", "local", "login", "logout", "mapfile", "nameref", "newgrp", "nohup", "popd", "print", "printf", "pushd",
    "pwd", "r", "read", "readarray", "readonly", "return", "set", "shift", "shopt", "source", "stop", "suspend",
    "test", "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait", "whence",
];
/// Words that only mksh has.
const MKSH_WORDS: &[&str] = &["cat", "mknod", "realpath", "rename", "sleep"];
/// Variables that change the behaviour of bash (also as `sh`), or that name files that a shell reads first.
const SPECIAL_VARIABLES: &[&str] = &["BASHOPTS", "BASH_COMPAT", "BASH_ENV", "ENV", "SHELLOPTS"];

/// Splits a command into its words, of which there is at least one. Fails if the command needs a shell.
pub(crate) fn shell_words(text: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
    let words = split(text).ok_or_else(|| refusal("it has more than plain words and quotes"))?;
    let shell = shell_at(Path::new("/bin/sh")).ok_or_else(|| refusal("/bin/sh is an unknown shell"))?;
    if !is_program(&words[0], shell) {
        return Err(refusal("its first word may have a special meaning for the shell"));
    }
    if !environment_is_plain(std::env::vars_os().map(|(name, _)| name)) {
        return Err(refusal("an environment variable may change its meaning"));
    }
    if !words[0].contains(&b'/') && !path_is_plain(std::env::var_os("PATH").as_deref()) {
        return Err(refusal("with this PATH, the shell may find another program"));
    }
    Ok(words)
}

fn refusal(why: &str) -> Failure {
    Failure::invalid(&format!("run the command without a shell: {why}"))
}

/// Splits a text of plain words and quotes. Returns `None` for any other text.
fn split(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let plain_text = text.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control());
    if text.len() >= MAX_STRING_BYTES || !plain_text || std::str::from_utf8(text).is_err() {
        return None;
    }
    let mut words = Vec::new();
    // `Some` while within a word, which may be empty so far.
    let mut word: Option<Vec<u8>> = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' | b'\t' => words.extend(word.take()),
            b'\'' | b'"' => read_quoted(byte, &mut bytes, word.get_or_insert_default())?,
            _ if is_plain(byte) => word.get_or_insert_default().push(byte),
            _ => return None,
        }
    }
    words.extend(word);
    // zsh would look up an argument `=name`. No shell that is known here does, but it is never meant literally either.
    (!words.is_empty() && !words.iter().any(|word| word.starts_with(b"="))).then_some(words)
}

/// Whether a character has no special meaning to any shell within a word.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_./:,+@%-=".contains(&byte)
}

/// Adds the text up to the closing quote to the word. Returns `None` if the quote is not closed, or if the text is not plain.
fn read_quoted(quote: u8, bytes: &mut impl Iterator<Item = u8>, word: &mut Vec<u8>) -> Option<()> {
    loop {
        match bytes.next()? {
            byte if byte == quote => return Some(()),
            b'$' | b'`' | b'\\' | b'!' if quote == b'"' => return None,
            // A backslash in single quotes is literal, except for dash's echo. It is refused here, as everywhere else.
            b'\\' => return None,
            byte => word.push(byte),
        }
    }
}

/// Whether the first word is a program, and not a word of the shell itself.
fn is_program(word: &[u8], shell: Shell) -> bool {
    let first = word.first().copied().unwrap_or(b'-');
    if b"-+%".contains(&first) || word.contains(&b'=') || word.contains(&b'%') {
        return false;
    }
    if word.contains(&b'/') {
        return true;
    }
    let is_plain_name = word.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.+-".contains(byte));
    let mksh_words = if shell == Shell::Mksh { MKSH_WORDS } else { &[] };
    let is_shell_word = SHELL_WORDS.iter().chain(mksh_words).any(|other| other.as_bytes() == word);
    is_plain_name && shell != Shell::Busybox && !is_shell_word
}

/// Returns the shell that a path refers to, identified by the name of the file after all symbolic links.
fn shell_at(path: &Path) -> Option<Shell> {
    let file = path.canonicalize().ok()?;
    match file.file_name()?.as_bytes() {
        b"dash" => Some(Shell::Dash),
        b"bash" => Some(Shell::Bash),
        b"mksh" | b"lksh" | b"mksh-static" => Some(Shell::Mksh),
        b"busybox" | b"busybox.static" => Some(Shell::Busybox),
        _ => None,
    }
}

/// Whether the environment has no functions for bash and no variable that changes the behaviour of a shell.
fn environment_is_plain(mut names: impl Iterator<Item = OsString>) -> bool {
    names.all(|name| {
        let is_special = SPECIAL_VARIABLES.iter().any(|known| name == *known);
        !is_special && !name.as_bytes().starts_with(b"BASH_FUNC_")
    })
}

/// Whether all shells search this PATH in the same way. Without PATH, each has its own default; bash expands a tilde in it, and dash
/// interprets a percent sign.
fn path_is_plain(path: Option<&OsStr>) -> bool {
    path.is_some_and(|path| !path.as_bytes().iter().any(|byte| b"~%".contains(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_runs_itself_is_not_a_program() {
        for shell in [Shell::Dash, Shell::Bash, Shell::Mksh, Shell::Busybox] {
            for word in
                ["", "-x", "+x", "a=b", "./a=b", "%1", "echo", "if", "[", "!", "{", ":", ".", "kill", "nohup", "a:b"]
            {
                assert!(!is_program(word.as_bytes(), shell), "{shell:?}: {word}");
            }
            assert!(is_program(b"/bin/echo", shell));
        }
        assert!(is_program(b"cat", Shell::Dash) && is_program(b"cat", Shell::Bash));
        assert!(!is_program(b"cat", Shell::Mksh) && !is_program(b"cat", Shell::Busybox));
    }

    #[test]
    fn every_builtin_and_reserved_word_of_the_installed_bash_is_known() {
        let listed = std::process::Command::new("bash").args(["-c", "compgen -b; compgen -k"]).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.lines().count() > 60, "{listed}");
        for word in listed.lines() {
            assert!(!is_program(word.as_bytes(), Shell::Bash), "{word}");
        }
    }

    #[test]
    fn a_shell_is_identified_by_the_file_that_a_link_refers_to() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("bash"), directory.path().join("sh"));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink("bash", &link).unwrap();
        assert_eq!(shell_at(&link), Some(Shell::Bash));
        std::fs::rename(&file, directory.path().join("fish")).unwrap();
        assert_eq!(shell_at(&directory.path().join("fish")), None);
        assert_eq!(shell_at(&link), None);
    }
}
