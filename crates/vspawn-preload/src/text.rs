//! Proves that the TEXT of `sh -c TEXT` is one simple command, and divides it into words and
//! redirections. `vspawn_shell` reads each word; this module has the buffer that its caller can
//! lend to a child of vfork, and the plain redirections of descriptors 0, 1 and 2. The tests
//! compare the outcome with dash and bash.

use vspawn_shell::{Lexer, Refusal, Shell, is_builtin, is_program, read_word};

/// The length of the longest text that is read, in bytes.
pub const TEXT_MAX: usize = 4096;
pub const WORDS_MAX: usize = 128;
pub const REDIRECTIONS_MAX: usize = 8;

/// The words of a command, each ended by NUL.
pub struct Words {
    bytes: [u8; TEXT_MAX + 1],
    length: usize,
    starts: [u16; WORDS_MAX],
    count: usize,
    redirections: [Redirection; REDIRECTIONS_MAX],
    redirection_count: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redirection {
    /// The descriptor that is redirected: 0, 1 or 2.
    pub target: i32,
    pub destination: Destination,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A file. `name` is the offset of its name in the buffer of the words.
    File { name: u16, mode: Mode },
    /// Whatever this descriptor refers to (`2>&1`).
    Descriptor(i32),
}

/// How a file is opened: `<`, `>` or `>>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Read,
    Write,
    Append,
}

impl Words {
    pub const fn new() -> Words {
        Words {
            bytes: [0; TEXT_MAX + 1],
            length: 0,
            starts: [0; WORDS_MAX],
            count: 0,
            redirections: [Redirection { target: 0, destination: Destination::Descriptor(0) }; REDIRECTIONS_MAX],
            redirection_count: 0,
        }
    }

    /// Returns the redirections, in the order in which a shell carries them out.
    pub fn redirections(&self) -> &[Redirection] {
        self.redirections.get(..self.redirection_count).unwrap_or(&[])
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns a word without its NUL. Empty if there is no such word.
    pub fn get(&self, index: usize) -> &[u8] {
        match self.starts.get(index).filter(|_| index < self.count) {
            Some(start) => self.name(*start),
            None => &[],
        }
    }

    /// Returns the word that begins at this offset of the buffer, without its NUL.
    pub fn name(&self, start: u16) -> &[u8] {
        let rest = self.bytes.get(usize::from(start)..).unwrap_or(&[]);
        let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
        rest.get(..end).unwrap_or(&[])
    }

    fn push(&mut self, byte: u8) -> Result<(), Refusal> {
        *self.bytes.get_mut(self.length).ok_or(Refusal::TooLong)? = byte;
        self.length += 1;
        Ok(())
    }

    fn begin_word(&mut self) -> Result<(), Refusal> {
        *self.starts.get_mut(self.count).ok_or(Refusal::TooLong)? = self.length as u16;
        self.count += 1;
        Ok(())
    }

    /// Divides a text into words.
    pub fn read(&mut self, text: &[u8]) -> Result<(), Refusal> {
        (self.length, self.count, self.redirection_count) = (0, 0, 0);
        if text.len() > TEXT_MAX {
            return Err(Refusal::TooLong);
        }
        // dash and bash read such a text as options.
        if matches!(text.first(), Some(b'-' | b'+')) {
            return Err(Refusal::Syntax);
        }
        let mut lexer = Lexer::new(text);
        loop {
            lexer.skip_blanks();
            if lexer.rest().is_empty() {
                break;
            }
            if let Some((redirection, length)) = read_operator(lexer.rest()) {
                lexer.seek(lexer.position() + length);
                self.add_redirection(redirection, &mut lexer)?;
                continue;
            }
            self.begin_word()?;
            self.read_word(&mut lexer)?;
            // Digits right before an operator may be a descriptor number (in dash, one unquoted
            // digit). Every such word is left to the shell.
            if matches!(lexer.rest().first(), Some(b'<' | b'>')) && self.last_word_is_number() {
                return Err(Refusal::Syntax);
            }
        }
        // The first word decides what a shell does with the other words.
        let command = self.get(0);
        if !is_program(command) {
            return Err(Refusal::Syntax);
        }
        if is_builtin(command, Shell::Bash) { Err(Refusal::Builtin) } else { Ok(()) }
    }

    fn last_word_is_number(&self) -> bool {
        self.get(self.count - 1).iter().all(u8::is_ascii_digit)
    }

    /// Adds a word and its NUL.
    fn read_word(&mut self, lexer: &mut Lexer<'_>) -> Result<(), Refusal> {
        read_word(lexer, |_| false, |byte| self.push(byte))?;
        self.push(0)
    }

    /// Reads the name of a redirection's file, and adds the redirection.
    fn add_redirection(&mut self, mut redirection: Redirection, lexer: &mut Lexer<'_>) -> Result<(), Refusal> {
        match &mut redirection.destination {
            Destination::File { name, .. } => {
                lexer.skip_blanks();
                let start = self.length as u16;
                *name = start;
                self.read_word(lexer)?;
                let is_number = self.name(start).iter().all(u8::is_ascii_digit);
                if self.name(start).is_empty() || is_number && matches!(lexer.rest().first(), Some(b'<' | b'>')) {
                    return Err(Refusal::Syntax);
                }
            }
            // `2>&1a` and `2>&1>a` are left to the shell.
            Destination::Descriptor(_) => {
                if !matches!(lexer.rest().first(), None | Some(b' ' | b'\t')) {
                    return Err(Refusal::Syntax);
                }
            }
        }
        *self.redirections.get_mut(self.redirection_count).ok_or(Refusal::TooLong)? = redirection;
        self.redirection_count += 1;
        Ok(())
    }
}

/// Returns the redirection at the start of `text` and the length of its operator; the caller reads
/// the file name. Returns `None` for other operators (`<<`, `>|`) and for unusual directions (`0>`,
/// `1<`, `2<`).
fn read_operator(text: &[u8]) -> Option<(Redirection, usize)> {
    let (target, destination, rest) = match text {
        [b'2', b'>', b'&', b'1', rest @ ..] => (2, Destination::Descriptor(1), rest),
        [b'1', b'>', b'&', b'2', rest @ ..] | [b'>', b'&', b'2', rest @ ..] => (1, Destination::Descriptor(2), rest),
        [b'2', b'>', b'>', rest @ ..] => (2, unnamed_file(Mode::Append), rest),
        [b'2', b'>', rest @ ..] => (2, unnamed_file(Mode::Write), rest),
        [b'1', b'>', b'>', rest @ ..] | [b'>', b'>', rest @ ..] => (1, unnamed_file(Mode::Append), rest),
        [b'1', b'>', rest @ ..] | [b'>', rest @ ..] => (1, unnamed_file(Mode::Write), rest),
        [b'0', b'<', rest @ ..] | [b'<', rest @ ..] => (0, unnamed_file(Mode::Read), rest),
        _ => return None,
    };
    // The rest of a longer operator: `>&-`, `>|`, `<<`, `<&`, `<>`, `>(`.
    let is_longer = matches!(destination, Destination::File { .. })
        && matches!(rest.first(), Some(b'<' | b'>' | b'&' | b'|' | b'('));
    (!is_longer).then_some((Redirection { target, destination }, text.len() - rest.len()))
}

/// Returns a file whose name is not yet known.
fn unnamed_file(mode: Mode) -> Destination {
    Destination::File { name: 0, mode }
}
