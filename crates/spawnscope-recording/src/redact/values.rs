//! Decides which part of the value of a secret name is secret: usually all of it, but nothing if
//! the value is a switch, a small number or a path, or if it refers to the secret (`$TOKEN`,
//! `env:TOKEN`, `@file`).

use std::ops::Range;

use super::names::{Evidence, List};

static PLACEHOLDERS: List = List::named("placeholders");
static REFERENCE_PREFIXES: List = List::named("reference prefixes");
static SUFFIXES: List = List::named("suffixes");
pub(super) static SCHEMES: List = List::named("schemes");
static WORDS_WITH_DIGITS: List = List::named("words with digits");
/// Prefix of a literal secret for OpenSSL and for programs that have adopted its syntax.
const LITERAL: &[u8] = b"pass:";
/// Minimum length of a value, or of a part of it, that looks like a key.
const MIN_KEY_LENGTH: usize = 7;

pub(super) fn secret_part(evidence: Evidence, value: &[u8]) -> Option<Range<usize>> {
    let start = match evidence {
        _ if value.starts_with(LITERAL) => LITERAL.len(),
        Evidence::Login => password_start(value),
        _ => 0,
    };
    let rest = &value[start..];
    let is_secret = !is_plain(rest)
        && !is_path(rest)
        && match evidence {
            Evidence::Password => true,
            Evidence::Secret | Evidence::Login => !SCHEMES.has(rest),
            Evidence::Weak => looks_random(rest),
        };
    is_secret.then_some(start..value.len())
}

/// Whether a value is never secret, regardless of its name.
pub(super) fn is_plain(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    PLACEHOLDERS.has(value)
        || digits.len() <= 3 && digits.iter().all(u8::is_ascii_digit)
        || is_reference(value)
        || value.ends_with(b":latest")
        || REFERENCE_PREFIXES.begins(value)
}

/// Returns where the password begins in `user:X`, or 0 if the part before the colon may be the
/// secret.
fn password_start(value: &[u8]) -> usize {
    const MAX_USER_BYTES: usize = 32;
    let colon = value.iter().position(|byte| *byte == b':').filter(|colon| (1..=MAX_USER_BYTES).contains(colon));
    match colon {
        Some(colon) if may_be_user(&value[..colon]) && colon + 1 < value.len() => colon + 1,
        _ => 0,
    }
}

pub(super) fn may_be_user(text: &[u8]) -> bool {
    !is_mixed(text) && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.@\\-".contains(byte))
}

/// Whether a value consists only of references to variables and command outputs: `$TOKEN`,
/// `${USER}:$(cat file)`, `%TOKEN%`.
pub(super) fn is_reference(value: &[u8]) -> bool {
    if let [b'%', name @ .., b'%'] = value {
        return !name.is_empty() && name.iter().all(is_name_byte);
    }
    if value.starts_with(b"%s") {
        return value[2..].iter().all(|byte| b"\\nr\"'".contains(byte));
    }
    let mut rest = value;
    while let Some(length) = reference_length(rest) {
        rest = &rest[length..];
        if let [b':' | b'@' | b' ', after @ ..] = rest {
            rest = after;
        }
        if let [b'\\', b'n' | b'r'] | [b'"' | b'\''] = rest {
            rest = &[];
        }
    }
    rest.is_empty() && !value.is_empty()
}

fn reference_length(text: &[u8]) -> Option<usize> {
    match text {
        [b'$', b'(', ..] => find_closing(text, 1, b'(', b')'),
        [b'`', rest @ ..] => rest.iter().position(|byte| *byte == b'`').map(|at| at + 2),
        [b'$', b'{', rest @ ..] => {
            let end = rest.iter().position(|byte| *byte == b'}')?;
            // Other characters may begin a default value, which may be a secret:
            // `${TOKEN:-hunter2}`.
            rest[..end].iter().all(|byte| is_name_byte(byte) || b"[]!@.*#".contains(byte)).then_some(end + 3)
        }
        [b'$', b'@' | b'*', ..] => Some(2),
        [b'$', rest @ ..] => {
            let end = rest.iter().position(|byte| !is_name_byte(byte)).unwrap_or(rest.len());
            (end > 0).then_some(end + 1)
        }
        _ => None,
    }
}

/// Returns the names of the variables in a value: `x` and `1` in `${x}$1`.
pub(super) fn referenced(value: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    const MAX_NAMES: usize = 8;
    let format = value.starts_with(b"%s").then(|| b"%s".to_vec());
    let variables = value.split(|byte| *byte == b'$').skip(1).take(MAX_NAMES).filter_map(|rest| {
        let rest = rest.strip_prefix(b"{").unwrap_or(rest);
        let end = rest.iter().position(|byte| !is_name_byte(byte)).unwrap_or(rest.len());
        let name = if matches!(rest.first(), Some(b'@' | b'*')) { &rest[..1] } else { &rest[..end] };
        (!name.is_empty() && name.len() <= 64).then(|| name.to_vec())
    });
    format.into_iter().chain(variables)
}

/// Returns where the bracket that opens at `from` is closed, including the closing byte.
pub(super) fn find_closing(text: &[u8], from: usize, opens: u8, closes: u8) -> Option<usize> {
    /// A longer text in brackets is not a value, and a limit keeps the search linear.
    const MAX_BYTES: usize = 4096;
    let mut depth = 0_usize;
    for (at, byte) in text.iter().enumerate().skip(from).take(MAX_BYTES) {
        if *byte == opens {
            depth += 1;
        } else if *byte == closes {
            depth -= 1;
            if depth == 0 {
                return Some(at + 1);
            }
        }
    }
    None
}

fn is_name_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

/// Whether a value is the path of a file. Keys in base64 may also begin with a slash, but they are
/// long and contain mixed characters.
fn is_path(value: &[u8]) -> bool {
    let is_relative = ["./", "../", "~/"].iter().any(|start| value.starts_with(start.as_bytes()));
    if is_relative || value.first() == Some(&b'$') && value.contains(&b'/') {
        return true;
    }
    if value.first() == Some(&b'/') {
        return value.len() < 24 || !is_mixed(value) || value.iter().any(|byte| matches!(byte, b'.' | b'-'));
    }
    SUFFIXES.ending(value).is_some_and(|suffix| suffix.len() < value.len()) || value.starts_with(b"id_")
}

/// Whether a value contains lower-case letters, upper-case letters and digits.
fn is_mixed(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_lowercase)
        && value.iter().any(u8::is_ascii_uppercase)
        && value.iter().any(u8::is_ascii_digit)
}

pub(super) fn is_word_like(value: &[u8]) -> bool {
    value.iter().all(|byte| byte.is_ascii_lowercase() || b"_-".contains(byte))
}

/// Whether a value looks random, or like a password chosen to be hard to guess: a word with letters
/// and digits.
pub(super) fn looks_random(value: &[u8]) -> bool {
    let may_be_key = value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-!#%^*?@$&~".contains(byte));
    may_be_key && !WORDS_WITH_DIGITS.has(value) && value.split(|byte| b"-_/=+".contains(byte)).any(is_random_piece)
}

/// Whether a piece is long enough, contains both letters and digits, and is not a known word.
fn is_random_piece(piece: &[u8]) -> bool {
    let has_letter = piece.iter().any(u8::is_ascii_alphabetic);
    let has_digit = piece.iter().any(u8::is_ascii_digit);
    piece.len() >= MIN_KEY_LENGTH && has_letter && has_digit && !WORDS_WITH_DIGITS.has(piece)
}

/// Whether a word without any context is a key, because upper case, lower case and digits alternate
/// more often than in a name.
pub(super) fn is_key_by_entropy(word: &[u8]) -> bool {
    const MIN_DIGITS: usize = 3;
    let class = |byte: &u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase(), byte.is_ascii_lowercase());
    let changes = word.windows(2).filter(|pair| class(&pair[0]) != class(&pair[1])).count();
    is_mixed(word)
        && word.iter().filter(|byte| byte.is_ascii_digit()).count() >= MIN_DIGITS
        && changes * 5 >= word.len() * 2
        && !word.starts_with(b"_")
}
