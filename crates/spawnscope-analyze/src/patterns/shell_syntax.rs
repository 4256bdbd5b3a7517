//! What a command that is given to a shell with `-c` needs: only a program to be executed,
//! something that the caller can do itself (redirections, a directory, variables, a home
//! directory), or a shell.

use super::words::Words;

/// What a command needs from a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// Nothing: it is a program with arguments.
    Nothing,
    /// Redirections, `cd DIRECTORY &&`, variables or `~`, which the caller can replace with options
    /// of its launching call.
    Caller,
    /// A shell, for pipes, expansions, several commands, or keywords.
    Shell,
}

/// Words that are keywords or builtins at the beginning of a command, not programs.
const KEYWORDS: Words = Words(
    "! . : [[ alias break case eval exit export for function if local readonly return select set shift source trap
     type ulimit umask unset until while",
);

/// Returns what a command needs from a shell.
pub(crate) fn need_of(command: &[u8]) -> Need {
    let mut reader = Reader::new(command);
    reader.command().map_or(Need::Shell, |()| reader.need)
}

/// Reads a command. Every method returns `None` if the command needs a shell.
struct Reader<'c> {
    rest: &'c [u8],
    need: Need,
}

impl<'c> Reader<'c> {
    fn new(text: &'c [u8]) -> Reader<'c> {
        Reader { rest: text, need: Need::Nothing }
    }

    fn command(&mut self) -> Option<()> {
        let mut words: Vec<Word> = Vec::new();
        let mut has_directory = false;
        while let Some(byte) = self.peek_past_blanks() {
            match byte {
                b'#' => break,
                b';' | b'\n' => {
                    self.skip_terminators();
                    (self.rest.is_empty() && !words.is_empty()).then_some(())?;
                }
                b'&' if self.rest.starts_with(b"&&") => {
                    let is_cd = words.len() == 2 && words[0].text == b"cd" && !has_directory;
                    is_cd.then_some(())?;
                    self.skip(2);
                    (has_directory, self.need) = (true, Need::Caller);
                    words.clear();
                }
                b'<' | b'>' | b'&' => self.redirection()?,
                b'0'..=b'9' if self.is_numbered_redirection() => {
                    self.skip(1);
                    self.redirection()?;
                }
                _ => {
                    let word = self.word()?;
                    if words.is_empty() && word.is_assignment() {
                        self.need = Need::Caller;
                    } else if words.is_empty() && word.text == b"exec" {
                        // `exec` only replaces the shell with the program, which makes no
                        // difference for the caller.
                    } else {
                        words.push(word);
                    }
                }
            }
        }
        let first = words.first()?;
        let is_program = first.is_quoted || !(KEYWORDS.contains(&first.text) || first.text == b"cd");
        is_program.then_some(())
    }

    fn peek_past_blanks(&mut self) -> Option<u8> {
        let blanks = self.rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        self.skip(blanks);
        self.rest.first().copied()
    }

    fn skip(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
    }

    fn skip_terminators(&mut self) {
        let ends = self.rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b';')).count();
        self.skip(ends);
    }

    fn is_numbered_redirection(&self) -> bool {
        matches!(self.rest.get(1), Some(b'<' | b'>'))
    }

    /// Reads `> file`, `2>&1`, `&> file` and the like. A here-document needs a shell.
    fn redirection(&mut self) -> Option<()> {
        let operators: [&[u8]; 8] = [b"&>>", b"&>", b">>", b">&", b"<&", b">|", b">", b"<"];
        let operator = operators.into_iter().find(|operator| self.rest.starts_with(operator))?;
        self.skip(operator.len());
        if self.rest.first() == Some(&b'<') {
            return None;
        }
        self.peek_past_blanks()?;
        self.word()?;
        self.need = Need::Caller;
        Some(())
    }

    /// Reads one word up to a blank or an operator.
    fn word(&mut self) -> Option<Word> {
        let mut word = Word::default();
        while let Some(&byte) = self.rest.first() {
            match byte {
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'<' | b'>' => break,
                b'\'' => self.single_quoted(&mut word)?,
                b'"' => self.double_quoted(&mut word)?,
                b'\\' => {
                    word.text.push(*self.rest.get(1)?);
                    word.is_quoted = true;
                    self.skip(2);
                }
                b'|' | b'(' | b')' | b'`' | b'$' | b'*' | b'?' | b'[' => return None,
                b'{' if is_expanded_brace(self.rest) => return None,
                b'~' if word.expands_tilde() => {
                    self.need = Need::Caller;
                    word.text.push(byte);
                    self.skip(1);
                }
                _ => {
                    word.text.push(byte);
                    self.skip(1);
                }
            }
        }
        let is_group = !word.is_quoted && matches!(word.text.as_slice(), b"{" | b"}");
        (!is_group && (word.is_quoted || !word.text.is_empty())).then_some(word)
    }

    fn single_quoted(&mut self, word: &mut Word) -> Option<()> {
        let text = &self.rest[1..];
        let end = text.iter().position(|byte| *byte == b'\'')?;
        word.text.extend_from_slice(&text[..end]);
        word.is_quoted = true;
        self.skip(end + 2);
        Some(())
    }

    fn double_quoted(&mut self, word: &mut Word) -> Option<()> {
        word.is_quoted = true;
        self.skip(1);
        loop {
            match *self.rest.first()? {
                b'"' => break self.skip(1),
                b'$' | b'`' => return None,
                b'\\' => {
                    word.text.push(*self.rest.get(1)?);
                    self.skip(2);
                }
                byte => {
                    word.text.push(byte);
                    self.skip(1);
                }
            }
        }
        Some(())
    }
}

/// A word without its quotes.
#[derive(Default)]
struct Word {
    text: Vec<u8>,
    is_quoted: bool,
}

impl Word {
    /// Whether it has the form `NAME=value`.
    fn is_assignment(&self) -> bool {
        let name = self.text.split(|byte| *byte == b'=').next().unwrap_or_default();
        let has_valid_start = name.first().is_some_and(|first| !first.is_ascii_digit());
        has_valid_start
            && name.len() < self.text.len()
            && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    }

    /// Whether a `~` as the next character would be expanded to a home directory, because it is at
    /// the beginning of a word or of an assigned value.
    fn expands_tilde(&self) -> bool {
        !self.is_quoted && (self.text.is_empty() || (self.text.ends_with(b"=") && self.is_assignment()))
    }
}

/// Whether bash expands the braces at the beginning of a text: `{a,b}` and `{1..3}`, but not `{}`
/// or `HEAD@{1}`.
fn is_expanded_brace(text: &[u8]) -> bool {
    let inside = text.iter().skip(1).take_while(|byte| !matches!(byte, b'}' | b' ' | b'\t' | b'\n'));
    let inside: Vec<u8> = inside.copied().collect();
    inside.contains(&b',') || inside.windows(2).any(|two| two == b"..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_need_a_shell_only_for_syntax_that_no_caller_can_replace() {
        let cases = [
            ("git log HEAD~3", Need::Nothing),
            ("git show HEAD@{1}", Need::Nothing),
            ("find . -name '*.c'", Need::Nothing),
            ("find . -name \"*.c\" -print", Need::Nothing),
            ("git commit -m 'what! $HOME'", Need::Nothing),
            ("echo a\\*b wow!", Need::Nothing),
            ("xargs -I{} mv {} dir", Need::Nothing),
            ("exec prog arg", Need::Nothing),
            ("cksum file;\n", Need::Nothing),
            ("prog # a comment | with a pipe", Need::Nothing),
            ("prog 2>/dev/null", Need::Caller),
            ("prog >out 2>&1", Need::Caller),
            ("prog <in", Need::Caller),
            ("cd sub && prog x", Need::Caller),
            ("LC_ALL=C sort file", Need::Caller),
            ("ls ~/x", Need::Caller),
            ("A=~/x prog", Need::Caller),
            ("a | b", Need::Shell),
            ("prog $HOME", Need::Shell),
            ("prog \"$HOME\"", Need::Shell),
            ("rm *.o", Need::Shell),
            ("cp {a,b} c", Need::Shell),
            ("a; b", Need::Shell),
            ("a && b", Need::Shell),
            ("cd x && a && b", Need::Shell),
            ("cd x && cd y && a", Need::Shell),
            ("a &", Need::Shell),
            ("! grep x y", Need::Shell),
            ("if a; then b; fi", Need::Shell),
            ("cat <<END\nx\nEND", Need::Shell),
            ("{ a; }", Need::Shell),
            ("(a)", Need::Shell),
            ("umask 022", Need::Shell),
            ("A=b", Need::Shell),
            ("'unclosed", Need::Shell),
            ("", Need::Shell),
        ];
        for (command, need) in cases {
            assert_eq!(need_of(command.as_bytes()), need, "{command}");
        }
    }
}
