//! Masks likely secrets before they are stored. This code does no I/O. Argument boundaries are kept, and a mask does not reveal the length of
//! the secret. If a program or a name indicates a secret, doubtful values are masked, too. But arguments of forms that are frequent in
//! ordinary commands (`-DEND_TOKEN=5`, `--passes=3`, `-p 22`) are kept.
//!
//! `programs.txt` is the table of programs, which `table` parses. `command` processes a command line, and `text` processes the commands in a
//! text, which `shell` splits. `names` and `values` judge names and values. `assignments`, `shapes` and `urls` search within one argument.

mod assignments;
mod command;
mod names;
mod options;
mod secret_ranges;
mod shapes;
mod shell;
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

use self::secret_ranges::SecretRanges;
use self::word::Word;

/// Whether secrets are masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redaction {
    /// Likely secrets are replaced with `***`.
    Mask,
    /// Everything is stored unchanged.
    Keep,
}

impl Redaction {
    /// Masks an argv, whose arguments are NUL-terminated. The last argument may be truncated.
    #[must_use]
    pub fn apply(self, argv: &[u8]) -> Cow<'_, [u8]> {
        // This function runs for each launch, so the few that may contain a secret are selected quickly.
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
        let mut ranges = SecretRanges::default();
        shapes::find(path, false, &mut ranges);
        urls::find_in_path(path, &mut ranges);
        // A path with spaces may be a whole command line that was executed by mistake.
        if path.iter().any(u8::is_ascii_whitespace) {
            assignments::find(path, &mut ranges);
            ranges.add_relative(&text::find(path, 1), 0);
        }
        masked(path, ranges)
    }

    /// Masks the value that belongs to a name, as if name and value were an option: `--token=x`, `--mirror=https://user:password@host`.
    #[must_use]
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
    #[must_use]
    pub fn apply_to_text(self, text: &str) -> Cow<'_, str> {
        match self.apply_to_path(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(masked) => Cow::Owned(String::from_utf8_lossy(&masked).into_owned()),
        }
    }
}

fn masked(bytes: &[u8], ranges: SecretRanges) -> Cow<'_, [u8]> {
    if ranges.is_empty() { Cow::Borrowed(bytes) } else { Cow::Owned(ranges.mask(bytes)) }
}

fn find_in_argv(argv: &[u8]) -> SecretRanges {
    let mut ranges = SecretRanges::default();
    // Tokens do not contain NUL, and one search through the whole argv is faster than one for each argument.
    shapes::find(argv, !argv.ends_with(b"\0"), &mut ranges);
    let mut start = 0;
    let mut words = Vec::new();
    for argument in argv.split_inclusive(|byte| *byte == 0) {
        words.push(Word::plain(argument.strip_suffix(b"\0").unwrap_or(argument), start));
        start += argument.len();
    }
    command::find(&words, 0, &mut ranges);
    ranges
}

/// Matches every argv that contains a secret, and few others, by secret words, prefixes of tokens, and names of programs in the table.
static SUSPICIOUS: LazyLock<Regex> = LazyLock::new(|| {
    const WORDS: &str = r"(?i:pass|pwd|pswd|[_\-.]pw|\bpw|[a-z]pw\b|secret|token|key|cred|auth|cookie|psk|bearer|jwt|mnemonic|otp|sig=|signature=|identified
        |session|sid=|ticket=|hmac=|code=|\bpin|-pin|puk|x-api|x-csrf|x-xsrf|sonar\.login|expect)";
    const LOGINS: &str = r":/?[^/\s\x00]*@|:/[^\s\x00]*@";
    const USERS: &str = r"[\x00\s](?:-u|-U|--user|--username|-user|-username|--login)[\x00\s]";
    let programs: Vec<String> = table::programs_with_secrets().into_iter().map(regex::escape).collect();
    let programs = programs.join("|");
    let programs = format!(r"(?:^|[\x00/\s'\x22`;&|(])(?:{programs})(?:$|[\x00\s.:@0-9\-'\x22`;&|)])");
    let pattern = format!("(?x-u){WORDS}|{LOGINS}|{USERS}|{programs}|{}", shapes::pattern());
    Regex::new(&pattern).expect("the patterns in this directory are valid, as its tests show")
});

#[cfg(test)]
mod tests;
