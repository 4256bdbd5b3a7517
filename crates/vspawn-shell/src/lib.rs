//! Reads simple shell text. One reader serves `vspawn-preload`, which runs the program of a
//! needless `sh -c`; `vspawn-capi`, which runs the command of `popen_noshell_compat`; and the
//! masking of recordings, which looks for secrets in scripts. They would otherwise disagree about
//! quotes.
//!
//! [`Lexer`] says what each byte of a text means; it reads any text. [`read_word`] accepts only
//! words that mean the same to every known shell, and [`is_program`] only programs that no shell
//! runs itself. Nothing here allocates, panics, or calls the system: the callers include children
//! of vfork.

#![no_std]

mod names;

pub use names::{Shell, is_builtin, is_program};

/// What one byte of a text, or an escape, means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A byte outside of quotes, which may have a meaning: a letter, a blank, `*`, `;`.
    Plain(u8),
    /// A byte that means itself, because it is in quotes or after a backslash.
    Literal(u8),
    /// A quote that opens or closes, or an escaped newline: no byte of the word.
    Quote,
    /// `$` or a backquote, outside of single quotes.
    Expansion(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quotes {
    None,
    Single,
    Double,
    /// `$'…'`, which only bash knows.
    Dollar,
}

/// Divides a text into pieces, from left to right.
#[derive(Clone, Debug)]
pub struct Lexer<'t> {
    text: &'t [u8],
    at: usize,
    quotes: Quotes,
}

impl<'t> Lexer<'t> {
    /// Begins at the start of a text.
    #[must_use]
    pub const fn new(text: &'t [u8]) -> Lexer<'t> {
        Lexer { text, at: 0, quotes: Quotes::None }
    }

    /// Returns the position of the next piece.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// Continues at another position, within the same quotes.
    pub const fn seek(&mut self, at: usize) {
        self.at = at;
    }

    /// Returns the text that has not been read.
    #[must_use]
    pub fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or(&[])
    }

    /// Whether the next piece is within quotes.
    #[must_use]
    pub fn is_quoted(&self) -> bool {
        self.quotes != Quotes::None
    }

    /// Skips blanks between words.
    pub fn skip_blanks(&mut self) {
        self.at += self.rest().iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    }

    /// Opens the quotes after a `$` that was just read. Returns false if there are none.
    pub fn open_dollar_quotes(&mut self) -> bool {
        let opens = self.quotes == Quotes::None && self.rest().first() == Some(&b'\'');
        if opens {
            self.at += 1;
            self.quotes = Quotes::Dollar;
        }
        opens
    }
}

impl Iterator for Lexer<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        use Quotes::{Dollar, Double, None as Outside, Single};
        let (now, rest) = (self.quotes, self.rest());
        let (piece, length, quotes) = match (now, *rest.first()?, rest.get(1).copied()) {
            (Outside, b'\'', _) => (Piece::Quote, 1, Single),
            (Outside, b'"', _) => (Piece::Quote, 1, Double),
            (Single | Dollar, b'\'', _) | (Double, b'"', _) => (Piece::Quote, 1, Outside),
            (Outside | Double, b'\\', Some(b'\n')) => (Piece::Quote, 2, now),
            (Outside | Dollar, b'\\', Some(escaped))
            | (Double, b'\\', Some(escaped @ (b'"' | b'\\' | b'$' | b'`'))) => (Piece::Literal(escaped), 2, now),
            (Outside | Double, byte @ (b'$' | b'`'), _) => (Piece::Expansion(byte), 1, now),
            (Outside, byte, _) => (Piece::Plain(byte), 1, now),
            (_, byte, _) => (Piece::Literal(byte), 1, now),
        };
        (self.at, self.quotes) = (self.at + length, quotes);
        Some(piece)
    }
}

/// Why a text needs a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The text, or the list of its words, is longer than its buffer.
    TooLong,
    /// The text has syntax that is left to a shell.
    Syntax,
    /// The command is, or may be, a builtin or a reserved word.
    Builtin,
}

/// Reads one word of plain characters, quotes and escapes, and passes its bytes to `push`. Stops
/// before a blank or a redirection.
///
/// `is_known` decides about bytes from 128 on in quotes, which depend on the locale.
///
/// # Errors
/// If the shells disagree about the word, or would expand it; or an error of `push`.
pub fn read_word(
    lexer: &mut Lexer<'_>,
    is_known: impl Fn(u8) -> bool,
    mut push: impl FnMut(u8) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    loop {
        let is_quoted = lexer.is_quoted();
        if !is_quoted && matches!(lexer.rest().first(), None | Some(b' ' | b'\t' | b'<' | b'>')) {
            return Ok(());
        }
        let is_joined = lexer.rest().starts_with(b"\\\n");
        match lexer.next().ok_or(Refusal::Syntax)? {
            Piece::Quote if !is_joined => {}
            Piece::Plain(byte) if is_plain(byte) => push(byte)?,
            Piece::Literal(b'\t' | b'\n') if !is_quoted => return Err(Refusal::Syntax),
            Piece::Literal(byte) if is_text(byte) || is_quoted && is_known(byte) => push(byte)?,
            _ => return Err(Refusal::Syntax),
        }
    }
}

/// Whether a character means itself outside of quotes. bash uses some control characters internally
/// (CTLESC, CTLNUL).
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'-' | b'.' | b'/' | b',' | b':' | b'+' | b'@' | b'%' | b'^' | b'=')
}

/// Whether a character means itself within quotes.
const fn is_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\n')
}

#[cfg(test)]
mod tests;
