//! A word of a command line, which knows the positions of its bytes in the surrounding text, and
//! what was found in a text: ranges to mask, and the shell variables whose values reach a secret
//! place. A mask does not reveal the length of the secret.

use std::borrow::Cow;
use std::ops::Range;

use super::names::Evidence;
use super::values;

const MASK: &[u8] = b"***";
/// A text with more references is not a script that a person wrote.
const MAX_REFERENCES: usize = 64;

#[derive(Debug)]
pub(super) struct Word<'a> {
    /// The bytes that a program would receive.
    pub(super) text: Cow<'a, [u8]>,
    /// The range in the surrounding text of each byte, which includes its quoting. If empty, the
    /// bytes are contiguous from `start` on.
    ranges: Vec<Range<usize>>,
    start: usize,
}

impl<'a> Word<'a> {
    /// Creates a word that appears unchanged in a text.
    pub(super) fn plain(text: &'a [u8], start: usize) -> Word<'a> {
        Word { text: Cow::Borrowed(text), ranges: Vec::new(), start }
    }

    /// Creates a word whose bytes have these ranges in a text.
    pub(super) fn mapped(text: Vec<u8>, ranges: Vec<Range<usize>>) -> Word<'a> {
        Word { text: Cow::Owned(text), ranges, start: 0 }
    }

    /// Returns the range in the surrounding text of a part of the word.
    pub(super) fn outer(&self, part: Range<usize>) -> Range<usize> {
        if self.ranges.is_empty() {
            return self.start + part.start..self.start + part.end;
        }
        match (self.ranges.get(part.start), part.end.checked_sub(1).and_then(|last| self.ranges.get(last))) {
            (Some(first), Some(last)) => first.start..last.end.max(first.start),
            _ => 0..0,
        }
    }

    pub(super) fn part(&self, part: Range<usize>) -> Word<'_> {
        let text = &self.text[part.clone()];
        match self.ranges.get(part.clone()) {
            Some(ranges) if !self.ranges.is_empty() => {
                Word { text: Cow::Borrowed(text), ranges: ranges.to_vec(), start: 0 }
            }
            _ => Word::plain(text, self.start + part.start),
        }
    }

    /// Returns the word with its escapes decoded, as the program at the other end reads it: `%3D`
    /// of a URL, and `\n`, `\"`, `\x3d` and `\u003d` of a string. Returns `None` if there are none.
    pub(super) fn decoded(&self) -> Option<Word<'static>> {
        let text = &*self.text;
        if !text.iter().any(|byte| matches!(byte, b'%' | b'\\')) {
            return None;
        }
        let has_quotes = (0..text.len()).any(|at| text[at] == b'"' && (at == 0 || text[at - 1] != b'\\'));
        let (mut bytes, mut ranges, mut at) = (Vec::new(), Vec::new(), 0);
        while at < text.len() {
            let (byte, length) = decode(&text[at..], !has_quotes).unwrap_or((text[at], 1));
            bytes.push(byte);
            ranges.push(self.outer(at..at + length));
            at += length;
        }
        (bytes.len() < text.len()).then(|| Word::mapped(bytes, ranges))
    }
}

/// Decodes the escape at the start of a text. Returns the byte and the length of the escape.
fn decode(text: &[u8], has_escaped_quotes: bool) -> Option<(u8, usize)> {
    let hexadecimal = |digits: &[u8]| {
        let value = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        (value.is_ascii_graphic() || value == b' ' || value == b'\n').then_some(value)
    };
    match text {
        [b'%', high, low, ..] => Some((hexadecimal(&[*high, *low])?, 3)),
        [b'\\', b'u', b'0', b'0', high, low, ..] => Some((hexadecimal(&[*high, *low])?, 6)),
        [b'\\', b'x', high, low, ..] => Some((hexadecimal(&[*high, *low])?, 4)),
        [b'\\', b'n' | b'r', ..] => Some((b'\n', 2)),
        [b'\\', b't', ..] => Some((b'\t', 2)),
        [b'\\', quote @ (b'"' | b'\\'), ..] if has_escaped_quotes => Some((*quote, 2)),
        _ => None,
    }
}

#[derive(Debug, Default)]
pub(super) struct Found {
    ranges: Vec<Range<usize>>,
    /// The names of the variables that are used where a secret is expected: `x` in `mysql -p"$x"`.
    /// `1` is the first positional parameter.
    pub(super) references: Vec<Vec<u8>>,
}

impl Found {
    /// Adds a range. Empty ranges are ignored.
    pub(super) fn add(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.ranges.push(range);
        }
    }

    /// Adds what is secret in a value, which has this range in `text`. Returns whether anything is.
    pub(super) fn mark(&mut self, evidence: Evidence, text: &[u8], value: Range<usize>) -> bool {
        if let Some(part) = values::secret_part(evidence, &text[value.clone()]) {
            self.add(value.start + part.start..value.start + part.end);
            return true;
        }
        if evidence != Evidence::Weak {
            self.add_references(&text[value]);
        }
        false
    }

    /// Remembers the variables in a text that is used as a secret.
    pub(super) fn add_references(&mut self, text: &[u8]) {
        values::referenced(text).for_each(|name| self.add_reference(&name));
    }

    fn add_reference(&mut self, name: &[u8]) {
        if self.references.len() < MAX_REFERENCES && !self.references.iter().any(|known| known == name) {
            self.references.push(name.to_vec());
        }
    }

    /// The same as `mark` for a part of a word.
    pub(super) fn mark_word(&mut self, evidence: Evidence, word: &Word<'_>, part: Range<usize>) -> bool {
        let mut within = Found::default();
        let is_secret = within.mark(evidence, &word.text, part);
        self.add_within(within, word);
        is_secret
    }

    pub(super) fn add_within(&mut self, within: Found, word: &Word<'_>) {
        within.ranges.into_iter().for_each(|part| self.add(word.outer(part)));
        within.references.iter().for_each(|name| self.add_reference(name));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(super) fn contains(&self, at: usize) -> bool {
        /// Secrets are found almost in order, and a limit keeps the search linear.
        const MAX_RANGES: usize = 16;
        self.ranges.iter().rev().take(MAX_RANGES).any(|range| range.contains(&at))
    }

    /// Returns the bytes with masks instead of secrets. Ranges that touch or overlap get one mask.
    pub(super) fn mask(mut self, bytes: &[u8]) -> Vec<u8> {
        self.ranges.sort_unstable_by_key(|range| (range.start, range.end));
        let mut masked = Vec::with_capacity(bytes.len());
        let mut done = None;
        for Range { start, end } in self.ranges {
            if done.is_none_or(|done| start > done) {
                masked.extend_from_slice(&bytes[done.unwrap_or(0)..start]);
                masked.extend_from_slice(MASK);
            }
            done = done.max(Some(end));
        }
        masked.extend_from_slice(&bytes[done.unwrap_or(0)..]);
        masked
    }
}
