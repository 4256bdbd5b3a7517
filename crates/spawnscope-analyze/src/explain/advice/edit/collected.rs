//! Edits of loops that do more than to call one program: bash collects the arguments in an array,
//! and one call gets all of them after the loop. The calls that follow it in the loop go there,
//! too, so that their order stays.

use std::ops::Range;

use super::around::{Around, is_reader, loops_around, statement_at};
use super::many::{directory_of, operand_of};
use super::shell::{FoundCall, unused_variable};
use super::{Result, Splice, inserted, line_end, line_start, or_refuse, refuse, refuse_for, refuse_if, splice};
use crate::explain::advice::phrases::name;
use crate::explain::advice::programs::joins;
use crate::patterns::programs::has_property;
use crate::patterns::script::{Kind, Redirection, Script, Simple, Word, identifiers, span};
use crate::patterns::shells::Dialect;
use crate::patterns::words::contains;

/// A call that moves after the loop.
struct Lifted<'t> {
    command: usize,
    /// The words that are collected.
    operands: Range<usize>,
    /// The call with `{}` in place of them, and what handles its failure.
    call: String,
    if_failed: Option<&'t [u8]>,
}

/// Replaces the calls in a loop by one after it.
pub(super) fn collected(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    let script = call.script;
    refuse_if(call.rewrite.dialect != Dialect::Bash, "the loop has other commands, too")?;
    let (around, lifted) = outermost(call)?;
    let mut splices = Vec::new();
    let (mut arrays, mut after): (Vec<(String, String)>, Vec<String>) = (Vec::new(), Vec::new());
    for each in &lifted {
        let simple = script.simple(each.command);
        let words = simple.map(|simple| &simple.words[each.operands.clone()]).unwrap_or_default();
        let source = name(script.source(&span(words)));
        let program = name(&script.program(each.command).unwrap_or_default());
        let is_new = !arrays.iter().any(|(_, known)| *known == source);
        if is_new || !is_alone(script, each, &around) {
            let number = if arrays.is_empty() { String::new() } else { format!("_{}", arrays.len() + 1) };
            let array = unused_variable(script, &format!("{program}_files{number}"));
            splices.push(splice(whole(script, each), format!("{array}+=({source})")));
            arrays.push((array, source.clone()));
        } else {
            splices.push(without_line(script, whole(script, each)));
        }
        let array = arrays.iter().rev().find(|(_, known)| *known == source).map_or("", |(array, _)| array);
        let if_failed = each.if_failed.map_or(String::new(), |command| format!(" || {}", name(command)));
        let call = each.call.replace("{}", &format!("\"${{{array}[@]}}\""));
        after.push(format!("[ ${{#{array}[@]}} -eq 0 ] || {call}{if_failed}"));
    }
    let before: Vec<String> = arrays.iter().map(|(array, _)| format!("{array}=()")).collect();
    splices.extend(around_loop(script, around.node, &before.join(" "), &after));
    Ok(splices)
}

/// Returns the outermost loop after which the calls may be made, with these calls.
fn outermost<'t>(call: &FoundCall<'t>) -> Result<(Around<'t>, Vec<Lifted<'t>>)> {
    let mut best = refuse("the call is not in a loop");
    for around in loops_around(call) {
        let lifted = lifted_of(call, &around).and_then(|lifted| check_rest(call, &around, &lifted).map(|()| lifted));
        match (lifted, best.is_ok()) {
            (Ok(lifted), _) => best = Ok((around, lifted)),
            (Err(refusal), false) => return Err(refusal),
            (Err(_), true) => break,
        }
    }
    best
}

/// Returns the bytes of a call and of what handles its failure.
fn whole(script: &Script<'_>, lifted: &Lifted<'_>) -> Range<usize> {
    let list = script.ancestors(lifted.command).nth(1).filter(|_| lifted.if_failed.is_some());
    script.range(list.unwrap_or(lifted.command))
}

/// Whether a call is a statement of the loop, which is executed each time.
fn is_alone(script: &Script<'_>, lifted: &Lifted<'_>, around: &Around<'_>) -> bool {
    script.ancestors(lifted.command).nth(2) == Some(around.node)
}

/// Removes a statement, with its line if there is nothing else in it.
fn without_line(script: &Script<'_>, range: Range<usize>) -> Splice {
    let start = line_start(script.text, range.start).saturating_sub(1);
    let end = line_end(script.text, range.end);
    let is_empty = |range: Range<usize>| script.text[range].trim_ascii().is_empty();
    let has_line = is_empty(start..range.start) && is_empty(range.end..end);
    if has_line { splice(start..end, "") } else { splice(range, ":") }
}

/// Returns how to insert commands before and after a loop.
pub(super) fn around_loop(script: &Script<'_>, node: usize, before: &str, after: &[String]) -> Vec<Splice> {
    let range = script.range(node);
    let indentation = &script.text[line_start(script.text, range.start)..range.start];
    let rest = &script.text[range.end..line_end(script.text, range.end)];
    let has_document = contains(script.source(&range), b"<<");
    let has_lines = indentation.trim_ascii().is_empty() && rest.trim_ascii().is_empty() && !has_document;
    let separator = if has_lines { format!("\n{}", name(indentation)) } else { "; ".to_owned() };
    let after: String = after.iter().map(|command| format!("{separator}{command}")).collect();
    let [first, last] = match script.statement(node) {
        Some(_) => [format!("{before}{separator}"), after],
        None => [format!("{{ {before}; "), format!("{after}; }}")],
    };
    vec![inserted(range.start, first), inserted(range.end, last)]
}

/// Returns all calls in a loop from a call on.
fn lifted_of<'t>(call: &FoundCall<'t>, around: &Around<'t>) -> Result<Vec<Lifted<'t>>> {
    let script = call.script;
    let from = script.start(call.command);
    let is_silent = |index: &usize| script.program(*index).is_some_and(|program| has_property(&program, "silent"));
    let after = script.nodes_in(&(from + 1..around.body.end)).filter(is_silent);
    std::iter::once(call.command).chain(after).map(|index| lift(call, index, around)).collect()
}

fn lift<'t>(call: &FoundCall<'t>, command: usize, around: &Around<'t>) -> Result<Lifted<'t>> {
    let script = call.script;
    let program = script.program(command).unwrap_or_default();
    let simple = script
        .simple(command)
        .filter(|simple| simple.assignments.is_empty() && simple.redirections.iter().all(Redirection::is_kept));
    let statement = statement_at(script, command);
    let simple = simple.filter(|_| !call.rewrite.failed.contains(&program));
    let simple = or_refuse(simple, format!("{} has its own input or output, or failed", name(&program)))?;
    let list = script.ancestors(command).nth(1).map_or(0, |list| script.end(list));
    let next = script.text[list..].trim_ascii_start();
    let next = next.strip_prefix(b";").unwrap_or(next).trim_ascii_start();
    let is_test = next.starts_with(b"then") || next.starts_with(b"do") && !next.starts_with(b"done");
    refuse_if(is_test, format!("the script does something else if {} fails", name(&program)))?;
    // A call whose status decides something is not moved.
    let if_failed = match statement {
        Ok(statement) => statement.if_failed,
        Err(refusal) if !is_last_of_and(script, command) => return Err(refusal),
        Err(_) => None,
    };
    let operands = operands(call, command, simple, around)?;
    let words = simple.words[1..].iter().map(|word| word.literal().unwrap_or_else(|| b"x".to_vec()));
    let words: Vec<Vec<u8>> = words.collect();
    let prints = words.iter().any(|word| word.starts_with(b"-") && !word.starts_with(b"--") && word.contains(&b'v'));
    let is_known = joins(&program, &words) && has_property(&program, "silent") && !script.is_function(&program);
    refuse_if(
        !is_known || prints || words.iter().any(|word| word == b"--verbose"),
        format!("the order of what {} prints would change", name(&program)),
    )?;
    let end = match directory_of(call, command) {
        Some(destination) => format!(" {destination}"),
        None => name(script.source(&(simple.words[operands.end - 1].range.end..script.end(command)))),
    };
    let start = name(script.source(&(script.start(command)..simple.words[operands.start].range.start)));
    Ok(Lifted { command, operands, call: format!("{start}{{}}{end}"), if_failed })
}

/// Whether a command ends a list of commands joined by `&&`.
fn is_last_of_and(script: &Script<'_>, command: usize) -> bool {
    let Some(list) = script.ancestors(command).nth(1) else { return false };
    let before = script.start(list)..script.start(command);
    let is_in_pipeline = script.parent(list).is_some_and(|parent| matches!(script.kind(parent), Kind::Pipeline { .. }));
    matches!(script.kind(list), Kind::List { is_background: false })
        && script.end(list) == script.end(command)
        && !is_in_pipeline
        && script.source(&before).trim_ascii_end().ends_with(b"&&")
}

/// Returns which words of a call change in the loop. All others must stay the same.
fn operands(call: &FoundCall<'_>, command: usize, simple: &Simple<'_>, around: &Around<'_>) -> Result<Range<usize>> {
    let script = call.script;
    let last = operand_of(call, command, std::slice::from_ref(around))?;
    let changes = |at: usize| {
        let source = script.source(&simple.words[at].range);
        source.contains(&b'$') && identifiers(source).any(|variable| around.may_set(script, variable))
            || source.contains(&b'`')
            || contains(source, b"$(")
    };
    let mut first = last;
    while first > 1 && changes(first - 1) && directory_of(call, command).is_none() {
        first -= 1;
    }
    let other = (1..first).find(|at| changes(*at)).map(|at| name(script.source(&simple.words[at].range)));
    refuse_for(other.map(|other| format!("`{other}` changes in the loop, too")))?;
    Ok(first..last + 1)
}

/// Checks that the calls may run after the loop.
fn check_rest(call: &FoundCall<'_>, around: &Around<'_>, lifted: &[Lifted<'_>]) -> Result<()> {
    let script = call.script;
    let from = script.start(call.command);
    let may_repeat = lifted
        .iter()
        .all(|each| script.program(each.command).is_some_and(|program| has_property(&program, "repeatable")));
    refuse_if(!call.rewrite.is_distinct && !may_repeat, "some of the calls have the same arguments")?;
    let redirections = &script.text[around.body.end..script.end(around.node)];
    let has_errors = contains(redirections, b"2>") || contains(redirections, b"&>");
    refuse_if(has_errors, "the errors of the loop are redirected")?;
    // A call is lifted with what handles its failure.
    let is_lifted = |index: usize| {
        let is_in = |each: &Lifted<'_>| each.if_failed.is_some() && whole(script, each).contains(&script.start(index));
        lifted.iter().any(|each| each.command == index || is_in(each))
    };
    let may_stay = |index: usize| match script.kind(index) {
        Kind::Simple(simple) => may_stay(script, around, index, simple, script.start(index) > from),
        Kind::Expression(_) => script.start(index) <= from || script.code(index).starts_with(b"(("),
        Kind::List { is_background } => !is_background,
        Kind::Function => false,
        _ => true,
    };
    let mut others = script.nodes_in(&around.body).filter(|index| !is_lifted(*index));
    refuse_if(!others.all(may_stay), "the loop has other commands, too")
}

/// Whether a command may run before all of the calls that were before or after it.
fn may_stay(script: &Script<'_>, around: &Around<'_>, index: usize, simple: &Simple<'_>, is_after: bool) -> bool {
    let writes = simple.redirections.iter().any(Redirection::writes_file);
    if simple.words.is_empty() {
        return simple.redirections.is_empty();
    }
    let Some(program) = script.program(index).filter(|program| !script.is_function(program)) else { return false };
    let changes = |word: &Word<'_>| {
        let source = script.source(&word.range);
        source.starts_with(b"-") || identifiers(source).any(|variable| around.may_set(script, variable))
    };
    let changes_own_files = has_property(&program, "changes") && simple.words[1..].iter().all(changes);
    has_property(&program, "no-files") && !(writes && is_after)
        || !is_after && (is_reader(script, index) || changes_own_files)
}
