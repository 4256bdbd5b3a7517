//! Masks likely secrets before they are stored. This code is pure. Argument boundaries are kept, and a mask does not reveal the length of
//! the secret. If a program or a name indicates a secret, doubtful values are masked. If ordinary commands look the same (`-DEND_TOKEN=5`,
//! `--passes=3`, `-p 22`), they are kept.
//!
//! `programs.txt` is the table of programs, which `table` reads. `command` processes a command line, and `text` the commands in a text,
//! which `shell` splits. `names` and `values` judge names and values. `assignments`, `shapes` and `urls` search within one argument.

mod assignments;
mod command;
mod names;
mod options;
mod shapes;
mod shell;
mod spots;
mod table;
mod template;
mod text;
mod urls;
mod values;
mod vocabulary;
mod word;

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::bytes::Regex;

use self::spots::Spots;
use self::word::Word;

/// Whether secrets are masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redaction {
    /// Likely secrets are replaced by `***`.
    Mask,
    /// Everything is stored unchanged.
    Keep,
}

impl Redaction {
    /// Masks an argv (each argument ends with NUL; the last may be cut).
    #[must_use]
    pub fn apply(self, argv: &[u8]) -> Cow<'_, [u8]> {
        // This runs for each launch, and few have a secret.
        if self == Redaction::Keep || !SUSPICIOUS.is_match(argv) {
            return Cow::Borrowed(argv);
        }
        masked(argv, find_in_argv(argv))
    }

    /// Masks a path or another short text that is not a command line.
    #[must_use]
    pub fn apply_to_path(self, path: &[u8]) -> Cow<'_, [u8]> {
        if self == Redaction::Keep || !SUSPICIOUS.is_match(path) {
            return Cow::Borrowed(path);
        }
        let mut spots = Spots::default();
        shapes::find(path, false, &mut spots);
        urls::find_in_path(path, &mut spots);
        // A whole command line was executed as if it were a file.
        if path.iter().any(u8::is_ascii_whitespace) {
            assignments::find(path, &mut spots);
            text::find(path, 1).iter().for_each(|range| spots.add(range.clone()));
        }
        masked(path, spots)
    }

    /// Masks a value that has a name, as in an option: `--token=x`, `--mirror=https://user:password@host`.
    #[must_use]
    pub fn apply_to_value(self, name: &str, value: &str) -> String {
        let option = format!("--{name}=");
        let argv = format!("spawnscope\0{option}{value}\0");
        let masked = String::from_utf8_lossy(&self.apply(argv.as_bytes())).into_owned();
        let masked = masked.strip_suffix('\0').unwrap_or(&masked);
        let value = masked.split_once('\0').and_then(|(_, word)| word.strip_prefix(&option));
        // If the mask covers the option's name too, the rest of the value may be secret as well.
        value.unwrap_or("***").to_owned()
    }

    /// Masks a text such as a message that may quote arguments.
    #[must_use]
    pub fn apply_to_text(self, text: &str) -> Cow<'_, str> {
        match self.apply_to_path(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(masked) => Cow::Owned(String::from_utf8_lossy(&masked).into_owned()),
        }
    }
}

fn masked(bytes: &[u8], spots: Spots) -> Cow<'_, [u8]> {
    if spots.is_empty() {
        Cow::Borrowed(bytes)
    } else {
        Cow::Owned(spots.mask(bytes))
    }
}

fn find_in_argv(argv: &[u8]) -> Spots {
    let mut spots = Spots::default();
    // None of these forms contains NUL, and one search is faster than one per argument.
    shapes::find(argv, !argv.ends_with(b"\0"), &mut spots);
    let mut start = 0;
    let mut words = Vec::new();
    for argument in argv.split_inclusive(|byte| *byte == 0) {
        words.push(Word::plain(argument.strip_suffix(b"\0").unwrap_or(argument), start));
        start += argument.len();
    }
    command::find(&words, 0, &mut spots);
    spots
}

/// Matches every argv with something to mask, and few others: secret words, token prefixes, programs in the table.
static SUSPICIOUS: LazyLock<Regex> = LazyLock::new(|| {
    const WORDS: &str = r"(?i:pass|pwd|pswd|[_\-.]pw|\bpw|[a-z]pw\b|secret|token|key|cred|auth|cookie|psk|bearer|jwt|mnemonic|otp|sig=|signature=|identified
        |session|sid=|ticket=|hmac=|code=|\bpin|-pin|puk|x-api|x-csrf|x-xsrf|sonar\.login|expect)";
    const LOGINS: &str = r":/?[^/\s\x00]*@|:/[^\s\x00]*@";
    const USERS: &str = r"[\x00\s](?:-u|-U|--user|--username|-user|-username|--login)[\x00\s]";
    let programs: Vec<String> = table::suspicious().into_iter().map(regex::escape).collect();
    let programs = programs.join("|");
    let programs = format!(r"(?:^|[\x00/\s'\x22`;&|(])(?:{programs})(?:$|[\x00\s.:@0-9\-'\x22`;&|)])");
    let pattern = format!("(?x-u){WORDS}|{LOGINS}|{USERS}|{programs}|{}", shapes::suspicious());
    Regex::new(&pattern).expect("the patterns in this directory are valid, as its tests show")
});

#[cfg(test)]
mod tests;
