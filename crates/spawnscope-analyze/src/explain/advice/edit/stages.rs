//! Edits of pipelines: a redirection in place of the `cat` that begins one, an option of grep in
//! place of the `wc` that ends one, and the last filter of several as a statement of its own, which
//! the shell can then do itself.

use std::ops::Range;

use super::shell::FoundCall;
use super::{Form, NewCode, Result, ShellRewrite, Splice, inserted, limited, or_refuse, refuse, refuse_if, splice};
use crate::explain::advice::phrases::{ECHO_LIMIT, name};
use crate::patterns::programs::has_property;
use crate::patterns::script::{Part, Simple, Word, names, span};
use crate::patterns::shells::Dialect;

/// Leaves out the `cat` or `wc` of a pipeline.
pub(super) fn without_stage(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    if call.rewrite.program == b"wc" { without_wc(call) } else { without_cat(call) }
}

/// `cat "$f" | program` becomes `program <"$f"`.
fn without_cat(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    let script = call.script;
    refuse_if(call.rewrite.has_failures, format!("{} failed", call.program()))?;
    let ([_, file], [first, reader, ..]) = (&call.simple.words[..], &call.pipeline[..]) else {
        return refuse("cat does not write one file into a pipeline");
    };
    let is_program = |program: Vec<u8>| !has_property(&program, "lasts") && !script.is_function(&program);
    let reads = |next: &Simple<'_>| next.redirections.iter().any(|each| each.operator.contains(&b'<'));
    let is_reader = script.program(*reader).is_some_and(is_program) && !script.simple(*reader).is_some_and(reads);
    let is_writer = *first == call.command && call.simple.redirections.is_empty();
    refuse_if(!is_reader || !is_writer, "cat does not write one file into another program")?;
    let redirection = format!(" <{}", call.quoted_source(file)?);
    Ok(limited(
        vec![splice(script.start(call.command)..script.start(*reader), ""), inserted(script.end(*reader), redirection)],
        &["if the file is missing, the program is not started, and fails"],
    ))
}

/// `$(... | grep x | wc -l)` becomes `$(... | grep -c x || :)`: wc succeeds if grep finds nothing.
fn without_wc(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    let script = call.script;
    const OTHER: &str = "wc does not count what one grep prints into `$( )`";
    let ([.., before, last], Some(_)) = (&call.pipeline[..], call.substitution) else { return refuse(OTHER) };
    let is_of_wc = *last == call.command && call.simple.redirections.is_empty() && call.simple.words.len() == 2;
    // Before `||`, the commands of a function go on after a failure.
    let is_plain = |each: &usize| script.program(*each).is_some_and(|program| !script.is_function(&program));
    let grep = script.simple(*before).filter(|_| is_of_wc && call.pipeline.iter().all(is_plain));
    let grep = or_refuse(grep, OTHER)?;
    let [program, options @ .., pattern] = &grep.words[..] else { return refuse(OTHER) };
    let reads_input = call.pipeline[0] != *before || grep.redirections.iter().any(|each| each.operator == b"<");
    refuse_if(!options.iter().all(selects_lines) || !is_pattern(call, pattern) || !reads_input, OTHER)?;
    let if_none = if names(script.text, b"pipefail") { "" } else { " || :" };
    let ends = script.end(*before)..script.end(*last);
    let splices = vec![inserted(program.range.end, " -c"), splice(ends, if_none)];
    Ok(limited(splices, &["if grep fails, the number is missing instead of 0"]))
}

/// Whether a word is options with which grep still prints each line once.
fn selects_lines(word: &Word<'_>) -> bool {
    word.literal().is_some_and(|word| {
        word.starts_with(b"-") && word.len() > 1 && word[1..].iter().all(|each| b"EFPivwx".contains(each))
    })
}

/// Whether a word is one text, and not an option.
fn is_pattern(call: &FoundCall<'_>, word: &Word<'_>) -> bool {
    let is_quoted = || call.script.source(&word.range).starts_with(b"\"");
    call.plain_source(word).is_ok() && word.literal().map_or_else(is_quoted, |text| !text.starts_with(b"-"))
}

/// Returns the word that a command prints as its only output: `echo "$x"`, `printf '%s\n' "$x"`.
pub(super) fn fed_word<'s>(feeder: &'s Simple<'s>) -> Option<&'s Word<'s>> {
    let word = feeder.words.last().filter(|_| feeder.is_bare())?;
    let is_option = matches!(word.parts.first(), Some(Part::Literal { text, .. }) if text.starts_with(b"-"));
    let words = feeder.texts();
    let prints = match &words.iter().map(Vec::as_slice).collect::<Vec<_>>()[..] {
        [b"echo", _] => !is_option,
        [b"printf", format, _] => matches!(*format, b"%s" | b"%s\\n"),
        _ => false,
    };
    prints.then_some(word)
}

const SPLIT_LIMIT: &str =
    "`echo $x` without quotes joins words with single blanks and expands patterns, unlike the replacement";
/// What can change because the shell itself reads the text that a call was fed with.
pub(super) const INPUT_LIMITS: [&str; 2] = [SPLIT_LIMIT, ECHO_LIMIT];

/// Returns those of `INPUT_LIMITS` that hold for a call.
pub(super) fn input_limits(call: &FoundCall<'_>) -> Vec<&'static str> {
    let is_echo = |first: &usize| call.script.program(*first).is_some_and(|program| program == b"echo");
    let fed = call.fed.filter(|_| call.pipeline.len() > 1 && call.form.has_input());
    let is_unquoted = |part: &Part<'_>| matches!(part, Part::Variable { is_quoted: false, .. });
    let is_split = fed.is_some_and(|word| word.parts.iter().any(is_unquoted)) && call.rewrite.dialect != Dialect::Zsh;
    let is_echoed = fed.is_some() && call.pipeline.first().is_some_and(is_echo);
    let limits = [is_split, is_echoed].into_iter().zip(INPUT_LIMITS);
    limits.filter_map(|(holds, limit)| holds.then_some(limit)).collect()
}

/// Returns where a command is that prints one result, with the text that it reads.
pub(super) fn printing<'s>(call: &FoundCall<'s>) -> Result<(Range<usize>, Option<&'s Word<'s>>)> {
    if call.form.has_input() {
        // Without a newline, what the program prints has none either.
        let feeder = call.script.source(&(call.script.start(call.pipeline[0])..call.script.start(call.command)));
        let has_newline = !names(feeder, b"printf") || feeder.contains(&b'\\');
        refuse_if(!has_newline, format!("the input of {} does not end with a newline", call.program()))?;
        return Ok((call.up_to_call(), call.input()?));
    }
    let range = span(&call.simple.words);
    let mut redirections = call.simple.redirections.iter();
    let has_other = redirections.any(|each| each.range.start < range.end || each.operator.contains(&b'<'));
    let is_alone = !has_other && call.pipeline[0] == call.command;
    refuse_if(!is_alone, format!("the line does not call {} in $( )", call.program()))?;
    Ok((range, None))
}

/// `x=$(a | b)` becomes `x=$(a); x=$(echo "$x" | b)`. `None` for other calls.
pub(super) fn last_stage(call: &FoundCall<'_>) -> Option<Splice> {
    let script = call.script;
    let (first, &[.., before, last]) = (*call.pipeline.first()?, &call.pipeline[..]) else { return None };
    let holder = script.parent(call.substitution?)?;
    let (variable, value) = script.assigned(holder)?;
    let is_whole = value.substitution() == call.substitution;
    let is_text = before == first && call.fed.is_some();
    let is_filter = is_whole && !is_text && last == call.command && call.rewrite.code.form.has_input();
    (is_filter && script.statement(holder).is_some()).then_some(())?;
    let variable = name(variable);
    let stages = name(script.source(&(script.start(first)..script.end(before))));
    let stage = name(script.code(last));
    // Without pipefail, the script goes on if the program before the filter fails.
    let never_fails =
        before != first && script.program(before).is_some_and(|program| has_property(&program, "never-fails"));
    let if_failed = if never_fails || names(script.text, b"pipefail") { "" } else { " || :" };
    let text = format!("{variable}=$({stages}){if_failed}; {variable}=$(echo \"${variable}\" | {stage})");
    Some(splice(script.range(holder), text))
}

/// `x=$(echo "$y" | rev | cut -d. -f1 | rev)` becomes `x=${y##*.}`. `None` for other calls.
pub(super) fn without_reversing(call: &FoundCall<'_>) -> Option<Result<Vec<Splice>>> {
    let ([feeder, first, cut, last], true) = (&call.pipeline[..], call.fed.is_some()) else { return None };
    let words = |command: usize| {
        let simple = call.script.simple(command).filter(|simple| simple.redirections.is_empty())?;
        Some(name(&simple.literals()?.concat()))
    };
    (*last == call.command && words(*first)? == "rev" && words(*last)? == "rev").then_some(())?;
    let cut = words(*cut)?;
    let options = cut.strip_prefix("cut")?;
    let step = [("-f1", "##*", ""), ("-f2-", "%", "*")].into_iter().find_map(|(fields, before, after)| {
        let first = || options.strip_prefix(fields)?.strip_prefix("-d");
        let delimiter = options.strip_suffix(fields).and_then(|options| options.strip_prefix("-d")).or_else(first)?;
        let is_plain = delimiter.len() == 1 && " ./_-:,@=+".contains(delimiter);
        is_plain.then(|| format!("{before}{delimiter}{after}"))
    })?;
    let form = Form::of_input([step]);
    let code = NewCode { needs_one_line: true, ..form.clone().into() };
    let rewrite = ShellRewrite { code, ..call.rewrite.clone() };
    Some(FoundCall { rewrite: &rewrite, form, pipeline: vec![*feeder, *last], ..*call }.splices())
}
