//! Edits of Python programs: a call that passes a plain command to a shell passes a list of words to the program.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{EditRefusal, Splice, refuse};
use crate::explain::advice::phrases::name;

/// The commands that a line passed to a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::explain::advice) struct PythonRewrite {
    /// The different commands. None of them needs a shell.
    pub(in crate::explain::advice) commands: BTreeSet<Vec<u8>>,
}

/// Functions of the module `subprocess` that take a command.
const FUNCTIONS: [&[u8]; 5] = [b"Popen", b"call", b"check_call", b"check_output", b"run"];
/// Characters that are special for a shell or in a string of Python.
const SPECIAL: &[u8] = b"\\|&;<>()$`*?[]~#!\n\r\t%=^";

/// A call with the arguments between its parentheses.
struct Call<'t> {
    /// `subprocess.run`, `os.system`.
    function: &'t [u8],
    range: Range<usize>,
    arguments: Vec<Range<usize>>,
}

impl PythonRewrite {
    pub(super) fn splices(&self, text: &[u8], line: u32) -> Result<Vec<Splice>, EditRefusal> {
        let line_of = |at: usize| 1 + text[..at].iter().filter(|byte| **byte == b'\n').count() as u32;
        let Some(calls) = calls(text) else { return refuse("the program has syntax that Spawnscope does not read") };
        let is_at = |call: &&Call<'_>| (line_of(call.range.start)..=line_of(call.range.end)).contains(&line);
        let uses_shell = |call: &&Call<'_>| shell_argument(text, call).is_some() || is_system(text, call);
        let found: Vec<&Call<'_>> = calls.iter().filter(is_at).filter(uses_shell).collect();
        let [call] = found[..] else {
            return refuse("the line does not have exactly one call with shell=True, or of os.system alone");
        };
        let Some(first) = call.arguments.first() else { return refuse("the call has no arguments") };
        let list = Splice { range: first.clone(), text: self.list(&text[first.clone()])? };
        let Some(shell) = shell_argument(text, call) else {
            let function = call.range.start..call.range.start + call.function.len();
            let call = Splice { range: function, text: b"subprocess.call".to_vec() };
            return Ok(import(text).into_iter().chain([call, list]).collect());
        };
        let start = text[..shell.start].iter().rposition(|byte| *byte == b',').unwrap_or(shell.start);
        Ok(vec![list, Splice { range: start..shell.end, text: Vec::new() }])
    }

    /// Returns the list of the words of a command that is a string: `f"git log {name}"`.
    fn list(&self, source: &[u8]) -> Result<Vec<u8>, EditRefusal> {
        let length = source.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (prefix, quoted) = source.split_at(length);
        let is_known = matches!(prefix, b"" | b"f" | b"F");
        let quote = quoted.first().copied().filter(|first| is_known && matches!(first, b'"' | b'\''));
        let is_string = quote.is_some_and(|_| {
            string_end(source, length) == Some(source.len()) && quoted.len() >= 2 && quoted.get(1) != quoted.first()
        });
        if !is_string {
            return refuse("the command is not one plain string");
        }
        let words = words(&quoted[1..quoted.len() - 1], !prefix.is_empty())
            .ok_or_else(|| EditRefusal("the command has characters that a shell interprets".to_owned()))?;
        let is_same = |command: &Vec<u8>| {
            command.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count() == words.len()
        };
        if words.is_empty() || !self.commands.iter().all(is_same) {
            return refuse(format!("`{}` was not always split into the same words", name(source)));
        }
        let quote = &quoted[..1];
        let shown = |word: &Vec<u8>| [if word.contains(&b'{') { prefix } else { b"" }, quote, word, quote].concat();
        Ok([b"[", &words.iter().map(shown).collect::<Vec<_>>().join(&b", "[..])[..], b"]"].concat())
    }
}

/// Splits the text of a string into words. `None` if a shell would do more than that.
fn words(text: &[u8], has_fields: bool) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut word: Vec<u8> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'{' if has_fields => {
                let length = text[at..].iter().position(|byte| *byte == b'}')? + 1;
                // A format or a brace of its own.
                let field = &text[at..at + length];
                (length > 2 && !field.contains(&b':') && !field[1..].contains(&b'{')).then_some(())?;
                word.extend(field);
                at += length;
                continue;
            }
            b' ' => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            byte if SPECIAL.contains(&byte) || matches!(byte, b'{' | b'}' | b'"' | b'\'') => return None,
            byte => word.push(byte),
        }
        at += 1;
    }
    words.extend((!word.is_empty()).then_some(word));
    Some(words)
}

/// Whether a call is `os.system(command)` whose result is not used.
fn is_system(text: &[u8], call: &Call<'_>) -> bool {
    let before = text[..call.range.start].rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let after = text[call.range.end..].split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    let is_statement = before.trim_ascii().is_empty() && (after.is_empty() || after.starts_with(b"#"));
    call.function == b"os.system" && call.arguments.len() == 1 && is_statement
}

/// Returns how to import `subprocess`, if the program does not.
fn import(text: &[u8]) -> Option<Splice> {
    let mut at = 0;
    let mut first = None;
    for line in text.split(|byte| *byte == b'\n') {
        if line.trim_ascii_end() == b"import subprocess" {
            return None;
        }
        if line.starts_with(b"import ") {
            first = first.or(Some(at));
        }
        at += line.len() + 1;
    }
    first.map(|at| Splice { range: at..at, text: b"import subprocess\n".to_vec() })
}

/// Returns where the argument `shell=True` is, in a call of `subprocess`.
fn shell_argument(text: &[u8], call: &Call<'_>) -> Option<Range<usize>> {
    let function = call.function.strip_prefix(b"subprocess.").unwrap_or(call.function);
    let is_true = |range: &&Range<usize>| {
        let argument = &text[(*range).clone()];
        argument.iter().copied().filter(|byte| *byte != b' ').collect::<Vec<u8>>() == b"shell=True"
    };
    let has_executable = call.arguments.iter().any(|range| text[range.clone()].starts_with(b"executable"));
    call.arguments.iter().skip(1).find(is_true).filter(|_| FUNCTIONS.contains(&function) && !has_executable).cloned()
}

/// Returns all calls of a program. `None` if the program cannot be read.
fn calls(text: &[u8]) -> Option<Vec<Call<'_>>> {
    let mut found = Vec::new();
    // The brackets around a position: the call that each opens, if it does, and where its current argument begins.
    let mut open: Vec<(Option<Call<'_>>, usize)> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'#' => at += text[at..].iter().take_while(|byte| **byte != b'\n').count(),
            b'"' | b'\'' => at = string_end(text, at)?,
            b'(' | b'[' | b'{' => {
                let function = function_before(&text[..at]);
                let is_call = text[at] == b'(' && !function.is_empty();
                let start = at - function.len();
                open.push((is_call.then_some(Call { function, range: start..at, arguments: Vec::new() }), at + 1));
                at += 1;
            }
            byte @ (b')' | b']' | b'}' | b',') => {
                if let Some((call, start)) = open.last_mut() {
                    let argument = trimmed(text, *start..at);
                    if let Some(call) = call.as_mut().filter(|_| !argument.is_empty()) {
                        call.arguments.push(argument);
                    }
                    *start = at + 1;
                }
                at += 1;
                if byte != b',' {
                    let (call, _) = open.pop()?;
                    found.extend(call.map(|call| Call { range: call.range.start..at, ..call }));
                }
            }
            _ => at += 1,
        }
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
                Some("x = run(['cat', f'{a}/{b}'], check=True).stdout"),
            ),
            (
                "subprocess.run(\n  \"git log\",\n  shell=True,\n)",
                "git log",
                Some("subprocess.run(\n  [\"git\", \"log\"],\n)"),
            ),
            (
                "f(check_output('a b', shell=True).decode('x)'))  # )",
                "a b",
                Some("f(check_output(['a', 'b']).decode('x)'))  # )"),
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
            ("subprocess.run(\"a %s\" % b, shell=True)", "a b", None),
            ("subprocess.run(\"a\" \"b\", shell=True)", "ab", None),
            ("subprocess.run(command, shell=True)", "a", None),
            ("subprocess.run(\"a\", shell=False)", "a", None),
            ("subprocess.run(\"a\", shell=True, executable=\"/bin/bash\")", "a", None),
            ("other.walk(\"a\", shell=True)", "a", None),
            ("'''\nsubprocess.run(\"a\", shell=True)\n'''", "a", None),
        ] {
            let rewrite = PythonRewrite { commands: [command.as_bytes().to_vec()].into() };
            let splices = rewrite.splices(program.as_bytes(), 1).ok();
            let edited = splices.map(|splices| String::from_utf8(spliced(program.as_bytes(), &splices)).unwrap());
            assert_eq!(edited.as_deref(), expected, "{program}");
        }
        let rewrite = PythonRewrite { commands: [b"a".to_vec()].into() };
        let program = b"import os\nos.system('a')\n";
        let splices = rewrite.splices(program, 2).unwrap();
        assert_eq!(spliced(program, &splices), b"import subprocess\nimport os\nsubprocess.call(['a'])\n");
    }
}
