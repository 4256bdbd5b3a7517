//! Edits of pipelines: a redirection in place of the `cat` that begins one, an option of grep in
//! place of the `wc` that ends one, and the last filter of several as a statement of its own, which
//! the shell can then do itself.

use std::ops::Range;

use super::around::declared;
use super::one_line::is_one_line;
use super::shell::{FoundCall, unused_variable};
use super::{
    Form, NewCode, Result, ShellRewrite, Splice, inserted, limited, one_sed, or_refuse, refuse, refuse_if, splice,
};
use crate::explain::advice::phrases::{ECHO_LIMIT, ONE_LINE_LIMIT, name, quoted};
use crate::model::launch::base_name;
use crate::patterns::expressions::extended;
use crate::patterns::programs::has_property;
use crate::patterns::script::{Part, Simple, Word, names, span};
use crate::patterns::shells::Dialect;
use crate::patterns::words::Words;

/// Leaves out a program of a pipeline.
pub(super) fn without_stage(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    match &call.rewrite.program[..] {
        b"cat" => without_cat(call),
        b"sed" => one_sed::joined(call),
        b"grep" | b"egrep" => without_grep(call).or_else(|refusal| one_sed::joined(call).map_err(|_| refusal)),
        _ => without_count(call).or_else(|refusal| one_sed::joined(call).map_err(|_| refusal)),
    }
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

/// A grep that prints each line that it finds in its input, or in one file.
struct Grep<'s> {
    program: &'s Word<'s>,
    is_extended: bool,
    /// Without options that change what it finds.
    is_plain: bool,
    pattern: &'s Word<'s>,
    /// Where it reads from, as it is written. Empty for the pipeline.
    source: String,
}

impl<'s> Grep<'s> {
    /// Reads a command of the pipeline of a call.
    fn of(call: &FoundCall<'s>, command: usize) -> Option<Grep<'s>> {
        let script = call.script;
        // Before `||`, the commands of a function go on after a failure.
        let is_plain = |each: &usize| script.program(*each).is_some_and(|program| !script.is_function(&program));
        let simple = script.simple(command).filter(|simple| simple.assignments.is_empty())?;
        let [program, words @ ..] = &simple.words[..] else { return None };
        let name = program.literal().filter(|_| call.pipeline.iter().all(is_plain))?;
        let count = words.iter().take_while(|word| word.literal().is_some_and(|word| selects_lines(&word))).count();
        let options: Vec<u8> = words[..count].iter().filter_map(Word::literal).collect::<Vec<_>>().concat();
        let (pattern, files) = words[count..].split_first().filter(|(pattern, _)| is_pattern(call, pattern))?;
        let source = match (files, &simple.redirections[..]) {
            ([], []) if call.pipeline[0] != command => String::new(),
            ([], [from]) if from.operator == b"<" => format!(" <{}", call.quoted_source(&from.target).ok()?),
            ([file], []) if command == call.command || is_pattern(call, file) => {
                format!(" <{}", call.quoted_source(file).ok()?)
            }
            _ => return None,
        };
        let is_extended = name == b"egrep" || options.contains(&b'E');
        let has_no_others = options.iter().all(|each| b"-E".contains(each));
        let is_other = |name: &[u8]| !matches!(name, b"grep" | b"egrep" | b"fgrep");
        (!is_other(&name)).then_some(Grep {
            program,
            is_extended,
            is_plain: has_no_others && name != b"fgrep",
            pattern,
            source,
        })
    }
}

/// `$(... | grep x | wc -l)` becomes `$(... | grep -c x || :)`: wc succeeds if grep finds nothing.
/// `... | grep x | head -n 1` becomes `... | grep -m 1 x`.
fn without_count(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    let script = call.script;
    let other = || format!("{} does not end what one grep prints into `$( )`", call.program());
    let words = call.simple.literals().filter(|_| call.simple.redirections.is_empty()).unwrap_or_default();
    let words: Vec<String> = words.iter().map(|word| name(word)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let option = match &words[..] {
        ["wc", "-l"] => Some(" -c".to_owned()),
        ["head", rest @ ..] => {
            one_sed::lines_of_head(rest).filter(|(own, _)| *own == words.len()).map(|(_, count)| format!(" -m {count}"))
        }
        _ => None,
    };
    let option = or_refuse(option, other())?;
    let at = call.pipeline.iter().position(|each| *each == call.command).filter(|at| *at > 0);
    let before = call.pipeline[or_refuse(at, other())? - 1];
    let grep = or_refuse(Grep::of(call, before), other())?;
    let is_last = call.pipeline.last() == Some(&call.command);
    refuse_if(is_last && call.substitution.is_none(), other())?;
    let if_none = if !is_last || names(script.text, b"pipefail") { "" } else { " || :" };
    let ends = script.end(before)..script.end(call.command);
    let splices = vec![inserted(grep.program.range.end, option), splice(ends, if_none)];
    let limit: &[&str] = if words[0] == "wc" { &["if grep fails, the number is missing instead of 0"] } else { &[] };
    Ok(limited(splices, limit))
}

/// `grep x "$f" | awk '{print $2}'` becomes `awk '/x/{print $2}' <"$f"`. So does a grep before a
/// cut of one field.
fn without_grep(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    const OTHER: &str = "no awk or cut of a field reads what grep finds";
    let script = call.script;
    let at = call.pipeline.iter().position(|each| *each == call.command).unwrap_or_default();
    let next = call.pipeline.get(at + 1).copied();
    let (Some(grep), Some(next)) = (Grep::of(call, call.command), next) else { return refuse(OTHER) };
    let simple = or_refuse(script.simple(next).filter(|simple| simple.is_bare()), OTHER)?;
    let is_literal = grep.pattern.literal().is_some();
    let is_known = |pattern: &[u8]| {
        in_awk(&name(pattern), grep.is_extended).is_some_and(|of_awk| is_literal || of_awk.as_bytes() == pattern)
    };
    let of_calls = |arguments: &Vec<Vec<u8>>| arguments.iter().any(|word| grep.pattern.can_be(word) && is_known(word));
    // With pipefail, it matters whether grep finds anything.
    let is_other = !grep.is_plain
        || call.rewrite.has_errors
        || names(script.text, b"pipefail")
        || !call.rewrite.calls.iter().all(of_calls);
    refuse_if(is_other, "awk may find other lines than grep")?;
    let pattern = or_refuse(pattern_of_awk(grep.pattern, grep.is_extended), "awk may find other lines than grep")?;
    let program = or_refuse(in_one_awk(simple, &pattern), OTHER)?;
    let around = [splice(script.start(call.command)..script.start(next), ""), inserted(script.end(next), grep.source)];
    let splices = around.into_iter().chain([program]).collect();
    Ok(limited(splices, &["if the file is missing, the program is not started, and fails"]))
}

/// Returns an awk that does for the lines that match what an awk or cut does for all lines.
fn in_one_awk(simple: &Simple<'_>, pattern: &str) -> Option<Splice> {
    const AWKS: Words = Words("awk gawk mawk");
    let words: Vec<String> = simple.literals()?.iter().map(|word| name(word)).collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["cut", options @ ..] => {
            let (delimiter, field) = field_of_cut(&options.concat())?;
            // cut prints a line without the delimiter as a whole.
            (pattern.contains(&delimiter) && !pattern.contains('|')).then_some(())?;
            let code = with_pattern(pattern, &format!("{{print ${field}}}"));
            Some(splice(span(&simple.words), format!("awk -F{} {code}", quoted(&delimiter))))
        }
        [program, .., code] if AWKS.contains(base_name(program.as_bytes())) && is_block(code) => {
            Some(splice(simple.words.last()?.range.clone(), with_pattern(pattern, code)))
        }
        _ => None,
    }
}

/// Returns a pattern of grep as one of every awk. `None` if they might match other lines.
fn in_awk(pattern: &str, is_extended: bool) -> Option<String> {
    let expression = extended(pattern, is_extended)?;
    let rest = expression.replace("\\.", "").replace(".*", "");
    let is_plain = |each: char| each.is_ascii_alphanumeric() || "_-:=,@%# ^$/|()\"<>".contains(each);
    (!rest.is_empty() && rest.chars().all(is_plain)).then(|| expression.replace('/', "\\/"))
}

/// Returns the pattern of a grep for awk, with its variables.
fn pattern_of_awk(pattern: &Word<'_>, is_extended: bool) -> Option<String> {
    if let Some(literal) = pattern.literal() {
        return in_awk(&name(&literal), is_extended);
    }
    let ([before, after], variable) = pattern.around_variable()?;
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-:=, ^$".contains(byte);
    before
        .iter()
        .chain(&after)
        .all(is_plain)
        .then(|| format!("{}${{{}}}{}", name(&before), name(variable), name(&after)))
}

/// Returns a program of awk that does something for the lines that match.
fn with_pattern(pattern: &str, block: &str) -> String {
    if pattern.contains("${") { format!("\"/{pattern}/\"'{block}'") } else { format!("'/{pattern}/{block}'") }
}

/// Whether a program of awk is one block that does not depend on the number of the line.
fn is_block(code: &str) -> bool {
    let inside = code.trim().strip_prefix('{').and_then(|code| code.strip_suffix('}'));
    inside.is_some_and(|inside| {
        !inside.contains(['{', '}', '\'']) && !inside.contains("NR") && !inside.contains("getline")
    })
}

/// Returns the delimiter and the field that cut prints.
fn field_of_cut(options: &str) -> Option<(String, u32)> {
    let (delimiter, field) = match options.strip_prefix("-d") {
        Some(rest) => rest.split_once("-f")?,
        None => options.strip_prefix("-f")?.split_once("-d").map(|(field, delimiter)| (delimiter, field))?,
    };
    let is_known = delimiter.len() == 1 && ":=,@%#/".contains(delimiter);
    Some((delimiter.to_owned(), field.parse().ok().filter(|_| is_known)?))
}

/// Whether a word is options with which grep still prints each line once.
fn selects_lines(word: &[u8]) -> bool {
    word.starts_with(b"-") && word.len() > 1 && word[1..].iter().all(|each| b"EFPivwx".contains(each))
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
        [b"echo", _] | [b"echo", b"-n", _] => !is_option,
        [b"printf", format, _] => matches!(*format, b"%s" | b"%s\\n"),
        _ => false,
    };
    prints.then_some(word)
}

/// Whether a newline ends the text that a call is fed with.
pub(super) fn has_newline(call: &FoundCall<'_>) -> bool {
    let feeder = call.script.source(&(call.script.start(call.pipeline[0])..call.script.start(call.command)));
    let is_echo = |words: &[u8]| words.strip_prefix(b"echo").is_some_and(|rest| !rest.trim_ascii().starts_with(b"-n "));
    !names(feeder, b"printf") && (feeder.is_empty() || is_echo(feeder)) || feeder.contains(&b'\\')
}

const SPLIT_LIMIT: &str =
    "`echo $x` without quotes joins words with single blanks and expands patterns, unlike the replacement";
/// What can change because the shell itself reads the text that a call was fed with.
pub(super) const INPUT_LIMITS: [&str; 3] = [SPLIT_LIMIT, ECHO_LIMIT, ONE_LINE_LIMIT];

/// Returns those of `INPUT_LIMITS` that hold for a call.
pub(super) fn input_limits(call: &FoundCall<'_>) -> Vec<&'static str> {
    let is_echo = |first: &usize| call.script.program(*first).is_some_and(|program| program == b"echo");
    let fed = call.fed.filter(|_| call.pipeline.len() > 1 && call.form.has_input());
    let is_unquoted = |part: &Part<'_>| matches!(part, Part::Variable { is_quoted: false, .. });
    let is_split = fed.is_some_and(|word| word.parts.iter().any(is_unquoted)) && call.rewrite.dialect != Dialect::Zsh;
    let is_echoed = fed.is_some() && call.pipeline.first().is_some_and(is_echo);
    let is_unsure = call.rewrite.code.needs_one_line && fed.is_some_and(|word| !is_one_line(call.script, word));
    let limits = [is_split, is_echoed, is_unsure].into_iter().zip(INPUT_LIMITS);
    limits.filter_map(|(holds, limit)| holds.then_some(limit)).collect()
}

/// Whether a call is the first of several filters, so that the new code prints its result for the
/// next one.
pub(super) fn is_first_filter(call: &FoundCall<'_>) -> bool {
    let prints = matches!(call.form, Form::Steps { .. } | Form::Word(_) | Form::Statement(_)) && call.form.has_input();
    prints && call.pipeline.len() > 2 && call.pipeline[1] == call.command
}

/// Returns where a command is that prints one result, with the text that it reads.
pub(super) fn printing<'s>(call: &FoundCall<'s>) -> Result<(Range<usize>, Option<&'s Word<'s>>)> {
    if call.form.has_input() {
        // Without a newline, what the program prints has none either.
        let reason = format!("the input of {} does not end with a newline", call.program());
        refuse_if(!has_newline(call), reason)?;
        return Ok((call.up_to_call(), call.input()?));
    }
    let range = span(&call.simple.words);
    let mut redirections = call.simple.redirections.iter();
    let has_other = redirections.any(|each| each.range.start < range.end || each.operator.contains(&b'<'));
    let is_alone = !has_other && call.pipeline[0] == call.command;
    refuse_if(!is_alone, format!("the line does not call {} in $( )", call.program()))?;
    Ok((range, None))
}

/// `x=$(a | b)` becomes `x=$(a); x=$(echo "$x" | b)`, also after `local`, and before a command that
/// has `$(a | b)` in an argument. `None` for other calls.
pub(super) fn last_stage(call: &FoundCall<'_>) -> Option<Vec<Splice>> {
    let script = call.script;
    let (first, &[.., before, last]) = (*call.pipeline.first()?, &call.pipeline[..]) else { return None };
    let holder = script.parent(call.substitution?)?;
    let is_text = before == first && call.fed.is_some();
    // head ends what never ends itself, and wc counts what `$( )` removes.
    let reads_all = call.fed.is_some() || !matches!(&call.rewrite.program[..], b"head" | b"wc");
    let is_filter = !is_text && reads_all && last == call.command && call.rewrite.code.form.has_input();
    (is_filter && script.statement(holder).is_some()).then_some(())?;
    let stages = name(script.source(&(script.start(first)..script.end(before))));
    let filtered = |variable: &str| format!("$(echo \"${variable}\" | {})", name(script.code(last)));
    let Some((set, variable)) = set_to(call, holder, &stages) else {
        // The status of an argument is not used.
        script.simple(holder).filter(|simple| simple.assignments.is_empty())?;
        let variable = unused_variable(script, &format!("{}_input", call.program()));
        let first = inserted(script.start(holder), format!("{variable}=$({stages}) || :; "));
        return Some(vec![first, splice(script.range(call.substitution?), filtered(&variable))]);
    };
    Some(vec![splice(script.range(holder), format!("{set}; {variable}={}", filtered(&variable)))])
}

/// Returns the assignment of the output of the first stages of a pipeline, and its variable, if a
/// command assigns what the pipeline prints.
fn set_to(call: &FoundCall<'_>, holder: usize, stages: &str) -> Option<(String, String)> {
    let (script, simple) = (call.script, call.script.simple(holder)?);
    if let Some((variable, _)) = script.assigned(holder).filter(|(_, value)| value.substitution() == call.substitution)
    {
        // Without pipefail, the script goes on if the program before the filter fails.
        let before = call.pipeline.iter().rev().nth(1).filter(|before| **before != call.pipeline[0]);
        let program = before.and_then(|before| script.program(*before));
        let never_fails = program.is_some_and(|program| has_property(&program, "never-fails"));
        let if_failed = if never_fails || names(script.text, b"pipefail") { "" } else { " || :" };
        return Some((format!("{}=$({stages}){if_failed}", name(variable)), name(variable)));
    }
    let [builtin, word] = &simple.words[..] else { return None };
    let variable = name(declared(builtin, word, call.substitution?).filter(|_| simple.is_bare())?);
    // `local` also hides a failure. dash would split what it assigns.
    let quote = if call.rewrite.dialect == Dialect::Posix { "\"" } else { "" };
    Some((format!("{} {variable}={quote}$({stages}){quote}", name(&builtin.literal()?)), variable))
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
