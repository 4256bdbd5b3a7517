//! Edits of `package.json`: a script that calls `npm run` for another script gets the commands of
//! that script. Parts of the file are copied with the escapes that they have, so that the file
//! stays valid.

use std::collections::BTreeSet;
use std::ops::Range;

use super::embedded::Code;
use super::{Result, Splice, difference, in_order, limited, or_refuse, refuse_if, splice, spliced};
use crate::explain::advice::phrases::name;
use crate::patterns::programs::has_property;
use crate::patterns::script::{Kind, Script, span};
use crate::patterns::words::{Words, contains, string_length};

/// Scripts that call each other more deeply are not replaced.
const MAX_DEPTH: usize = 8;

/// The calls that package scripts made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PackageRewrite {
    /// The names of the scripts that were called by a runner in another script.
    pub(crate) scripts: BTreeSet<Vec<u8>>,
    /// The programs of the package that `npx` started.
    pub(crate) programs: BTreeSet<Vec<u8>>,
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
    pub(super) fn splices(&self, text: &[u8]) -> Result<Vec<Splice>> {
        let scripts = or_refuse(scripts(text), "the file has no scripts that Spawnscope can read")?;
        let mut splices = Vec::new();
        for script in &scripts {
            let Some(code) = Code::of_json(text, &script.range) else { continue };
            let expanded = self.expanded(text, &scripts, &[script.name], &code.text)?;
            if expanded != code.text {
                splices.extend(code.translated(vec![difference(&code.text, &expanded)])?);
            }
        }
        refuse_if(splices.is_empty(), "no script calls another one in a way that Spawnscope can replace")?;
        Ok(limited(splices, &LIMITS))
    }

    /// Returns the commands of a script with those of the scripts that it calls. `callers` are the
    /// names of the scripts around it.
    fn expanded(&self, text: &[u8], all: &[Entry<'_>], callers: &[&[u8]], commands: &[u8]) -> Result<Vec<u8>> {
        let Some(shell) = Script::parse(commands) else { return Ok(commands.to_vec()) };
        let mut splices = Vec::new();
        for index in 0..shell.len() {
            let Some(simple) = shell.simple(index).filter(|simple| simple.assignments.is_empty()) else { continue };
            let words = simple.texts();
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            let program = program_of_npx(&words).filter(|at| self.programs.contains(words[*at]));
            splices.extend(program.map(|at| splice(simple.words[0].range.start..simple.words[at].range.start, "")));
            // npm adds the words after `--` to the text of the script.
            let dashes = words.iter().position(|word| *word == b"--").filter(|_| words[0] == b"npm");
            let own = dashes.unwrap_or(words.len());
            let is_own = |called: &&[u8]| {
                let is_script = self.scripts.contains(*called) && all.iter().any(|entry| entry.name == *called);
                is_script && !is_elsewhere(&shell, index)
            };
            let Some(called) = called_script(&words[..own]).filter(is_own) else { continue };
            let added = shell.source(&span(simple.words.get(own + 1..).unwrap_or_default()));
            let parts = self.parts_of(text, all, callers, called, added)?;
            let are_several = parts.len() > 1;
            let is_redirected = !simple.redirections.is_empty() && (are_several || !added.is_empty());
            if is_redirected {
                continue;
            }
            let is_chain = shell_parts(commands).is_some_and(|(_, is_chain)| is_chain);
            let parts: Vec<Vec<u8>> = parts.into_iter().map(|part| grouped(part, is_chain || are_several)).collect();
            let joined = parts.join(&b" && "[..]);
            let text = if are_several && !is_chain { [b"(", &joined[..], b")"].concat() } else { joined };
            splices.push(splice(shell.start(index)..span(&simple.words).end, text));
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
    ) -> Result<Vec<Vec<u8>>> {
        let is_recursive = callers.contains(&called) || callers.len() == MAX_DEPTH;
        refuse_if(is_recursive, format!("the script {} calls itself", name(called)))?;
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

/// Whether a command runs in another directory, in which the scripts are those of another package:
/// `cd packages/a && npm run test`.
fn is_elsewhere(shell: &Script<'_>, command: usize) -> bool {
    let subshells = |index: usize| shell.ancestors(index).filter(|each| matches!(shell.kind(*each), Kind::Subshell));
    let has_same_shell = |other: usize| subshells(other).all(|each| subshells(command).any(|own| own == each));
    (0..command).any(|other| {
        let program = shell.simple(other).and_then(|_| shell.program(other));
        program.is_some_and(|program| matches!(&program[..], b"cd" | b"popd" | b"pushd")) && has_same_shell(other)
    })
}

/// Returns the number of commands in shell code, and whether they are only joined by `&&`. `None`
/// if they change the shell.
fn shell_parts(commands: &[u8]) -> Option<(usize, bool)> {
    let shell = Script::parse(commands)?;
    let changes = |index: usize| {
        shell.simple(index).is_some() && shell.program(index).is_none_or(|program| has_property(&program, "lasts"))
    };
    let is_command = |index: &usize| !matches!(shell.kind(*index), Kind::List { .. } | Kind::Pipeline { .. });
    let count = (0..shell.len()).filter(is_command).count();
    let pipelines: Vec<usize> = shell.children(0).collect();
    let is_and = |pair: &[usize]| shell.source(&(shell.end(pair[0])..shell.start(pair[1]))).trim_ascii() == b"&&";
    let is_whole = shell.len() > 0 && shell.end(0) == commands.trim_ascii_end().len();
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
pub(crate) fn program_of_npx(words: &[&[u8]]) -> Option<usize> {
    const OPTIONS: Words = Words("--no --no-install --offline --prefer-offline --yes -y");
    let options = words.iter().skip(1).take_while(|word| OPTIONS.contains(word)).count();
    (words.first()? == b"npx" && words.get(1 + options)?.first() != Some(&b'-')).then_some(1 + options)
}

/// Returns the entries of the object `scripts` at the top of a package.
pub(super) fn scripts(text: &[u8]) -> Option<Vec<Entry<'_>>> {
    let (mut found, mut depth, mut at) = (Vec::new(), 0_usize, 0);
    // The last key at the top of the package, and the last one in the object there.
    let mut keys: [&[u8]; 2] = [b"", b""];
    while at < text.len() {
        match text[at] {
            b'"' => {
                let range = at + 1..at + 1 + string_length(&text[at + 1..], b'"')?;
                at = range.end;
                let is_key = text[at + 1..].trim_ascii_start().starts_with(b":");
                match (depth, is_key) {
                    (1, true) => keys = [&text[range], b""],
                    (2, true) => keys[1] = &text[range],
                    (2, false) if keys[0] == b"scripts" => found.push(Entry { name: keys[1], range }),
                    _ => {}
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
    }
    (depth == 0 && !found.is_empty()).then_some(found)
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
            (
                r#""c": "(cd x && npm run a) && npm run a && cd y && npm run a", "a": "z""#,
                Some(r#""c": "(cd x && npm run a) && z && cd y && npm run a", "a": "z""#),
            ),
            (
                r#""test": "npm run a && cd x && npm test", "a": "y""#,
                Some(r#""test": "y && cd x && npm test", "a": "y""#),
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
