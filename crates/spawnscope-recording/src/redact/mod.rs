//! Masks likely secrets before they are stored. This code does no I/O. Argument boundaries are
//! kept, and a mask does not reveal the length of the secret. If a program or a name indicates a
//! secret, doubtful values are masked, too. But arguments of forms that are frequent in ordinary
//! commands (`-DEND_TOKEN=5`, `--passes=3`, `-p 22`) are kept.
//!
//! `names` and `values` judge names and values. `inside` searches one argument for names with
//! values, with `shapes` and `urls` for secrets that need no name. `command` searches the arguments
//! of a command, which `options` matches with the table, and `text` the commands of a script, which
//! `shell` splits. `programs.txt` lists the programs whose secrets have neither a name nor a common
//! form.

mod command;
mod inside;
mod names;
mod options;
mod shapes;
mod shell;
mod table;
mod text;
mod urls;
mod values;
mod words;

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::bytes::Regex;

use self::inside::Kind;
use self::words::{Found, Word};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redaction {
    Mask,
    Keep,
}

impl Redaction {
    /// Masks an argv, whose arguments are NUL-terminated. The last argument may be truncated.
    pub fn apply(self, argv: &[u8]) -> Cow<'_, [u8]> {
        // This function runs for each launch, so the few that may contain a secret are selected
        // quickly.
        if self == Redaction::Keep || !is_suspicious(argv) {
            return Cow::Borrowed(argv);
        }
        masked(argv, find_in_argv(argv))
    }

    /// Masks a path or another short text that is not a command line.
    pub fn apply_to_path(self, path: &[u8]) -> Cow<'_, [u8]> {
        if self == Redaction::Keep || !is_suspicious(path) {
            return Cow::Borrowed(path);
        }
        let mut found = Found::default();
        // A path with spaces may be a whole command line that was executed by mistake.
        if path.iter().any(u8::is_ascii_whitespace) {
            inside::find(&Word::plain(path, 0), Kind::Text, &mut found);
            text::find(path, 1, &mut found);
        } else {
            shapes::find(path, false, &mut found);
            urls::find(path, &mut found);
        }
        masked(path, found)
    }

    /// Masks the value that belongs to a name, as if name and value were an option: `--token=x`,
    /// `--mirror=https://user:password@host`.
    pub fn apply_to_value(self, name: &str, value: &str) -> String {
        let option = format!("--{name}=");
        let argv = format!("spawnscope\0{option}{value}\0");
        let masked = String::from_utf8_lossy(&self.apply(argv.as_bytes())).into_owned();
        let masked = masked.strip_suffix('\0').unwrap_or(&masked);
        let value = masked.split_once('\0').and_then(|(_, word)| word.strip_prefix(&option));
        // If the mask also covers a part of the name, the whole value is masked.
        value.unwrap_or("***").to_owned()
    }

    /// Masks a text that may quote arguments, such as an error message.
    pub fn apply_to_text(self, text: &str) -> Cow<'_, str> {
        match self.apply_to_path(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(masked) => Cow::Owned(String::from_utf8_lossy(&masked).into_owned()),
        }
    }
}

fn masked(bytes: &[u8], found: Found) -> Cow<'_, [u8]> {
    if found.is_empty() { Cow::Borrowed(bytes) } else { Cow::Owned(found.mask(bytes)) }
}

fn find_in_argv(argv: &[u8]) -> Found {
    let mut found = Found::default();
    // Tokens do not contain NUL, and one search through the whole argv is faster than one for each
    // argument.
    shapes::find(argv, !argv.ends_with(b"\0"), &mut found);
    let mut start = 0;
    let mut words = Vec::new();
    for argument in argv.split_inclusive(|byte| *byte == 0) {
        words.push(Word::plain(argument.strip_suffix(b"\0").unwrap_or(argument), start));
        start += argument.len();
    }
    command::find(&words, 0, &mut found);
    text::resolve(&[], &[shell::SimpleCommand { words, ..Default::default() }], &mut found);
    found
}

fn is_suspicious(text: &[u8]) -> bool {
    SUSPICIOUS.is_match(text) || shapes::has_key(text)
}

/// Whether a word may contain a secret in itself.
fn is_revealing(text: &[u8]) -> bool {
    REVEALING.is_match(text) || shapes::has_key(text)
}

/// Matches every word that contains a secret, and few others: by secret words, logins and prefixes
/// of tokens.
static REVEALING: LazyLock<Regex> = LazyLock::new(|| compile(&revealing()));

/// Matches every argv that contains a secret, and few others: also by words that announce a login,
/// and names of programs in the table.
static SUSPICIOUS: LazyLock<Regex> = LazyLock::new(|| {
    const LOGINS: &str = r"[\x00\s](?:-u|-U|-a|-D|--user|--username|-user|-username|--login|login|signin|logon|register|unlock|unseal|unwrap)[\x00\s]";
    let names = table::programs_with_secrets().into_iter().map(|name| match name.strip_suffix('*') {
        Some(start) => format!(r"{}[\w.\-]*", regex::escape(start)),
        None => regex::escape(name),
    });
    let programs = names.collect::<Vec<_>>().join("|");
    compile(&format!(
        r"{}|{LOGINS}|(?:^|[\x00/\s'\x22`;&|(=])(?:{programs})(?:$|[\x00\s.:@0-9\-'\x22`;&|)])",
        revealing()
    ))
});

fn revealing() -> String {
    const WORDS: &str = r"(?i:pass|pwd|pswd|[_\-.]pw|\bpw|[a-z]pw\b|secret|token|key|cred|auth|cookie|psk|bearer|jwt|mnemonic|otp|sig=|signature=|identified
        |session|sid=|ticket=|hmac=|code=|\bpin|-pin|puk|x-api|x-csrf|x-xsrf|sonar\.login|expect|\buser\s*=)";
    const URLS: &str = r":/?[^/\s\x00]*@|:/[^\s\x00]*@";
    format!("{WORDS}|{URLS}|{}", shapes::pattern())
}

fn compile(pattern: &str) -> Regex {
    // The pattern matches bytes, because arguments need not be UTF-8.
    Regex::new(&format!("(?x-u){pattern}")).expect("the patterns in this directory are valid, as its tests show")
}

#[cfg(test)]
mod tests;
