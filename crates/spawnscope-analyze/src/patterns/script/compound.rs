//! Compound commands: loops, conditions, groups, tests and functions.

use std::ops::Range;

use super::parser::{Parser, is_delimiter, is_name_byte};
use super::{For, Kind, Part, Word, identifier_length};

/// Reads a compound command from its first word on. Returns its kind and end.
type Reader<'t> = fn(&mut Parser<'t>) -> Option<(Kind<'t>, usize)>;

impl<'t> Parser<'t> {
    /// Returns the function that reads the compound command at this position, if there is one.
    pub(super) fn compound(&mut self) -> Option<Reader<'t>> {
        if self.is_arithmetic() {
            return Some(Self::arithmetic_test);
        }
        if self.starts(b"(") {
            return Some(|parser| parser.delimited(b"(", b")", Kind::Subshell));
        }
        let readers: [(&[u8], Reader<'t>); 9] = [
            (b"{", |parser| parser.delimited(b"{", b"}", Kind::Compound)),
            (b"if", Self::conditional),
            (b"while", |parser| parser.conditional_loop(b"while")),
            (b"until", |parser| parser.conditional_loop(b"until")),
            (b"for", |parser| parser.word_loop(b"for")),
            (b"select", |parser| parser.word_loop(b"select")),
            (b"case", Self::case),
            (b"[[", Self::test),
            (b"function", Self::function),
        ];
        let found = readers.into_iter().find(|(keyword, _)| self.is_at(&[keyword])).map(|(_, reader)| reader);
        found.or_else(|| self.is_at_function().then_some(Self::function as _))
    }

    /// Whether `((...))` is next, and not a subshell in a subshell.
    fn is_arithmetic(&mut self) -> bool {
        let mut is_arithmetic = false;
        // The attempt always fails, so that nothing is consumed.
        self.attempt(|parser| {
            is_arithmetic = parser.starts(b"((") && parser.arithmetic(2).is_some();
            None::<()>
        });
        is_arithmetic
    }

    fn arithmetic_test(&mut self) -> Option<(Kind<'t>, usize)> {
        let start = self.at;
        self.arithmetic(2)?;
        let text = &self.text[start..self.at];
        let word = Word { range: start..self.at, parts: vec![Part::Other { text, is_quoted: true }] };
        Some((Kind::Expression(vec![word]), self.at))
    }

    fn delimited(&mut self, open: &[u8], close: &[u8], kind: Kind<'t>) -> Option<(Kind<'t>, usize)> {
        self.at += open.len();
        self.commands(&[close])?;
        self.at += close.len();
        Some((kind, self.at))
    }

    fn conditional(&mut self) -> Option<(Kind<'t>, usize)> {
        self.keyword(b"if")?;
        self.commands(&[b"then"])?;
        self.keyword(b"then")?;
        loop {
            self.commands(&[b"elif", b"else", b"fi"])?;
            if self.keyword(b"elif").is_some() {
                self.commands(&[b"then"])?;
                self.keyword(b"then")?;
            } else if self.keyword(b"else").is_none() {
                self.keyword(b"fi")?;
                break Some((Kind::Compound, self.at));
            }
        }
    }

    fn conditional_loop(&mut self, keyword: &[u8]) -> Option<(Kind<'t>, usize)> {
        self.keyword(keyword)?;
        self.commands(&[b"do"])?;
        let body = self.body()?;
        Some((Kind::Loop { body }, self.at))
    }

    /// Reads `do ... done`. Returns the range between the two words.
    fn body(&mut self) -> Option<Range<usize>> {
        self.keyword(b"do")?;
        let start = self.at;
        self.commands(&[b"done"])?;
        let body = start..self.at;
        self.keyword(b"done")?;
        Some(body)
    }

    fn word_loop(&mut self, keyword: &[u8]) -> Option<(Kind<'t>, usize)> {
        self.keyword(keyword)?;
        self.blanks();
        if self.starts(b"((") {
            self.arithmetic(2)?;
            self.terminator()?;
            let body = self.body()?;
            return Some((Kind::Loop { body }, self.at));
        }
        let name = self.name()?;
        self.blank_lines()?;
        let mut words = None;
        if self.keyword(b"in").is_some() {
            let words = words.insert(Vec::new());
            loop {
                self.blanks();
                match self.peek()? {
                    b';' | b'\n' => break,
                    _ => words.push(self.word()?),
                }
            }
        }
        self.terminator()?;
        let body = self.body()?;
        let kind = match words {
            Some(words) if keyword == b"for" => Kind::For(For { name, words, body }),
            _ => Kind::Loop { body },
        };
        Some((kind, self.at))
    }

    /// Skips `;`, if there is one, and empty lines.
    fn terminator(&mut self) -> Option<()> {
        self.blanks();
        if self.peek() == Some(b';') {
            self.at += 1;
        }
        self.blank_lines()
    }

    pub(super) fn name(&mut self) -> Option<&'t [u8]> {
        let length = identifier_length(self.rest());
        let name = &self.rest()[..length];
        self.at += length;
        (length > 0).then_some(name)
    }

    fn case(&mut self) -> Option<(Kind<'t>, usize)> {
        self.keyword(b"case")?;
        self.blanks();
        self.word()?;
        self.blank_lines()?;
        self.keyword(b"in")?;
        loop {
            self.blank_lines()?;
            if self.keyword(b"esac").is_some() {
                break Some((Kind::Compound, self.at));
            }
            if self.peek() == Some(b'(') {
                self.at += 1;
            }
            loop {
                self.blanks();
                self.word()?;
                self.blanks();
                let next = self.peek()?;
                self.at += 1;
                match next {
                    b'|' => {}
                    b')' => break,
                    _ => return None,
                }
            }
            self.commands(&[b";;", b";&", b"esac"])?;
            if self.peek() == Some(b';') {
                self.at += 2;
                self.at += usize::from(self.peek() == Some(b'&'));
            }
        }
    }

    fn test(&mut self) -> Option<(Kind<'t>, usize)> {
        self.keyword(b"[[")?;
        let mut words = Vec::new();
        loop {
            self.step()?;
            while matches!(self.peek(), Some(b' ' | b'\t' | b'\n')) || self.starts(b"\\\n") {
                self.at += 1;
            }
            if self.keyword(b"]]").is_some() {
                break Some((Kind::Expression(words), self.at));
            }
            match self.peek()? {
                b'(' | b')' | b'<' | b'>' | b'&' | b'|' | b';' => self.at += 1,
                _ => words.push(self.word()?),
            }
        }
    }

    /// Whether the definition of a function is next: `name()`.
    fn is_at_function(&self) -> bool {
        let rest = self.rest();
        let name = rest.iter().take_while(|byte| is_name_byte(**byte) || b"-.:+@".contains(byte)).count();
        let after = rest[name..].trim_ascii_start();
        name > 0
            && !rest[name..].starts_with(b"\n")
            && after.starts_with(b"(")
            && after[1..].trim_ascii_start().starts_with(b")")
    }

    fn function(&mut self) -> Option<(Kind<'t>, usize)> {
        let _ = self.keyword(b"function");
        self.blanks();
        self.at += self.rest().iter().take_while(|byte| !is_delimiter(**byte)).count();
        self.blanks();
        if self.peek() == Some(b'(') {
            self.at += 1;
            self.blanks();
            (self.peek() == Some(b')')).then_some(())?;
            self.at += 1;
        }
        self.blank_lines()?;
        let end = self.command()?;
        Some((Kind::Function, end))
    }
}
