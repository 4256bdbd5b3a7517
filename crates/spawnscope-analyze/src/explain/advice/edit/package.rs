//! Edits of `package.json`: a script that calls `npm run` for another script gets the commands of that script. Parts of the file are copied with
//! the escapes that they have, so that the file stays valid.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{EditRefusal, Splice, refuse};
use crate::explain::advice::phrases::name;

/// Scripts that call each other more deeply are not replaced.
const MAX_DEPTH: usize = 8;
/// Words that change the shell that executes them, and therefore the commands after a script.
const CHANGE_THE_SHELL: [&[u8]; 7] = [b"cd", b"exec", b"exit", b"export", b"set", b"source", b"unset"];

/// The calls that package scripts made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::explain::advice) struct PackageRewrite {
    /// The names of the scripts that were called by a runner in another script.
    pub(in crate::explain::advice) scripts: BTreeSet<Vec<u8>>,
}

/// A script of the package.
struct Script<'t> {
    name: &'t [u8],
    /// Where its commands are, without the quotes.
    range: Range<usize>,
}

impl PackageRewrite {
    pub(super) fn splices(&self, text: &[u8]) -> Result<Vec<Splice>, EditRefusal> {
        let Some(scripts) = scripts(text) else { return refuse("the file has no scripts that Spawnscope can read") };
        let mut splices = Vec::new();
        for script in &scripts {
            let commands = &text[script.range.clone()];
            let expanded = self.expanded(text, &scripts, &[script.name], commands)?;
            if expanded != commands {
                splices.push(Splice { range: script.range.clone(), text: expanded });
            }
        }
        if splices.is_empty() {
            refuse("no script calls another one in a way that Spawnscope can replace")
        } else {
            Ok(splices)
        }
    }

    /// Returns the commands of a script with those of the scripts that it calls. `callers` are the names of the scripts around it.
    fn expanded(
        &self,
        text: &[u8],
        all: &[Script<'_>],
        callers: &[&[u8]],
        commands: &[u8],
    ) -> Result<Vec<u8>, EditRefusal> {
        let parts = Parts::of(commands);
        let has_only_and = parts.operators.iter().all(|operator| &commands[operator.clone()] == b"&&");
        let mut expanded = Vec::new();
        let mut at = 0;
        for part in &parts.commands {
            let words = words(&commands[part.clone()]);
            let Some(called) = called_script(&words).filter(|called| self.scripts.contains(*called)) else { continue };
            let Some(script) = all.iter().find(|script| script.name == called) else { continue };
            let hook = |kind: &[u8]| all.iter().any(|script| script.name == [kind, called].concat());
            if callers.contains(&called) || callers.len() == MAX_DEPTH {
                return refuse(format!("the script {} calls itself", name(called)));
            }
            if hook(b"pre") || hook(b"post") {
                continue;
            }
            let own = &text[script.range.clone()];
            if names(own, b"npm_lifecycle") {
                return refuse(format!("the script {} reads its own name", name(called)));
            }
            let inner = self.expanded(text, all, &[callers, &[called]].concat(), own)?;
            expanded.extend(&commands[at..part.start]);
            expanded.extend(grouped(&inner, has_only_and));
            at = part.end;
        }
        expanded.extend(&commands[at..]);
        Ok(expanded)
    }
}

/// Returns commands in a form that can be joined to others.
fn grouped(commands: &[u8], has_only_and: bool) -> Vec<u8> {
    let parts = Parts::of(commands);
    let is_chain = parts.operators.iter().all(|operator| &commands[operator.clone()] == b"&&");
    let keeps_shell = parts.commands.iter().all(|part| {
        let first = words(&commands[part.clone()]).first().map(|word| word.to_vec());
        first.is_none_or(|first| !CHANGE_THE_SHELL.contains(&&first[..]))
    });
    let is_alone = parts.operators.is_empty();
    match keeps_shell && (is_alone || is_chain && has_only_and) {
        true => commands.to_vec(),
        false => [b"(", commands, b")"].concat(),
    }
}

/// Returns the script that a command calls: `npm run build`, `yarn build`, without arguments for the script.
fn called_script<'c>(words: &[&'c [u8]]) -> Option<&'c [u8]> {
    let is_silent = |word: &&&[u8]| matches!(**word, b"-s" | b"--silent");
    let words: Vec<&[u8]> = words.iter().filter(|word| !is_silent(word)).copied().collect();
    match words[..] {
        [b"npm", b"run" | b"run-script", script] | [b"pnpm" | b"yarn", b"run", script] if !script.starts_with(b"-") => {
            Some(script)
        }
        [b"npm", b"t"] => Some(b"test"),
        [b"npm" | b"pnpm" | b"yarn", script @ (b"test" | b"start")] => Some(script),
        _ => None,
    }
}

/// The commands of a script, and the operators between them.
#[derive(Default)]
struct Parts {
    commands: Vec<Range<usize>>,
    operators: Vec<Range<usize>>,
}

impl Parts {
    /// Splits the text of a JSON string: `\"` in it is a quote of the shell.
    fn of(text: &[u8]) -> Parts {
        let mut parts = Parts::default();
        let (mut at, mut start, mut quote) = (0, 0, None);
        while at < text.len() {
            let (byte, length) = match text[at..] {
                [b'\\', next, ..] => (if next == b'"' { next } else { b' ' }, 2),
                _ => (text[at], 1),
            };
            match quote {
                Some(open) if open == byte => quote = None,
                Some(_) => {}
                None if matches!(byte, b'"' | b'\'') => quote = Some(byte),
                None if b"&|;()".contains(&byte) => {
                    parts.commands.push(trimmed(text, start..at));
                    let doubled = usize::from(text.get(at + 1) == Some(&byte) && b"&|".contains(&byte));
                    parts.operators.push(at..at + 1 + doubled);
                    at += 1 + doubled;
                    start = at;
                    continue;
                }
                None => {}
            }
            at += length;
        }
        parts.commands.push(trimmed(text, start.min(text.len())..text.len()));
        parts
    }
}

/// Returns a range without the blanks at its ends.
fn trimmed(text: &[u8], range: Range<usize>) -> Range<usize> {
    let inside = &text[range.clone()];
    let start = range.start + inside.len() - inside.trim_ascii_start().len();
    start..start + inside.trim_ascii().len()
}

fn words(command: &[u8]) -> Vec<&[u8]> {
    command.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect()
}

fn names(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Returns the entries of the object `scripts` at the top of a package.
fn scripts(text: &[u8]) -> Option<Vec<Script<'_>>> {
    let mut found = Vec::new();
    // The keys of the objects around a position; `None` in an array.
    let mut around: Vec<Option<&[u8]>> = Vec::new();
    let (mut at, mut key): (usize, Option<&[u8]>) = (0, None);
    while at < text.len() {
        match text[at] {
            b'"' => {
                let end = string_end(text, at)?;
                let range = at + 1..end;
                at = end + 1;
                let is_key = key.is_none() && text[at..].trim_ascii_start().starts_with(b":");
                if is_key {
                    key = Some(&text[range]);
                } else {
                    if let (Some(name), [_, Some(b"scripts")]) = (key, &around[..]) {
                        found.push(Script { name, range });
                    }
                    key = None;
                }
                continue;
            }
            b'{' => around.push(key.take().or(Some(b""))),
            b'[' => {
                around.push(None);
                key = None;
            }
            b'}' | b']' => {
                around.pop()?;
                key = None;
            }
            b',' => key = None,
            _ => {}
        }
        at += 1;
    }
    (around.is_empty() && !found.is_empty()).then_some(found)
}

/// Returns where the string that begins at a position ends.
fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match text.get(at)? {
            b'"' => break Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::advice::edit::spliced;

    fn edited(scripts: &str) -> Option<String> {
        let rewrite = PackageRewrite { scripts: [&b"a"[..], b"b", b"test"].map(<[u8]>::to_vec).into() };
        let text = format!("{{\"name\": \"x\", \"scripts\": {{{scripts}}}, \"a\": {{\"b\": \"npm run a\"}}}}");
        let splices = rewrite.splices(text.as_bytes()).ok()?;
        let edited = String::from_utf8(spliced(text.as_bytes(), &splices)).unwrap();
        let inside = edited
            .strip_prefix("{\"name\": \"x\", \"scripts\": {")?
            .strip_suffix("}, \"a\": {\"b\": \"npm run a\"}}")?;
        Some(inside.to_owned())
    }

    #[test]
    fn calls_become_commands() {
        for (scripts, expected) in [
            (
                r#""c": "npm run a && npm run -s b", "a": "x \"y z\"", "b": "y""#,
                Some(r#""c": "x \"y z\" && y", "a": "x \"y z\"", "b": "y""#),
            ),
            (r#""c": "npm run a", "a": "npm run b && x", "b": "y""#, Some(r#""c": "y && x", "a": "y && x", "b": "y""#)),
            (r#""c": "npm run a && z", "a": "x || y""#, Some(r#""c": "(x || y) && z", "a": "x || y""#)),
            (r#""c": "npm run a && z", "a": "cd x && y""#, Some(r#""c": "(cd x && y) && z", "a": "cd x && y""#)),
            (r#""c": "npm run a; z", "a": "x && y""#, Some(r#""c": "(x && y); z", "a": "x && y""#)),
            (r#""c": "npm test & wait", "test": "x""#, Some(r#""c": "x & wait", "test": "x""#)),
            (r#""c": "npm run a -- --fix", "a": "x""#, None),
            (r#""c": "npm run a", "prea": "y", "a": "x""#, None),
            (r#""a": "npm run a""#, None),
            (r#""a": "npm run b", "b": "npm run a""#, None),
            (r#""c": "npm run d", "d": "x""#, None),
            (r#""c": "echo 'x && npm run a'", "a": "x""#, None),
            (r#""c": "npm run a", "a": "x $npm_lifecycle_event""#, None),
        ] {
            assert_eq!(edited(scripts).as_deref(), expected, "{scripts}");
        }
    }
}
