//! Python programs: which launches a line makes, and edits of calls that pass a plain command to a
//! shell: they pass a list of words to the program.

use std::collections::BTreeSet;
use std::ops::Range;

use super::command::{CommandCall, CommandWord, FoundLaunch, Piece, Usage, listed, split, split_code};
use super::python_functions::by_function;
use super::{Result, Splice, inserted, limited, line_end, line_start, or_refuse, refuse, refuse_if, splice};
use crate::explain::advice::phrases::{WITHOUT_SHELL_LIMIT, name};
use crate::patterns::script::{identifier_length, line_of};
use crate::patterns::words::{Words, contains};

/// Functions of the module `subprocess` that take a command.
const FUNCTIONS: Words = Words("Popen call check_call check_output run");
/// Functions may call each other this often to launch a program.
const MAX_FUNCTIONS: usize = 2;
/// A call with the arguments between its parentheses.
#[derive(Clone)]
pub(super) struct Call<'t> {
    /// `subprocess.run`, `os.system`.
    pub(super) function: &'t [u8],
    pub(super) range: Range<usize>,
    pub(super) arguments: Vec<Range<usize>>,
    /// The number of brackets around it.
    pub(super) depth: usize,
}

/// Returns the changes of the call in a line that passed these commands to a shell, which none of
/// them needs.
pub(super) fn without_shell(commands: &BTreeSet<Vec<u8>>, text: &[u8], line: u32) -> Result<Vec<Splice>> {
    let calls = calls(text)?;
    let uses_shell = |call: &&Call<'_>| shell_argument(text, call).is_some() || is_system(text, call);
    let found: Vec<&Call<'_>> = calls_at(text, &calls, line).filter(uses_shell).collect();
    let [call] = found[..] else {
        return refuse("the line does not have exactly one call with shell=True, or of os.system alone");
    };
    let first = or_refuse(call.arguments.first(), "the call has no arguments")?;
    let list = limited(vec![splice(first.clone(), list(commands, &text[first.clone()])?)], &[WITHOUT_SHELL_LIMIT]);
    let Some(shell) = shell_argument(text, call) else {
        let function = call.range.start..call.range.start + call.function.len();
        let call = splice(function, b"subprocess.call");
        return Ok(import(text, "subprocess")?.into_iter().chain([call]).chain(list).collect());
    };
    let start = text[..shell.start].iter().rposition(|byte| *byte == b',').unwrap_or(shell.start);
    Ok(list.into_iter().chain([splice(start..shell.end, "")]).collect())
}

/// Returns the list of the words of a command that is a string: `f"git log {name}"`.
fn list(commands: &BTreeSet<Vec<u8>>, source: &[u8]) -> Result<Vec<u8>> {
    const NOT_PLAIN: &str = "the command is not one plain string";
    let command = split(&or_refuse(pieces(source), NOT_PLAIN)?).filter(|command| command.input.is_none());
    let command = or_refuse(command, "the command has characters that a shell interprets")?;
    let is_same = |recorded: &Vec<u8>| {
        recorded.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count() == command.words.len()
    };
    let is_split = commands.iter().all(is_same);
    refuse_if(!is_split, format!("`{}` was not always split into the same words", name(source)))?;
    let words = command.words.iter().map(value).collect::<Option<Vec<_>>>();
    or_refuse(words, NOT_PLAIN).map(|words| format!("[{}]", words.join(", ")).into_bytes())
}

/// Returns the calls of a program that a line belongs to.
fn calls_at<'c, 't>(text: &[u8], all: &'c [Call<'t>], line: u32) -> impl Iterator<Item = &'c Call<'t>> {
    all.iter().filter(move |call| (line_of(text, call.range.start)..=line_of(text, call.range.end)).contains(&line))
}

/// Returns the launches of a line.
pub(super) fn launches(text: &[u8], line: u32) -> Result<Vec<FoundLaunch>> {
    let all = calls(text)?;
    let found = calls_at(text, &all, line).filter_map(|call| {
        let target = status_target(text, call);
        let is_statement = target.is_some() || is_statement(text, call);
        let launched = launched(text, &all, call, is_statement, MAX_FUNCTIONS)?;
        let is_unpacked = |word: &CommandWord| matches!(word, CommandWord::Expression(code) if code.starts_with(b"*"));
        (!launched.command.words.iter().any(is_unpacked)).then_some(())?;
        let after = text[call.range.end..].strip_prefix(launched.suffix)?;
        let (length, usage) = conversions(after, launched.usage);
        let usage = if target.is_some() { Usage::Status } else { usage };
        let range = target.unwrap_or(call.range.start)..call.range.end + launched.suffix.len() + length;
        let is_bytes = launched.is_bytes;
        Some(FoundLaunch { range, command: launched.command, usage, is_scalar: true, is_bytes })
    });
    Ok(found.collect())
}

/// Arguments that change neither what a program does, nor how it is launched.
const OPTIONS: Words = Words(
    "capture_output=True check=False check=True encoding=\"utf-8\" encoding='utf-8' shell=False shell=True stdout=PIPE stdout=subprocess.PIPE text=True
     universal_newlines=True",
);
/// How arguments begin that do not matter if the program succeeds and prints no errors.
const OPTIONS_FOR_FAILURES: [&[u8]; 3] = [b"stderr=", b"timeout=", b"check="];

/// What a call launches, and what follows the call to take the output.
pub(super) struct Launched {
    pub(super) command: CommandCall,
    pub(super) suffix: &'static [u8],
    pub(super) usage: Usage,
    pub(super) is_bytes: bool,
}

/// Returns what a call launches, perhaps by a function of the program. `None` if its command or the
/// use of its result is not plain.
pub(super) fn launched(
    text: &[u8],
    all: &[Call<'_>],
    call: &Call<'_>,
    is_statement: bool,
    functions: usize,
) -> Option<Launched> {
    let by_function = || by_function(text, all, call, is_statement, functions.checked_sub(1)?);
    directly_launched(text, call, is_statement).or_else(by_function)
}

fn directly_launched(text: &[u8], call: &Call<'_>, is_statement: bool) -> Option<Launched> {
    let (first, options) = call.arguments.split_first()?;
    let options: Vec<Vec<u8>> = options.iter().map(|range| compact(text, range)).collect();
    let has = |names: Words| options.iter().any(|option| names.contains(option));
    let is_imported = contains(text, b"from subprocess import");
    let function = match call.function.strip_prefix(b"subprocess.") {
        Some(function) => function,
        None => Some(call.function).filter(|function| is_imported || function.starts_with(b"os."))?,
    };
    let is_of_os = matches!(function, b"os.system" | b"os.popen");
    let has_shell = is_of_os || function == b"getoutput" || has(Words("shell=True"));
    let (suffix, usage) = taken(function, &has, is_statement)?;
    let is_read = !matches!(usage, Usage::Checked | Usage::Ignored);
    let is_plain = |option: &Vec<u8>| {
        OPTIONS.contains(option) || is_read && OPTIONS_FOR_FAILURES.iter().any(|begin| option.starts_with(begin))
    };
    options.iter().all(is_plain).then_some(())?;
    let command = command(&text[first.clone()])?;
    let is_list = matches!(text[first.start], b'[' | b'*');
    (is_list || has_shell || command.words.len() == 1).then_some(Launched {
        command,
        suffix,
        usage,
        is_bytes: usage == Usage::Bytes,
    })
}

/// Returns what follows a call of a function to take the output, and how that is used.
fn taken(function: &[u8], has: &dyn Fn(Words) -> bool, is_statement: bool) -> Option<(&'static [u8], Usage)> {
    let is_text = has(Words("text=True universal_newlines=True encoding=\"utf-8\" encoding='utf-8'"));
    let captures = has(Words("capture_output=True stdout=PIPE stdout=subprocess.PIPE"));
    let printed = if is_text { Usage::Text } else { Usage::Bytes };
    Some(match function {
        b"run" if captures => (&b".stdout"[..], printed),
        b"Popen" if captures => (&b".communicate()[0]"[..], printed),
        b"check_output" => (&b""[..], printed),
        b"os.popen" => (&b".read()"[..], Usage::Text),
        b"getoutput" => (&b""[..], Usage::Line),
        b"run" | b"check_call" if is_statement => (
            &b""[..],
            if function == b"check_call" || has(Words("check=True")) { Usage::Checked } else { Usage::Ignored },
        ),
        b"call" | b"os.system" if is_statement => (&b""[..], Usage::Ignored),
        _ => return None,
    })
}

/// Returns the command of a call: a list, or a string.
fn command(source: &[u8]) -> Option<CommandCall> {
    match source.strip_prefix(b"[").and_then(|list| list.strip_suffix(b"]")) {
        Some(list) => listed(list, word),
        // The parameter of a function: `*words`.
        None if source.starts_with(b"*") => listed(source, word),
        None => split(&pieces(source)?),
    }
}

/// Methods after a result, with what they make of it.
const CONVERSIONS: [(&[u8], Usage, Usage); 11] = [
    (b".decode()", Usage::Bytes, Usage::Text),
    (b".decode(\"utf-8\")", Usage::Bytes, Usage::Text),
    (b".decode('utf-8')", Usage::Bytes, Usage::Text),
    (b".decode(\"ascii\")", Usage::Bytes, Usage::Text),
    (b".strip()", Usage::Text, Usage::Trimmed),
    (b".rstrip(\"\\n\")", Usage::Text, Usage::Line),
    (b".rstrip('\\n')", Usage::Text, Usage::Line),
    (b".rstrip()", Usage::Text, Usage::Trimmed),
    (b".split()[0]", Usage::Text, Usage::FirstWord),
    (b".split()[0]", Usage::Line, Usage::FirstWord),
    (b".split()[0]", Usage::Trimmed, Usage::FirstWord),
];

/// Returns the length of the conversions that follow a result, and what they make of it.
pub(super) fn conversions(text: &[u8], usage: Usage) -> (usize, Usage) {
    let (mut length, mut usage) = (0, usage);
    let next = |text: &[u8], usage| CONVERSIONS.iter().find(|(call, from, _)| *from == usage && text.starts_with(call));
    while let Some((call, _, to)) = next(&text[length..], usage) {
        length += call.len();
        usage = *to;
    }
    (length, usage)
}

/// Returns an element of a list. `*files` are several words.
pub(super) fn word(source: &[u8]) -> Option<CommandWord> {
    let is_string = literal(source).is_some_and(|(.., rest)| rest.is_empty());
    if is_string { pieces(source).map(CommandWord::Pieces) } else { Some(CommandWord::Expression(source.to_vec())) }
}

/// Splits a command that is a string, a format or a sum into text and code.
fn pieces(source: &[u8]) -> Option<Vec<Piece>> {
    let terms = split_code(source, b'+')?;
    let mut pieces = Vec::new();
    for term in &terms {
        match literal(term) {
            Some((true, text, b"")) => pieces.extend(fields(text)?),
            Some((false, text, b"")) => pieces.push(Piece::Text(text.to_vec())),
            Some((false, text, rest)) => pieces.extend(formatted(text, rest)?),
            None if terms.len() > 1 && !term.is_empty() => pieces.push(Piece::Code(term.to_vec())),
            _ => return None,
        }
    }
    Some(pieces)
}

/// Returns whether a string has fields, its text, and what follows it.
fn literal(source: &[u8]) -> Option<(bool, &[u8], &[u8])> {
    let length = source.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (prefix, quoted) = source.split_at(length);
    let quote = quoted.first().copied().filter(|first| matches!(first, b'"' | b'\''))?;
    let is_known = matches!(prefix, b"" | b"f" | b"F") && !quoted.starts_with(&[quote; 3]);
    let end = string_end(source, length).filter(|_| is_known)?;
    Some((!prefix.is_empty(), &source[length + 1..end - 1], source[end..].trim_ascii_start()))
}

/// Splits the text of an f-string.
fn fields(text: &[u8]) -> Option<Vec<Piece>> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while let Some(open) = rest.iter().position(|byte| *byte == b'{') {
        let length = rest[open..].iter().position(|byte| *byte == b'}')?;
        let field = &rest[open + 1..open + length];
        // A conversion, a format or a brace of its own.
        (!field.is_empty() && !field.iter().any(|byte| b"{:!=\\".contains(byte))).then_some(())?;
        pieces.extend([Piece::Text(rest[..open].to_vec()), Piece::Code(field.to_vec())]);
        rest = &rest[open + length + 1..];
    }
    pieces.push(Piece::Text(rest.to_vec()));
    Some(pieces)
}

/// Splits `"%s" % value` and `"{}".format(value)`.
fn formatted(text: &[u8], rest: &[u8]) -> Option<Vec<Piece>> {
    let inside = |code: &'_ [u8]| code.strip_prefix(b"(").and_then(|code| code.strip_suffix(b")")).map(<[u8]>::to_vec);
    let (field, values) = match rest.strip_prefix(b"%") {
        Some(values) => ("%s", inside(values.trim_ascii()).unwrap_or_else(|| values.trim_ascii().to_vec())),
        None => ("{}", inside(rest.strip_prefix(b".format")?)?),
    };
    let values = split_code(&values, b',')?;
    let text = std::str::from_utf8(text).ok()?;
    // `%%` stands for `%`.
    let parts = text.split(field).map(|part| if field == "%s" { part.replace("%%", "\0") } else { part.to_owned() });
    let parts: Vec<String> = parts.collect();
    let is_plain = parts.len() == values.len() + 1 && !parts.concat().contains(['%', '{', '}']);
    let is_value = |value: &&[u8]| !value.is_empty() && !value.starts_with(b"*");
    (is_plain && values.iter().all(is_value)).then_some(())?;
    let texts = parts.into_iter().map(|part| Piece::Text(part.replace('\0', "%").into_bytes()));
    let codes = values.into_iter().map(|value| Piece::Code(value.to_vec())).map(Some).chain([None]);
    Some(texts.zip(codes).flat_map(|(text, code)| [Some(text), code]).flatten().collect())
}

/// Returns a word as an expression.
pub(super) fn value(word: &CommandWord) -> Option<String> {
    let pieces = match word {
        CommandWord::Expression(code) => return Some(name(code)),
        CommandWord::Pieces(pieces) => pieces,
    };
    let has_code = pieces.iter().any(|piece| matches!(piece, Piece::Code(_)));
    let mut string = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) if has_code => string.push_str(&name(text).replace('{', "{{").replace('}', "}}")),
            Piece::Text(text) => string.push_str(&name(text)),
            Piece::Code(code) => string.push_str(&format!("{{{}}}", name(code))),
        }
    }
    let quote = ['"', '\''].into_iter().find(|quote| !string.contains(*quote) && !string.contains('\\'))?;
    Some(format!("{}{quote}{string}{quote}", if has_code { "f" } else { "" }))
}

/// Whether a call is a whole statement, whose result is not used.
fn is_statement(text: &[u8], call: &Call<'_>) -> bool {
    let before = &text[line_start(text, call.range.start)..call.range.start];
    let after = text[call.range.end..line_end(text, call.range.end)].trim_ascii();
    call.depth == 0 && before.trim_ascii().is_empty() && (after.is_empty() || after.starts_with(b"#"))
}

/// Returns where a statement begins that only assigns the status of a call: `status =
/// subprocess.call(...)`.
fn status_target(text: &[u8], call: &Call<'_>) -> Option<usize> {
    let start = line_start(text, call.range.start);
    let before = &text[start..call.range.start];
    let blanks = before.len() - before.trim_ascii_start().len();
    let target = before.trim_ascii_end().strip_suffix(b"=")?[blanks..].trim_ascii_end();
    let after = text[call.range.end..line_end(text, call.range.end)].trim_ascii();
    let is_name = !target.is_empty() && identifier_length(target) == target.len();
    let is_whole = call.depth == 0 && (after.is_empty() || after.starts_with(b"#"));
    (call.function == b"subprocess.call" && is_name && is_whole).then_some(start + blanks)
}

/// Whether a call is `os.system(command)` whose result is not used.
fn is_system(text: &[u8], call: &Call<'_>) -> bool {
    call.function == b"os.system" && call.arguments.len() == 1 && is_statement(text, call)
}

/// Returns how to import a module, if the program does not.
pub(super) fn import(text: &[u8], module: &str) -> Result<Option<Splice>> {
    let (mut at, mut first) = (0, None);
    for line in text.split(|byte| *byte == b'\n') {
        let modules = line.strip_prefix(b"import ").unwrap_or_default().split(|byte| *byte == b',');
        if modules.map(<[u8]>::trim_ascii).any(|name| name == module.as_bytes()) {
            return Ok(None);
        }
        let is_import = line.starts_with(b"import ") || line.starts_with(b"from ") && !line.starts_with(b"from __");
        first = first.or(is_import.then_some(at));
        at += line.len() + 1;
    }
    // Something else may have this name.
    let first = first.filter(|_| !names_in_code(text).contains(&module.as_bytes()));
    let at = or_refuse(first, format!("`{module}` may already be the name of something else"))?;
    Ok(Some(inserted(at, format!("import {module}\n"))))
}

/// Returns the names outside of strings and comments.
pub(super) fn names_in_code(text: &[u8]) -> Vec<&[u8]> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let end = at + identifier_length(&text[at..]);
        found.extend((end > at).then(|| &text[at..end]));
        at = if end > at { end } else { skipped(text, at).unwrap_or(text.len()) };
    }
    found
}

/// Returns where the argument `shell=True` is, in a call of `subprocess`.
fn shell_argument(text: &[u8], call: &Call<'_>) -> Option<Range<usize>> {
    let function = call.function.strip_prefix(b"subprocess.").unwrap_or(call.function);
    let is_true = |range: &&Range<usize>| compact(text, range) == b"shell=True";
    let has_executable = call.arguments.iter().any(|range| text[range.clone()].starts_with(b"executable"));
    call.arguments.iter().skip(1).find(is_true).filter(|_| FUNCTIONS.contains(function) && !has_executable).cloned()
}

/// Returns an argument without blanks.
fn compact(text: &[u8], range: &Range<usize>) -> Vec<u8> {
    text[range.clone()].iter().copied().filter(|byte| *byte != b' ').collect()
}

/// Returns all calls of a program.
fn calls(text: &[u8]) -> Result<Vec<Call<'_>>> {
    or_refuse(all_calls(text), "the program has syntax that Spawnscope does not read")
}

fn all_calls(text: &[u8]) -> Option<Vec<Call<'_>>> {
    let mut found = Vec::new();
    // The brackets around a position: the call that each opens, if it does, and where its current
    // argument begins.
    let mut open: Vec<(Option<Call<'_>>, usize)> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'(' | b'[' | b'{' => {
                let function = function_before(&text[..at]);
                let is_call = text[at] == b'(' && !function.is_empty();
                let (range, depth) = (at - function.len()..at, open.len());
                open.push((is_call.then_some(Call { function, range, arguments: Vec::new(), depth }), at + 1));
            }
            byte @ (b')' | b']' | b'}' | b',') => {
                if let Some((call, start)) = open.last_mut() {
                    let argument = trimmed(text, *start..at);
                    if let Some(call) = call.as_mut().filter(|_| !argument.is_empty()) {
                        call.arguments.push(argument);
                    }
                    *start = at + 1;
                }
                if byte != b',' {
                    let (call, _) = open.pop()?;
                    found.extend(call.map(|call| Call { range: call.range.start..at + 1, ..call }));
                }
            }
            _ => {}
        }
        at = skipped(text, at)?;
    }
    open.is_empty().then_some(found)
}

/// Returns the name with dots before an opening parenthesis.
fn function_before(text: &[u8]) -> &[u8] {
    let length = text.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(byte)).count();
    &text[text.len() - length..]
}

fn trimmed(text: &[u8], range: Range<usize>) -> Range<usize> {
    let inside = &text[range.clone()];
    let start = range.start + inside.len() - inside.trim_ascii_start().len();
    start..start + inside.trim_ascii().len()
}

/// Returns the position after a byte, or after the string or comment that it begins.
pub(super) fn skipped(text: &[u8], at: usize) -> Option<usize> {
    match text[at] {
        b'#' => Some(line_end(text, at)),
        b'"' | b'\'' => string_end(text, at),
        _ => Some(at + 1),
    }
}

/// Returns the position after the string that begins at a position.
fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let quote = *text.get(start)?;
    let triple = [quote; 3];
    let (closing, mut at): (&[u8], usize) =
        if text[start..].starts_with(&triple) { (&triple, start + 3) } else { (&triple[..1], start + 1) };
    loop {
        match text.get(at)? {
            b'\\' => at += 2,
            b'\n' if closing.len() == 1 => return None,
            _ if text[at..].starts_with(closing) => return Some(at + closing.len()),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::advice::edit::spliced;

    #[test]
    fn a_command_becomes_a_list() {
        for (program, command, expected) in [
            ("subprocess.run(\"git log\", shell=True)", "git log", Some("subprocess.run([\"git\", \"log\"])")),
            (
                "x = run(f'cat {a}/{b}', shell = True, check=True).stdout",
                "cat 1/2",
                Some("x = run([\"cat\", f\"{a}/{b}\"], check=True).stdout"),
            ),
            (
                "subprocess.run(\n  \"git log\",\n  shell=True,\n)",
                "git log",
                Some("subprocess.run(\n  [\"git\", \"log\"],\n)"),
            ),
            (
                "f(check_output('a b', shell=True).decode('x)'))  # )",
                "a b",
                Some("f(check_output([\"a\", \"b\"]).decode('x)'))  # )"),
            ),
            (
                "os.system(f\"cat {a}\")\nimport subprocess",
                "cat 1",
                Some("subprocess.call([\"cat\", f\"{a}\"])\nimport subprocess"),
            ),
            ("x = os.system(\"a\")", "a", None),
            ("if x: os.system(\"a\")", "a", None),
            ("subprocess.run(f\"cat {a}\", shell=True)", "cat 1 2", None),
            ("subprocess.run(\"git log | x\", shell=True)", "git log", None),
            ("subprocess.run(\"A=b x\", shell=True)", "A=b x", None),
            ("subprocess.run(f\"cat {a:>3}\", shell=True)", "cat 1", None),
            ("run(\"a %s\" % b, shell=True)", "a b", Some("run([\"a\", f\"{b}\"])")),
            ("run(\"a {}/x\".format(b), shell=True)", "a b/x", Some("run([\"a\", f\"{b}/x\"])")),
            ("run(\"a '\" + b + \"'\", shell=True)", "a b", Some("run([\"a\", f\"{b}\"])")),
            ("subprocess.run(\"a\" \"b\", shell=True)", "ab", None),
            ("subprocess.run(command, shell=True)", "a", None),
            ("subprocess.run(\"a\", shell=False)", "a", None),
            ("subprocess.run(\"a\", shell=True, executable=\"/bin/bash\")", "a", None),
            ("other.walk(\"a\", shell=True)", "a", None),
            ("'''\nsubprocess.run(\"a\", shell=True)\n'''", "a", None),
        ] {
            let splices = without_shell(&[command.as_bytes().to_vec()].into(), program.as_bytes(), 1).ok();
            let edited = splices.map(|splices| String::from_utf8(spliced(program.as_bytes(), &splices)).unwrap());
            assert_eq!(edited.as_deref(), expected, "{program}");
        }
        let program = b"import os\nos.system('a')\n";
        let splices = without_shell(&[b"a".to_vec()].into(), program, 2).unwrap();
        assert_eq!(spliced(program, &splices), b"import subprocess\nimport os\nsubprocess.call([\"a\"])\n");
    }
}
