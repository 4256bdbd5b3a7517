//! Parses the TEXT of `sh -c TEXT`: proves that it is one simple command, and divides it into words. No system calls, no environment.
//!
//! Accepted: plain characters, `'…'`, `"…"` and backslashes, where dash and bash agree on the meaning in every locale. The tests compare
//! the outcome with both shells.

use crate::names::belongs_to_shell;

/// The longest text that is read.
pub const TEXT_MAX: usize = 4096;
/// The largest number of words.
pub const WORDS_MAX: usize = 128;

/// The words of a command, each ended by NUL.
pub struct Words {
    bytes: [u8; TEXT_MAX + 1],
    length: usize,
    starts: [u16; WORDS_MAX],
    count: usize,
}

/// Why a text needs a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is longer than the buffers.
    Long,
    /// It has syntax that is left to a shell.
    Syntax,
    /// Its command is, or may be, a builtin or a reserved word.
    Builtin,
}

impl Words {
    pub const fn new() -> Words {
        Words {
            bytes: [0; TEXT_MAX + 1],
            length: 0,
            starts: [0; WORDS_MAX],
            count: 0,
        }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns a word without its NUL. Empty if there is no such word.
    pub fn get(&self, index: usize) -> &[u8] {
        let Some(start) = self.starts.get(index).filter(|_| index < self.count) else {
            return &[];
        };
        let rest = self.bytes.get(usize::from(*start)..).unwrap_or(&[]);
        let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
        rest.get(..end).unwrap_or(&[])
    }

    fn push(&mut self, byte: u8) -> Result<(), Refusal> {
        *self.bytes.get_mut(self.length).ok_or(Refusal::Long)? = byte;
        self.length += 1;
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Refusal> {
        *self.starts.get_mut(self.count).ok_or(Refusal::Long)? = self.length as u16;
        self.count += 1;
        Ok(())
    }

    /// Divides a text into words.
    ///
    /// # Errors
    /// When the text is left to a shell.
    pub fn read(&mut self, text: &[u8]) -> Result<(), Refusal> {
        (self.length, self.count) = (0, 0);
        if text.len() > TEXT_MAX {
            return Err(Refusal::Long);
        }
        // dash and bash read such a text as options.
        if matches!(text.first(), Some(b'-' | b'+')) {
            return Err(Refusal::Syntax);
        }
        let mut rest = text;
        loop {
            while let [b' ' | b'\t', after @ ..] = rest {
                rest = after;
            }
            if rest.is_empty() {
                break;
            }
            self.begin()?;
            rest = self.word(rest)?;
            self.push(0)?;
        }
        self.check_command()
    }

    /// Reads one word. Returns the text after it.
    fn word<'a>(&mut self, mut rest: &'a [u8]) -> Result<&'a [u8], Refusal> {
        loop {
            match rest {
                [] | [b' ' | b'\t', ..] => return Ok(rest),
                [b'\'', after @ ..] => rest = self.single_quoted(after)?,
                [b'"', after @ ..] => rest = self.double_quoted(after)?,
                [b'\\', escaped @ b' '..=b'~', after @ ..] => {
                    self.push(*escaped)?;
                    rest = after;
                }
                [byte, after @ ..] if is_plain(*byte) => {
                    self.push(*byte)?;
                    rest = after;
                }
                _ => return Err(Refusal::Syntax),
            }
        }
    }

    fn single_quoted<'a>(&mut self, mut rest: &'a [u8]) -> Result<&'a [u8], Refusal> {
        loop {
            match rest {
                [b'\'', after @ ..] => return Ok(after),
                [byte, after @ ..] if is_text(*byte) => {
                    self.push(*byte)?;
                    rest = after;
                }
                _ => return Err(Refusal::Syntax),
            }
        }
    }

    fn double_quoted<'a>(&mut self, mut rest: &'a [u8]) -> Result<&'a [u8], Refusal> {
        loop {
            match rest {
                [b'"', after @ ..] => return Ok(after),
                [b'\\', escaped @ (b'"' | b'\\' | b'$' | b'`'), after @ ..] => {
                    self.push(*escaped)?;
                    rest = after;
                }
                // Before a newline, a backslash joins lines; before anything else, it stands for itself.
                [b'$' | b'`', ..] | [b'\\', b'\n', ..] | [b'\\'] => return Err(Refusal::Syntax),
                [byte, after @ ..] if is_text(*byte) => {
                    self.push(*byte)?;
                    rest = after;
                }
                _ => return Err(Refusal::Syntax),
            }
        }
    }

    /// The first word decides what a shell does with the others.
    fn check_command(&self) -> Result<(), Refusal> {
        let command = self.get(0);
        // `%1` is bash's `fg %1`, and `a=b` an assignment.
        if command.is_empty() || matches!(command.first(), Some(b'%' | b'-' | b'+')) || command.contains(&b'=') {
            return Err(Refusal::Syntax);
        }
        if belongs_to_shell(command) {
            return Err(Refusal::Builtin);
        }
        Ok(())
    }
}

/// Whether a character means itself outside of quotes. Bytes from 128 on depend on the locale, and control characters are bash's marks.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-./,:+@%^=".contains(&byte)
}

/// Whether a character means itself within single quotes.
fn is_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\n')
}
