//! Edits of several statements that ask a program different things about the same input: one call
//! answers all of them. `a=$(jq -r .a "$f")` and `b=$(jq -r .b "$f")` become one `jq`.

use super::around::{first_of_list, run_around};
use super::shell::{FoundCall, unused_variable};
use super::{EditRefusal, Splice, line_end, refuse, refuse_if, splice};
use crate::explain::advice::phrases::name;
use crate::explain::advice::programs::Together;
use crate::patterns::script::{Script, Simple, Word, names};

/// An assignment of an answer.
#[derive(Clone, Copy)]
struct Asked<'s, 't> {
    variable: &'t [u8],
    /// The statement.
    list: usize,
    call: &'s Simple<'t>,
    /// The code before the call in its `$( )`: `echo "$line" | `.
    feeder: &'t [u8],
}

/// Replaces the calls in adjacent assignments by one.
pub(super) fn together(call: &FoundCall<'_, '_>) -> Result<Vec<Splice>, EditRefusal> {
    let script = call.script;
    let Some(way) = Together::of(&call.rewrite.program) else {
        return refuse(format!("{} answers one question", call.program()));
    };
    refuse_if(call.rewrite.has_failures, format!("{} failed", call.program()))?;
    let own = call.substitution.and_then(|substitution| first_of_list(script, script.node(substitution).parent?));
    let Some(own) = own else { return refuse("the result is not assigned to a variable") };
    let run = run_around(
        script,
        own,
        |list| asked(script, list, &call.rewrite.program),
        |one, next| are_alike(script, one, next),
    );
    let Some(run) = run else { return refuse("the call is not a statement that assigns its result") };
    let run: Vec<&Asked<'_, '_>> = run.iter().map(|(_, asked)| asked).collect();
    let Some(position) = differing(script, &run) else {
        return refuse("no other statement beside it asks about the same");
    };
    let Some(joined) = joined(call, &run, position, way) else {
        return refuse(format!("{} does not certainly answer each question with one text", call.program()));
    };
    let first = &run[0];
    let word = first.call.words[position].range.clone();
    let (Some(start), Some(end)) = (first.call.words.first(), first.call.words.last()) else {
        return refuse("the call has no words");
    };
    let (before, after) = (script.source(&(start.range.start..word.start)), script.source(&(word.end..end.range.end)));
    let command = format!("{}{}{joined}{}", name(first.feeder), name(before), name(after));
    let answers = unused_variable(script, &format!("{}_answers", call.program()));
    let last = script.node(run[run.len() - 1].list).range.end;
    let is_end = line_end(script.text, last) == last && ![before, after].iter().any(|part| part.contains(&b'\n'));
    // A here-document begins on the next line.
    refuse_if(way != Together::Jq && !is_end, "the line goes on after the answer")?;
    let text = assignments(way, &command, &variables(&run), &answers);
    Ok(vec![splice(script.node(first.list).range.start..last, text)])
}

/// Returns the code that sets variables to the answers of a command. With `set -e`, a failure still
/// ends the script. The dot keeps an empty last answer.
fn assignments(way: Together, command: &str, variables: &[String], answers: &str) -> String {
    let each = |form: fn(&String) -> String| variables.iter().map(form).collect::<String>();
    if way == Together::Jq {
        let variables = each(|variable| format!("{variable}= "));
        return format!("{variables}{answers}=$({command}); eval \"${answers}\"");
    }
    let reads = each(|variable| format!("IFS= read -r {variable}; "));
    format!("{answers}=$({command} && echo .); {{ {reads}}} <<END\n${answers}\nEND")
}

/// Returns the argument that asks all questions. `None` if an answer may be more than one text.
fn joined(call: &FoundCall<'_, '_>, run: &[&Asked<'_, '_>], position: usize, way: Together) -> Option<String> {
    let words = || run.iter().map(|asked| &asked.call.words[position]);
    let recorded: Vec<Vec<u8>> = call.rewrite.calls.iter().map(|call| call[position - 1].clone()).collect();
    way.join(&recorded, &vec![String::new(); recorded.len()], false)?;
    if let Some(questions) = words().map(Word::literal).collect::<Option<Vec<_>>>() {
        return way.join(&questions, &variables(run), false);
    }
    let expanded = words().map(|word| in_double_quotes(call.script.source(&word.range)));
    way.join(&expanded.collect::<Option<Vec<_>>>()?, &variables(run), true)
}

/// Returns the text of a word in double quotes, in which the shell only expands variables.
fn in_double_quotes(source: &[u8]) -> Option<Vec<u8>> {
    let text = source.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let is_plain = !text.iter().any(|byte| b"\"\\`{(".contains(byte));
    is_plain.then(|| text.to_vec())
}

fn variables(run: &[&Asked<'_, '_>]) -> Vec<String> {
    run.iter().map(|asked| name(asked.variable)).collect()
}

/// Returns what a statement asks a program, if it does nothing else.
fn asked<'s, 't>(script: &'s Script<'t>, list: usize, program: &[u8]) -> Option<Asked<'s, 't>> {
    let (variable, value) = script.assigned(script.command_of(list)?)?;
    let substitution = value.substitution()?;
    let inner = script.children(substitution).next().filter(|_| script.children(substitution).count() == 1)?;
    let pipeline = script.children(inner).next().filter(|_| script.children(inner).count() == 1)?;
    let commands: Vec<usize> = script.children(pipeline).collect();
    let (last, feeders) = commands.split_last()?;
    let call = script.simple(*last).filter(|call| call.assignments.is_empty() && call.redirections.is_empty())?;
    let is_echo =
        |command: &usize| script.program(*command).is_some_and(|first| matches!(&first[..], b"echo" | b"printf"));
    let is_fed = feeders.is_empty() || matches!(feeders, [feeder] if is_echo(feeder));
    let is_call = script.program(*last)? == program;
    let feeder = script.source(&(script.node(commands[0]).range.start..script.node(*last).range.start));
    (is_fed && is_call).then_some(Asked { variable, list, call, feeder })
}

fn source<'t>(script: &Script<'t>, asked: &Asked<'_, 't>, at: usize) -> &'t [u8] {
    script.source(&asked.call.words[at].range)
}

/// Whether two calls ask about the same input, and differ in one word only.
fn are_alike(script: &Script<'_>, one: &Asked<'_, '_>, next: &Asked<'_, '_>) -> bool {
    let length = one.call.words.len();
    let differing = || (0..length).filter(|at| source(script, one, *at) != source(script, next, *at)).count();
    length == next.call.words.len() && one.feeder == next.feeder && differing() <= 1
}

/// Returns the only word in which several calls differ. None of them may depend on the answer of
/// another one.
fn differing(script: &Script<'_>, run: &[&Asked<'_, '_>]) -> Option<usize> {
    let (first, others) = run.split_first().filter(|(_, others)| !others.is_empty())?;
    let length = first.call.words.len();
    let uses = |asked: &Asked<'_, '_>, variable: &[u8]| {
        let expands = |text: &[u8]| text.contains(&b'$') && names(text, variable);
        let has = |word: &Word<'_>| word.variables().is_none_or(|variables| variables.contains(&variable));
        (0..length).any(|at| expands(source(script, asked, at)) && has(&asked.call.words[at])) || expands(asked.feeder)
    };
    let is_independent = run.iter().all(|asked| run.iter().all(|each| !uses(asked, each.variable)));
    let mut positions = (1..length).filter(|at| {
        is_independent && others.iter().any(|asked| source(script, asked, *at) != source(script, first, *at))
    });
    positions.next().filter(|_| positions.next().is_none())
}
