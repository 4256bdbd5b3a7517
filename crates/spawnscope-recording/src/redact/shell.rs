//! Splits shell text into commands, words without quotes, pipes, here-documents and substitutions.
//! It does not check the syntax: it returns a result for any text, even if the text is prose or in
//! another language. `vspawn_shell` reads the quotes.

use std::ops::Range;

use vspawn_shell::{Lexer, Piece};

use super::words::Word;

#[derive(Debug, Default)]
pub(super) struct Script<'a> {
    pub(super) commands: Vec<SimpleCommand<'a>>,
    /// The ranges within `$( )`, backquotes and `<( )`, which the caller parses separately.
    pub(super) inner: Vec<Range<usize>>,
}

#[derive(Debug, Default)]
pub(super) struct SimpleCommand<'a> {
    pub(super) words: Vec<Word<'a>>,
    /// Whether the output is piped into the next command.
    pub(super) is_piped: bool,
    pub(super) here_words: Vec<Word<'a>>,
    pub(super) here_documents: Vec<Range<usize>>,
}

const MAX_SUBSTITUTION_BYTES: usize = 4096;

pub(super) fn parse(text: &[u8]) -> Script<'_> {
    let mut parser = Parser {
        text,
        at: 0,
        script: Script::default(),
        command: SimpleCommand::default(),
        delimiters: Vec::new(),
        target: Target::Word,
    };
    while parser.at < text.len() {
        parser.step();
    }
    parser.end_command(false);
    parser.script
}

/// What the next word is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    /// The name or an argument of the command.
    Word,
    File,
    HereWord,
    HereDocument,
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    script: Script<'a>,
    command: SimpleCommand<'a>,
    /// Delimiters of the here-documents that begin on the next line.
    delimiters: Vec<Vec<u8>>,
    target: Target,
}

impl<'a> Parser<'a> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn step(&mut self) {
        let next = self.peek(1);
        match self.text[self.at] {
            b' ' | b'\t' | b'\r' => self.at += 1,
            b'\n' => {
                self.at += 1;
                self.read_documents();
                self.end_command(false);
            }
            b'&' if next == Some(b'>') => self.at += 1,
            b'|' => {
                let is_pipe = next != Some(b'|');
                self.at += if is_pipe && next != Some(b'&') { 1 } else { 2 };
                self.end_command(is_pipe);
            }
            b';' | b'&' | b'(' | b')' => {
                self.at += 1;
                self.end_command(false);
            }
            b'<' | b'>' => self.read_redirection(),
            b'#' => {
                let length = self.text[self.at..].iter().position(|byte| *byte == b'\n');
                self.at = length.map_or(self.text.len(), |length| self.at + length);
            }
            _ => self.read_word(),
        }
    }

    fn end_command(&mut self, is_piped: bool) {
        self.target = Target::Word;
        let mut command = std::mem::take(&mut self.command);
        command.is_piped = is_piped;
        if !command.words.is_empty() {
            self.script.commands.push(command);
        }
    }

    fn read_redirection(&mut self) {
        let rest = &self.text[self.at..];
        if rest.len() > 1 && rest[1] == b'(' {
            // The contents of a process substitution are parsed as a separate text.
            self.at += 2;
            self.skip_substitution(self.at - 1, b'(', b')');
            return;
        }
        let (length, target) = match rest {
            [b'<', b'<', b'<', ..] => (3, Target::HereWord),
            [b'<', b'<', b'-', ..] => (3, Target::HereDocument),
            [b'<', b'<', ..] => (2, Target::HereDocument),
            [_, b'>' | b'<' | b'&' | b'|', ..] => (2, Target::File),
            _ => (1, Target::File),
        };
        // The number before the operator is a file descriptor and not an argument.
        self.command
            .words
            .pop_if(|word| word.text.iter().all(u8::is_ascii_digit) && word.outer(0..word.text.len()).end == self.at);
        self.at += length;
        self.target = target;
    }

    fn skip_expansion(&mut self, byte: u8, from: usize, lexer: &mut Lexer<'_>) {
        let is_skipped = match byte {
            b'`' => self.skip_substitution(from, b'`', b'`'),
            _ => lexer.rest().starts_with(b"(") && self.skip_substitution(from + 1, b'(', b')'),
        };
        if is_skipped {
            lexer.seek(self.at);
        }
    }

    /// Skips the substitution that opens at `from`, and stores its range. Returns false if it is
    /// not closed; it is then read as plain text.
    fn skip_substitution(&mut self, from: usize, opens: u8, closes: u8) -> bool {
        let limit = self.text.len().min(from + MAX_SUBSTITUTION_BYTES);
        let end = if opens == closes {
            let length = self.text[from + 1..limit].iter().position(|byte| *byte == closes);
            length.map(|length| from + length + 2)
        } else {
            super::values::find_closing(&self.text[..limit], from, opens, closes)
        };
        if let Some(end) = end {
            self.script.inner.push(from + 1..end - 1);
            self.at = end;
        }
        end.is_some()
    }

    fn read_documents(&mut self) {
        for delimiter in std::mem::take(&mut self.delimiters) {
            let start = self.at;
            let mut end = start;
            loop {
                let rest = &self.text[end..];
                let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
                if line.trim_ascii() == delimiter || rest.is_empty() {
                    self.at = (end + line.len()).min(self.text.len());
                    break;
                }
                end = (end + line.len() + 1).min(self.text.len());
            }
            self.command.here_documents.push(start..end);
        }
    }

    fn read_word(&mut self) {
        let start = self.at;
        let (mut unquoted, mut ranges, mut has_quotes) = (Vec::new(), Vec::new(), false);
        let mut lexer = Lexer::new(self.text);
        lexer.seek(start);
        loop {
            let from = lexer.position();
            match lexer.next() {
                Some(Piece::Plain(byte)) if ends_word(byte) => {
                    lexer.seek(from);
                    break;
                }
                Some(Piece::Plain(byte) | Piece::Literal(byte)) => {
                    has_quotes |= lexer.position() > from + 1;
                    unquoted.push(byte);
                    ranges.push(from..lexer.position());
                }
                Some(Piece::Quote) => has_quotes = true,
                Some(Piece::Expansion(b'$')) if lexer.open_dollar_quotes() => has_quotes = true,
                Some(Piece::Expansion(byte)) => {
                    self.skip_expansion(byte, from, &mut lexer);
                    for at in from..lexer.position() {
                        unquoted.push(self.text[at]);
                        ranges.push(at..at + 1);
                    }
                }
                None => break,
            }
        }
        self.at = lexer.position();
        if self.at == start {
            // This byte is not part of a word.
            self.at += 1;
        } else if has_quotes {
            self.end_word(Word::mapped(unquoted, ranges));
        } else {
            self.end_word(Word::plain(&self.text[start..self.at], start));
        }
    }

    fn end_word(&mut self, word: Word<'a>) {
        match std::mem::replace(&mut self.target, Target::Word) {
            Target::Word if &*word.text == b"}" => self.end_command(false),
            Target::Word => self.command.words.push(word),
            Target::File => {}
            Target::HereWord => self.command.here_words.push(word),
            Target::HereDocument => self.delimiters.push(word.text.into_owned()),
        }
    }
}

fn ends_word(byte: u8) -> bool {
    b" \t\r\n;&|()<>".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn here_documents_are_not_commands() {
        let text = "cat <<-'END' >x; b\nu:X\n\tEND\nc";
        let script = parse(text.as_bytes());
        assert_eq!(script.commands.len(), 3);
        let document = script.commands.iter().flat_map(|command| &command.here_documents).next().unwrap();
        assert_eq!(&text[document.clone()], "u:X\n");
    }

    #[test]
    fn parts_of_a_word_are_mapped_to_ranges_of_the_text() {
        let script = parse(b"  x'a b'c\\ d");
        let word = &script.commands[0].words[0];
        assert_eq!(&*word.text, b"xa bc d");
        assert_eq!(word.outer(1..4), 4..7, "without the quotes");
        assert_eq!(word.outer(5..6), 9..11, "with the backslash");
        assert_eq!(word.outer(2..2), 5..5);
    }
}
