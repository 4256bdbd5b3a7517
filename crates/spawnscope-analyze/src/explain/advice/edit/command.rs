//! Commands as programs in Python and Perl write them: words of plain text and of code. `python`
//! and `perl` read them, `library` replaces them.

use std::ops::Range;

use crate::patterns::words::{contains, fits, string_length};

/// Characters that a shell interprets outside of quotes.
const SPECIAL: &[u8] = b"|&;<>()$`*?[]~#!\r\t^{}";

/// A part of a word: text, or code whose value is inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(Vec<u8>),
    Code(Vec<u8>),
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CommandWord {
    /// A part of a string.
    Pieces(Vec<Piece>),
    /// An element of a list.
    Expression(Vec<u8>),
}

/// A command, and the file from which it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CommandCall {
    pub(super) words: Vec<CommandWord>,
    pub(super) input: Option<CommandWord>,
}

/// What happens with the result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    /// A statement. A failure changes nothing.
    Ignored,
    /// A statement that assigns the exit status to a variable.
    Status,
    /// A failure is an exception or a false value.
    Checked,
    /// A condition that is true if the command fails.
    Negated,
    /// A call of a function that ends the program if the command fails.
    Fatal,
    /// A text without the newline at its end; with blanks removed at both ends; its first word; as
    /// it was printed; and as bytes.
    Line,
    Trimmed,
    FirstWord,
    Text,
    Bytes,
}

/// A launch in a program.
pub(super) struct FoundLaunch {
    /// What is replaced.
    pub(super) range: Range<usize>,
    pub(super) command: CommandCall,
    pub(super) usage: Usage,
    /// Whether the value is one that is not a list.
    pub(super) is_scalar: bool,
    /// Whether the program gets bytes, which it may decode itself.
    pub(super) is_bytes: bool,
}

impl CommandWord {
    /// Returns the text of a word without code.
    pub(super) fn literal(&self) -> Option<&[u8]> {
        match self {
            CommandWord::Pieces(pieces) => match &pieces[..] {
                [] => Some(b""),
                [Piece::Text(text)] => Some(text),
                _ => None,
            },
            CommandWord::Expression(_) => None,
        }
    }

    /// Whether a word may have been this argument.
    pub(super) fn can_be(&self, argument: &[u8]) -> bool {
        let CommandWord::Pieces(pieces) = self else { return true };
        let parts = pieces.iter().map(|piece| match piece {
            Piece::Text(text) => Some(&text[..]),
            Piece::Code(_) => None,
        });
        fits(parts, argument)
    }
}

/// Splits a command line into words, as a shell does. `None` if a shell would do more than that.
pub(super) fn split(pieces: &[Piece]) -> Option<CommandCall> {
    let mut words: Vec<Vec<Piece>> = Vec::new();
    let (mut word, mut quote, mut input): (Option<Vec<Piece>>, _, _) = (None, None, None);
    for piece in pieces {
        let text = match piece {
            Piece::Text(text) => text,
            Piece::Code(code) => {
                let code = if quote.is_none() { unquoted(code) } else { code };
                (!contains(code, b"quote(")).then_some(())?;
                word.get_or_insert_default().push(Piece::Code(code.to_vec()));
                continue;
            }
        };
        for &byte in text {
            match (quote, byte) {
                (_, b'\\' | b'\n') => return None,
                (Some(open), _) if byte == open => quote = None,
                (Some(b'"'), b'$' | b'`' | b'!') => return None,
                (None, b'"' | b'\'') => {
                    quote = Some(byte);
                    word.get_or_insert_default();
                }
                (None, b' ') => words.extend(word.take()),
                (None, b'<') if word.is_none() && input.is_none() => input = Some(words.len()),
                (None, _) if SPECIAL.contains(&byte) => return None,
                _ => push(word.get_or_insert_default(), byte),
            }
        }
    }
    words.extend(word);
    let mut words: Vec<CommandWord> = words.into_iter().map(CommandWord::Pieces).collect();
    let input = match input {
        Some(at) if at + 1 == words.len() => words.pop(),
        Some(_) => return None,
        None => None,
    };
    let is_assignment = words.first()?.literal().is_some_and(|word| word.contains(&b'='));
    (quote.is_none() && !is_assignment).then_some(CommandCall { words, input })
}

/// Reads a list of words, each with `word`.
pub(super) fn listed(code: &[u8], word: impl Fn(&[u8]) -> Option<CommandWord>) -> Option<CommandCall> {
    let words = split_code(code, b',')?.into_iter().filter(|word| !word.is_empty()).map(word);
    let words: Vec<CommandWord> = words.collect::<Option<_>>()?;
    (!words.is_empty()).then_some(CommandCall { words, input: None })
}

/// Returns the value of code that quotes it for a shell.
fn unquoted(code: &[u8]) -> &[u8] {
    let value = [&b"shlex.quote("[..], b"pipes.quote(", b"quote("].iter().find_map(|quote| code.strip_prefix(*quote));
    let value = value.and_then(|value| value.strip_suffix(b")"));
    value.filter(|value| split_code(value, b',').is_some_and(|values| values.len() == 1)).unwrap_or(code)
}

fn push(pieces: &mut Vec<Piece>, byte: u8) {
    match pieces.last_mut() {
        Some(Piece::Text(text)) => text.push(byte),
        _ => pieces.push(Piece::Text(vec![byte])),
    }
}

/// Splits code at a byte that is outside of brackets and strings. `None` if these have no end.
pub(super) fn split_code(code: &[u8], separator: u8) -> Option<Vec<&[u8]>> {
    let (mut parts, mut start, mut depth, mut at) = (Vec::new(), 0, 0_usize, 0);
    while at < code.len() {
        match code[at] {
            byte if byte == separator && depth == 0 => {
                parts.push(code[start..at].trim_ascii());
                start = at + 1;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            quote @ (b'"' | b'\'') => at += 1 + string_length(&code[at + 1..], quote)?,
            _ => {}
        }
        at += 1;
    }
    parts.push(code[start..].trim_ascii());
    (depth == 0).then_some(parts)
}
