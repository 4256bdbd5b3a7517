//! Decides which names denote secrets: `API_KEY`, `--db-password`, `authToken`, `pass-phrase`, but
//! not `KEYMAP`, `--max-tokens` or `--token-file`. A name is split into words at punctuation and
//! changes of case, and the words decide. `words.txt` has all lists of words. `values` judges
//! values.

use std::collections::HashSet;
use std::sync::{LazyLock, OnceLock};

use regex::bytes::Regex;

use super::compile;

/// How sure it is that a value is secret, which decides what `values` masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// A password: everything except numbers of three digits, switches, paths and references.
    Password,
    /// A token or a key of a service: the same, except names of schemes.
    Secret,
    /// Credentials: a token or `user:X`.
    Login,
    /// Only a value that looks random is secret.
    Weak,
}

static PASSWORDS: List = List::named("passwords");
static SECRET_WORDS: List = List::named("secret words");
static SECRET_ENDINGS: List = List::named("secret endings");
static SECRET_KEY_WORDS: List = List::named("before secret keys");
static OTHER_KEY_WORDS: List = List::named("before other keys");
static DESCRIBING_WORDS: List = List::named("describing");
static SWITCHES: List = List::named("switches");
static NEUTRAL: List = List::named("neutral");
static NO_PASS_WORDS: List = List::named("before no pass");
static NO_TOKEN_WORDS: List = List::named("before no token");
static PIN_WORDS: List = List::named("before pins");
static SECRET_HEADERS: List = List::named("secret headers");
/// The beginnings of all secret words. This test is faster than splitting a name into words, and
/// excludes most names.
static STEMS: LazyLock<Regex> = LazyLock::new(|| {
    compile("(?i:pas|pw|psk|psw|pin|puk|secret|token|key|cred|auth|cookie|bearer|jwt|otp|mnemonic|requirepa|twofa)")
});
/// Only this many bytes at the end of a name are judged.
pub(super) const MAX_NAME_BYTES: usize = 64;

/// A list of `words.txt`, in lower case.
pub(super) struct List {
    name: &'static str,
    words: OnceLock<HashSet<&'static [u8]>>,
}

impl List {
    pub(super) const fn named(name: &'static str) -> List {
        List { name, words: OnceLock::new() }
    }

    fn words(&self) -> &HashSet<&'static [u8]> {
        self.words.get_or_init(|| {
            let mut lines = include_str!("words.txt").lines();
            let first = lines.find_map(|line| line.strip_prefix(self.name)?.strip_prefix(": "));
            let more = lines.take_while(|line| line.starts_with(' '));
            first.into_iter().chain(more).flat_map(str::split_ascii_whitespace).map(str::as_bytes).collect()
        })
    }

    /// Whether a word is in the list, regardless of case.
    pub(super) fn has(&self, word: &[u8]) -> bool {
        let words = self.words();
        words.contains(word)
            || word.iter().any(u8::is_ascii_uppercase) && words.contains(&word.to_ascii_lowercase()[..])
    }

    pub(super) fn begins(&self, text: &[u8]) -> bool {
        self.words().iter().any(|word| text.starts_with(word))
    }

    pub(super) fn ending(&self, text: &[u8]) -> Option<&'static [u8]> {
        self.words().iter().copied().find(|word| text.ends_with(word))
    }
}

/// Whether a word is in a short list, whose words are separated by spaces.
pub(super) fn is_among(word: &[u8], list: &str) -> bool {
    list.split_ascii_whitespace().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

/// Splits a name into its words in lower case, without trailing digits, as in `password1`.
fn split(name: &[u8]) -> Vec<Vec<u8>> {
    let name = &name[name.len().saturating_sub(MAX_NAME_BYTES)..];
    let mut words = vec![Vec::new()];
    for (at, byte) in name.iter().enumerate() {
        if !byte.is_ascii_alphanumeric() || begins_word(name, at) {
            words.push(Vec::new());
        }
        if let Some(word) = words.last_mut().filter(|_| byte.is_ascii_alphanumeric()) {
            word.push(byte.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    for word in &mut words {
        let letters = word.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(word.len(), |last| last + 1);
        word.truncate(letters);
    }
    words
}

/// Whether a change of case starts a word: `authToken`, `APIKey`.
fn begins_word(name: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| name[before]) else { return false };
    let next_is_lower = name.get(at + 1).is_some_and(u8::is_ascii_lowercase);
    name[at].is_ascii_uppercase()
        && (before.is_ascii_lowercase() || before.is_ascii_digit() || (before.is_ascii_uppercase() && next_is_lower))
}

/// Judges a name. Returns `None` if it says nothing about its value.
pub(super) fn judge(name: &[u8]) -> Option<Evidence> {
    if !STEMS.is_match(name) {
        return None;
    }
    // In Vault, a role's id is public, but its `secret_id` is the secret itself.
    if name.eq_ignore_ascii_case(b"secret_id") {
        return Some(Evidence::Secret);
    }
    let words = split(name);
    let last = words.iter().rposition(|word| is_secret_word(word))?;
    let after = &words[last + 1..];
    let is_after = |list: &List| last > 0 && list.has(&words[last - 1]);
    let is_bare = after.iter().all(|word| word.iter().all(u8::is_ascii_digit) || NEUTRAL.has(word));
    if after.iter().any(|word| DESCRIBING_WORDS.has(word)) || last > 0 && words[last - 1] == b"existing" {
        return None;
    }
    match &words[last][..] {
        b"key" if is_after(&SECRET_KEY_WORDS) => Some(Evidence::Secret),
        b"key" => (is_bare && !is_after(&OTHER_KEY_WORDS)).then(|| evidence_of_key(name)),
        b"keys" => is_after(&SECRET_KEY_WORDS).then_some(Evidence::Secret),
        b"pass" => (is_bare && !is_after(&NO_PASS_WORDS)).then_some(Evidence::Password),
        b"token" => (!is_after(&NO_TOKEN_WORDS)).then_some(Evidence::Secret),
        b"pin" => is_after(&PIN_WORDS).then_some(Evidence::Password),
        b"auth" | b"cred" | b"creds" | b"credential" | b"credentials" => is_bare.then_some(Evidence::Login),
        b"cookie" | b"otp" | b"totp" | b"bearer" => is_bare.then_some(Evidence::Secret),
        word if PASSWORDS.has(word) || is_glued_password(word) => Some(Evidence::Password),
        word if word.ends_with(b"auth") => Some(Evidence::Login),
        _ => Some(Evidence::Secret),
    }
}

/// An environment variable such as `SENDGRID_KEY` is secret, unlike `key=value` and `--sort-key`.
fn evidence_of_key(name: &[u8]) -> Evidence {
    let is_variable = name.contains(&b'_') && !name.iter().any(u8::is_ascii_lowercase) && !name.starts_with(b"-");
    if is_variable { Evidence::Secret } else { Evidence::Weak }
}

/// Judges the name of an option whose value is the next argument. Unlike `judge`, it ignores
/// switches such as `--ask-pass`, and `--pwd`, which is the working directory for many programs.
pub(super) fn judge_flag(name: &[u8]) -> Option<Evidence> {
    let bare = name.rsplit(|byte| *byte == b'-').next().unwrap_or_default();
    let is_short =
        name.len() <= bare.len() + 2 && (is_among(bare, "pin puk") || bare.len() <= 4 && bare.ends_with(b"pw"));
    let judged = if is_short { Some(Evidence::Password) } else { judge(name) }?;
    let is_pwd = name.iter().filter(|byte| byte.is_ascii_alphabetic()).eq(b"pwd".iter());
    let is_definition = name.starts_with(b"-D") && name.get(2).is_some_and(u8::is_ascii_uppercase);
    let words = split(name);
    let is_switch = words.len() > 1 && SWITCHES.has(&words[0]);
    (!is_pwd && !is_definition && !is_switch).then_some(judged)
}

fn is_secret_word(word: &[u8]) -> bool {
    SECRET_WORDS.has(word) || PASSWORDS.has(word) || SECRET_ENDINGS.ending(word).is_some() || is_glued_password(word)
}

/// Whether a word consists of joined words, the last of which is a password: `dbpassword`.
fn is_glued_password(word: &[u8]) -> bool {
    match PASSWORDS.ending(word).filter(|ending| word.len() > ending.len() + 1) {
        Some(b"pass") => !NO_PASS_WORDS.has(&word[..word.len() - b"pass".len()]),
        found => found.is_some() && word != b"oldpwd",
    }
}

/// Whether an option defines a C macro whose name does not mean a secret but, for example, a token
/// of a parser: `-DEND_TOKEN=5`.
pub(super) fn is_macro(name: &[u8]) -> bool {
    let is_definition = name.starts_with(b"-D") && !name.contains(&b'.') && !name.iter().any(u8::is_ascii_lowercase);
    let words = split(name);
    let has_secret_key = words.windows(2).any(|pair| pair[1] == b"key" && SECRET_KEY_WORDS.has(&pair[0]))
        || words.iter().any(|word| word.ends_with(b"apikey"));
    is_definition && !has_secret_key && judge(name) != Some(Evidence::Password)
}

/// Whether an HTTP header with this name contains credentials.
pub(super) fn is_secret_header(name: &[u8]) -> bool {
    SECRET_HEADERS.has(name) || judge(name).is_some()
}
