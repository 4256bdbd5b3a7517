//! Splits a command for `sh -c` into words if nothing in it needs a shell; otherwise refuses it.
//!
//! `vspawn_shell` decides whether a text is plain, as for `spawnscope accel`. This module checks
//! the other things that decide what `/bin/sh` would run: which shell it is, the environment, and
//! PATH. The Node package has this file, too.
//! Differences from a shell remain: variables that shells set (PWD, SHLVL, _), and a program that
//! cannot be executed is an error of the call (a shell returns status 126 or 127).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use vspawn_shell::{Lexer, Shell, is_builtin, is_program, read_word};

/// The kernel's limit on the size of a string, including its NUL (MAX_ARG_STRLEN). A shell could
/// not get a longer command either.
const MAX_STRING_BYTES: usize = 128 * 1024;

/// Variables that change the behaviour of bash (also as `sh`), or that name files that a shell
/// reads first.
const SPECIAL_VARIABLES: &[&str] = &["BASHOPTS", "BASH_COMPAT", "BASH_ENV", "ENV", "SHELLOPTS"];

/// Splits a command into its words, of which there is at least one. `variables` are the names of
/// the shell's environment, and `path` is its PATH. Fails with the reason if the command needs a
/// shell.
pub(crate) fn shell_words<Name: AsRef<OsStr>>(
    text: &[u8],
    variables: impl Iterator<Item = Name>,
    path: Option<&OsStr>,
) -> Result<Vec<Vec<u8>>, &'static str> {
    let words = split(text).ok_or("it has more than plain words and quotes")?;
    let shell = shell_at(Path::new("/bin/sh")).ok_or("/bin/sh is an unknown shell")?;
    if !runs(shell, &words[0]) {
        return Err("its first word may have a special meaning for the shell");
    }
    if !environment_is_plain(variables) {
        return Err("an environment variable may change its meaning");
    }
    if !words[0].contains(&b'/') && !path_is_plain(path) {
        return Err("with this PATH, the shell may find another program");
    }
    Ok(words)
}

/// Splits a text into words. Returns `None` if it needs a shell.
fn split(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    // In another encoding, a byte of a character may look like a quote.
    if text.len() >= MAX_STRING_BYTES || std::str::from_utf8(text).is_err() || matches!(text[..], [b'-' | b'+', ..]) {
        return None;
    }
    let mut words = Vec::new();
    let mut lexer = Lexer::new(text);
    loop {
        lexer.skip_blanks();
        match lexer.rest() {
            [] => return (!words.is_empty()).then_some(words),
            [b'<' | b'>', ..] => return None,
            _ => {}
        }
        let mut word = Vec::new();
        let mut push = |byte| {
            word.push(byte);
            Ok(())
        };
        read_word(&mut lexer, |byte| byte >= 128, &mut push).ok()?;
        words.push(word);
    }
}

/// Whether a shell would run the program of this name, and nothing of its own.
fn runs(shell: Shell, word: &[u8]) -> bool {
    is_program(word) && (word.contains(&b'/') || shell != Shell::Busybox && !is_builtin(word, shell))
}

/// Returns the shell that a path refers to, identified by the name of the file after all symbolic
/// links.
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

/// Whether the environment has no functions for bash and no variable that changes the behaviour of
/// a shell.
fn environment_is_plain(mut names: impl Iterator<Item = impl AsRef<OsStr>>) -> bool {
    names.all(|name| {
        let name = name.as_ref();
        let is_special = SPECIAL_VARIABLES.iter().any(|known| name == *known);
        !is_special && !name.as_bytes().starts_with(b"BASH_FUNC_")
    })
}

/// Whether all shells search this PATH in the same way. Without PATH, each has its own default;
/// bash expands a tilde in it, and dash interprets a percent sign.
fn path_is_plain(path: Option<&OsStr>) -> bool {
    path.is_some_and(|path| !path.as_bytes().iter().any(|byte| b"~%".contains(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_applet_of_busybox_is_no_program() {
        assert!(runs(Shell::Dash, b"cat") && runs(Shell::Busybox, b"/bin/cat") && !runs(Shell::Busybox, b"cat"));
        assert!(!runs(Shell::Bash, b"echo") && runs(Shell::Bash, b"/bin/echo") && !runs(Shell::Bash, b"./a=b"));
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
