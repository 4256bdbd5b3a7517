//! Functions of Python programs that launch the command that they are given, such as `def sh(cmd):
//! return os.popen(cmd).read().strip()`. A call of such a function is a launch with its options.
//! Functions that do more, such as to print each command, are not read.

use std::ops::Range;

use super::command::{CommandWord, FoundLaunch, Usage};
use super::python::{Call, Launched, conversions, import, launched, names_in_code, skipped, word};
use super::{Result, Splice, inserted, line_start, refuse_if, splice};
use crate::explain::advice::phrases::name;
use crate::patterns::script::identifier_length;

/// Returns what a call of a function of the program launches.
pub(super) fn by_function(
    text: &[u8],
    all: &[Call<'_>],
    call: &Call<'_>,
    is_statement: bool,
    functions: usize,
) -> Option<Launched> {
    let definition = definition_of(text, all, call)?;
    let (parameter, range) = parameter(text, definition)?;
    let words = words_of(text, call, parameter)?;
    let is_tuple = |first: &[u8]| words.is_some() && first == &parameter[1..];
    let body = body(text, definition.range.end)?;
    let is_inner = |inner: &&Call<'_>| {
        let Some(first) = inner.arguments.first().map(|first| &text[first.clone()]) else { return false };
        let has_command = if words.is_some() { ends_with_unpacked(first, parameter) } else { first == parameter };
        body.start <= inner.range.start && inner.range.end <= body.end && (has_command || is_tuple(first))
    };
    let mut found = all.iter().filter(is_inner).filter_map(|inner| {
        // The call passes only the command, so `**options` is empty.
        let options = inner.arguments[1..].iter().filter(|option| !text[(*option).clone()].starts_with(b"**"));
        let command = match inner.arguments.first() {
            Some(first) if is_tuple(&text[first.clone()]) => Some(&range),
            first if words.is_some() => first,
            _ => call.arguments.first(),
        };
        let arguments = command.into_iter().chain(options).cloned().collect();
        let mut launched = launched(text, all, &Call { arguments, ..inner.clone() }, is_statement, functions)?;
        if let Some(words) = &words {
            launched.command.words.pop();
            launched.command.words.extend(words.iter().cloned());
        }
        Some((inner, launched))
    });
    let (inner, launched) = found.next()?;
    let usage = result(text, body.clone(), inner, &launched).filter(|_| found.next().is_none())?;
    let is_same = matches!(usage, Usage::Checked | Usage::Ignored) == is_statement;
    is_same.then_some(Launched { suffix: b"", usage, ..launched })
}

/// Returns the definition of the function or method that a call calls.
fn definition_of<'c, 't>(text: &[u8], all: &'c [Call<'t>], call: &Call<'_>) -> Option<&'c Call<'t>> {
    let name = call.function.strip_prefix(b"self.").unwrap_or(call.function);
    let mut definitions =
        all.iter().filter(|other| other.function == name && text[..other.range.start].ends_with(b"def "));
    let definition = definitions.next().filter(|_| definitions.next().is_none())?;
    let is_method = definition.arguments.first().is_some_and(|first| &text[first.clone()] == b"self");
    (is_method == (name != call.function) && !is_decorated(text, definition)).then_some(definition)
}

/// Returns the words that a call passes to a function with the parameter `*words`. `Some(None)` if
/// it passes one command instead.
fn words_of(text: &[u8], call: &Call<'_>, parameter: &[u8]) -> Option<Option<Vec<CommandWord>>> {
    if !parameter.starts_with(b"*") {
        return (call.arguments.len() == 1).then_some(None);
    }
    let argument = |range: &Range<usize>| {
        let source = &text[range.clone()];
        let is_named = source[identifier_length(source)..].trim_ascii_start().starts_with(b"=");
        word(source).filter(|_| !is_named && !source.starts_with(b"*"))
    };
    call.arguments.iter().map(argument).collect::<Option<Vec<_>>>().map(Some)
}

/// Whether a list ends with the words of a parameter: `["git", *words]`.
fn ends_with_unpacked(list: &[u8], parameter: &[u8]) -> bool {
    let before = list.strip_suffix(b"]").and_then(|list| list.trim_ascii_end().strip_suffix(parameter));
    before.is_some_and(|before| matches!(before.trim_ascii_end().last(), Some(b',' | b'[')))
}

/// Whether a decorator may change what a function does.
fn is_decorated(text: &[u8], definition: &Call<'_>) -> bool {
    let above = text[..line_start(text, definition.range.start)].trim_ascii_end();
    above[line_start(above, above.len())..].trim_ascii_start().starts_with(b"@")
}

/// Returns the first parameter of a function, with its `*`, if it is the only one without a default
/// value, and where it is.
fn parameter<'t>(text: &'t [u8], definition: &Call<'_>) -> Option<(&'t [u8], Range<usize>)> {
    let mut parameters = definition.arguments.iter().map(|range| &text[range.clone()]);
    let at = parameters.by_ref().position(|parameter| parameter != b"self")?;
    let range = definition.arguments[at].clone();
    let first = &text[range.clone()];
    let has_default = |parameter: &[u8]| parameter.starts_with(b"*") || parameter.contains(&b'=');
    let star = usize::from(first.starts_with(b"*"));
    let length = identifier_length(&first[star..]);
    (length > 0 && parameters.all(has_default)).then_some((&first[..star + length], range))
}

/// Returns where the lines of the function are whose parameters end at a position.
fn body(text: &[u8], from: usize) -> Option<Range<usize>> {
    let line = text[from..].split(|byte| *byte == b'\n').next()?;
    let start = from + line.ends_with(b":").then_some(line.len() + 1)?;
    let indentation = statements(text, start..text.len()).next()?.0;
    let outside = statements(text, start..text.len()).find(|(own, _)| *own < indentation);
    Some(start..outside.map_or(text.len(), |(_, range)| range.start))
}

/// Iterates over statements, without comments: how far each is indented, and where it is.
fn statements(text: &[u8], within: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
    let mut at = within.start;
    std::iter::from_fn(move || {
        loop {
            let line = text.get(at..within.end).filter(|rest| !rest.is_empty())?;
            let indentation = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            let start = at + indentation;
            let end = statement_end(text, start);
            at = end + 1;
            if !matches!(text.get(start), Some(b'#' | b'\n') | None) {
                return Some((indentation, start..end));
            }
        }
    })
}

/// Returns the end of the line on which a statement ends.
fn statement_end(text: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = text.get(at) {
        match byte {
            b'\n' if depth == 0 => return at,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at = skipped(text, at).unwrap_or(text.len());
    }
    text.len()
}

/// Returns what a function makes of the output of its launch. `None` if it does anything else while
/// the launch succeeds.
fn result(text: &[u8], body: Range<usize>, inner: &Call<'_>, launched: &Launched) -> Option<Usage> {
    // What follows the launch, or the variable with its result.
    let (mut variable, mut tail): (&[u8], Vec<u8>) = (b"", Vec::new());
    let mut skipped = usize::MAX;
    for (indentation, range) in statements(text, body) {
        let statement = text[range.clone()].trim_ascii_end();
        if indentation > skipped || statement.starts_with(b"\"\"\"") || statement == b"try:" {
            continue;
        }
        skipped = usize::MAX;
        if statement.starts_with(b"except") || is_test_of_failure(statement) {
            skipped = indentation;
            continue;
        }
        let (before, after) = match range.contains(&inner.range.start) {
            true => (&text[range.start..inner.range.start], &text[inner.range.end..range.end]),
            false => split_at_name(statement, variable)?,
        };
        tail.extend(after.trim_ascii());
        match before.trim_ascii() {
            b"" | b"return" if tail.is_empty() && matches!(launched.usage, Usage::Checked | Usage::Ignored) => {
                return Some(launched.usage);
            }
            b"return" => {
                let (length, usage) = conversions(tail.strip_prefix(launched.suffix)?, launched.usage);
                return (launched.suffix.len() + length == tail.len()).then_some(usage);
            }
            before => {
                let targets = before.strip_suffix(b"=")?.trim_ascii();
                variable = &targets[..identifier_length(targets)];
                match targets.len() == variable.len() {
                    true => {}
                    false if tail.ends_with(b".communicate()") => tail.extend(b"[0]"),
                    false => return None,
                }
            }
        }
    }
    None
}

/// Whether a statement begins a block for failures: `if result.returncode != 0:`.
fn is_test_of_failure(statement: &[u8]) -> bool {
    let Some(test) = statement.strip_prefix(b"if ") else { return false };
    let rest = test[identifier_length(test)..].strip_prefix(b".returncode");
    rest.is_some_and(|rest| matches!(rest.trim_ascii(), b":" | b"!= 0:" | b"> 0:"))
}

/// Splits a statement at the only name of a variable in its expression: `return out.strip()`.
fn split_at_name<'t>(statement: &'t [u8], variable: &[u8]) -> Option<(&'t [u8], &'t [u8])> {
    let start = match statement.strip_prefix(b"return ") {
        Some(_) => b"return ".len(),
        None => statement.iter().position(|byte| *byte == b'=')? + 1,
    };
    let blanks = statement[start..].len() - statement[start..].trim_ascii_start().len();
    let (before, expression) = statement.split_at(start + blanks);
    let after = expression.strip_prefix(variable).filter(|_| !variable.is_empty())?;
    (identifier_length(after) == 0).then_some((before, after))
}

/// Returns how to keep the answers of a launch: in a function with a cache, before the statement or
/// definition that contains the launch.
pub(super) fn kept(text: &[u8], launch: &FoundLaunch, function: &str) -> Result<Vec<Splice>> {
    let is_used = !matches!(launch.usage, Usage::Checked | Usage::Ignored | Usage::Status);
    let code = &text[launch.range.clone()];
    let mut parameters: Vec<&[u8]> = Vec::new();
    for word in &launch.command.words {
        match word {
            // Elements of a list are strings or paths, which can be keys.
            CommandWord::Expression(code) if identifier_length(code) == code.len() => parameters.push(code),
            word => refuse_if(word.literal().is_none(), "an argument is not a plain value")?,
        }
    }
    let is_known = |word: &&[u8]| parameters.contains(word) || is_global(text, word);
    let mut names = names_in_code(code).into_iter().filter(|word| !is_attribute(code, word));
    refuse_if(!is_used || !names.all(|word| is_known(&word)), "the answer depends on more than the arguments")?;
    let mut start = 0;
    let mut was_decorator = false;
    for (indentation, range) in statements(text, 0..launch.range.start) {
        let statement = &text[range.clone()];
        let continues = [&b"el"[..], b"except", b"finally"].iter().any(|word| statement.starts_with(word));
        if indentation == 0 && !continues && !was_decorator {
            start = range.start;
        }
        was_decorator = statement.starts_with(b"@") && indentation == 0;
    }
    let arguments = parameters.iter().map(|word| name(word)).collect::<Vec<_>>().join(", ");
    let definition =
        format!("@functools.lru_cache(maxsize=None)\ndef {function}({arguments}):\n    return {}\n\n\n", name(code));
    let call = splice(launch.range.clone(), format!("{function}({arguments})"));
    Ok(import(text, "functools")?.into_iter().chain([inserted(start, definition), call]).collect())
}

/// Whether a word of some code is an attribute, the name of an argument, or the prefix of a string.
fn is_attribute(code: &[u8], word: &[u8]) -> bool {
    let start = word.as_ptr() as usize - code.as_ptr() as usize;
    let after = code[start + word.len()..].trim_ascii_start();
    let is_argument = after.starts_with(b"=") && !after.starts_with(b"==");
    code[..start].ends_with(b".") || is_argument || after.starts_with(b"\"") || after.starts_with(b"'")
}

/// Whether a name is that of a module, or of a function that is defined outside of all others.
fn is_global(text: &[u8], name: &[u8]) -> bool {
    let follows = |line: &[u8], begin: &[u8]| {
        let rest = line.strip_prefix(begin).and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(|rest| identifier_length(rest) == 0)
    };
    matches!(name, b"True" | b"False" | b"None")
        || text.split(|byte| *byte == b'\n').any(|line| follows(line, b"def ") || follows(line, b"import "))
}
