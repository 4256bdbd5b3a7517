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
pub(crate) use parser::is_name_byte;
pub(crate) use words::{Part, Word};

#[derive(Debug)]
pub(crate) struct Script<'t> {
    pub(crate) text: &'t [u8],
    /// In the order of their beginnings, so parents come before their children.
    nodes: Vec<Node<'t>>,
}

/// A part of a script.
#[derive(Debug)]
struct Node<'t> {
    kind: Kind<'t>,
    range: Range<usize>,
    parent: Option<usize>,
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

impl<'t> Simple<'t> {
    /// Returns the words. `None` if there are expansions or patterns in them.
    pub(crate) fn literals(&self) -> Option<Vec<Vec<u8>>> {
        self.words.iter().map(Word::literal).collect()
    }

    /// Returns the words. Those with expansions and patterns are empty.
    pub(crate) fn texts(&self) -> Vec<Vec<u8>> {
        self.words.iter().map(|word| word.literal().unwrap_or_default()).collect()
    }

    /// Whether it has neither assignments nor redirections.
    pub(crate) fn is_bare(&self) -> bool {
        self.assignments.is_empty() && self.redirections.is_empty()
    }

    /// Iterates over the words, the values of variables, and the targets of redirections.
    pub(crate) fn all_words(&self) -> impl Iterator<Item = &Word<'t>> {
        let values = self.assignments.iter().filter_map(|each| each.value.as_ref());
        self.words.iter().chain(values).chain(self.redirections.iter().map(|each| &each.target))
    }
}

impl Redirection<'_> {
    fn is_null(&self) -> bool {
        self.operator.ends_with(b"&") || self.target.literal().as_deref() == Some(b"/dev/null")
    }

    /// Whether it throws the output away.
    pub(crate) fn hides_output(&self) -> bool {
        matches!(self.operator, b">" | b"1>" | b"&>") && self.is_null()
    }

    /// Whether it writes to a file.
    pub(crate) fn writes_file(&self) -> bool {
        self.operator.contains(&b'>') && !self.is_null()
    }

    /// Whether it also is right for the call that replaces several.
    pub(crate) fn is_kept(&self) -> bool {
        let is_written = matches!(self.operator, b">" | b"2>" | b"&>");
        !self.operator.contains(&b'<') && (!is_written || self.is_null())
    }
}

/// Returns where the words of a list are.
pub(crate) fn span(words: &[Word<'_>]) -> Range<usize> {
    words.first().zip(words.last()).map_or(0..0, |(first, last)| first.range.start..last.range.end)
}

impl<'t> Script<'t> {
    /// Reads a script. `None` if it contains syntax that is not known.
    pub(crate) fn parse(text: &'t [u8]) -> Option<Script<'t>> {
        let mut script = Script { text, nodes: parser::parse(text)? };
        let named = (0..script.nodes.len()).filter_map(|index| {
            let variable = script.simple(index)?.words.first()?.variable()?;
            Some((index, script.constant(variable, script.start(index))?))
        });
        for (index, text) in named.collect::<Vec<_>>() {
            if let Kind::Simple(simple) = &mut script.nodes[index].kind {
                simple.words[0].parts = vec![Part::Literal { text, is_quoted: false }];
            }
        }
        Some(script)
    }

    /// Returns the program that a variable names at a position, such as `$SED`: the script sets it
    /// once, before, and in any case.
    fn constant(&self, variable: &[u8], at: usize) -> Option<Vec<u8>> {
        let mut setters = (0..self.nodes.len()).filter(|index| self.sets(*index, variable));
        let only = setters.next().filter(|only| self.start(*only) < at && setters.next().is_none())?;
        self.statement(only).filter(|list| self.parent(*list).is_none())?;
        let is_program = |text: &Vec<u8>| !text.is_empty() && !text.iter().any(u8::is_ascii_whitespace);
        self.assigned(only)?.1.literal().filter(is_program)
    }

    pub(crate) fn kind(&self, index: usize) -> &Kind<'t> {
        &self.nodes[index].kind
    }

    pub(crate) fn range(&self, index: usize) -> Range<usize> {
        self.nodes[index].range.clone()
    }

    pub(crate) fn start(&self, index: usize) -> usize {
        self.nodes[index].range.start
    }

    pub(crate) fn end(&self, index: usize) -> usize {
        self.nodes[index].range.end
    }

    pub(crate) fn parent(&self, index: usize) -> Option<usize> {
        self.nodes[index].parent
    }

    /// Returns the text of a node.
    pub(crate) fn code(&self, index: usize) -> &'t [u8] {
        self.source(&self.nodes[index].range)
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Iterates over the nodes that begin in a range.
    pub(crate) fn nodes_in<'s>(&'s self, range: &Range<usize>) -> impl Iterator<Item = usize> + use<'s, 't> {
        let range = range.clone();
        (0..self.nodes.len()).filter(move |index| range.contains(&self.nodes[*index].range.start))
    }

    pub(crate) fn children(&self, parent: usize) -> impl Iterator<Item = usize> {
        (parent + 1..self.nodes.len()).filter(move |index| self.nodes[*index].parent == Some(parent))
    }

    /// Returns the ancestors of a node, innermost first.
    pub(crate) fn ancestors(&self, index: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.nodes[index].parent, |parent| self.nodes[*parent].parent)
    }

    /// Returns the innermost ancestor of a kind.
    pub(crate) fn ancestor(&self, index: usize, is_kind: impl Fn(&Kind<'t>) -> bool) -> Option<usize> {
        self.ancestors(index).find(|each| is_kind(&self.nodes[*each].kind))
    }

    pub(crate) fn function_around(&self, index: usize) -> Option<usize> {
        self.ancestor(index, |kind| matches!(kind, Kind::Function))
    }

    pub(crate) fn substitution_around(&self, index: usize) -> Option<usize> {
        self.ancestor(index, |kind| matches!(kind, Kind::Substitution))
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

    /// Whether a command is a pipeline of its own, without `!`.
    pub(crate) fn is_alone(&self, command: usize) -> bool {
        self.parent(command).is_some_and(|pipeline| {
            matches!(self.kind(pipeline), Kind::Pipeline { is_negated: false }) && self.only_child(pipeline).is_some()
        })
    }

    /// Returns the only child of a node.
    pub(crate) fn only_child(&self, parent: usize) -> Option<usize> {
        self.children(parent).next().filter(|_| self.children(parent).nth(1).is_none())
    }

    /// Returns the command that a list consists of, if nothing is joined to it.
    pub(crate) fn command_of(&self, list: usize) -> Option<usize> {
        let is_plain = |index: usize| {
            matches!(self.kind(index), Kind::List { is_background: false } | Kind::Pipeline { is_negated: false })
        };
        let pipeline = self.only_child(list).filter(|pipeline| is_plain(list) && is_plain(*pipeline))?;
        self.only_child(pipeline)
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
            self.program(*index).is_some_and(|path| path.rsplit(|byte| *byte == b'/').next() == Some(program))
        })
    }

    /// Returns the names of the commands that begin in a range.
    pub(crate) fn calls_in(&self, range: &Range<usize>) -> impl Iterator<Item = Vec<u8>> {
        self.nodes_in(range).filter_map(|index| self.program(index))
    }

    pub(crate) fn simple(&self, index: usize) -> Option<&Simple<'t>> {
        match &self.nodes[index].kind {
            Kind::Simple(simple) => Some(simple),
            _ => None,
        }
    }

    /// Returns the line of a position, from 1.
    pub(crate) fn line_of(&self, at: usize) -> u32 {
        line_of(self.text, at)
    }

    /// Whether code in a range may set a variable. `eval` and `.` may set any variable. A call of
    /// one of the script's functions counts as a call of all of them.
    pub(crate) fn may_set(&self, range: &Range<usize>, name: &[u8]) -> bool {
        let is_inside = |index: usize| range.start <= self.start(index) && self.end(index) <= range.end;
        let is_call = |index: usize| self.program(index).is_some_and(|command| self.is_function(&command));
        let calls_function = (0..self.nodes.len()).any(|index| is_inside(index) && is_call(index));
        (0..self.nodes.len()).any(|index| {
            (is_inside(index) || calls_function && self.function_around(index).is_some()) && self.sets(index, name)
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
    pub(crate) fn sets(&self, index: usize, name: &[u8]) -> bool {
        match self.kind(index) {
            Kind::For(each) => each.name == name || each.words.iter().any(|word| word.may_set(name)),
            // Arithmetic may set any variable that it names: `(( x++ ))`, `[[ x=1 -eq 1 ]]`.
            Kind::Expression(words) => {
                let source = self.code(index);
                let is_arithmetic =
                    !source.starts_with(b"[[") || ARITHMETIC.iter().any(|test| contains(source, test.as_bytes()));
                let has_match = name == b"BASH_REMATCH" && contains(source, b"=~");
                has_match || words.iter().any(|word| word.may_set(name) || is_arithmetic && self.names(word, name))
            }
            Kind::Simple(simple) => {
                let is_assigned = simple.assignments.iter().any(|assigned| {
                    assigned.name == name || assigned.value.as_ref().is_some_and(|value| value.may_set(name))
                });
                let is_named = match &self.program(index).unwrap_or_default()[..] {
                    b"eval" | b"source" | b"." => true,
                    b"printf" if simple.words.get(1).and_then(Word::literal).as_deref() != Some(b"-v") => false,
                    command => SETTERS.contains(command) && simple.words.iter().any(|word| self.names(word, name)),
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
            |index: &usize| matches!(self.kind(*index), Kind::Function) && self.function_name(*index) == name;
        (0..self.nodes.len()).find(is_function).map(|index| self.range(index))
    }

    pub(crate) fn function_name(&self, index: usize) -> &'t [u8] {
        let text = self.code(index);
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

/// Returns the line of a position, from 1.
pub(crate) fn line_of(text: &[u8], at: usize) -> u32 {
    1 + text[..at].iter().filter(|byte| **byte == b'\n').count() as u32
}

/// Whether an expansion is a list: `$@`, `${@:2}`, `${names[@]}`, `${!prefix*}`.
pub(crate) fn is_several_words(text: &[u8]) -> bool {
    let inside = text.strip_prefix(b"${").and_then(|text| text.strip_suffix(b"}")).unwrap_or(&text[1..]);
    let is_list = |byte: Option<&u8>| matches!(byte, Some(b'@' | b'*'));
    is_list(inside.first())
        || inside.starts_with(b"!") && is_list(inside.last())
        || inside.windows(3).any(|part| matches!(part, b"[@]" | b"[*]"))
}

/// Returns the length of the name that a text begins with.
pub(crate) fn identifier_length(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_name_byte(**byte)).count()
}

/// Iterates over everything in a text that could be the name of a variable.
pub(crate) fn identifiers(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = text.split(|byte| !is_name_byte(*byte));
    words.filter(|word| word.first().is_some_and(|first| !first.is_ascii_digit()))
}

/// Whether a text contains a name that is not part of a longer one.
pub(crate) fn names(text: &[u8], name: &[u8]) -> bool {
    let mut starts = 0..(text.len() + 1).saturating_sub(name.len().max(1));
    starts.any(|at| {
        let end = at + name.len();
        text[at..end] == *name
            && !at.checked_sub(1).is_some_and(|before| is_name_byte(text[before]))
            && !text.get(end).is_some_and(|byte| is_name_byte(*byte))
    })
}
