//! Edits of adjacent statements that call one program in the same way: one call gets the operands
//! of all. Several `sed -i` of one file become one with all scripts, also if a loop makes them.

use super::around::{first_of_list, is_certain, run_around};
use super::shell::FoundCall;
use super::{EditRefusal, Splice, refuse, splice};
use crate::explain::advice::phrases::name;
use crate::explain::advice::programs::joins;
use crate::patterns::programs::has_property;
use crate::patterns::script::{Part, Script, Simple, Word};
use crate::patterns::words::contains;

/// Lines of merged calls are not longer than this, if their words are not.
const MAX_WIDTH: usize = 90;

/// Replaces a call and those beside it by one.
pub(super) fn adjacent(call: &FoundCall<'_, '_>) -> Result<Vec<Splice>, EditRefusal> {
    let script = call.script;
    let refused = || refuse("the call is not in a loop over words or lines, nor beside others like it");
    let Some(own) = first_of_list(script, call.command) else { return refused() };
    let is_like = |one: &&Simple<'_>, next: &&Simple<'_>| merged(script, &[one, next], call).is_some();
    let run = run_around(script, own, |list| statement(script, list, call), is_like);
    let Some(run) = run.filter(|run| run.len() > 1) else { return refused() };
    let calls: Vec<&Simple<'_>> = run.iter().map(|(_, call)| *call).collect();
    let Some(text) = merged(script, &calls, call) else { return refused() };
    let range = script.node(run[0].0).range.start..script.node(run[run.len() - 1].0).range.end;
    Ok(vec![splice(range, text)])
}

/// Returns the call of the program that a statement consists of.
fn statement<'s, 't>(script: &'s Script<'t>, list: usize, call: &FoundCall<'_, '_>) -> Option<&'s Simple<'t>> {
    let command = script.command_of(list)?;
    let simple = script.simple(command)?;
    let is_call = script.program(command)? == call.rewrite.program;
    (is_call && simple.assignments.is_empty() && simple.redirections.is_empty()).then_some(simple)
}

/// Returns one call that does what several do. `None` if none does.
fn merged(script: &Script<'_>, calls: &[&Simple<'_>], call: &FoundCall<'_, '_>) -> Option<String> {
    let source = |word: &Word<'_>| name(script.source(&word.range));
    let literal = |word: &Word<'_>| word.literal().unwrap_or_default();
    let (first, last) = (&calls.first()?.words, calls.first()?.words.last()?);
    if call.rewrite.program == b"sed" {
        let is_substitution = |words: &[Word<'_>]| {
            let [_, option, script, file] = words else { return false };
            literal(option) == b"-i" && is_substitution_with_variables(script) && source(file) == source(last)
        };
        let scripts: Vec<String> = calls.iter().map(|each| format!("-e {}", source(&each.words[2]))).collect();
        let has_same_file = calls.iter().all(|each| is_substitution(&each.words)) && is_certain(script, last);
        let words = ["sed -i".to_owned()].into_iter().chain(scripts).chain([source(last)]);
        return has_same_file.then(|| wrapped(words));
    }
    let is_operand = |word: &Word<'_>| {
        let is_literal = |text: Vec<u8>| !text.is_empty() && !text.starts_with(b"-");
        word.literal().map_or_else(|| word.variables().is_some(), is_literal)
    };
    let options = first.iter().skip(1).take_while(|word| literal(word).starts_with(b"-")).count();
    // The mode of chmod and the owner of chown are operands, too.
    let fixed = 1 + options + usize::from(matches!(&call.rewrite.program[..], b"chgrp" | b"chmod" | b"chown"));
    let prefix = |words: &[Word<'_>]| words.iter().take(fixed).map(source).collect::<Vec<_>>().join(" ");
    let is_alike = |each: &&Simple<'_>| {
        prefix(&each.words) == prefix(first) && each.words.len() > fixed && each.words[fixed..].iter().all(is_operand)
    };
    let do_join = call
        .rewrite
        .calls
        .iter()
        .all(|arguments| joins(&call.rewrite.program, &arguments.iter().map(Vec::as_slice).collect::<Vec<_>>()));
    let operands = calls.iter().flat_map(|each| each.words.iter().skip(fixed)).map(source);
    let is_possible = do_join && !has_property(&call.rewrite.program, "destination") && calls.iter().all(is_alike);
    is_possible.then(|| wrapped([prefix(first)].into_iter().chain(operands)))
}

/// Joins the words of a command. Long lines continue on the next one.
fn wrapped(words: impl Iterator<Item = String>) -> String {
    let (mut text, mut width) = (String::new(), 0);
    for word in words {
        if width + word.len() > MAX_WIDTH {
            text.push_str(" \\\n   ");
            width = 0;
        }
        let separator = if text.is_empty() { "" } else { " " };
        width += word.len() + 1;
        text.extend([separator, &word]);
    }
    text
}

/// Whether a word is a script with one substitution, whatever the values of its variables are.
fn is_substitution_with_variables(word: &Word<'_>) -> bool {
    let parts = word.parts.iter().map(|part| match part {
        Part::Literal { text, .. } => Some(text.to_vec()),
        Part::Variable { is_quoted: true, .. } => Some(b"x".to_vec()),
        _ => None,
    });
    parts.collect::<Option<Vec<_>>>().is_some_and(|parts| is_one_substitution(&parts.concat()))
}

/// Whether a script of sed is one substitution, which several can follow in one run.
pub(super) fn is_one_substitution(script: &[u8]) -> bool {
    let Some((b's', [delimiter, rest @ ..])) = script.split_first().map(|(first, rest)| (*first, rest)) else {
        return false;
    };
    let is_plain = delimiter.is_ascii_punctuation() && *delimiter != b'\\' && !script.contains(&b'\n');
    let has_newline = contains(rest, b"\\n");
    let mut parts = rest.split(|byte| byte == delimiter);
    let flags = parts.nth(2).filter(|_| parts.next().is_none() && !contains(rest, &[b'\\', *delimiter]));
    is_plain
        && !has_newline
        && flags.is_some_and(|flags| flags.iter().all(|flag| b"gI".contains(flag) || flag.is_ascii_digit()))
}
