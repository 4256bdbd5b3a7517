//! Words of a script, with their quotes and expansions.

use std::ops::Range;

use super::parser::{Parser, is_delimiter, is_name_byte};
use super::{Kind, identifier_length};
use crate::patterns::words::{fits, string_length};

/// A word of a command in a script.
#[derive(Clone, Debug, Default)]
pub(crate) struct Word<'t> {
    pub(crate) range: Range<usize>,
    pub(crate) parts: Vec<Part<'t>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part<'t> {
    /// Text, without its quotes.
    Literal { text: Vec<u8>, is_quoted: bool },
    /// `$name` or `${name}`; also a positional parameter from 1.
    Variable { name: &'t [u8], is_quoted: bool },
    /// The number of the node.
    Substitution { node: usize, is_quoted: bool },
    /// An unquoted pattern, tilde or brace.
    Pattern,
    /// Any other expansion: `${name:-text}`, `$((1 + 2))`, `$@`. Contains its text.
    Other { text: &'t [u8], is_quoted: bool },
}

impl<'t> Part<'t> {
    /// Returns the variable of an expansion that changes its value with fixed texts, and the
    /// character after its name: `#` for `${name#*=}`.
    pub(crate) fn changed(&self) -> Option<(&'t [u8], u8)> {
        let Part::Other { text, .. } = self else { return None };
        let inside = text.strip_prefix(b"${").filter(|inside| !inside.iter().any(|byte| b"$`".contains(byte)))?;
        let digits = inside.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (name, rest) = inside.split_at(digits.max(identifier_length(inside)));
        let how = *rest.first().filter(|how| b"#%:,^/".contains(how) && !name.is_empty())?;
        Some((name, how))
    }
}

impl<'t> Word<'t> {
    /// Returns the text of a word without expansions and patterns.
    pub(crate) fn literal(&self) -> Option<Vec<u8>> {
        let mut literal = Vec::new();
        for part in &self.parts {
            let Part::Literal { text, .. } = part else { return None };
            literal.extend(text);
        }
        Some(literal)
    }

    /// Returns the variable that is the whole word, with or without quotes.
    pub(crate) fn variable(&self) -> Option<&'t [u8]> {
        match self.parts[..] {
            [Part::Variable { name, .. }] => Some(name),
            _ => None,
        }
    }

    /// Returns the only variable of the word, and the text before and after it.
    pub(crate) fn around_variable(&self) -> Option<([Vec<u8>; 2], &'t [u8])> {
        let at = self.parts.iter().position(|part| matches!(part, Part::Variable { .. }))?;
        let Part::Variable { name, .. } = self.parts[at] else { return None };
        let text = |parts: &[Part<'t>]| Word { range: 0..0, parts: parts.to_vec() }.literal();
        Some(([text(&self.parts[..at])?, text(&self.parts[at + 1..])?], name))
    }

    /// Returns the substitution that is the whole word, with or without quotes.
    pub(crate) fn substitution(&self) -> Option<usize> {
        match self.parts[..] {
            [Part::Substitution { node, .. }] => Some(node),
            _ => None,
        }
    }

    /// Whether the word may be the source of this argument.
    pub(crate) fn can_be(&self, argument: &[u8]) -> bool {
        let parts = self.parts.iter().map(|part| match part {
            Part::Literal { text, .. } => Some(&text[..]),
            _ => None,
        });
        fits(parts, argument)
    }

    /// Whether an expansion in the word may set a variable: `${name:=text}`, `$((name++))`.
    pub(crate) fn may_set(&self, name: &[u8]) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Other { text, .. } => {
                let is_assignment = text.contains(&b'=') && part.changed().is_none_or(|(_, how)| how == b':');
                super::names(text, name) && (is_assignment || text.starts_with(b"$((") || text.starts_with(b"$["))
            }
            _ => false,
        })
    }

    /// Returns all variables that the word expands. `None` if it has expansions with unknown
    /// variables.
    pub(crate) fn variables(&self) -> Option<Vec<&'t [u8]>> {
        let mut variables = Vec::new();
        for part in &self.parts {
            match part {
                Part::Variable { name, .. } => variables.push(*name),
                Part::Literal { .. } | Part::Substitution { .. } | Part::Pattern => {}
                Part::Other { .. } => return None,
            }
        }
        Some(variables)
    }
}

impl Word<'_> {
    /// Returns the delimiter of a here-document, which is never expanded.
    pub(super) fn delimiter(&self) -> Vec<u8> {
        let parts = self.parts.iter().map(|part| match part {
            Part::Literal { text, .. } => text.clone(),
            Part::Other { text, .. } => text.to_vec(),
            Part::Variable { name, .. } => [b"$", *name].concat(),
            Part::Substitution { .. } | Part::Pattern => b"?".to_vec(),
        });
        parts.collect::<Vec<_>>().concat()
    }
}

/// The parts of words.
impl<'t> Parser<'t> {
    /// Reads a word, which must not be empty.
    pub(super) fn word(&mut self) -> Option<Word<'t>> {
        let start = self.at;
        let mut parts: Vec<Part<'t>> = Vec::new();
        while let Some(byte) = self.peek() {
            self.step()?;
            match byte {
                b'<' | b'>' if self.rest().get(1) == Some(&b'(') => parts.push(self.substitution(2, false)?),
                b'(' if self.at > start && b"?*+@!".contains(&self.text[self.at - 1]) => {
                    self.extended_pattern()?;
                    parts.push(Part::Pattern);
                }
                b'(' if self.at > start && self.text[self.at - 1] == b'=' => {
                    let from = self.at;
                    self.array()?;
                    parts.push(Part::Other { text: &self.text[from..self.at], is_quoted: true });
                }
                b'`' => parts.push(self.backquoted(false)?),
                _ if is_delimiter(byte) => break,
                _ => self.part(byte, start, &mut parts)?,
            }
        }
        (self.at > start).then_some(Word { range: start..self.at, parts })
    }

    fn part(&mut self, byte: u8, start: usize, parts: &mut Vec<Part<'t>>) -> Option<()> {
        match byte {
            b'\'' => {
                let text = &self.rest()[1..];
                let length = text.iter().position(|byte| *byte == b'\'')?;
                push(parts, &text[..length], true);
                self.at += length + 2;
            }
            b'"' => self.nested(|parser| parser.double_quoted(parts))?,
            b'\\' => {
                let next = self.rest().get(1..2)?;
                if next != b"\n" {
                    push(parts, next, true);
                }
                self.at += 2;
            }
            b'$' if self.rest().get(1) == Some(&b'"') => self.at += 1,
            b'$' => parts.push(self.dollar(false)?),
            b'*' | b'?' => self.pattern(parts),
            b'[' if self.is_bracket() => self.pattern(parts),
            b'~' if self.at == start || b"=:".contains(&self.text[self.at - 1]) => self.pattern(parts),
            b'{' if self.is_brace() => self.pattern(parts),
            _ => {
                push(parts, &[byte], false);
                self.at += 1;
            }
        }
        Some(())
    }

    fn pattern(&mut self, parts: &mut Vec<Part<'t>>) {
        parts.push(Part::Pattern);
        self.at += 1;
    }

    /// Whether `[` begins a pattern.
    fn is_bracket(&self) -> bool {
        self.rest().iter().take_while(|byte| !byte.is_ascii_whitespace()).skip(2).any(|byte| *byte == b']')
    }

    /// Whether `{` begins `{a,b}` or `{1..3}`.
    fn is_brace(&self) -> bool {
        let inside: Vec<u8> = self.rest().iter().copied().take_while(|byte| !b"} \t\n".contains(byte)).collect();
        inside.contains(&b',') || inside.windows(2).any(|two| two == b"..")
    }

    /// Skips `(a|b)` of an extended pattern.
    fn extended_pattern(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'(' => depth += 1,
                b')' if depth == 1 => break,
                b')' => depth -= 1,
                b'\n' => return None,
                _ => {}
            }
            self.skip(false)?;
        }
        self.skip(false)
    }

    /// Skips an expansion, a text in quotes, or a byte.
    pub(super) fn skip(&mut self, is_quoted: bool) -> Option<()> {
        self.step()?;
        match self.peek()? {
            b'$' => drop(self.dollar(is_quoted)?),
            b'`' => drop(self.backquoted(is_quoted)?),
            b'"' => self.nested(|parser| parser.double_quoted(&mut Vec::new()))?,
            b'\'' if !is_quoted => self.part(b'\'', self.at, &mut Vec::new())?,
            b'\\' => self.at += 2,
            _ => self.at += 1,
        }
        Some(())
    }

    fn double_quoted(&mut self, parts: &mut Vec<Part<'t>>) -> Option<()> {
        self.at += 1;
        push(parts, b"", true);
        loop {
            self.step()?;
            match self.peek()? {
                b'"' => break self.at += 1,
                b'\\' => {
                    let two = self.rest().get(..2)?;
                    match two[1] {
                        b'\n' => {}
                        b'$' | b'`' | b'"' | b'\\' => push(parts, &two[1..], true),
                        _ => push(parts, two, true),
                    }
                    self.at += 2;
                }
                b'$' => match self.dollar(true)? {
                    Part::Literal { text, .. } => push(parts, &text, true),
                    part => parts.push(part),
                },
                b'`' => parts.push(self.backquoted(true)?),
                byte => {
                    push(parts, &[byte], true);
                    self.at += 1;
                }
            }
        }
        // The empty text is only needed for an empty word.
        if let [Part::Literal { text, .. }, _, ..] = &parts[..]
            && text.is_empty()
        {
            parts.remove(0);
        }
        Some(())
    }

    /// Reads an expansion that begins with `$`. The part is a literal for a lone `$`.
    fn dollar(&mut self, is_quoted: bool) -> Option<Part<'t>> {
        self.nested(|parser| parser.expansion(is_quoted))
    }

    fn expansion(&mut self, is_quoted: bool) -> Option<Part<'t>> {
        let start = self.at;
        let next = self.rest().get(1).copied().unwrap_or_default();
        let length = match next {
            b'(' => {
                if !self.starts(b"$((") || self.attempt(|parser| parser.arithmetic(3)).is_none() {
                    return self.substitution(2, is_quoted);
                }
                self.at - start
            }
            b'{' => return self.braces(is_quoted),
            b'[' => self.rest().iter().position(|byte| *byte == b']')? + 1,
            b'\'' if !is_quoted => 3 + string_length(&self.rest()[2..], b'\'')?,
            b'0'..=b'9' => return Some(self.variable(1, is_quoted)),
            _ if is_name_byte(next) => {
                let length = identifier_length(&self.rest()[1..]);
                return Some(self.variable(length, is_quoted));
            }
            b'@' | b'*' | b'#' | b'?' | b'$' | b'!' | b'-' => 2,
            _ => {
                self.at += 1;
                return Some(Part::Literal { text: b"$".to_vec(), is_quoted });
            }
        };
        self.at = start + length;
        Some(Part::Other { text: &self.text[start..self.at], is_quoted })
    }

    fn variable(&mut self, length: usize, is_quoted: bool) -> Part<'t> {
        let name = &self.rest()[1..=length];
        self.at += length + 1;
        Part::Variable { name, is_quoted }
    }

    /// Reads arithmetic whose opening has this length, up to `))`.
    pub(super) fn arithmetic(&mut self, opening: usize) -> Option<()> {
        self.at += opening;
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'(' => depth += 1,
                b')' if depth == 0 => break,
                b')' => depth -= 1,
                _ => {}
            }
            self.skip(true)?;
        }
        self.starts(b"))").then(|| self.at += 2)
    }

    fn braces(&mut self, is_quoted: bool) -> Option<Part<'t>> {
        let start = self.at;
        let name = identifier_length(&self.rest()[2..]);
        if name > 0 && self.rest().get(2 + name) == Some(&b'}') {
            let name = &self.rest()[2..2 + name];
            self.at += name.len() + 3;
            return Some(Part::Variable { name, is_quoted });
        }
        self.at += 2;
        while self.peek()? != b'}' {
            self.skip(is_quoted)?;
        }
        self.at += 1;
        Some(Part::Other { text: &self.text[start..self.at], is_quoted })
    }

    /// Reads a substitution whose opening has this length, up to `)`.
    fn substitution(&mut self, opening: usize, is_quoted: bool) -> Option<Part<'t>> {
        let node = self.node(|parser| {
            parser.at += opening;
            parser.commands(&[b")"])?;
            parser.at += 1;
            Some((Kind::Substitution, parser.at))
        })?;
        Some(Part::Substitution { node, is_quoted })
    }

    fn backquoted(&mut self, is_quoted: bool) -> Option<Part<'t>> {
        let start = self.at;
        let close = start + 1 + string_length(&self.rest()[1..], b'`')?;
        let node = self.node(|parser| {
            // Within backquotes, some backslashes have another meaning.
            let is_special = |two: &[u8]| two[0] == b'\\' && b"$`\\\"\n".contains(&two[1]);
            if !parser.text[start..=close].windows(2).any(is_special) {
                let end = std::mem::replace(&mut parser.end, close);
                parser.at += 1;
                parser.commands(&[])?;
                parser.end = end;
            }
            parser.at = close + 1;
            Some((Kind::Substitution, close + 1))
        })?;
        Some(Part::Substitution { node, is_quoted })
    }
}

/// Adds text to a word, to its last part if that is text with the same quotes.
fn push(parts: &mut Vec<Part<'_>>, more: &[u8], quoted: bool) {
    match parts.last_mut() {
        Some(Part::Literal { text, is_quoted }) if *is_quoted == quoted => text.extend(more),
        _ => parts.push(Part::Literal { text: more.to_vec(), is_quoted: quoted }),
    }
}
