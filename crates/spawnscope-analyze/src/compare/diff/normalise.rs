//! Removes from arguments what differs between two runs of the same command: numbers, hashes,
//! temporary names, process ids. Launches of two runs with equal normalised arguments do the same.

use crate::model::launch::base_name;

/// The replacement for a number or a hash.
const PLACEHOLDER: u8 = b'#';
const TEMPORARY_NAME: u8 = b'*';
/// Directories for temporary files. The name directly below them is replaced.
const TEMPORARY_DIRECTORIES: [&[u8]; 4] = [b"/tmp/", b"/var/tmp/", b"/dev/shm/", b"/run/user/"];
/// A hexadecimal string of at least this many digits is a hash. A shorter string may be a word.
const MIN_HASH_DIGITS: usize = 7;
/// Maximum length of normalised arguments, in bytes. Longer arguments are truncated, since they are
/// kept as keys.
const MAX_BYTES: usize = 1_024;

/// Joins the normalised arguments with spaces. Leaves out the first argument, the program's name.
pub fn arguments<'a>(argv: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut joined = Vec::new();
    for argument in argv.skip(1) {
        if !joined.is_empty() {
            joined.push(b' ');
        }
        joined.extend_from_slice(&normalise(argument));
        if joined.len() >= MAX_BYTES {
            joined.truncate(MAX_BYTES);
            break;
        }
    }
    joined
}

/// Normalises one argument, or any other text.
pub fn normalise(text: &[u8]) -> Vec<u8> {
    if is_short_option(text) {
        return text.to_vec();
    }
    let mut normal = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if let Some(directory) = TEMPORARY_DIRECTORIES.iter().find(|directory| text[at..].starts_with(directory)) {
            normal.extend_from_slice(directory);
            at += directory.len();
            at += push_temporary_name(&mut normal, &text[at..]);
        } else if text[at].is_ascii_alphanumeric() {
            let word = word_at(&text[at..]);
            push_word(&mut normal, word);
            at += word.len();
        } else {
            normal.push(text[at]);
            at += 1;
        }
    }
    normal
}

/// Whether the argument is an option of one letter with a number that must be kept: `-O2`, `-j8`,
/// `-m32`.
fn is_short_option(text: &[u8]) -> bool {
    let [b'-', letter, digits @ ..] = text else { return false };
    letter.is_ascii_alphabetic() && (1..=2).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
}

fn word_at(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| !byte.is_ascii_alphanumeric());
    &text[..end.unwrap_or(text.len())]
}

/// Adds a word with its numbers replaced. A hash, or a random name from `mktemp`, is replaced as a
/// whole.
fn push_word(normal: &mut Vec<u8>, word: &[u8]) {
    if is_hash(word) || (ends_with_tmp(normal) && word.len() >= 6) {
        normal.push(PLACEHOLDER);
        return;
    }
    for byte in word {
        if !byte.is_ascii_digit() {
            normal.push(*byte);
        } else if normal.last() != Some(&PLACEHOLDER) {
            normal.push(PLACEHOLDER);
        }
    }
}

/// Whether a word is a hash (long, hexadecimal, with at least one digit) or an address (hexadecimal
/// after `0x`).
fn is_hash(word: &[u8]) -> bool {
    let has_digit = word.iter().any(u8::is_ascii_digit);
    let is_address = word.strip_prefix(b"0x").is_some_and(is_hexadecimal);
    is_address || (word.len() >= MIN_HASH_DIGITS && has_digit && is_hexadecimal(word))
}

fn is_hexadecimal(word: &[u8]) -> bool {
    word.iter().all(u8::is_ascii_hexdigit)
}

/// Whether the text ends with `tmp.` or similar, to which `mktemp` appends a random name.
fn ends_with_tmp(normal: &[u8]) -> bool {
    normal.ends_with(b"tmp.") || normal.ends_with(b"tmp_") || normal.ends_with(b"tmp-")
}

/// Adds a `*` for the name of a temporary file, and the suffix of the name, such as `.s`. Returns
/// the length of the path that it replaces.
fn push_temporary_name(normal: &mut Vec<u8>, rest: &[u8]) -> usize {
    let length = rest.iter().position(|byte| b"/ '\":;,)".contains(byte)).unwrap_or(rest.len());
    if length > 0 {
        normal.push(TEMPORARY_NAME);
        normal.extend_from_slice(suffix(base_name(&rest[..length])));
    }
    length
}

/// Returns the suffix of a file name, such as `.s` or `.sock`. Returns nothing if the suffix may be
/// random, because it is long or does not consist of lower-case letters.
fn suffix(name: &[u8]) -> &[u8] {
    let dot = name.iter().rposition(|byte| *byte == b'.').filter(|dot| *dot > 0);
    let suffix = dot.map_or(&name[name.len()..], |dot| &name[dot..]);
    let is_plain = suffix.len() <= 5 && suffix.iter().skip(1).all(u8::is_ascii_lowercase);
    if is_plain { suffix } else { &name[name.len()..] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> String {
        String::from_utf8(normalise(text.as_bytes())).unwrap()
    }

    #[test]
    fn parts_that_differ_between_runs_are_replaced() {
        for (before, after, normal) in [
            ("usr/share/doc/section0/file0", "usr/share/doc/section41/file97", "usr/share/doc/section#/file#"),
            ("/tmp/ccA8xYz2.s", "/tmp/ccQQ1bcd.s", "/tmp/*.s"),
            ("/tmp/unpack.KWH3ls/parcel", "/tmp/unpack.a8Zqqq/parcel", "/tmp/*/parcel"),
            ("build-tmp.Ab12Cd34", "build-tmp.zzYYxxWW", "build-tmp.#"),
            ("9f86d081884c7d65", "deadbeef00112233", "#"),
            ("/proc/4711/fd/3", "/proc/99/fd/12", "/proc/#/fd/#"),
            ("at 0x7ffd12ab", "at 0x55aa", "at #"),
        ] {
            assert_eq!([text(before), text(after)], [normal, normal]);
        }
    }

    #[test]
    fn parts_that_do_not_differ_between_runs_are_kept() {
        for same in ["-O2", "-j8", "--verbose", "Makefile", "facade", "src/main.c", "a b"] {
            assert_eq!(text(same), same);
        }
        assert_ne!(text("-O2"), text("-O3"));
    }

    #[test]
    fn the_first_argument_is_left_out() {
        assert_eq!(arguments([b"/bin/mv".as_slice(), b"a1", b"b2"].into_iter()), b"a# b#");
        assert_eq!(arguments(std::iter::empty()), b"");
        assert!(arguments([b"x".as_slice(), &[b'y'; 5_000]].into_iter()).len() <= MAX_BYTES);
    }
}
