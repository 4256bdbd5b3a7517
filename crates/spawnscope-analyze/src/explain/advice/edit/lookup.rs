//! Edits of loops that search one file again and again: the shell reads the file once, before the
//! loop. `sed -n "${i}p" FILE` becomes an element of an array, `grep -q "$word" FILE` a pattern.
//! Numbers of `seq` become those of the shell.

use super::around::{Around, is_used_outside, loops_around, only_reads};
use super::one_line::is_one_line;
use super::shell::{FoundCall, unused_variable};
use super::{Result, Splice, collected, limited, many, or_refuse, refuse, refuse_if, splice};
use crate::explain::advice::phrases::name;
use crate::patterns::programs::has_property;
use crate::patterns::script::{For, Kind, Part, Redirection, Word, names};
use crate::patterns::shells::Dialect;

/// Longer lists of numbers are not written out.
const MAX_NUMBERS: i64 = 20;

/// What the new code changes besides the launches.
const READ_ONCE: &str = "changes of the file while the loop runs are not seen";
const AS_TEXT: &str = "words are compared as text, not as patterns";
const NOT_A_LIST: &str = "the numbers are not the list of a loop";
const NOT_PLAIN: &str = "grep does not look for one plain word";
const SLOW: &str = "bash takes longer than grep for a file of more than 100 kB";

/// Replaces a search of a text, or of a file in a loop, and other calls by one.
pub(super) fn lookup(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    match call.fed {
        _ if !has_property(&call.rewrite.program, "search") => many::many(call),
        Some(fed) => condition_on_text(call, fed).or_else(|_| many::many(call)),
        None => in_file(call).or_else(|refusal| many::many(call).or_else(|_| in_small_file(call)).map_err(|_| refusal)),
    }
}

/// Replaces `grep -q WORD FILE` of another file each time: the shell reads it itself, as the
/// recorded calls were short.
fn in_small_file(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    let file = call.simple.words.last().filter(|_| is_condition(call) && !call.rewrite.has_errors);
    condition_on_head(call, or_refuse(file, "grep reads no file")?, None)
}

fn in_file(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    match &call.rewrite.program[..] {
        b"seq" => numbers(call),
        b"grep" | b"fgrep" if call.substitution.is_none() => condition(call),
        _ => line(call),
    }
}

/// Returns the outermost loop in which a file stays the same.
fn outermost<'s>(call: &FoundCall<'s>, file: &Word<'s>) -> Result<Around<'s>> {
    let script = call.script;
    let variables = file.variables().filter(|_| call.plain_source(file).is_ok());
    let variables = or_refuse(variables, "the file is not certainly the same each time")?;
    let is_same = |around: &Around<'_>| {
        !variables.iter().any(|variable| around.may_set(script, variable)) && only_reads(script, around, &(0..0))
    };
    let same = loops_around(call).into_iter().take_while(is_same).last();
    or_refuse(same, "the call is not in a loop that only reads")
}

/// Calls that print one line of a file: the words before its number, what is around the number, and
/// whether `tail -n 1` follows.
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
fn line(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    let script = call.script;
    let found = call.substitution.filter(|_| call.rewrite.dialect == Dialect::Bash).zip(chosen_line(call));
    let found = or_refuse(found, format!("{} does not print one line of a file", call.program()))?;
    let (substitution, Chosen { variable, file, is_last_after_end }) = found;
    let around = outermost(call, file)?;
    let lines = unused_variable(script, "lines");
    let index = if variable[0].is_ascii_digit() { format!("${}", name(variable)) } else { name(variable) };
    // Line 0 is empty.
    let read = format!("{lines}=(''); mapfile -t -O 1 {lines} <{}", call.quoted_source(file)?);
    let other = if is_last_after_end { format!("${{{lines}[@]: -1}}") } else { String::new() };
    let mut splices = collected::around_loop(script, around.node, &read, &[]);
    splices.push(splice(script.range(substitution), format!("${{{lines}[{index}]-{other}}}")));
    Ok(limited(splices, &[READ_ONCE]))
}

/// A line of a file that is chosen by its number.
struct Chosen<'s> {
    /// The variable with the number.
    variable: &'s [u8],
    file: &'s Word<'s>,
    /// Whether a number after the end of the file stands for its last line.
    is_last_after_end: bool,
}

/// Returns the line that a call prints. All recorded numbers must be numbers for the shell, too.
fn chosen_line<'s>(call: &FoundCall<'s>) -> Option<Chosen<'s>> {
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
    let (around, variable) = number.around_variable()?;
    let is_form = PRINT_A_LINE.iter().any(|(words, expected, needs_tail)| {
        *needs_tail == has_tail
            && texts(before) == words.join(" ")
            && expected.map(str::as_bytes) == [&around[0][..], &around[1]]
    });
    let has_redirection = commands.iter().any(|simple| !simple.redirections.is_empty());
    let is_number = |call: &Vec<Vec<u8>>| {
        let number = call.get(before.len() - 1)?.strip_prefix(&around[0][..])?.strip_suffix(&around[1][..])?;
        Some(number.iter().all(u8::is_ascii_digit) && !number.starts_with(b"0") && !number.is_empty())
    };
    let is_of_tail = call.pipeline.len() == 2 && call.pipeline[1] == call.command;
    let are_numbers = is_of_tail || call.rewrite.calls.iter().all(|call| is_number(call) == Some(true));
    let is_line = is_form && !has_redirection && are_numbers;
    is_line.then_some(Chosen { variable, file, is_last_after_end: has_tail })
}

/// Whether only the exit status of a grep of a file counts.
pub(super) fn is_condition(call: &FoundCall<'_>) -> bool {
    call.pipeline.len() == 1 && is_quiet_grep(call)
}

/// Whether only the exit status of a grep counts.
pub(super) fn is_quiet_grep(call: &FoundCall<'_>) -> bool {
    let is_quiet = |word: &Word<'_>| {
        word.literal().is_some_and(|word| word.starts_with(b"-") && !word.starts_with(b"--") && word.contains(&b'q'))
    };
    let redirections = &call.simple.redirections;
    let drops_output = redirections.iter().any(|each| matches!(each.operator, b">" | b"&>"));
    matches!(&call.rewrite.program[..], b"grep" | b"fgrep")
        && call.substitution.is_none()
        && redirections.iter().all(Redirection::is_kept)
        && (drops_output || call.simple.words.iter().any(is_quiet))
}

/// Returns the file and the number of lines of `head -n 3 FILE`, if a call reads these.
fn head_of<'s>(call: &FoundCall<'s>) -> Option<(&'s Word<'s>, i64)> {
    let [head, last] = call.pipeline[..] else { return None };
    let words = &call.script.simple(head).filter(|_| last == call.command)?.words;
    let [program, options @ .., file] = &words[..] else { return None };
    (program.literal()? == b"head").then_some(())?;
    // `-n 3`, `-n3` and `-3`.
    let options = options.iter().map(Word::literal).collect::<Option<Vec<_>>>()?;
    (options.len() < 2 || options[0] == b"-n").then_some(())?;
    let options = name(&options.concat());
    let count = options.strip_prefix("-n").or_else(|| options.strip_prefix('-'));
    let count = if options.is_empty() { "10" } else { count? };
    count.parse().ok().filter(|count| (1..1000).contains(count)).map(|count| (file, count))
}

/// Replaces `head -n 3 FILE | grep -q WORD`, or `grep -q WORD FILE`: the shell reads these lines
/// itself.
fn condition_on_head(call: &FoundCall<'_>, file: &Word<'_>, count: Option<i64>) -> Result<Vec<Splice>> {
    let script = call.script;
    let dialect = call.rewrite.dialect;
    let searched = searched(call).filter(|_| (dialect == Dialect::Bash || count == Some(1)) && is_quiet_grep(call));
    let searched = searched.filter(|searched| !searched.edges.iter().any(|edge| matches!(edge, Edge::Member(_))));
    let searched = or_refuse(searched, NOT_PLAIN)?;
    let lines = unused_variable(script, if count.is_some() { "head_lines" } else { "contents" });
    let (from, file) = (call.errors() + "<", call.quoted_source(file)?);
    let test = match count {
        Some(1) => searched.test(&format!("\"${lines}\""), dialect),
        _ => searched.test_of_lines(&lines),
    };
    // The first element becomes the text of all lines.
    let read = match count {
        Some(1) => format!("{lines}=; IFS= read -r {lines} {from}{file} || :"),
        Some(count) => {
            format!(
                "{lines}=(); mapfile -t -n {count} {lines} {from}{file}; printf -v {lines} '%s\\n' \"${{{lines}[@]}}\""
            )
        }
        // `read` fails at the end of the file.
        None => format!("{lines}=; IFS= read -r -d '' {lines} {from}{file} || :"),
    };
    let limits = if count.is_some() { &[AS_TEXT][..] } else { &[AS_TEXT, SLOW] };
    Ok(limited(vec![splice(call.up_to_call(), format!("{{ {read}; {test}; }}"))], limits))
}

/// Replaces `grep -q WORD FILE`, whatever depends on its exit status.
fn condition(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    let script = call.script;
    if let Some((file, count)) = head_of(call) {
        return condition_on_head(call, file, Some(count));
    }
    let searched = or_refuse(searched(call).filter(|_| is_condition(call)), NOT_PLAIN)?;
    // With `set -e`, the script would end.
    refuse_if(!call.errors().is_empty(), "the file may be missing")?;
    let file = or_refuse(call.simple.words.last(), "grep reads no file")?;
    let around = outermost(call, file)?;
    let contents = unused_variable(script, "contents");
    let file = call.quoted_source(file)?;
    let (read, test) = match (call.rewrite.dialect, searched.edges) {
        (_, [Edge::Member(_), _] | [_, Edge::Member(_)]) => return refuse("the file has lists"),
        (Dialect::Bash, _) => (format!("{contents}=$(<{file})"), searched.test_of_lines(&contents)),
        (dialect, [Edge::Any, Edge::Any]) => {
            (format!("{contents}=$(cat {file})"), searched.test(&format!("${contents}"), dialect))
        }
        _ => return refuse("this shell has no short pattern for a whole line"),
    };
    let mut splices = collected::around_loop(script, around.node, &read, &[]);
    splices.push(splice(script.range(call.command), test));
    Ok(limited(splices, &[READ_ONCE, AS_TEXT, SLOW]))
}

/// Replaces `echo "$x" | grep -q WORD`, also if the word is a member of a list: `grep -qE
/// "(^|:)$1(:|$)"`.
fn condition_on_text(call: &FoundCall<'_>, fed: &Word<'_>) -> Result<Vec<Splice>> {
    let script = call.script;
    let is_alone = call.pipeline.len() == 2 && call.pipeline[1] == call.command && is_quiet_grep(call);
    let searched = or_refuse(searched(call).filter(|_| is_alone), NOT_PLAIN)?;
    // The directories of a path have no newlines.
    let is_path = fed.variable().is_some_and(|variable| variable.ends_with(b"PATH"));
    let is_line = searched.edges == [Edge::Any; 2] || is_path || is_one_line(script, fed);
    refuse_if(!is_line, format!("`{}` may contain several lines", name(script.source(&fed.range))))?;
    let test = searched.test(&call.plain_source(fed)?, call.rewrite.dialect);
    Ok(limited(vec![splice(call.up_to_call(), test)], &[AS_TEXT]))
}

/// What is around the text that a pattern looks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    Any,
    /// The begin or the end of the line.
    End,
    /// That, or a separator.
    Member(char),
}

/// The text that a grep looks for, in quotes, and what is before and after it.
struct Searched {
    text: String,
    edges: [Edge; 2],
}

impl Searched {
    /// Returns a condition on the lines in a variable.
    fn test_of_lines(&self, variable: &str) -> String {
        let [from, to] = self.edges.map(|edge| if edge == Edge::End { "$'\\n'" } else { "" });
        format!("[[ {from}${variable}{to} == *{from}{}{to}* ]]", self.text)
    }

    /// Returns a condition on a text of one line.
    fn test(&self, x: &str, dialect: Dialect) -> String {
        let separator =
            |edge: Edge| if let Edge::Member(separator) = edge { separator.to_string() } else { String::new() };
        let [before, after] = self.edges.map(separator);
        let [first, last] = self.edges.map(|edge| if edge == Edge::End { "" } else { "*" });
        let pattern = format!("{first}{before}{}{after}{last}", self.text);
        match dialect {
            Dialect::Bash => format!("[[ {before}{x}{after} == {pattern} ]]"),
            _ => format!("case {before}{x}{after} in {pattern}) true;; *) false;; esac"),
        }
    }
}

/// Returns what a grep looks for if all recorded calls looked for a text without special
/// characters.
fn searched(call: &FoundCall<'_>) -> Option<Searched> {
    let words = &call.simple.words[1..];
    let at = words.len().checked_sub(if call.pipeline.len() > 1 || call.fed.is_some() { 1 } else { 2 })?;
    let options: Vec<Vec<u8>> = words[..at].iter().map(Word::literal).collect::<Option<_>>()?;
    let letters: Vec<u8> =
        options.iter().filter(|word| !matches!(&word[..], b"--" | b"-e")).flatten().copied().collect();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-/ =,:@%#".contains(byte) || !byte.is_ascii();
    let looks_for_text = |arguments: &Vec<Vec<u8>>| {
        let Some(pattern) = arguments.get(at) else { return false };
        let pattern = name(pattern);
        let (_, text) = edge_at(edge_at(&pattern, &letters, true).1, &letters, false);
        // A value is meant as a text.
        let is_value = words[at].literal().is_none();
        !text.is_empty() && text.bytes().all(|byte| is_plain(&byte) || is_value && byte == b'.')
    };
    let is_known =
        letters.iter().all(|letter| b"-qFxsE".contains(letter)) && call.rewrite.calls.iter().all(looks_for_text);
    let (text, edges) = quoted_pattern(&words[at], &letters).filter(|_| is_known)?;
    let is_whole = letters.contains(&b'x');
    Some(Searched { text, edges: if is_whole { [Edge::End; 2] } else { edges } })
}

/// Returns what a pattern begins or ends with, and the rest of it.
fn edge_at<'p>(pattern: &'p str, letters: &[u8], is_start: bool) -> (Edge, &'p str) {
    let (anchor, separators) = (if is_start { "^" } else { "$" }, [':', ',', ';']);
    let strip = |edge: &str| if is_start { pattern.strip_prefix(edge) } else { pattern.strip_suffix(edge) };
    let found = separators.into_iter().filter(|_| letters.contains(&b'E')).find_map(|separator| {
        let forms = [format!("({anchor}|{separator})"), format!("({separator}|{anchor})")];
        forms.iter().find_map(|form| strip(form)).map(|rest| (Edge::Member(separator), rest))
    });
    let found = found.or_else(|| strip(anchor).map(|rest| (Edge::End, rest)));
    found.filter(|_| !letters.contains(&b'F')).unwrap_or((Edge::Any, pattern))
}

/// Returns a pattern without its edges as a text in quotes, and its edges.
fn quoted_pattern(pattern: &Word<'_>, letters: &[u8]) -> Option<(String, [Edge; 2])> {
    let (mut text, mut edges) = (String::new(), [Edge::Any; 2]);
    let last = pattern.parts.len().checked_sub(1)?;
    for (at, part) in pattern.parts.iter().enumerate() {
        match part {
            Part::Literal { text: literal, .. } => {
                let literal = name(literal);
                let mut literal = &literal[..];
                if at == 0 {
                    (edges[0], literal) = edge_at(literal, letters, true);
                }
                if at == last {
                    (edges[1], literal) = edge_at(literal, letters, false);
                }
                (!literal.contains(['"', '\\', '$', '`', '!', '\n'])).then_some(())?;
                text.push_str(literal);
            }
            Part::Variable { name: variable, .. } => text.push_str(&format!("${{{}}}", name(variable))),
            _ => return None,
        }
    }
    let plain = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).filter(|rest| !rest.contains('$'));
    Some((plain.map_or_else(|| format!("\"{text}\""), |variable| format!("\"${variable}\"")), edges))
}

/// Replaces the numbers that a loop is over.
fn numbers(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    let script = call.script;
    let found = call.substitution.filter(|_| call.pipeline.len() == 1);
    let found = found.and_then(|substitution| Some((substitution, script.parent(substitution)?)));
    let (Some((substitution, node)), [from @ .., to]) = (found, &call.simple.words[1..]) else {
        return refuse(NOT_A_LIST);
    };
    let Kind::For(each) = script.kind(node) else { return refuse(NOT_A_LIST) };
    let is_own = |part: &Part<'_>| *part == Part::Substitution { node: substitution, is_quoted: false };
    let is_list = each.words.iter().any(|word| matches!(&word.parts[..], [part] if is_own(part)));
    let is_number = |text: &Vec<u8>| {
        text.iter().all(u8::is_ascii_digit) && (text.len() == 1 || text.first() != Some(&b'0')) && text.len() < 10
    };
    let is_known = is_list && from.len() < 2 && call.rewrite.calls.iter().flatten().all(is_number);
    refuse_if(!is_known, NOT_A_LIST)?;
    let range = script.range(substitution);
    let is_bash = call.rewrite.dialect == Dialect::Bash;
    let from = from.first();
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

/// Replaces the header of a loop over numbers up to the value of a variable. Without a first
/// number, it is 1.
fn counted(call: &FoundCall<'_>, node: usize, each: &For<'_>, limits: [Option<&Word<'_>>; 2]) -> Result<Vec<Splice>> {
    let script = call.script;
    let expression = |word: Option<&Word<'_>>| match word.map(|word| (word.variable(), number(word))) {
        Some((Some(variable), _)) if !variable[0].is_ascii_digit() && !script.may_set(&each.body, variable) => {
            Some(name(variable))
        }
        Some((_, number)) => number.map(|number| number.to_string()),
        None => Some("1".to_owned()),
    };
    let [Some(start), Some(end)] = limits.map(expression) else { return refuse(NOT_A_LIST) };
    let variable = name(each.name);
    let is_free = call.rewrite.dialect == Dialect::Bash
        && each.words.len() == 1
        && !script.may_set(&each.body, each.name)
        && !is_used_outside(script, node, each.name);
    refuse_if(
        !is_free || names(script.source(&each.body), b"set"),
        "this shell has no loop over numbers, or the loop changes its variable",
    )?;
    let header = script.start(node)..each.words[0].range.end;
    Ok(vec![splice(header, format!("for (({variable} = {start}; {variable} <= {end}; {variable}++))"))])
}
