//! Edits of loops that search one file again and again: the shell reads the file once, before the loop. `sed -n "${i}p" FILE` becomes an element of
//! an array, `grep -q "$word" FILE` a pattern. Numbers of `seq` become those of the shell.

use super::around::{Around, is_used_outside, loops_around, only_reads};
use super::many::{is_kept, splice};
use super::shell::{FoundCall, unused_variable};
use super::{EditRefusal, Splice, collected, refuse};
use crate::explain::advice::phrases::name;
use crate::patterns::script::{For, Kind, Part, Word, names};
use crate::patterns::shells::Dialect;
use crate::patterns::words::Words;

/// Programs that these edits replace.
pub(in crate::explain::advice) const SEARCH: Words = Words("awk egrep fgrep gawk grep head mawk sed seq tail");
/// Longer lists of numbers are not written out.
const MAX_NUMBERS: i64 = 20;

/// Replaces a search in a loop.
pub(super) fn lookup(call: &FoundCall<'_, '_>) -> Result<Vec<Splice>, EditRefusal> {
    match &call.rewrite.program[..] {
        b"seq" => numbers(call),
        b"grep" | b"fgrep" if call.substitution.is_none() => condition(call),
        _ => line(call),
    }
}

/// Returns the outermost loop in which a file stays the same.
fn outermost<'t>(call: &FoundCall<'_, 't>, file: &Word<'t>) -> Result<Around<'t>, EditRefusal> {
    let script = call.script;
    let Some(variables) = file.variables().filter(|_| call.plain_source(file).is_ok()) else {
        return refuse("the file is not certainly the same each time");
    };
    let is_same = |around: &Around<'_>| {
        !variables.iter().any(|variable| around.may_set(script, variable)) && only_reads(script, around, &(0..0))
    };
    let same = loops_around(call).into_iter().take_while(is_same).last();
    same.ok_or_else(|| EditRefusal("the call is not in a loop that only reads".to_owned()))
}

/// Calls that print one line of a file: the words before its number, what is around the number, and whether `tail -n 1` follows.
const PRINT_A_LINE: [(&[&str], [&str; 2], bool); 6] = [
    (&["sed", "-n"], ["", "p"], false),
    (&["sed"], ["", "q;d"], false),
    (&["awk"], ["NR==", ""], false),
    (&["awk"], ["NR==", "{print}"], false),
    (&["head", "-n"], ["", ""], true),
    (&["head"], ["-", ""], true),
];
const TAILS: [&str; 3] = ["tail -n 1", "tail -1", "tail -n1"];

/// Replaces a line that is chosen by its number.
fn line(call: &FoundCall<'_, '_>) -> Result<Vec<Splice>, EditRefusal> {
    let script = call.script;
    let found = call.substitution.filter(|_| call.rewrite.dialect == Dialect::Bash).zip(chosen_line(call));
    let Some((substitution, (variable, file))) = found else {
        return refuse(format!("{} does not print one line of a file", call.program()));
    };
    let around = outermost(call, file)?;
    let lines = unused_variable(script, "lines");
    let index = if variable[0].is_ascii_digit() { format!("${}", name(variable)) } else { name(variable) };
    let read = format!("mapfile -t {lines} <{}", call.quoted_source(file)?);
    let mut splices = collected::around_loop(script, around.node, &read, &[]);
    splices.push(splice(script.node(substitution).range.clone(), format!("${{{lines}[{index} - 1]-}}")));
    Ok(splices)
}

/// Returns the variable with the number of the line that a call prints, and the file.
fn chosen_line<'s, 't>(call: &FoundCall<'s, 't>) -> Option<(&'t [u8], &'s Word<'t>)> {
    let script = call.script;
    let commands: Vec<_> = call.pipeline.iter().map(|command| script.simple(*command)).collect::<Option<_>>()?;
    let texts =
        |words: &[Word<'_>]| words.iter().map(|word| name(script.source(&word.range))).collect::<Vec<_>>().join(" ");
    let (words, has_tail) = match commands[..] {
        [only] => (&only.words, false),
        [head, tail] if TAILS.contains(&&texts(&tail.words)[..]) => (&head.words, true),
        _ => return None,
    };
    let [before @ .., number, file] = &words[..] else { return None };
    let at = number.parts.iter().position(|part| matches!(part, Part::Variable { .. }))?;
    let text = |parts: &[Part<'t>]| Word { range: 0..0, parts: parts.to_vec() }.literal();
    let around = [text(&number.parts[..at])?, text(&number.parts[at + 1..])?];
    let is_form = PRINT_A_LINE.iter().any(|(words, expected, needs_tail)| {
        *needs_tail == has_tail
            && texts(before) == words.join(" ")
            && expected.map(str::as_bytes) == [&around[0][..], &around[1]]
    });
    let Part::Variable { name, .. } = number.parts[at] else { return None };
    let has_redirection = commands.iter().any(|simple| !simple.redirections.is_empty());
    (is_form && !has_redirection).then_some((name, file))
}

/// Replaces `grep -q WORD FILE`, whatever depends on its exit status.
fn condition(call: &FoundCall<'_, '_>) -> Result<Vec<Splice>, EditRefusal> {
    let script = call.script;
    let other = || refuse("grep does not look for one plain word");
    let words: Vec<&Word<'_>> = call.simple.words.iter().skip(1).collect();
    let [options @ .., pattern, file] = &words[..] else { return other() };
    let options: Option<Vec<Vec<u8>>> = options.iter().map(|word| word.literal()).collect();
    let Some(options) = options else { return other() };
    let letters: Vec<u8> =
        options.iter().filter(|word| !matches!(&word[..], b"--" | b"-e")).flatten().copied().collect();
    let has = |letter: u8| letters.contains(&letter);
    let drops_output = call.simple.redirections.iter().any(|each| matches!(each.operator, b">" | b"&>"));
    let is_known = letters.iter().all(|letter| b"-qFxsE".contains(letter)) && (has(b'q') || drops_output);
    let is_plain = |text: &[u8]| {
        !text.is_empty()
            && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-/ =,:@%#".contains(byte) || !byte.is_ascii())
    };
    let is_whole = has(b'x');
    let text = |call: &Vec<Vec<u8>>| {
        let text = call.get(call.len().checked_sub(2)?)?;
        let text = text.strip_prefix(b"^").unwrap_or(text);
        Some(text.strip_suffix(b"$").unwrap_or(text).to_vec())
    };
    let are_plain = call.rewrite.calls.iter().all(|call| text(call).is_some_and(|text| is_plain(&text)));
    let is_alone = call.pipeline.len() == 1 && call.simple.redirections.iter().all(is_kept);
    if !is_known || !are_plain || !is_alone {
        return other();
    }
    let Some((text, [from, to])) = quoted_pattern(pattern, has(b'F')) else { return other() };
    let (from, to) = (from || is_whole, to || is_whole);
    let around = outermost(call, file)?;
    let contents = unused_variable(script, "contents");
    let file = call.quoted_source(file)?;
    let (read, test) = match call.rewrite.dialect {
        Dialect::Bash => {
            let end = |is_end: bool| if is_end { "$'\\n'" } else { "" };
            let test = format!("[[ {}${contents}{} == *{}{text}{}* ]]", end(from), end(to), end(from), end(to));
            (format!("{contents}=$(<{file})"), test)
        }
        _ if from || to => return refuse("this shell has no short pattern for a whole line"),
        _ => (format!("{contents}=$(cat {file})"), format!("case ${contents} in *{text}*) true;; *) false;; esac")),
    };
    let mut splices = collected::around_loop(script, around.node, &read, &[]);
    splices.push(splice(script.node(call.command).range.clone(), test));
    Ok(splices)
}

/// Returns a pattern without its anchors as a text in quotes, and whether it had them.
fn quoted_pattern(pattern: &Word<'_>, is_fixed: bool) -> Option<(String, [bool; 2])> {
    let (mut text, mut anchors) = (String::new(), [false; 2]);
    let last = pattern.parts.len().checked_sub(1)?;
    for (at, part) in pattern.parts.iter().enumerate() {
        match part {
            Part::Literal { text: literal, .. } => {
                let mut literal = name(literal);
                if at == 0 && !is_fixed && literal.starts_with('^') {
                    (literal, anchors[0]) = (literal[1..].to_owned(), true);
                }
                if at == last && !is_fixed && literal.ends_with('$') {
                    literal.pop();
                    anchors[1] = true;
                }
                (!literal.contains(['"', '\\', '$', '`', '!', '\n'])).then_some(())?;
                text.push_str(&literal);
            }
            Part::Variable { name: variable, .. } => text.push_str(&format!("${{{}}}", name(variable))),
            _ => return None,
        }
    }
    let plain = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).filter(|rest| !rest.contains('$'));
    Some((plain.map_or_else(|| format!("\"{text}\""), |variable| format!("\"${variable}\"")), anchors))
}

/// Replaces the numbers that a loop is over.
fn numbers(call: &FoundCall<'_, '_>) -> Result<Vec<Splice>, EditRefusal> {
    let script = call.script;
    let other = || refuse("the numbers are not the list of a loop");
    let Some(substitution) = call.substitution.filter(|_| call.pipeline.len() == 1) else { return other() };
    let holder = script.node(substitution).parent;
    let Some((node, each)) = holder.and_then(|node| match &script.node(node).kind {
        Kind::For(each) => Some((node, each)),
        _ => None,
    }) else {
        return other();
    };
    let is_list = each
        .words
        .iter()
        .any(|word| matches!(word.parts[..], [Part::Substitution { node, is_quoted: false }] if node == substitution));
    let (from, to) = match &call.simple.words[1..] {
        [to] => (None, to),
        [from, to] => (Some(from), to),
        _ => return other(),
    };
    let is_number = |text: &Vec<u8>| {
        text.iter().all(u8::is_ascii_digit) && (text.len() == 1 || text.first() != Some(&b'0')) && text.len() < 10
    };
    if !is_list || !call.rewrite.calls.iter().flatten().all(is_number) {
        return other();
    }
    let range = script.node(substitution).range.clone();
    let is_bash = call.rewrite.dialect == Dialect::Bash;
    let (Some(start), Some(end)) = (from.map_or(Some(1), number), number(to)) else {
        return counted(call, node, each, [from, Some(to)]);
    };
    match end - start {
        count @ 0..MAX_NUMBERS if !is_bash || count < 6 => {
            Ok(vec![splice(range, (start..=end).map(|number| number.to_string()).collect::<Vec<_>>().join(" "))])
        }
        0.. if is_bash => Ok(vec![splice(range, format!("{{{start}..{end}}}"))]),
        _ => refuse("this shell has no loop over numbers"),
    }
}

fn number(word: &Word<'_>) -> Option<i64> {
    name(&word.literal()?).parse().ok()
}

/// Replaces the header of a loop over numbers up to the value of a variable. Without a first number, it is 1.
fn counted(
    call: &FoundCall<'_, '_>,
    node: usize,
    each: &For<'_>,
    limits: [Option<&Word<'_>>; 2],
) -> Result<Vec<Splice>, EditRefusal> {
    let script = call.script;
    let expression = |word: Option<&Word<'_>>| match word.map(|word| (word.variable(), number(word))) {
        Some((Some(variable), _)) if !variable[0].is_ascii_digit() && !script.may_set(&each.body, variable) => {
            Some(name(variable))
        }
        Some((_, number)) => number.map(|number| number.to_string()),
        None => Some("1".to_owned()),
    };
    let [Some(start), Some(end)] = limits.map(expression) else {
        return refuse("the numbers are not the list of a loop");
    };
    let variable = name(each.name);
    let is_free = call.rewrite.dialect == Dialect::Bash
        && each.words.len() == 1
        && !script.may_set(&each.body, each.name)
        && !is_used_outside(script, node, each.name);
    if !is_free || names(script.source(&each.body), b"set") {
        return refuse("this shell has no loop over numbers, or the loop changes its variable");
    }
    let header = script.node(node).range.start..each.words[0].range.end;
    Ok(vec![splice(header, format!("for (({variable} = {start}; {variable} <= {end}; {variable}++))"))])
}
