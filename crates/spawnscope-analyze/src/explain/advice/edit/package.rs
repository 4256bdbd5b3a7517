//! Edits of `package.json`: a script that calls `npm run` for another script gets the commands of
//! that script. Parts of the file are copied with the escapes that they have, so that the file
//! stays valid.

use std::collections::BTreeSet;
use std::ops::Range;

use super::command::string_length;
use super::embedded::Code;
use super::{EditRefusal, Splice, difference, in_order, limited, refuse, refuse_if, splice, spliced};
use crate::explain::advice::phrases::name;
use crate::patterns::programs::has_property;
use crate::patterns::script::{Kind, Script};
use crate::patterns::words::{Words, contains};

/// Scripts that call each other more deeply are not replaced.
const MAX_DEPTH: usize = 8;

/// The calls that package scripts made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::explain::advice) struct PackageRewrite {
    /// The names of the scripts that were called by a runner in another script.
    pub(in crate::explain::advice) scripts: BTreeSet<Vec<u8>>,
    /// The programs of the package that `npx` started.
    pub(in crate::explain::advice) programs: BTreeSet<Vec<u8>>,
}

/// A script of the package.
pub(super) struct Entry<'t> {
    name: &'t [u8],
    /// Where its commands are, without the quotes.
    pub(super) range: Range<usize>,
}

const LIMITS: [&str; 2] = [
    "the runner no longer prints each command",
    "what the scripts launch then finds the name of the outer script in `npm_lifecycle_event`",
];

impl PackageRewrite {
    pub(super) fn splices(&self, text: &[u8]) -> Result<Vec<Splice>, EditRefusal> {
        let Some(scripts) = scripts(text) else { return refuse("the file has no scripts that Spawnscope can read") };
        let mut splices = Vec::new();
        for script in &scripts {
            let Some(code) = Code::of_json(text, &script.range) else { continue };
            let expanded = self.expanded(text, &scripts, &[script.name], &code.text)?;
            if expanded != code.text {
                splices.extend(code.translated(vec![difference(&code.text, &expanded)])?);
            }
        }
        match splices.is_empty() {
            true => refuse("no script calls another one in a way that Spawnscope can replace"),
            false => Ok(limited(splices, &LIMITS)),
        }
    }

    /// Returns the commands of a script with those of the scripts that it calls. `callers` are the
    /// names of the scripts around it.
    fn expanded(
        &self,
        text: &[u8],
        all: &[Entry<'_>],
        callers: &[&[u8]],
        commands: &[u8],
    ) -> Result<Vec<u8>, EditRefusal> {
        let Some(shell) = Script::parse(commands) else { return Ok(commands.to_vec()) };
        let mut splices = Vec::new();
        for index in 0..shell.len() {
            let Some(simple) = shell.simple(index).filter(|simple| simple.assignments.is_empty()) else { continue };
            let words: Vec<Vec<u8>> = simple.words.iter().map(|word| word.literal().unwrap_or_default()).collect();
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            let program = program_of_npx(&words).filter(|at| self.programs.contains(words[*at]));
            splices.extend(program.map(|at| splice(simple.words[0].range.start..simple.words[at].range.start, "")));
            // npm adds the words after `--` to the text of the script.
            let dashes = words.iter().position(|word| *word == b"--").filter(|_| words[0] == b"npm");
            let own = dashes.unwrap_or(words.len());
            let Some(called) = called_script(&words[..own]).filter(|called| self.scripts.contains(*called)) else {
                continue;
            };
            let added = simple.words.get(own + 1).zip(simple.words.last());
            let added = added.map(|(first, last)| shell.source(&(first.range.start..last.range.end)));
            let parts = self.parts_of(text, all, callers, called, added.unwrap_or_default())?;
            if all.iter().all(|entry| entry.name != called)
                || !simple.redirections.is_empty() && (parts.len() > 1 || added.is_some())
            {
                continue;
            }
            let is_chain = shell_parts(commands).is_some_and(|(_, is_chain)| is_chain);
            let are_several = parts.len() > 1;
            let parts: Vec<Vec<u8>> = parts.into_iter().map(|part| grouped(part, is_chain || are_several)).collect();
            let joined = parts.join(&b" && "[..]);
            let text = if are_several && !is_chain { [b"(", &joined[..], b")"].concat() } else { joined };
            let end = simple.words.last().map_or(0, |word| word.range.end);
            splices.push(splice(shell.node(index).range.start..end, text));
        }
        Ok(spliced(commands, &in_order(splices)?))
    }

    /// Returns the commands of a script and of its hooks, without calls of scripts.
    fn parts_of(
        &self,
        text: &[u8],
        all: &[Entry<'_>],
        callers: &[&[u8]],
        called: &[u8],
        added: &[u8],
    ) -> Result<Vec<Vec<u8>>, EditRefusal> {
        if callers.contains(&called) || callers.len() == MAX_DEPTH {
            return refuse(format!("the script {} calls itself", name(called)));
        }
        let named = |hook: &[u8]| all.iter().find(|entry| entry.name == [hook, called].concat());
        let entries = [&b"pre"[..], b"", b"post"].into_iter().filter_map(named);
        let parts =
            entries.filter_map(|entry| Some((entry, Code::of_json(text, &entry.range)?))).map(|(entry, own)| {
                refuse_if(
                    contains(&own.text, b"npm_lifecycle"),
                    format!("the script {} reads its own name", name(called)),
                )?;
                let added = if entry.name == called { added } else { b"" };
                let blank: &[u8] = if added.is_empty() { b"" } else { b" " };
                self.expanded(text, all, &[callers, &[called]].concat(), &[&own.text, blank, added].concat())
            });
        parts.collect()
    }
}

/// Returns the number of commands in shell code, and whether they are only joined by `&&`. `None`
/// if they change the shell.
fn shell_parts(commands: &[u8]) -> Option<(usize, bool)> {
    let shell = Script::parse(commands)?;
    let changes = |index: usize| {
        let simple = shell.simple(index);
        simple.is_some_and(|simple| {
            simple.words.first().is_none_or(|word| word.literal().is_none_or(|word| has_property(&word, "lasts")))
        })
    };
    let count = (0..shell.len())
        .filter(|index| !matches!(shell.node(*index).kind, Kind::List { .. } | Kind::Pipeline { .. }))
        .count();
    let pipelines: Vec<usize> = if shell.len() > 0 { shell.children(0).collect() } else { Vec::new() };
    let is_and = |pair: &[usize]| {
        let between = shell.node(pair[0]).range.end..shell.node(pair[1]).range.start;
        shell.source(&between).trim_ascii() == b"&&"
    };
    let is_whole = shell.len() > 0 && shell.node(0).range.end == commands.trim_ascii_end().len();
    let is_chain = is_whole && pipelines.windows(2).all(is_and);
    (!(0..shell.len()).any(changes)).then_some((count, is_chain))
}

/// Returns commands in a form that can be joined to others.
fn grouped(commands: Vec<u8>, are_joined_by_and: bool) -> Vec<u8> {
    match shell_parts(&commands) {
        Some((1, _)) => commands,
        Some((_, true)) if are_joined_by_and => commands,
        _ => [b"(", &commands[..], b")"].concat(),
    }
}

/// Returns the script that a command calls: `npm run build`, `yarn build`, without arguments for
/// the script.
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

/// Returns the position of the program among the words of a call of npx. The options before it do
/// not change what it does.
pub(in crate::explain::advice) fn program_of_npx(words: &[&[u8]]) -> Option<usize> {
    const OPTIONS: Words = Words("--no --no-install --offline --prefer-offline --yes -y");
    let options = words.iter().skip(1).take_while(|word| OPTIONS.contains(word)).count();
    (words.first()? == b"npx" && words.get(1 + options)?.first() != Some(&b'-')).then_some(1 + options)
}

/// Returns the entries of the object `scripts` at the top of a package.
pub(super) fn scripts(text: &[u8]) -> Option<Vec<Entry<'_>>> {
    let mut found = Vec::new();
    // The keys of the objects around a position; `None` in an array.
    let mut around: Vec<Option<&[u8]>> = Vec::new();
    let (mut at, mut key): (usize, Option<&[u8]>) = (0, None);
    while at < text.len() {
        match text[at] {
            b'"' => {
                let end = at + 1 + string_length(&text[at + 1..], b'"')?;
                let range = at + 1..end;
                at = end + 1;
                let is_key = key.is_none() && text[at..].trim_ascii_start().starts_with(b":");
                if is_key {
                    key = Some(&text[range]);
                } else {
                    if let (Some(name), [_, Some(b"scripts")]) = (key, &around[..]) {
                        found.push(Entry { name, range });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::advice::edit::spliced;

    fn edited(scripts: &str) -> Option<String> {
        let rewrite = PackageRewrite {
            scripts: [&b"a"[..], b"b", b"test"].map(<[u8]>::to_vec).into(),
            programs: [b"x".to_vec()].into(),
        };
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
            (r#""c": "npm run a -- --fix $f", "a": "x""#, Some(r#""c": "x --fix $f", "a": "x""#)),
            (
                r#""c": "npm run a -- --fix", "a": "npm run b", "b": "x""#,
                Some(r#""c": "npm run b --fix", "a": "x", "b": "x""#),
            ),
            (
                r#""c": "npm run a -- 'b c' && y", "prea": "y", "a": "x && z""#,
                Some(r#""c": "y && x && z 'b c' && y", "prea": "y", "a": "x && z""#),
            ),
            (r#""c": "npm run a", "prea": "y", "a": "x""#, Some(r#""c": "y && x", "prea": "y", "a": "x""#)),
            (
                r#""c": "npm run a || z", "prea": "y", "a": "x; y", "posta": "z""#,
                Some(r#""c": "(y && (x; y) && z) || z", "prea": "y", "a": "x; y", "posta": "z""#),
            ),
            (
                r#""c": "npx x 1 && npx y 2 && npx -q x && npx --no -y x $f""#,
                Some(r#""c": "x 1 && npx y 2 && npx -q x && x $f""#),
            ),
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
