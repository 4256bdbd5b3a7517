//! Edits of adjacent statements that call one program in the same way: one call gets the operands
//! of all. Several `sed -i` of one file become one with all scripts, also if a loop makes them. Of
//! several that ask different things about the same input, one call answers all: `a=$(jq -r .a
//! "$f")` and `b=$(jq -r .b "$f")` become one `jq`.

use super::around::{first_of_list, is_certain};
use super::shell::{FoundCall, unused_variable};
use super::{Result, Splice, line_end, line_start, or_refuse, refuse_if, splice};
use crate::explain::advice::phrases::name;
use crate::explain::advice::programs::{Together, joins};
use crate::patterns::programs::{has_property, takes_value};
use crate::patterns::script::{Part, Script, Simple, Word, names, span};
use crate::patterns::words::contains;

/// Lines of merged calls are not longer than this, if their words are not.
const MAX_WIDTH: usize = 90;

/// Replaces a call and those beside it by one.
pub(super) fn adjacent(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    let script = call.script;
    const ALONE: &str = "the call is not in a loop over words or lines, nor beside others like it";
    let own = or_refuse(first_of_list(script, call.command), ALONE)?;
    let is_like = |one: &&Simple<'_>, next: &&Simple<'_>| merged(script, &[one, next], call).is_some();
    let run = run_around(script, own, |list| statement(script, list, call), is_like, |_| false);
    let run = or_refuse(run.filter(|run| run.len() > 1), ALONE)?;
    let calls: Vec<&Simple<'_>> = run.iter().map(|(_, call)| *call).collect();
    let text = or_refuse(merged(script, &calls, call), ALONE)?;
    let range = script.start(run[0].0)..script.end(run[run.len() - 1].0);
    Ok(vec![splice(range, text)])
}

/// Returns the call of the program that a statement consists of.
fn statement<'s>(script: &'s Script<'s>, list: usize, call: &FoundCall<'_>) -> Option<&'s Simple<'s>> {
    let command = script.command_of(list)?;
    let simple = script.simple(command)?;
    let is_call = script.program(command)? == call.rewrite.program;
    (is_call && simple.is_bare()).then_some(simple)
}

/// Returns one call that does what several do. `None` if none does.
fn merged(script: &Script<'_>, calls: &[&Simple<'_>], call: &FoundCall<'_>) -> Option<String> {
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
    let has_value = matches!(&call.rewrite.program[..], b"chgrp" | b"chmod" | b"chown")
        || first.get(options).is_some_and(|option| takes_value(&call.rewrite.program, &literal(option)));
    let fixed = 1 + options + usize::from(has_value);
    let prefix = |words: &[Word<'_>]| words.iter().take(fixed).map(source).collect::<Vec<_>>().join(" ");
    let is_alike = |each: &&Simple<'_>| {
        prefix(&each.words) == prefix(first) && each.words.len() > fixed && each.words[fixed..].iter().all(is_operand)
    };
    let do_join = call.rewrite.calls.iter().all(|arguments| joins(&call.rewrite.program, arguments));
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

/// Returns the adjacent statements around one of them that `of` knows, and of which each is like
/// the next. Others may be skipped.
fn run_around<T: Copy>(
    script: &Script<'_>,
    own: usize,
    of: impl Fn(usize) -> Option<T>,
    is_like: impl Fn(&T, &T) -> bool,
    is_skipped: impl Fn(usize) -> bool,
) -> Option<Vec<(usize, T)>> {
    let parent = script.parent(own);
    let siblings = (0..script.len()).filter(|list| script.parent(*list) == parent && !is_skipped(*list));
    let statements: Vec<Option<(usize, T)>> = siblings.map(|list| Some((list, of(list)?))).collect();
    let mut runs =
        statements.chunk_by(|one, next| matches!((one, next), (Some((_, one)), Some((_, next))) if is_like(one, next)));
    let run = runs.find(|run| run.iter().flatten().any(|(list, _)| *list == own))?;
    Some(run.iter().flatten().copied().collect())
}

/// An assignment of an answer.
#[derive(Clone, Copy)]
struct Asked<'s> {
    variable: &'s [u8],
    /// The statement.
    list: usize,
    call: &'s Simple<'s>,
    /// The code before the call in its `$( )`: `echo "$line" | `.
    feeder: &'s [u8],
}

/// Replaces the calls in adjacent assignments by one.
pub(super) fn together(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    let script = call.script;
    let way = or_refuse(Together::of(&call.rewrite.program), format!("{} answers one question", call.program()))?;
    refuse_if(call.rewrite.has_failures, format!("{} failed", call.program()))?;
    let own = call.substitution.and_then(|substitution| first_of_list(script, script.parent(substitution)?));
    let own = or_refuse(own, "the result is not assigned to a variable")?;
    let asked = |list| asked(script, list, &call.rewrite.program);
    let is_skipped = |list| computed(script, list).is_some();
    let run = run_around(script, own, asked, |one, next| are_alike(script, one, next), is_skipped);
    let run = or_refuse(run, "the call is not a statement that assigns its result")?;
    let run: Vec<&Asked<'_>> = run.iter().map(|(_, asked)| asked).collect();
    let position = or_refuse(differing(script, &run), "no other statement beside it asks about the same")?;
    let joined = or_refuse(
        joined(call, &run, position, way),
        format!("{} does not certainly answer each question with one text", call.program()),
    )?;
    let first = &run[0];
    let (word, all) = (&first.call.words[position].range, span(&first.call.words));
    let (before, after) = (script.source(&(all.start..word.start)), script.source(&(word.end..all.end)));
    let command = format!("{}{}{joined}{}", name(first.feeder), name(before), name(after));
    let answers = unused_variable(script, &format!("{}_answers", call.program()));
    let last = script.end(run[run.len() - 1].list);
    let is_end = line_end(script.text, last) == last && ![before, after].iter().any(|part| part.contains(&b'\n'));
    // A here-document begins on the next line.
    refuse_if(way != Together::Jq && !is_end, "the line goes on after the answer")?;
    let text = assignments(way, &command, &variables(&run), &answers);
    let between = or_refuse(between(script, &run), "a statement between them uses or changes the same variables")?;
    Ok(vec![splice(script.start(first.list)..last, [text.into_bytes(), between].concat())])
}

/// Returns the variable that a statement sets without launching anything.
fn computed<'t>(script: &Script<'t>, list: usize) -> Option<&'t [u8]> {
    let (variable, value) = script.assigned(script.command_of(list)?)?;
    let source = script.source(&value.range);
    let sets_others = [&b"="[..], b"++", b"--"].iter().any(|operator| contains(source, operator));
    let launches = value.parts.iter().any(|part| matches!(part, Part::Substitution { .. }));
    (!sets_others && !launches).then_some(variable)
}

/// Returns the lines between several calls. `None` if they depend on when these are made.
fn between(script: &Script<'_>, run: &[&Asked<'_>]) -> Option<Vec<u8>> {
    let (first, last) = (run.first()?.list, run.last()?.list);
    for list in (first + 1..last).filter(|list| script.parent(*list) == script.parent(first)) {
        let variable = if run.iter().any(|asked| asked.list == list) { continue } else { computed(script, list)? };
        let is_free = |asked: &&Asked<'_>| {
            let uses_answer = asked.list > list && names(script.code(list), asked.variable);
            !uses_answer && !names(script.code(asked.list), variable)
        };
        run.iter().all(is_free).then_some(())?;
    }
    let (mut lines, mut at) = (Vec::new(), script.end(first));
    for asked in &run[1..] {
        let line = line_start(script.text, script.start(asked.list));
        if let Some(between) = script.text.get(at..line.saturating_sub(1)).filter(|between| !between.is_empty()) {
            (between[0] == b'\n').then(|| lines.extend(between))?;
        }
        at = script.end(asked.list);
    }
    Some(lines)
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
fn joined(call: &FoundCall<'_>, run: &[&Asked<'_>], position: usize, way: Together) -> Option<String> {
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
pub(super) fn in_double_quotes(source: &[u8]) -> Option<Vec<u8>> {
    let text = name(source.strip_prefix(b"\"")?.strip_suffix(b"\"")?).replace("\\\"", "\0");
    let is_plain = !text.contains(['"', '\\', '`', '{', '(']);
    is_plain.then(|| text.replace('\0', "\"").into_bytes())
}

fn variables(run: &[&Asked<'_>]) -> Vec<String> {
    run.iter().map(|asked| name(asked.variable)).collect()
}

/// Returns what a statement asks a program, if it does nothing else.
fn asked<'s>(script: &'s Script<'s>, list: usize, program: &[u8]) -> Option<Asked<'s>> {
    let (variable, value) = script.assigned(script.command_of(list)?)?;
    let substitution = value.substitution()?;
    let pipeline = script.only_child(script.only_child(substitution)?)?;
    let commands: Vec<usize> = script.children(pipeline).collect();
    let (last, feeders) = commands.split_last()?;
    let call = script.simple(*last).filter(|call| call.is_bare())?;
    let is_echo =
        |command: &usize| script.program(*command).is_some_and(|first| matches!(&first[..], b"echo" | b"printf"));
    let is_fed = feeders.is_empty() || matches!(feeders, [feeder] if is_echo(feeder));
    let is_call = script.program(*last)? == program;
    let feeder = script.source(&(script.start(commands[0])..script.start(*last)));
    (is_fed && is_call).then_some(Asked { variable, list, call, feeder })
}

fn source<'t>(script: &Script<'t>, asked: &Asked<'t>, at: usize) -> &'t [u8] {
    script.source(&asked.call.words[at].range)
}

/// Whether two calls ask about the same input, and differ in one word only.
fn are_alike(script: &Script<'_>, one: &Asked<'_>, next: &Asked<'_>) -> bool {
    let length = one.call.words.len();
    let differing = || (0..length).filter(|at| source(script, one, *at) != source(script, next, *at)).count();
    length == next.call.words.len() && one.feeder == next.feeder && differing() <= 1
}

/// Returns the only word in which several calls differ. None of them may depend on the answer of
/// another one.
fn differing(script: &Script<'_>, run: &[&Asked<'_>]) -> Option<usize> {
    let (first, others) = run.split_first().filter(|(_, others)| !others.is_empty())?;
    let length = first.call.words.len();
    let uses = |asked: &Asked<'_>, variable: &[u8]| {
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
