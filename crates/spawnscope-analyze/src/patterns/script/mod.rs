//! The structure of a shell script: commands, loops, functions and substitutions, each with the
//! bytes of the script that it consists of. `parser` reads it. A script with anything that the
//! parser does not know has no structure, so that it is not edited.

mod compound;
mod parser;
#[cfg(test)]
mod tests;
mod words;

use std::ops::Range;

use crate::patterns::words::{Words, contains};
pub(crate) use words::{Part, Word};

#[derive(Debug)]
pub(crate) struct Script<'t> {
    pub(crate) text: &'t [u8],
    /// In the order of their beginnings, so parents come before their children.
    nodes: Vec<Node<'t>>,
}

/// A part of a script.
#[derive(Debug)]
pub(crate) struct Node<'t> {
    pub(crate) kind: Kind<'t>,
    pub(crate) range: Range<usize>,
    pub(crate) parent: Option<usize>,
}

#[derive(Debug)]
pub(crate) enum Kind<'t> {
    /// Pipelines joined by `&&` and `||`.
    List {
        is_background: bool,
    },
    /// Commands joined by `|`.
    Pipeline {
        is_negated: bool,
    },
    Simple(Simple<'t>),
    /// `for name in words`.
    For(For<'t>),
    /// A loop of another kind, with what is between `do` and `done`.
    Loop {
        body: Range<usize>,
    },
    Function,
    /// `if`, `case` and `{ }`.
    Compound,
    /// `( )`.
    Subshell,
    /// `$( )`, backquotes and `<( )`.
    Substitution,
    /// `[[ ]]` and `(( ))`, with the words inside.
    Expression(Vec<Word<'t>>),
}

/// A command that is not compound.
#[derive(Debug, Default)]
pub(crate) struct Simple<'t> {
    pub(crate) assignments: Vec<Assignment<'t>>,
    /// The program and its arguments.
    pub(crate) words: Vec<Word<'t>>,
    pub(crate) redirections: Vec<Redirection<'t>>,
}

#[derive(Debug)]
pub(crate) struct Assignment<'t> {
    pub(crate) name: &'t [u8],
    /// `None` for an array, and for `+=`.
    pub(crate) value: Option<Word<'t>>,
}

#[derive(Debug)]
pub(crate) struct Redirection<'t> {
    pub(crate) range: Range<usize>,
    /// With the descriptor: `2>`.
    pub(crate) operator: &'t [u8],
    pub(crate) target: Word<'t>,
}

#[derive(Debug)]
pub(crate) struct For<'t> {
    pub(crate) name: &'t [u8],
    pub(crate) words: Vec<Word<'t>>,
    /// What is executed for each word.
    pub(crate) body: Range<usize>,
}

impl<'t> Script<'t> {
    /// Reads a script. `None` if it contains syntax that is not known.
    pub(crate) fn parse(text: &'t [u8]) -> Option<Script<'t>> {
        parser::parse(text).map(|nodes| Script { text, nodes })
    }

    pub(crate) fn node(&self, index: usize) -> &Node<'t> {
        &self.nodes[index]
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn children(&self, parent: usize) -> impl Iterator<Item = usize> {
        (parent + 1..self.nodes.len()).filter(move |index| self.nodes[*index].parent == Some(parent))
    }

    /// Returns the ancestors of a node, innermost first.
    pub(crate) fn ancestors(&self, index: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.nodes[index].parent, |parent| self.nodes[*parent].parent)
    }

    pub(crate) fn inside(&self, index: usize) -> Range<usize> {
        let end = self.nodes[index].range.end;
        let count = self.nodes[index + 1..].iter().take_while(|node| node.range.start < end).count();
        index + 1..index + 1 + count
    }

    /// Returns the list that consists of a command and nothing else.
    pub(crate) fn statement(&self, command: usize) -> Option<usize> {
        let list = self.nodes[self.nodes[command].parent?].parent?;
        (self.command_of(list) == Some(command)).then_some(list)
    }

    /// Returns the command that a list consists of, if nothing is joined to it.
    pub(crate) fn command_of(&self, list: usize) -> Option<usize> {
        let only = |parent| self.children(parent).next().filter(|_| self.children(parent).nth(1).is_none());
        let pipeline = only(list).filter(|_| matches!(self.nodes[list].kind, Kind::List { is_background: false }))?;
        only(pipeline).filter(|_| matches!(self.nodes[pipeline].kind, Kind::Pipeline { is_negated: false }))
    }

    /// Returns the variable that a command sets, and the value. `None` if it does more.
    pub(crate) fn assigned(&self, command: usize) -> Option<(&'t [u8], &Word<'t>)> {
        let simple = self.simple(command).filter(|simple| simple.words.is_empty() && simple.redirections.is_empty())?;
        let [only] = &simple.assignments[..] else { return None };
        Some((only.name, only.value.as_ref()?))
    }

    /// Returns the program or builtin of a simple command, if it is written there.
    pub(crate) fn program(&self, command: usize) -> Option<Vec<u8>> {
        self.simple(command)?.words.first()?.literal()
    }

    pub(crate) fn source(&self, range: &Range<usize>) -> &'t [u8] {
        &self.text[range.clone()]
    }

    /// Returns the simple commands whose program has this base name.
    pub(crate) fn calls(&self, program: &[u8]) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(move |index| {
            let path = self.simple(*index).and_then(|simple| simple.words.first()?.literal());
            path.is_some_and(|path| path.rsplit(|byte| *byte == b'/').next() == Some(program))
        })
    }

    /// Returns the names of the commands that begin in a range.
    pub(crate) fn calls_in(&self, range: &Range<usize>) -> impl Iterator<Item = Vec<u8>> {
        let inside = (0..self.nodes.len()).filter(|index| range.contains(&self.nodes[*index].range.start));
        inside.filter_map(|index| self.simple(index)?.words.first()?.literal())
    }

    pub(crate) fn simple(&self, index: usize) -> Option<&Simple<'t>> {
        match &self.nodes[index].kind {
            Kind::Simple(simple) => Some(simple),
            _ => None,
        }
    }

    /// Returns the line of a position, from 1.
    pub(crate) fn line_of(&self, at: usize) -> u32 {
        1 + self.text[..at].iter().filter(|byte| **byte == b'\n').count() as u32
    }

    /// Whether code in a range may set a variable. `eval` and `.` may set any variable. A call of
    /// one of the script's functions counts as a call of all of them.
    pub(crate) fn may_set(&self, range: &Range<usize>, name: &[u8]) -> bool {
        let is_inside = |node: &&Node<'t>| range.start <= node.range.start && node.range.end <= range.end;
        let calls_function = self.nodes.iter().filter(is_inside).any(|node| match &node.kind {
            Kind::Simple(simple) => {
                let command = simple.words.first().and_then(Word::literal);
                command.is_some_and(|command| self.is_function(&command))
            }
            _ => false,
        });
        let in_function =
            |index: usize| self.ancestors(index).any(|each| matches!(self.nodes[each].kind, Kind::Function));
        (0..self.nodes.len()).any(|index| {
            let node = &self.nodes[index];
            (is_inside(&node) || calls_function && in_function(index)) && self.sets(node, name)
        })
    }

    /// Returns the calls of a function. `None` if there is none, or if it may have other callers: a
    /// wrapper, a trap, or a prompt names it, too.
    pub(crate) fn calls_everywhere(&self, name: &[u8]) -> Option<Vec<usize>> {
        let calls: Vec<usize> = self.calls(name).collect();
        let named = identifiers(self.text).filter(|word| *word == name).count();
        (!calls.is_empty() && named == calls.len() + 1).then_some(calls)
    }

    /// Whether a part of the script, without its own parts, may set a variable.
    pub(crate) fn sets(&self, node: &Node<'t>, name: &[u8]) -> bool {
        match &node.kind {
            Kind::For(each) => each.name == name || each.words.iter().any(|word| word.may_set(name)),
            // Arithmetic may set any variable that it names: `(( x++ ))`, `[[ x=1 -eq 1 ]]`.
            Kind::Expression(words) => {
                let source = self.source(&node.range);
                let is_arithmetic =
                    !source.starts_with(b"[[") || ARITHMETIC.iter().any(|test| contains(source, test.as_bytes()));
                let has_match = name == b"BASH_REMATCH" && contains(source, b"=~");
                has_match || words.iter().any(|word| word.may_set(name) || is_arithmetic && self.names(word, name))
            }
            Kind::Simple(simple) => {
                let is_assigned = simple.assignments.iter().any(|assigned| {
                    assigned.name == name || assigned.value.as_ref().is_some_and(|value| value.may_set(name))
                });
                let command = simple.words.first().map(|word| word.literal().unwrap_or_default());
                let is_named = match command.as_deref() {
                    Some(b"eval" | b"source" | b".") => true,
                    Some(b"printf") if simple.words.get(1).and_then(Word::literal).as_deref() != Some(b"-v") => false,
                    Some(command) if SETTERS.contains(command) => {
                        simple.words.iter().any(|word| self.names(word, name))
                    }
                    _ => false,
                };
                is_assigned || is_named || simple.words.iter().any(|word| word.may_set(name))
            }
            // The redirections of a compound command are not kept; they set nothing.
            _ => false,
        }
    }

    pub(crate) fn is_function(&self, name: &[u8]) -> bool {
        self.function(name).is_some()
    }

    pub(crate) fn function(&self, name: &[u8]) -> Option<Range<usize>> {
        let is_function =
            |index: &usize| matches!(self.nodes[*index].kind, Kind::Function) && self.function_name(*index) == name;
        (0..self.nodes.len()).find(is_function).map(|index| self.nodes[index].range.clone())
    }

    pub(crate) fn function_name(&self, index: usize) -> &'t [u8] {
        let text = self.source(&self.nodes[index].range);
        let text = text.strip_prefix(b"function ").unwrap_or(text).trim_ascii_start();
        text.split(|byte| b" \t\n({".contains(byte)).next().unwrap_or_default()
    }

    /// Whether a word contains a name as a word of its own.
    fn names(&self, word: &Word<'t>, name: &[u8]) -> bool {
        names(self.source(&word.range), name)
    }
}

/// Tests of `[[ ]]` whose operands are arithmetic.
const ARITHMETIC: Words = Words("-eq -ne -lt -le -gt -ge -v");
/// Builtins that set the variables that their arguments name.
const SETTERS: Words =
    Words("builtin command declare export getopts let local mapfile printf read readarray readonly typeset unset wait");

/// Whether an expansion is a list: `$@`, `${@:2}`, `${names[@]}`, `${!prefix*}`.
pub(crate) fn is_several_words(text: &[u8]) -> bool {
    let inside = text.strip_prefix(b"${").and_then(|text| text.strip_suffix(b"}")).unwrap_or(&text[1..]);
    let is_list = |byte: Option<&u8>| matches!(byte, Some(b'@' | b'*'));
    is_list(inside.first())
        || inside.starts_with(b"!") && is_list(inside.last())
        || inside.windows(3).any(|part| matches!(part, b"[@]" | b"[*]"))
}

/// Iterates over everything in a text that could be the name of a variable.
pub(crate) fn identifiers(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = text.split(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'));
    words.filter(|word| word.first().is_some_and(|first| !first.is_ascii_digit()))
}

/// Whether a text contains a name that is not part of a longer one.
pub(crate) fn names(text: &[u8], name: &[u8]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut starts = 0..(text.len() + 1).saturating_sub(name.len().max(1));
    starts.any(|at| {
        let end = at + name.len();
        text[at..end] == *name
            && !at.checked_sub(1).is_some_and(|before| is_name(&text[before]))
            && !text.get(end).is_some_and(is_name)
    })
}
