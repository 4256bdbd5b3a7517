//! What is around a call in a script: the loops, what handles its failure, and where their
//! variables are used.

use std::ops::Range;

use super::many::writes_file;
use super::shell::FoundCall;
use super::{EditRefusal, Splice, line_start, refuse, splice};
use crate::model::launch::base_name;
use crate::patterns::programs::has_property;
use crate::patterns::queries::GIT_READS;
use crate::patterns::script::{Kind, Part, Script, Word, names};
use crate::patterns::words::{Words, contains};

/// What a script may do if a call fails. It does it, too, if the call for all inputs fails.
const IF_FAILED: Words = Words(": exit return true");

/// The loop around a call.
pub(super) struct Around<'t> {
    pub(super) node: usize,
    /// What is between `do` and `done`.
    pub(super) body: Range<usize>,
    pub(super) kind: LoopKind<'t>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopKind<'t> {
    /// `for name in words`
    Words(&'t [u8]),
    /// `while read name`
    Lines(&'t [u8]),
    Other,
}

impl Around<'_> {
    /// Returns what is before `do`.
    pub(super) fn header(&self, script: &Script<'_>) -> Range<usize> {
        script.node(self.node).range.start..self.body.start
    }

    /// Whether the loop may set a variable. The header of `for ((...))` and of `for name` has no
    /// structure.
    pub(super) fn may_set(&self, script: &Script<'_>, variable: &[u8]) -> bool {
        let in_header =
            !matches!(self.kind, LoopKind::Words(_)) && names(script.source(&self.header(script)), variable);
        in_header || script.may_set(&script.node(self.node).range, variable)
    }
}

/// A call, and what handles its failure.
pub(super) struct Statement<'t> {
    pub(super) list: usize,
    /// `exit 1` of `call || exit 1`.
    pub(super) if_failed: Option<&'t [u8]>,
}

/// Returns the loops around a call, innermost first, up to the next function or substitution.
pub(super) fn loops_around<'t>(call: &FoundCall<'_, 't>) -> Vec<Around<'t>> {
    let script = call.script;
    let is_boundary =
        |index: &usize| matches!(script.node(*index).kind, Kind::Function | Kind::Substitution | Kind::Subshell);
    let around = script.ancestors(call.substitution.unwrap_or(call.command)).take_while(|index| !is_boundary(index));
    let loops = around.filter_map(|node| match &script.node(node).kind {
        Kind::For(each) => Some(Around { node, body: each.body.clone(), kind: LoopKind::Words(each.name) }),
        Kind::Loop { body } => {
            let kind = read_variable(script, node).map_or(LoopKind::Other, LoopKind::Lines);
            Some(Around { node, body: body.clone(), kind })
        }
        _ => None,
    });
    let at = script.node(call.command).range.start;
    loops.filter(|each| each.body.contains(&at)).collect()
}

/// Returns the only variable of `while IFS= read -r name`.
fn read_variable<'t>(script: &Script<'t>, node: usize) -> Option<&'t [u8]> {
    script.source(&script.node(node).range).starts_with(b"while").then_some(())?;
    let list = script.children(node).next()?;
    let read = script.simple(script.command_of(list)?)?;
    let is_plain = read.redirections.is_empty() && read.assignments.iter().all(|assignment| assignment.name == b"IFS");
    match &read.words[..] {
        [command, options @ .., variable] if is_plain && command.literal()? == b"read" => {
            let is_raw = options.iter().all(|word| word.literal().as_deref() == Some(b"-r"));
            let name = script.source(&variable.range);
            (is_raw && variable.literal()? == name).then_some(name)
        }
        _ => None,
    }
}

/// Returns the statement that consists of a call, perhaps with `|| exit`.
pub(super) fn statement_at<'t>(script: &Script<'t>, command: usize) -> Result<Statement<'t>, EditRefusal> {
    let joined = || refuse("the call is joined to other commands");
    if let Some(list) = script.statement(command) {
        return Ok(Statement { list, if_failed: None });
    }
    let Some(list) = first_of_list(script, command) else { return joined() };
    let pipelines: Vec<usize> = script.children(list).collect();
    let [first, last] = pipelines[..] else { return joined() };
    let is_plain = matches!(script.node(first).kind, Kind::Pipeline { is_negated: false })
        && matches!(script.node(list).kind, Kind::List { is_background: false });
    let or = script.node(first).range.end..script.node(last).range.start;
    let handler = script.children(last).next().filter(|_| script.children(last).count() == 1);
    let words = handler.and_then(|command| script.simple(command)).map(|simple| &simple.words);
    let words: Option<Vec<Vec<u8>>> = words.and_then(|words| words.iter().map(Word::literal).collect());
    let is_known = words.is_some_and(|words| words.first().is_some_and(|first| IF_FAILED.contains(first)));
    match is_known && is_plain && script.children(first).count() == 1 && script.source(&or).trim_ascii() == b"||" {
        true => Ok(Statement { list, if_failed: Some(script.source(&script.node(last).range)) }),
        false => joined(),
    }
}

/// Returns the statements in the body of a loop.
pub(super) fn statements(script: &Script<'_>, around: &Around<'_>) -> Vec<usize> {
    script.children(around.node).filter(|child| around.body.contains(&script.node(*child).range.start)).collect()
}

/// Whether everything in a loop, without what begins in `own`, only reads files.
pub(super) fn only_reads(script: &Script<'_>, around: &Around<'_>, own: &Range<usize>) -> bool {
    only_calls(script, around, own, only_reads_files)
}

/// Whether all commands in a loop, without those that begin in `own`, are of a kind.
pub(super) fn only_calls(
    script: &Script<'_>,
    around: &Around<'_>,
    own: &Range<usize>,
    is_of_kind: impl Fn(&Script<'_>, usize) -> bool,
) -> bool {
    let is_kept = |index: usize| match &script.node(index).kind {
        Kind::Simple(_) => is_of_kind(script, index),
        Kind::Function => false,
        _ => true,
    };
    let is_inside = |index: &usize| {
        let start = script.node(*index).range.start;
        around.body.contains(&start) && !own.contains(&start)
    };
    script.inside(around.node).filter(is_inside).all(is_kept)
}

/// Whether a simple command changes no files.
pub(super) fn only_reads_files(script: &Script<'_>, command: usize) -> bool {
    is_reader(script, command)
        && script.simple(command).is_some_and(|simple| !simple.redirections.iter().any(writes_file))
}

/// Whether the program of a simple command changes no files.
pub(super) fn is_reader(script: &Script<'_>, command: usize) -> bool {
    let Some(simple) = script.simple(command) else { return false };
    let words: Vec<Vec<u8>> = simple.words.iter().map(|word| word.literal().unwrap_or_default()).collect();
    let has = |options: &[&[u8]]| words.iter().any(|word| options.iter().any(|option| word.starts_with(option)));
    let is_reader = |program: &Vec<u8>| {
        let is_reader = match base_name(program) {
            b"find" => !has(&[b"-exec", b"-ok", b"-delete", b"-fprint", b"-fls"]),
            b"git" => words.get(1).is_some_and(|subcommand| GIT_READS.contains(subcommand)),
            b"sed" => !has(&[b"-i", b"--in-place"]),
            b"sort" => !has(&[b"-o", b"--output"]),
            name => has_property(name, "reads"),
        };
        is_reader && !script.is_function(program)
    };
    words.first().is_none_or(is_reader)
}

/// Whether each loop contains nothing but the next one.
pub(super) fn is_alone(script: &Script<'_>, loops: &[Around<'_>]) -> bool {
    let is_all = |pair: &[Around<'_>]| {
        let list = script.ancestors(pair[0].node).nth(1);
        let is_direct = list.and_then(|list| script.node(list).parent) == Some(pair[1].node);
        is_direct && script.statement(pair[0].node).is_some() && matches!(pair[0].kind, LoopKind::Words(_))
    };
    loops.iter().all(|around| statements(script, around).len() == 1) && loops.windows(2).all(is_all)
}

/// Whether a word expands a variable.
pub(super) fn mentions(script: &Script<'_>, word: &Word<'_>, variable: &[u8]) -> bool {
    let source = script.source(&word.range);
    source.contains(&b'$') && names(source, variable)
}

/// Whether a text expands `$1`, `$@` or another parameter of the script.
pub(super) fn uses_parameters(text: &[u8]) -> bool {
    let is_parameter = |byte: &u8| byte.is_ascii_digit() || b"@*#".contains(byte);
    (0..text.len()).filter(|at| text[*at] == b'$').any(|at| match text.get(at + 1) {
        Some(b'{') => text.get(at + 2).is_some_and(is_parameter),
        next => next.is_some_and(is_parameter),
    })
}

/// Whether code that may run after a loop expands a variable before it is certainly set again.
pub(super) fn is_used_outside(script: &Script<'_>, node: usize, variable: &[u8]) -> bool {
    let range = &script.node(node).range;
    let is_repeated = script
        .ancestors(node)
        .any(|each| matches!(script.node(each).kind, Kind::For(_) | Kind::Loop { .. } | Kind::Function));
    let end = if is_repeated { 0 } else { range.end };
    let starts = |index: &usize| script.node(*index).range.start;
    let later = (0..script.len()).filter(|index| starts(index) >= end && !range.contains(&starts(index)));
    let later: Vec<usize> = later.collect();
    let expands = |index: usize| match &script.node(index).kind {
        Kind::Simple(simple) => {
            let values = simple.assignments.iter().filter_map(|each| each.value.as_ref());
            let targets = simple.redirections.iter().map(|each| &each.target);
            simple.words.iter().chain(values).chain(targets).any(|word| mentions(script, word, variable))
        }
        Kind::For(each) => each.words.iter().any(|word| mentions(script, word, variable)),
        Kind::Expression(words) => words.iter().any(|word| names(script.source(&word.range), variable)),
        _ => false,
    };
    let is_set_around = |index: usize| {
        script.ancestors(index).any(|around| {
            let node = script.node(around);
            let sets = match &node.kind {
                Kind::For(each) => each.name == variable,
                Kind::Loop { body } => reads(script, &(node.range.start..body.start), variable),
                _ => false,
            };
            node.range.start >= end && sets
        })
    };
    later.into_iter().any(|index| expands(index) && !is_set_around(index))
}

/// Whether a `read` in a range sets a variable.
fn reads(script: &Script<'_>, range: &Range<usize>, variable: &[u8]) -> bool {
    let mut inside = (0..script.len()).filter(|index| range.contains(&script.node(*index).range.start));
    inside.any(|index| {
        let words =
            script.simple(index).map(|simple| simple.words.iter().filter_map(Word::literal).collect::<Vec<_>>());
        words.is_some_and(|words| {
            words.first().is_some_and(|first| first == b"read") && words.iter().any(|word| word == variable)
        })
    })
}

/// Whether a word of a loop is certainly at least one argument.
pub(super) fn is_certain(script: &Script<'_>, word: &Word<'_>) -> bool {
    word.parts.iter().any(|part| match part {
        Part::Literal { .. } => true,
        Part::Pattern => !names(script.text, b"nullglob"),
        Part::Variable { is_quoted, .. } | Part::Substitution { is_quoted, .. } => *is_quoted,
        Part::Other { .. } => false,
    }) && !(names(script.text, b"nullglob") && word.parts.contains(&Part::Pattern))
}

/// Returns how to insert commands before the statement that a command begins.
pub(super) fn insertion(script: &Script<'_>, command: usize, commands: &str) -> Result<Splice, EditRefusal> {
    let list = first_of_list(script, command)
        .ok_or_else(|| EditRefusal("the call is not at the beginning of a statement".to_owned()))?;
    Ok(insertion_at(script.text, script.node(list).range.start, commands))
}

/// Returns the list that a command is the first of.
pub(super) fn first_of_list(script: &Script<'_>, command: usize) -> Option<usize> {
    let pipeline = script.node(command).parent?;
    list_of(script, command).filter(|_| script.children(pipeline).next() == Some(command))
}

/// Returns the list that a command belongs to, if the list always executes the command.
pub(super) fn list_of(script: &Script<'_>, command: usize) -> Option<usize> {
    let pipeline = script.node(command).parent?;
    let list = script.node(pipeline).parent?;
    let is_list = matches!(script.node(list).kind, Kind::List { .. });
    (is_list && script.children(list).next() == Some(pipeline)).then_some(list)
}

/// Returns the adjacent statements around one of them that `of` knows, and of which each is like
/// the next.
pub(super) fn run_around<T: Copy>(
    script: &Script<'_>,
    own: usize,
    of: impl Fn(usize) -> Option<T>,
    is_like: impl Fn(&T, &T) -> bool,
) -> Option<Vec<(usize, T)>> {
    let parent = script.node(own).parent;
    let siblings = (0..script.len()).filter(|list| script.node(*list).parent == parent);
    let statements: Vec<Option<(usize, T)>> = siblings.map(|list| Some((list, of(list)?))).collect();
    let mut runs =
        statements.chunk_by(|one, next| matches!((one, next), (Some((_, one)), Some((_, next))) if is_like(one, next)));
    let run = runs.find(|run| run.iter().flatten().any(|(list, _)| *list == own))?;
    Some(run.iter().flatten().copied().collect())
}

/// Inserts commands at the beginning of a statement: as a line of their own, if the statement
/// begins its line.
pub(super) fn insertion_at(text: &[u8], at: usize, commands: &str) -> Splice {
    let indentation = &text[line_start(text, at)..at];
    let is_at_start = indentation.iter().all(|byte| matches!(byte, b' ' | b'\t'));
    let text = match is_at_start {
        true => [commands.as_bytes(), b"\n", indentation].concat(),
        false => [commands.as_bytes(), b"; "].concat(),
    };
    splice(at..at, text)
}

/// Whether a script may end or do something else when a command fails.
pub(super) fn checks_status(script: &[u8]) -> bool {
    let has = |part: &[u8]| contains(script, part);
    has(b"errexit")
        || has(b"$?")
        || has(b"trap ")
        || has(b"set -")
        || script
            .split(|byte| *byte == b'\n')
            .next()
            .is_some_and(|first| first.starts_with(b"#!") && first.windows(2).any(|two| two == b" -"))
}

/// Returns the variable of `local name=$( )`, where `$( )` is this node.
pub(super) fn declared<'w>(builtin: &Word<'_>, word: &'w Word<'_>, substitution: usize) -> Option<&'w [u8]> {
    const BUILTINS: [&[u8]; 4] = [b"declare", b"export", b"local", b"typeset"];
    let is_declaration = builtin.literal().is_some_and(|builtin| BUILTINS.contains(&&builtin[..]));
    let [Part::Literal { text, .. }, Part::Substitution { node, .. }] = &word.parts[..] else { return None };
    let name = text.strip_suffix(b"=")?;
    let is_name =
        name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') && !name.first()?.is_ascii_digit();
    (is_declaration && is_name && *node == substitution).then_some(name)
}
