//! What is around a call in a script: the loops, what handles its failure, and where their
//! variables are used.

use std::ops::Range;

use super::shell::FoundCall;
use super::{Result, Splice, inserted, line_end, line_start, or_refuse, refuse};
use crate::model::launch::base_name;
use crate::patterns::programs::has_property;
use crate::patterns::queries::GIT_READS;
use crate::patterns::script::{Kind, Part, Redirection, Script, Simple, Word, is_name_byte, names};
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
        script.start(self.node)..self.body.start
    }

    /// Returns the position after `done`.
    pub(super) fn end(&self) -> usize {
        self.body.end + b"done".len()
    }

    /// Whether the loop is a part of a pipeline of several commands.
    pub(super) fn is_in_pipeline(&self, script: &Script<'_>) -> bool {
        script.parent(self.node).is_some_and(|pipeline| script.only_child(pipeline).is_none())
    }

    /// Whether the loop may set a variable. The header of `for ((...))` and of `for name` has no
    /// structure.
    pub(super) fn may_set(&self, script: &Script<'_>, variable: &[u8]) -> bool {
        let in_header =
            !matches!(self.kind, LoopKind::Words(_)) && names(script.source(&self.header(script)), variable);
        in_header || script.may_set(&script.range(self.node), variable)
    }
}

/// A call, and what handles its failure.
pub(super) struct Statement<'t> {
    pub(super) list: usize,
    /// `exit 1` of `call || exit 1`.
    pub(super) if_failed: Option<&'t [u8]>,
}

/// Returns the loops around a call, innermost first, up to the next function or substitution.
pub(super) fn loops_around<'t>(call: &FoundCall<'t>) -> Vec<Around<'t>> {
    let script = call.script;
    let is_boundary =
        |index: &usize| matches!(script.kind(*index), Kind::Function | Kind::Substitution | Kind::Subshell);
    let around = script.ancestors(call.substitution.unwrap_or(call.command)).take_while(|index| !is_boundary(index));
    let loops = around.filter_map(|node| match script.kind(node) {
        Kind::For(each) => Some(Around { node, body: each.body.clone(), kind: LoopKind::Words(each.name) }),
        Kind::Loop { body } => {
            let kind = read_variable(script, node).map_or(LoopKind::Other, LoopKind::Lines);
            Some(Around { node, body: body.clone(), kind })
        }
        _ => None,
    });
    let at = script.start(call.command);
    loops.filter(|each| each.body.contains(&at)).collect()
}

/// Returns the only variable of `while IFS= read -r name`.
fn read_variable<'t>(script: &Script<'t>, node: usize) -> Option<&'t [u8]> {
    let list = script.children(node).next().filter(|_| script.code(node).starts_with(b"while"))?;
    let read = script.simple(script.command_of(list)?)?;
    let is_plain = read.redirections.is_empty() && read.assignments.iter().all(|assignment| assignment.name == b"IFS");
    let name = script.source(&read.words.last()?.range);
    match &read.literals()?[..] {
        [command, options @ .., variable] if is_plain && command == b"read" => {
            (options.iter().all(|option| option == b"-r") && variable == name).then_some(name)
        }
        _ => None,
    }
}

/// Returns the statement that consists of a call, perhaps with `|| exit`.
pub(super) fn statement_at<'t>(script: &Script<'t>, command: usize) -> Result<Statement<'t>> {
    let joined = || refuse("the call is joined to other commands");
    if let Some(list) = script.statement(command) {
        return Ok(Statement { list, if_failed: None });
    }
    let Some(list) = first_of_list(script, command) else { return joined() };
    let pipelines: Vec<usize> = script.children(list).collect();
    let [first, last] = pipelines[..] else { return joined() };
    let is_plain = matches!(script.kind(first), Kind::Pipeline { is_negated: false })
        && matches!(script.kind(list), Kind::List { is_background: false });
    let or = script.end(first)..script.start(last);
    let handler = script.only_child(last).and_then(|command| script.simple(command)?.literals());
    let is_known = handler.is_some_and(|words| words.first().is_some_and(|first| IF_FAILED.contains(first)));
    match is_known && is_plain && script.only_child(first).is_some() && script.source(&or).trim_ascii() == b"||" {
        true => Ok(Statement { list, if_failed: Some(script.code(last)) }),
        false => joined(),
    }
}

/// Returns the statements in the body of a loop.
pub(super) fn statements(script: &Script<'_>, around: &Around<'_>) -> Vec<usize> {
    script.children(around.node).filter(|child| around.body.contains(&script.start(*child))).collect()
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
    let is_kept = |index: usize| match script.kind(index) {
        Kind::Simple(_) => is_of_kind(script, index),
        Kind::Function => false,
        _ => true,
    };
    let is_inside = |index: &usize| {
        let start = script.start(*index);
        around.body.contains(&start) && !own.contains(&start)
    };
    script.inside(around.node).filter(is_inside).all(is_kept)
}

/// Whether a simple command changes no files.
pub(super) fn only_reads_files(script: &Script<'_>, command: usize) -> bool {
    let writes = |simple: &Simple<'_>| simple.redirections.iter().any(Redirection::writes_file);
    is_reader(script, command) && !script.simple(command).is_some_and(writes)
}

/// Whether the program of a simple command changes no files.
pub(super) fn is_reader(script: &Script<'_>, command: usize) -> bool {
    let Some(simple) = script.simple(command) else { return false };
    let words = simple.texts();
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
        let is_direct = script.ancestors(pair[0].node).nth(2) == Some(pair[1].node);
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
    let range = script.range(node);
    let repeats = |kind: &Kind<'_>| matches!(kind, Kind::For(_) | Kind::Loop { .. } | Kind::Function);
    let end = if script.ancestor(node, repeats).is_some() { 0 } else { range.end };
    let mut later = script.nodes_in(&(end..usize::MAX)).filter(|index| !range.contains(&script.start(*index)));
    let expands = |index: usize| match script.kind(index) {
        Kind::Simple(simple) => simple.all_words().any(|word| mentions(script, word, variable)),
        Kind::For(each) => each.words.iter().any(|word| mentions(script, word, variable)),
        Kind::Expression(words) => words.iter().any(|word| names(script.source(&word.range), variable)),
        _ => false,
    };
    let is_set_around = |index: usize| {
        script.ancestors(index).filter(|around| script.start(*around) >= end).any(|around| match script.kind(around) {
            Kind::For(each) => each.name == variable,
            Kind::Loop { body } => reads(script, &(script.start(around)..body.start), variable),
            _ => false,
        })
    };
    later.any(|index| expands(index) && !is_set_around(index))
}

/// Whether a `read` in a range sets a variable.
fn reads(script: &Script<'_>, range: &Range<usize>, variable: &[u8]) -> bool {
    script.nodes_in(range).filter_map(|index| script.simple(index)).any(|simple| {
        let words = simple.texts();
        words.first().is_some_and(|first| first == b"read") && words.iter().any(|word| word == variable)
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
pub(super) fn insertion(script: &Script<'_>, command: usize, commands: &str) -> Result<Splice> {
    let list = or_refuse(first_of_list(script, command), "the call is not at the beginning of a statement")?;
    Ok(insertion_at(script.text, script.start(list), commands))
}

/// Returns the list that a command is the first of.
pub(super) fn first_of_list(script: &Script<'_>, command: usize) -> Option<usize> {
    let pipeline = script.parent(command)?;
    list_of(script, command).filter(|_| script.children(pipeline).next() == Some(command))
}

/// Returns the list that a command belongs to, if the list always executes the command.
pub(super) fn list_of(script: &Script<'_>, command: usize) -> Option<usize> {
    let pipeline = script.parent(command)?;
    let list = script.parent(pipeline)?;
    let is_first = script.children(list).next() == Some(pipeline);
    (is_first && matches!(script.kind(list), Kind::List { .. })).then_some(list)
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
    inserted(at, text)
}

/// Whether a script may end or do something else when a command fails.
pub(super) fn checks_status(script: &[u8]) -> bool {
    let first = script[..line_end(script, 0)].strip_prefix(b"#!");
    [&b"errexit"[..], b"$?", b"trap ", b"set -"].iter().any(|part| contains(script, part))
        || first.is_some_and(|first| contains(first, b" -"))
}

/// Returns the variable of `local name=$( )`, where `$( )` is this node.
pub(super) fn declared<'w>(builtin: &Word<'_>, word: &'w Word<'_>, substitution: usize) -> Option<&'w [u8]> {
    const BUILTINS: Words = Words("declare export local typeset");
    let is_declaration = builtin.literal().is_some_and(|builtin| BUILTINS.contains(&builtin));
    let [Part::Literal { text, .. }, Part::Substitution { node, .. }] = &word.parts[..] else { return None };
    let name = text.strip_suffix(b"=")?;
    let is_name = name.iter().all(|byte| is_name_byte(*byte)) && !name.first()?.is_ascii_digit();
    (is_declaration && is_name && *node == substitution).then_some(name)
}

/// Returns a name that a script does not contain, made of a text.
pub(super) fn unused_variable(script: &Script<'_>, text: &str) -> String {
    let mut base: String = text.chars().map(|each| if each.is_ascii_alphanumeric() { each } else { '_' }).collect();
    if base.starts_with(|first: char| first.is_ascii_digit()) {
        base.insert(0, '_');
    }
    let numbered = (2..).map(|number| format!("{base}{number}"));
    let mut candidates = std::iter::once(base.clone()).chain(numbered);
    candidates.find(|name| !names(script.text, name.as_bytes())).unwrap_or(base)
}

/// Returns the expansion of a variable, in braces if the next byte would belong to its name.
pub(super) fn used(script: &Script<'_>, variable: &str, next: usize) -> Vec<u8> {
    let is_longer = script.text.get(next).is_some_and(|next| next.is_ascii_alphanumeric() || b"_[".contains(next));
    if is_longer { format!("${{{variable}}}").into_bytes() } else { format!("${variable}").into_bytes() }
}
