//! Decides which names denote secrets: `API_KEY`, `--db-password`, `authToken`, but not `KEYMAP`, `--max-tokens` or `--token-file`. A name
//! is split into words at `_`, `-`, `.` and changes of case, and the words decide. `values` judges values.

use super::vocabulary::{
    DESCRIBING_WORDS, NO_PASS_WORDS, NO_TOKEN_WORDS, OTHER_KEY_WORDS, PASSWORDS, PIN_WORDS, SECRET_ENDINGS,
    SECRET_KEY_WORDS, SECRET_WORDS, SWITCHES, is_among,
};

/// The type of secret that a name announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecretType {
    /// A password.
    Password,
    /// A token or a key of a service.
    Secret,
    /// Credentials: a token or `user:X`.
    Login,
    /// A key. Whether it is secret depends on the value.
    Key,
}

/// Only this many bytes at the end of a name are judged.
const MAX_NAME_BYTES: usize = 64;
/// Only this many words at the end of a name are judged.
const MAX_WORDS: usize = 16;

/// The words of a name in lower case.
struct Words {
    text: [u8; MAX_NAME_BYTES],
    /// The start and the end of each word in `text`.
    bounds: [(u8, u8); MAX_WORDS],
    count: usize,
}

impl Words {
    fn split(name: &[u8]) -> Words {
        let name = &name[name.len().saturating_sub(MAX_NAME_BYTES)..];
        let mut words = Words { text: [0; MAX_NAME_BYTES], bounds: [(0, 0); MAX_WORDS], count: 0 };
        let mut start = 0;
        for (at, byte) in name.iter().enumerate() {
            words.text[at] = byte.to_ascii_lowercase();
            if !byte.is_ascii_alphanumeric() {
                words.add(start, at);
                start = at + 1;
            } else if begins_word(name, at) {
                words.add(start, at);
                start = at;
            }
        }
        words.add(start, name.len());
        words
    }

    /// Adds a word. If there are too many, the last ones are kept.
    fn add(&mut self, start: usize, end: usize) {
        if start >= end {
            return;
        }
        if self.count == MAX_WORDS {
            self.bounds.rotate_left(1);
            self.count -= 1;
        }
        // Both numbers are at most `MAX_NAME_BYTES`.
        self.bounds[self.count] = (start as u8, end as u8);
        self.count += 1;
    }

    /// Returns a word without trailing digits, as in `password1`.
    fn get(&self, at: usize) -> &[u8] {
        let (start, end) = self.bounds[at];
        let word = &self.text[usize::from(start)..usize::from(end)];
        let letters = word.iter().rposition(|byte| !byte.is_ascii_digit());
        letters.map_or(word, |last| &word[..=last])
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = &[u8]> + Clone {
        (0..self.count).map(|at| self.get(at))
    }
}

/// Whether a change of case starts a word: `authToken`, `APIKey`.
fn begins_word(name: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| name[before]) else {
        return false;
    };
    let next_is_lower = name.get(at + 1).is_some_and(u8::is_ascii_lowercase);
    name[at].is_ascii_uppercase()
        && (before.is_ascii_lowercase() || before.is_ascii_digit() || (before.is_ascii_uppercase() && next_is_lower))
}

/// Whether a name may contain a secret word. This test is faster than splitting the name into words, and excludes most names.
fn may_be_secret(name: &[u8]) -> bool {
    const STEMS: [&[u8]; 16] = [
        b"pas",
        b"pw",
        b"psk",
        b"psw",
        b"pin",
        b"puk",
        b"secret",
        b"token",
        b"key",
        b"cred",
        b"auth",
        b"cookie",
        b"bearer",
        b"jwt",
        b"otp",
        b"mnemonic",
    ];
    (0..name.len()).any(|at| match name[at] | 0x20 {
        b'p' | b's' | b't' | b'k' | b'c' | b'a' | b'b' | b'j' | b'o' | b'm' => {
            let rest = &name[at..];
            STEMS.iter().any(|stem| rest.get(..stem.len()).is_some_and(|start| start.eq_ignore_ascii_case(stem)))
        }
        _ => false,
    })
}

/// Judges a name. Returns `None` if it says nothing about its value.
pub(super) fn judge(name: &[u8]) -> Option<SecretType> {
    if !may_be_secret(name) {
        return None;
    }
    let words = Words::split(name);
    let last = (0..words.count).rev().find(|at| is_secret_word(words.get(*at)))?;
    let before = (0..last).map(|at| words.get(at)).next_back();
    let mut following = words.all().skip(last + 1);
    let is_bare = following.clone().all(is_neutral);
    // In Vault, a role's id is public, but its `secret_id` is the secret itself.
    if name.eq_ignore_ascii_case(b"secret_id") {
        return Some(SecretType::Secret);
    }
    let is_reference = before == Some(b"existing");
    if following.any(|word| is_among(word, DESCRIBING_WORDS)) || is_switch(name, &words, last) || is_reference {
        return None;
    }
    match words.get(last) {
        b"key" => judge_key(name, &words, last, is_bare),
        b"keys" => before.filter(|word| is_among(word, SECRET_KEY_WORDS)).map(|_| SecretType::Secret),
        b"pass" => {
            (is_bare && !before.is_some_and(|before| is_among(before, NO_PASS_WORDS))).then_some(SecretType::Password)
        }
        b"token" => (!before.is_some_and(|before| is_among(before, NO_TOKEN_WORDS))).then_some(SecretType::Secret),
        b"pin" => before.filter(|word| is_among(word, PIN_WORDS)).map(|_| SecretType::Password),
        b"auth" | b"cred" | b"creds" | b"credential" | b"credentials" => is_bare.then_some(SecretType::Login),
        b"cookie" | b"otp" | b"totp" | b"bearer" => is_bare.then_some(SecretType::Secret),
        word if is_among(word, PASSWORDS) || is_glued_password(word) => Some(SecretType::Password),
        word if word.ends_with(b"auth") => Some(SecretType::Login),
        _ => Some(SecretType::Secret),
    }
}

/// Judges the name of an option whose value is the next argument. Unlike `judge`, it ignores `--pwd`, which is the working directory for many
/// programs.
pub(super) fn judge_flag(name: &[u8]) -> Option<SecretType> {
    let is_pwd = name.iter().filter(|byte| byte.is_ascii_alphabetic()).eq(b"pwd".iter());
    let is_definition = name.starts_with(b"-D") && name.get(2).is_some_and(u8::is_ascii_uppercase);
    judge(name).filter(|_| !is_pwd && !is_definition)
}

fn judge_key(name: &[u8], words: &Words, at: usize, is_bare: bool) -> Option<SecretType> {
    let before = at.checked_sub(1).map(|before| words.get(before));
    if before.is_some_and(|word| is_among(word, SECRET_KEY_WORDS)) {
        return Some(SecretType::Secret);
    }
    if !is_bare || before.is_some_and(|word| is_among(word, OTHER_KEY_WORDS)) {
        return None;
    }
    // An environment variable such as `SENDGRID_KEY` is secret, unlike `key=value` and `--sort-key`.
    let is_variable = !name.iter().any(u8::is_ascii_lowercase) && !name.starts_with(b"-");
    Some(if is_variable { SecretType::Secret } else { SecretType::Key })
}

/// Whether an option is a switch, or acts on a stored secret: `--ask-pass`, `--export-secret-keys`.
fn is_switch(name: &[u8], words: &Words, last: usize) -> bool {
    name.starts_with(b"-") && last > 0 && is_among(words.get(0), SWITCHES)
}

/// Whether a word after a secret word only says which secret it is: `DB_PASS_PROD`, `SECRET_KEY_BASE`.
fn is_neutral(word: &[u8]) -> bool {
    word.iter().all(u8::is_ascii_digit) || is_among(word, super::vocabulary::NEUTRAL)
}

fn is_secret_word(word: &[u8]) -> bool {
    is_among(word, SECRET_WORDS) || is_glued(word)
}

/// Whether a word consists of joined words, the last of which is secret: `dbpassword`, `authkey`.
fn is_glued(word: &[u8]) -> bool {
    SECRET_ENDINGS.iter().any(|ending| word.ends_with(ending)) || is_glued_password(word)
}

fn is_glued_password(word: &[u8]) -> bool {
    if word == b"oldpwd" {
        return false;
    }
    match PASSWORDS.iter().find(|ending| word.len() > ending.len() + 1 && word.ends_with(ending)) {
        Some(&b"pass") => !is_among(&word[..word.len() - b"pass".len()], NO_PASS_WORDS),
        found => found.is_some(),
    }
}

/// Whether an option defines a C macro whose name does not mean a secret but, for example, a token of a parser: `-DEND_TOKEN=5`.
pub(super) fn is_macro(name: &[u8]) -> bool {
    let is_definition = name.starts_with(b"-D") && !name.contains(&b'.');
    is_definition && judge(name) != Some(SecretType::Password) && !has_secret_key(name)
}

fn has_secret_key(name: &[u8]) -> bool {
    let words = Words::split(name);
    (1..words.count).any(|at| words.get(at) == b"key" && is_among(words.get(at - 1), SECRET_KEY_WORDS))
        || words.all().any(|word| word.ends_with(b"apikey"))
}

/// Whether an HTTP header with this name contains credentials.
pub(super) fn is_secret_header(name: &[u8]) -> bool {
    super::vocabulary::SECRET_HEADERS.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
        || judge(name).is_some()
}
