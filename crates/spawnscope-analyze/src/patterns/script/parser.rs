//! Reads the structure of a script. Every method returns `None` at syntax that it does not know.
//! The methods for words are in `words`.

use super::{Assignment, Kind, Node, Redirection, Simple, Word};

/// Scripts that are nested more deeply are not read.
const MAX_DEPTH: usize = 60;
/// The steps that parsing may take. A byte takes several: some syntax is known only at its end, and
/// is read again in another way.
const STEPS_PER_BYTE: usize = 30;

pub(super) fn parse(text: &[u8]) -> Option<Vec<Node<'_>>> {
    let mut parser = Parser::new(text);
    parser.commands(&[])?;
    parser.documents.is_empty().then_some(parser.nodes)
}

pub(super) struct Parser<'t> {
    pub(super) text: &'t [u8],
    pub(super) at: usize,
    /// Where the script or the substitution in backquotes ends.
    pub(super) end: usize,
    pub(super) nodes: Vec<Node<'t>>,
    parent: Option<usize>,
    /// The delimiters of here-documents that begin after this line, and whether tabs before the
    /// delimiter are ignored.
    documents: Vec<(Vec<u8>, bool)>,
    depth: usize,
    /// The number of steps that may still be taken.
    fuel: usize,
}

impl<'t> Parser<'t> {
    fn new(text: &'t [u8]) -> Parser<'t> {
        let fuel = STEPS_PER_BYTE * (text.len() + 1);
        Parser { text, at: 0, end: text.len(), nodes: Vec::new(), parent: None, documents: Vec::new(), depth: 0, fuel }
    }

    pub(super) fn rest(&self) -> &'t [u8] {
        &self.text[self.at.min(self.end)..self.end]
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    pub(super) fn starts(&self, text: &[u8]) -> bool {
        self.rest().starts_with(text)
    }

    pub(super) fn step(&mut self) -> Option<()> {
        self.fuel = self.fuel.checked_sub(1)?;
        Some(())
    }

    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        (self.depth < MAX_DEPTH).then_some(())?;
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Reads a node and what it contains. `read` returns its kind and end.
    pub(super) fn node(&mut self, read: impl FnOnce(&mut Self) -> Option<(Kind<'t>, usize)>) -> Option<usize> {
        let index = self.nodes.len();
        let start = self.at;
        self.nodes.push(Node { kind: Kind::Compound, range: start..start, parent: self.parent });
        let parent = self.parent.replace(index);
        let (kind, end) = self.nested(read)?;
        self.parent = parent;
        self.nodes[index].kind = kind;
        self.nodes[index].range = start..end;
        Some(index)
    }

    /// Calls `read`. Restores the state before it if the result is `None`.
    pub(super) fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let (at, nodes, parent, depth) = (self.at, self.nodes.len(), self.parent, self.depth);
        let (documents, end) = (self.documents.len(), self.end);
        let result = read(self);
        if result.is_none() {
            (self.at, self.parent, self.depth, self.end) = (at, parent, depth, end);
            self.nodes.truncate(nodes);
            self.documents.truncate(documents);
        }
        result
    }

    /// Skips blanks, continued lines and a comment.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.starts(b"\\\n") => self.at += 2,
                Some(b'#') => self.at += self.rest().iter().take_while(|byte| **byte != b'\n').count(),
                _ => break,
            }
        }
    }

    pub(super) fn blank_lines(&mut self) -> Option<()> {
        loop {
            self.step()?;
            self.blanks();
            match self.peek() {
                Some(b'\n') => self.newline()?,
                _ => break Some(()),
            }
        }
    }

    /// Skips the end of a line, and the here-documents after it.
    fn newline(&mut self) -> Option<()> {
        self.at += 1;
        for (delimiter, ignores_tabs) in std::mem::take(&mut self.documents) {
            loop {
                self.step()?;
                (self.at < self.end).then_some(())?;
                let line: &[u8] = self.rest().split(|byte| *byte == b'\n').next()?;
                self.at = (self.at + line.len() + 1).min(self.end);
                let tabs = if ignores_tabs { line.iter().take_while(|byte| **byte == b'\t').count() } else { 0 };
                if line[tabs..] == delimiter[..] {
                    break;
                }
            }
        }
        Some(())
    }

    /// Whether one of these words or operators is next.
    pub(super) fn is_at(&self, words: &[&[u8]]) -> bool {
        words.iter().any(|word| match word[0] {
            b')' | b';' => self.starts(word),
            _ => self.starts(word) && self.rest().get(word.len()).is_none_or(|next| is_delimiter(*next)),
        })
    }

    pub(super) fn keyword(&mut self, word: &[u8]) -> Option<()> {
        self.is_at(&[word]).then_some(())?;
        self.at += word.len();
        Some(())
    }

    /// Reads commands up to one of the words `ends`, which is not skipped, or to the end of the
    /// script.
    pub(super) fn commands(&mut self, ends: &[&[u8]]) -> Option<()> {
        loop {
            self.blank_lines()?;
            if self.at >= self.end {
                return ends.is_empty().then_some(());
            }
            if self.is_at(ends) {
                return Some(());
            }
            self.list()?;
            self.blanks();
            match self.peek() {
                None | Some(b'\n') => {}
                _ if self.is_at(&[b")", b";;", b";&"]) => self.is_at(ends).then_some(())?,
                Some(b';' | b'&') => self.at += 1,
                _ => self.is_at(ends).then_some(())?,
            }
        }
    }

    fn list(&mut self) -> Option<usize> {
        self.node(|parser| {
            loop {
                let last = parser.pipeline()?;
                let end = parser.nodes[last].range.end;
                parser.blanks();
                if !parser.starts(b"&&") && !parser.starts(b"||") {
                    let is_background = parser.peek() == Some(b'&');
                    break Some((Kind::List { is_background }, end));
                }
                parser.at += 2;
                parser.blank_lines()?;
            }
        })
    }

    fn pipeline(&mut self) -> Option<usize> {
        self.node(|parser| {
            let mut is_negated = false;
            while parser.is_at(&[b"!", b"time"]) {
                is_negated |= parser.starts(b"!");
                parser.at += if parser.starts(b"!") { 1 } else { 4 };
                parser.blanks();
            }
            loop {
                let end = parser.command()?;
                parser.blanks();
                if !parser.starts(b"|") || parser.starts(b"||") {
                    break Some((Kind::Pipeline { is_negated }, end));
                }
                parser.at += if parser.starts(b"|&") { 2 } else { 1 };
                parser.blank_lines()?;
            }
        })
    }

    /// Reads a command. Returns where it ends.
    pub(super) fn command(&mut self) -> Option<usize> {
        const ENDS: [&[u8]; 8] = [b"do", b"done", b"elif", b"else", b"esac", b"fi", b"then", b"}"];
        self.step()?;
        (!self.is_at(&ENDS)).then_some(())?;
        let Some(read) = self.compound() else {
            let index = self.node(Self::simple)?;
            return Some(self.nodes[index].range.end);
        };
        let index = self.node(read)?;
        let redirection = |parser: &mut Self| {
            parser.blanks();
            parser.redirection()
        };
        while self.attempt(redirection).is_some() {}
        self.nodes[index].range.end = self.at;
        Some(self.at)
    }

    fn simple(&mut self) -> Option<(Kind<'t>, usize)> {
        let mut simple = Simple::default();
        let start = self.at;
        let mut end = self.at;
        loop {
            self.step()?;
            self.blanks();
            if let Some(redirection) = self.attempt(Self::redirection) {
                simple.redirections.push(redirection);
            } else {
                match self.peek() {
                    None | Some(b'\n' | b';' | b'&' | b'|' | b')') => break,
                    Some(_) if simple.words.is_empty() => match self.attempt(Self::assignment) {
                        Some(assignment) => simple.assignments.push(assignment),
                        None => simple.words.push(self.word()?),
                    },
                    Some(_) => simple.words.push(self.word()?),
                }
            }
            end = self.at;
        }
        (end > start).then_some((Kind::Simple(simple), end))
    }

    fn assignment(&mut self) -> Option<Assignment<'t>> {
        let name = self.name().filter(|name| !name[0].is_ascii_digit())?;
        let mut is_plain = true;
        if self.peek() == Some(b'[') {
            is_plain = false;
            while self.peek()? != b']' {
                (self.peek()? != b'\n').then_some(())?;
                self.skip(true)?;
            }
            self.at += 1;
        }
        if self.starts(b"+=") {
            is_plain = false;
            self.at += 1;
        }
        (self.peek() == Some(b'=')).then_some(())?;
        self.at += 1;
        if self.peek() == Some(b'(') {
            self.array()?;
            return Some(Assignment { name, value: None });
        }
        let value = if self.peek().is_none_or(|byte| byte != b'`' && is_delimiter(byte)) {
            Word { range: self.at..self.at, parts: Vec::new() }
        } else {
            self.word()?
        };
        Some(Assignment { name, value: is_plain.then_some(value) })
    }

    /// Reads the words of an array: `(a b)`.
    pub(super) fn array(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            self.blank_lines()?;
            if self.peek()? == b')' {
                self.at += 1;
                break Some(());
            }
            self.word()?;
        }
    }

    fn redirection(&mut self) -> Option<Redirection<'t>> {
        let start = self.at;
        let digits = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        const OPERATORS: [&[u8]; 12] =
            [b"<<<", b"<<-", b"<<", b"<&", b"<>", b"<", b">>", b">&", b">|", b">", b"&>>", b"&>"];
        let operator = OPERATORS.into_iter().find(|operator| self.starts(operator))?;
        let is_process = matches!(operator, b"<" | b">") && self.rest().get(1) == Some(&b'(');
        (!is_process).then_some(())?;
        self.at += operator.len();
        let written = &self.text[start..self.at];
        self.blanks();
        let target = self.word()?;
        if operator == b"<<" || operator == b"<<-" {
            self.documents.push((target.delimiter(), operator == b"<<-"));
        }
        Some(Redirection { range: start..self.at, operator: written, target })
    }
}

pub(crate) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a byte ends a word.
pub(super) fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' | b'`')
}
