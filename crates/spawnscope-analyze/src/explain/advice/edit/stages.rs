//! Edits of pipelines: a redirection in place of the `cat` that begins one, an option of grep in
//! place of the `wc` that ends one, and the last filter of several as a statement of its own, which
//! the shell can then do itself.

use std::ops::Range;

use super::shell::FoundCall;
use super::{EditRefusal, Form, NewCode, ShellRewrite, Splice, limited, refuse, refuse_if, splice};
use crate::explain::advice::phrases::name;
use crate::patterns::programs::has_property;
use crate::patterns::script::{Part, Redirection, Simple, Word, names};
use crate::patterns::shells::Dialect;

/// Leaves out the `cat` or `wc` of a pipeline.
pub(super) fn without_stage(call: &FoundCall<'_, '_>) -> Result<Vec<Splice>, EditRefusal> {
    if call.rewrite.program == b"wc" { without_wc(call) } else { without_cat(call) }
}

/// `cat "$f" | program` becomes `program <"$f"`.
fn without_cat(call: &FoundCall<'_, '_>) -> Result<Vec<Splice>, EditRefusal> {
    let script = call.script;
    refuse_if(call.rewrite.has_failures, format!("{} failed", call.program()))?;
    let ([_, file], [first, reader, ..]) = (&call.simple.words[..], &call.pipeline[..]) else {
        return refuse("cat does not write one file into a pipeline");
    };
    let next = script.simple(*reader).filter(|next| {
        let program = script.program(*reader);
        let is_program =
            program.is_some_and(|program| !has_property(&program, "lasts") && !script.is_function(&program));
        is_program && !next.redirections.iter().any(|each| each.operator.contains(&b'<'))
    });
    if *first != call.command || next.is_none() || !call.simple.redirections.is_empty() {
        return refuse("cat does not write one file into another program");
    }
    let source = call.quoted_source(file)?;
    let (from, until) = (script.node(call.command).range.start, &script.node(*reader).range);
    let redirection = splice(until.end..until.end, format!(" <{source}"));
    Ok(limited(
        vec![splice(from..until.start, ""), redirection],
        &["if the file is missing, the program is not started, and fails"],
    ))
}

/// `$(... | grep x | wc -l)` becomes `$(... | grep -c x || :)`: wc succeeds if grep finds nothing.
fn without_wc(call: &FoundCall<'_, '_>) -> Result<Vec<Splice>, EditRefusal> {
    let script = call.script;
    let refused = || refuse("wc does not count what one grep prints into `$( )`");
    let ([.., before, last], Some(_)) = (&call.pipeline[..], call.substitution) else { return refused() };
    let is_of_wc = *last == call.command && call.simple.redirections.is_empty() && call.simple.words.len() == 2;
    // Before `||`, the commands of a function go on after a failure.
    let is_plain = |each: &usize| script.program(*each).is_some_and(|program| !script.is_function(&program));
    let grep = script.simple(*before).filter(|_| is_of_wc && call.pipeline.iter().all(is_plain));
    let Some(([program, options @ .., pattern], redirections)) = grep.map(|grep| (&grep.words[..], &grep.redirections))
    else {
        return refused();
    };
    let is_input = |each: &Redirection<'_>| each.operator == b"<";
    let reads_input = call.pipeline[0] != *before || redirections.iter().any(is_input);
    if !options.iter().all(selects_lines) || !is_pattern(call, pattern) || !reads_input {
        return refused();
    }
    let if_none = if names(script.text, b"pipefail") { "" } else { " || :" };
    let ends = script.node(*before).range.end..script.node(*last).range.end;
    let splices = vec![splice(program.range.end..program.range.end, " -c"), splice(ends, if_none)];
    Ok(limited(splices, &["if grep fails, the number is missing instead of 0"]))
}

/// Whether a word is options with which grep still prints each line once.
fn selects_lines(word: &Word<'_>) -> bool {
    word.literal().is_some_and(|word| {
        word.starts_with(b"-") && word.len() > 1 && word[1..].iter().all(|each| b"EFPivwx".contains(each))
    })
}

/// Whether a word is one text, and not an option.
fn is_pattern(call: &FoundCall<'_, '_>, word: &Word<'_>) -> bool {
    let is_quoted = || call.script.source(&word.range).starts_with(b"\"");
    call.plain_source(word).is_ok() && word.literal().map_or_else(is_quoted, |text| !text.starts_with(b"-"))
}

/// Returns the word that a command prints as its only output: `echo "$x"`, `printf '%s\n' "$x"`.
pub(super) fn fed_word<'s, 't>(feeder: &'s Simple<'t>) -> Option<&'s Word<'t>> {
    let is_plain = feeder.assignments.is_empty() && feeder.redirections.is_empty();
    let literal = |word: &Word<'_>| word.literal().unwrap_or_default();
    match &feeder.words[..] {
        [echo, word] if is_plain && literal(echo) == b"echo" => {
            let is_option = matches!(word.parts.first(), Some(Part::Literal { text, .. }) if text.starts_with(b"-"));
            (!is_option).then_some(word)
        }
        [printf, format, word] if is_plain && literal(printf) == b"printf" => {
            matches!(&literal(format)[..], b"%s" | b"%s\\n").then_some(word)
        }
        _ => None,
    }
}

/// What changes if the text of a call was not quoted.
pub(super) const SPLIT_LIMIT: &str =
    "`echo $x` without quotes joins words with single blanks and expands patterns, unlike the replacement";

/// Whether `echo $x` without quotes feeds the call.
pub(super) fn is_split(call: &FoundCall<'_, '_>) -> bool {
    let is_split = |part: &Part<'_>| matches!(part, Part::Variable { is_quoted: false, .. });
    let is_fed = call.pipeline.len() > 1 && call.form.has_input() && call.rewrite.dialect != Dialect::Zsh;
    is_fed && call.fed.is_some_and(|word| word.parts.iter().any(is_split))
}

/// Returns where a command is that prints one result, with the text that it reads.
pub(super) fn printing<'s, 't>(call: &FoundCall<'s, 't>) -> Result<(Range<usize>, Option<&'s Word<'t>>), EditRefusal> {
    let of_command = &call.script.node(call.command).range;
    if call.form.has_input() {
        // Without a newline, what the program prints has none either.
        let feeder = call.script.node(call.pipeline[0]).range.start..of_command.start;
        let has_newline =
            !names(call.script.source(&feeder), b"printf") || call.script.source(&feeder).contains(&b'\\');
        refuse_if(!has_newline, format!("the input of {} does not end with a newline", call.program()))?;
        return Ok((call.script.node(call.pipeline[0]).range.start..of_command.end, call.input()?));
    }
    let (Some(first), Some(last)) = (call.simple.words.first(), call.simple.words.last()) else {
        return refuse("the call has no words");
    };
    let range = first.range.start..last.range.end;
    let has_other =
        call.simple.redirections.iter().any(|each| each.range.start < range.end || each.operator.contains(&b'<'));
    if has_other || call.pipeline[0] != call.command {
        return refuse(format!("the line does not call {} in $( )", call.program()));
    }
    Ok((range, None))
}

/// `x=$(a | b)` becomes `x=$(a); x=$(echo "$x" | b)`. `None` for other calls.
pub(super) fn last_stage(call: &FoundCall<'_, '_>) -> Option<Splice> {
    let script = call.script;
    let (first, [.., before, last]) = (*call.pipeline.first()?, &call.pipeline[..]) else { return None };
    let (before, last) = (*before, *last);
    let holder = script.node(call.substitution?).parent?;
    let (variable, value) = script.assigned(holder)?;
    let is_whole = value.substitution() == call.substitution;
    let is_text = before == first && call.fed.is_some();
    if !is_whole
        || is_text
        || last != call.command
        || !call.rewrite.code.form.has_input()
        || script.statement(holder).is_none()
    {
        return None;
    }
    let variable = name(variable);
    let stages = name(script.source(&(script.node(first).range.start..script.node(before).range.end)));
    let stage = name(script.source(&script.node(last).range));
    // Without pipefail, the script goes on if the program before the filter fails.
    let never_fails =
        before != first && script.program(before).is_some_and(|program| has_property(&program, "never-fails"));
    let if_failed = if never_fails || names(script.text, b"pipefail") { "" } else { " || :" };
    let text = format!("{variable}=$({stages}){if_failed}; {variable}=$(echo \"${variable}\" | {stage})");
    Some(splice(script.node(holder).range.clone(), text))
}

/// `x=$(echo "$y" | rev | cut -d. -f1 | rev)` becomes `x=${y##*.}`. `None` for other calls.
pub(super) fn without_reversing(call: &FoundCall<'_, '_>) -> Option<Result<Vec<Splice>, EditRefusal>> {
    let ([feeder, first, cut, last], true) = (&call.pipeline[..], call.fed.is_some()) else { return None };
    let words = |command: usize| {
        let simple = call.script.simple(command).filter(|simple| simple.redirections.is_empty())?;
        Some(name(&simple.words.iter().map(Word::literal).collect::<Option<Vec<_>>>()?.concat()))
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
