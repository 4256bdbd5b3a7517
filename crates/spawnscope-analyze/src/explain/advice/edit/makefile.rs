//! Edits of makefiles: a variable that is defined with `=` as the output of a command becomes one
//! that is evaluated once, with `:=`. The variable may be in an included makefile, and may call a
//! function of the makefile.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{
    Result, Splice, inserted, limited, line_end, make_functions, or_refuse, refuse, refuse_for, refuse_if, splice,
};
use crate::explain::advice::phrases::{EVALUATED_LIMIT, name};
use crate::patterns::words::{Words, fits};

/// Calls of functions within functions are followed this deep.
const MAX_FUNCTIONS: usize = 8;
const FUNCTIONS: Words = Words(
    "abspath addprefix addsuffix basename call dir filter filter-out findstring firstword foreach if join lastword notdir or patsubst realpath
     shell sort strip subst",
);

/// Commands whose output make read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MakeRewrite {
    /// The texts of the commands, as the shell got them, or the words of commands that make
    /// executed directly, joined by blanks.
    pub(crate) commands: BTreeSet<Vec<u8>>,
    /// Those that may print something else the next time.
    pub(crate) unstable: BTreeSet<Vec<u8>>,
}

/// A definition of a variable.
struct Definition<'t> {
    name: &'t [u8],
    /// Without the blanks around it.
    operator: &'t [u8],
    value: &'t [u8],
    /// Where the operator is in the makefile.
    operator_at: usize,
    /// Where the definition begins and ends, without the newline.
    start: usize,
    end: usize,
}

impl MakeRewrite {
    /// Returns the rewrites of the makefiles that a makefile includes, with their names.
    pub(super) fn included(&self, makefile: &[u8]) -> Vec<(Vec<u8>, IncludedRewrite)> {
        let mut found = Vec::new();
        let mut at = 0;
        for line in makefile.split_inclusive(|byte| *byte == b'\n') {
            let [before, after] = [&makefile[..at], &makefile[at + line.len()..]].map(<[u8]>::to_vec);
            at += line.len();
            let name = line.strip_prefix(b"include ").map_or(&b""[..], <[u8]>::trim_ascii);
            if !name.is_empty() && name.iter().all(|byte| is_name_byte(*byte) || *byte == b'/') {
                found.push((name.to_vec(), IncludedRewrite { rewrite: self.clone(), before, after }));
            }
        }
        found
    }

    pub(super) fn splices(&self, text: &[u8]) -> Result<Vec<Splice>> {
        let (mut splices, replaced) = make_functions::splices(&self.commands, text);
        let all = definitions(text);
        let mut refusal = None;
        for definition in all.iter().filter(|each| matches!(each.operator, b"=" | b"?=")) {
            let evaluated = |each: &Definition<'_>| {
                self.commands.difference(&replaced).filter(|command| each.evaluates(command, &all)).collect::<Vec<_>>()
            };
            if evaluated(definition).is_empty() {
                continue;
            }
            // What is added to it is then evaluated where it is added, too.
            let is_part = |each: &&Definition<'_>| each.start == definition.start || definition.is_extended_by(each);
            let checked = all.iter().filter(is_part).try_for_each(|each| {
                self.check_commands(each, &all)?;
                check(text, &all, each)?;
                let texts = evaluated(each).into_iter().map(Vec::as_slice).chain([each.value]);
                check_files(text, &name(each.name), &texts.collect::<Vec<_>>())
            });
            match checked.and_then(|()| check_extensions(text, &all, definition)) {
                Ok(()) => splices.extend(limited(splices_of(definition), &[EVALUATED_LIMIT])),
                Err(other) => refusal = Some(other),
            }
        }
        let command = self.commands.first().map(|command| name(command)).unwrap_or_default();
        match (splices.is_empty(), refusal) {
            (false, _) => Ok(splices),
            (true, Some(refusal)) => Err(refusal),
            (true, None) => refuse(format!("the makefile does not define a variable as `= $(shell {command})`")),
        }
    }

    /// Checks that a definition always runs the same command, which always prints the same.
    fn check_commands(&self, definition: &Definition<'_>, all: &[Definition<'_>]) -> Result<()> {
        let own = name(definition.name);
        let commands = self.commands.iter().filter(|command| definition.evaluates(command, all));
        let unstable = commands.clone().find(|command| self.unstable.contains(*command));
        refuse_for(unstable.map(|command| format!("`{own}`: {} may print something else each time", name(command))))?;
        // A value with a loop, or with several calls, runs several commands wherever it is used.
        let is_fixed = bound_in(definition.value).next().is_some() || commands.count() <= definition.codes(all).len();
        refuse_if(!is_fixed, format!("`{own}` depends on where it is used"))
    }
}

/// How to rewrite a makefile that another one includes, with the text around it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IncludedRewrite {
    rewrite: MakeRewrite,
    before: Vec<u8>,
    after: Vec<u8>,
}

impl IncludedRewrite {
    pub(super) fn splices(&self, text: &[u8]) -> Result<Vec<Splice>> {
        let own = self.before.len()..self.before.len() + text.len();
        let all = self.rewrite.splices(&[&self.before, text, &self.after].concat())?;
        let all = all.into_iter().filter(|each| own.start <= each.range.start && each.range.end <= own.end);
        let splices: Vec<Splice> = all
            .map(|each| Splice { range: each.range.start - own.start..each.range.end - own.start, ..each })
            .collect();
        refuse_if(splices.is_empty(), "the makefile defines no variable as the output of these commands")?;
        Ok(splices)
    }
}

fn splices_of(definition: &Definition<'_>) -> Vec<Splice> {
    let operator = definition.operator_at..definition.operator_at + definition.operator.len();
    let once = splice(operator, b":=");
    if definition.operator == b"=" {
        return vec![once];
    }
    let condition = [b"ifeq ($(origin ", definition.name, b"),undefined)\n"].concat();
    let before = inserted(definition.start, condition);
    let after = inserted(definition.end, b"\nendif");
    vec![before, once, after]
}

/// Returns the definitions of variables in a makefile.
fn definitions(text: &[u8]) -> Vec<Definition<'_>> {
    let mut found = Vec::new();
    let (mut at, mut is_inside) = (0, false);
    while at < text.len() {
        let start = at;
        let mut end = line_end(text, at);
        while end < text.len() && text[start..end].ends_with(b"\\") {
            end = line_end(text, end + 1);
        }
        at = end + 1;
        let line = &text[start..end];
        let words = line.trim_ascii_start();
        if words.starts_with(b"define ") || words.starts_with(b"endef") {
            is_inside = words.starts_with(b"define ");
        } else if !is_inside && !line.starts_with(b"\t") && !words.starts_with(b"#") {
            found.extend(definition(text, start, end));
        }
    }
    found
}

/// Reads `NAME = value`, also after `export` and `override`.
fn definition(text: &[u8], start: usize, end: usize) -> Option<Definition<'_>> {
    let line = &text[start..end];
    let equals = line.iter().position(|byte| *byte == b'=')?;
    let operator = line[..equals].iter().rposition(|byte| !b":?+!".contains(byte)).map_or(0, |last| last + 1);
    let words: Vec<&[u8]> = line[..operator].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    let (name, modifiers) = words.split_last()?;
    let is_name = name.iter().all(|byte| is_name_byte(*byte));
    let is_plain = modifiers.iter().all(|word| matches!(*word, b"export" | b"override"));
    let definition = Definition {
        name,
        operator: &line[operator..=equals],
        value: line[equals + 1..].trim_ascii(),
        operator_at: start + operator,
        start,
        end,
    };
    (is_name && is_plain).then_some(definition)
}

impl<'t> Definition<'t> {
    /// Whether the value contains `$(shell command)`, or calls a function that does.
    fn evaluates(&self, command: &[u8], all: &[Definition<'t>]) -> bool {
        self.codes(all).iter().any(|code| can_be(code, command))
    }

    /// Whether another definition adds to this one: `NAME += value`.
    fn is_extended_by(&self, other: &Definition<'_>) -> bool {
        other.name == self.name && other.operator == b"+=" && other.start > self.start
    }

    /// Returns the commands of each `$(shell COMMAND)` in the value and in the functions that it
    /// calls.
    fn codes(&self, all: &[Definition<'t>]) -> Vec<&'t [u8]> {
        let all = functions(self.value, all, usize::MAX, MAX_FUNCTIONS).unwrap_or_default();
        [&[self.value], &all[..]].concat().into_iter().flat_map(shell_calls).map(|(_, code)| code).collect()
    }
}

/// Returns the values of the functions that a value calls, and of those that they call. `None` if
/// one of them is not defined before a position.
fn functions<'t>(value: &'t [u8], all: &[Definition<'t>], before: usize, depth: usize) -> Option<Vec<&'t [u8]>> {
    let mut found = Vec::new();
    for called in called_in(value) {
        let function = all.iter().find(|each| each.name == called && each.start < before)?;
        found.push(function.value);
        found.extend(functions(function.value, all, before, depth.checked_sub(1)?)?);
    }
    Some(found)
}

/// Returns the functions that a value calls: `$(call NAME,ARGUMENT)`.
fn called_in(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let calls = expansions(value).filter(|expansion| expansion.name == b"call");
    calls.filter_map(|expansion| Some(expansion.after.split(|byte| b",)}".contains(byte)).next()?.trim_ascii()))
}

/// What make expands, such as `$(NAME)`, `$(shell COMMAND)` or `$@`.
struct Expansion<'t> {
    at: usize,
    /// What is before the name.
    open: u8,
    name: &'t [u8],
    /// What follows the name.
    after: &'t [u8],
}

/// Iterates over the expansions in a text, also those within others.
fn expansions(text: &[u8]) -> impl Iterator<Item = Expansion<'_>> {
    let mut next = 0;
    let found = std::iter::from_fn(move || {
        let at = next + text.get(next..)?.iter().position(|byte| *byte == b'$')?;
        next = at + 2;
        let (open, rest) = text[at + 1..].split_first()?;
        let (name, after) = rest.split_at(rest.iter().take_while(|byte| is_name_byte(**byte)).count());
        Some(Expansion { at, open: *open, name, after })
    });
    found.filter(|expansion| expansion.open != b'$')
}

/// Iterates over the calls of `$(shell COMMAND)`, with their commands.
pub(super) fn shell_calls(text: &[u8]) -> impl Iterator<Item = (Range<usize>, &[u8])> {
    let is_call = |each: &Expansion<'_>| b"({".contains(&each.open) && each.name == b"shell";
    let calls = expansions(text).filter(is_call).filter(|each| each.after.starts_with(b" "));
    calls.filter_map(|Expansion { at, .. }| {
        let inside = call_at(text, at)?;
        Some((at..at + inside.len() + 3, &inside[b"shell ".len()..]))
    })
}

/// Returns the length of an expansion: `$@`, `$(NAME)`. `None` if it has no end.
pub(super) fn expansion_length(text: &[u8]) -> Option<usize> {
    let is_call = matches!(text.get(1)?, b'(' | b'{');
    Some(if is_call { call_at(text, 0)?.len() + 3 } else { 2 })
}

/// Whether a byte may be in the name of a variable of make.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

/// Returns what is between the parentheses of a call.
fn call_at(text: &[u8], at: usize) -> Option<&[u8]> {
    let (open, close) = if text.get(at + 1)? == &b'(' { (b'(', b')') } else { (b'{', b'}') };
    let mut depth = 0_usize;
    for (end, byte) in text.iter().enumerate().skip(at + 1) {
        if *byte == open {
            depth += 1;
        } else if *byte == close {
            depth -= 1;
            if depth == 0 {
                return Some(&text[at + 2..end]);
            }
        }
    }
    None
}

/// Whether make may have executed a command for this text. make replaces variables, and removes
/// quotes if it needs no shell.
pub(super) fn can_be(text: &[u8], command: &[u8]) -> bool {
    let text = plain(text);
    let (mut parts, mut at) = (Vec::new(), 0);
    while let Some(byte) = text.get(at..=at) {
        let is_expanded = byte == b"$" && text.get(at + 1) != Some(&b'$');
        parts.push((!is_expanded).then_some(byte));
        at += match is_expanded {
            true => expansion_length(&text[at..]).unwrap_or(2),
            false => 1 + usize::from(byte == b"$"),
        };
    }
    fits(parts, &plain(command))
}

/// Returns a text without quotes, and with single blanks.
fn plain(text: &[u8]) -> Vec<u8> {
    let words = text.split(|byte| byte.is_ascii_whitespace() || *byte == b'\\').filter(|word| !word.is_empty());
    let words: Vec<Vec<u8>> =
        words.map(|word| word.iter().copied().filter(|byte| !b"'\"".contains(byte)).collect()).collect();
    words.join(&b' ')
}

/// Checks that the value is the same when it is evaluated where it is defined.
fn check(makefile: &[u8], all: &[Definition<'_>], definition: &Definition<'_>) -> Result<()> {
    let own = name(definition.name);
    let called = functions(definition.value, all, definition.start, MAX_FUNCTIONS);
    let called = or_refuse(called, format!("`{own}` calls a function that is not defined before it"))?;
    // The parameters of a function are in its calls.
    let of_functions = called.into_iter().flat_map(expansions);
    let of_functions = of_functions.filter(|each| !each.name.iter().all(u8::is_ascii_digit) || each.name.is_empty());
    for Expansion { open, name: used, .. } in expansions(definition.value).chain(of_functions) {
        let is_of_place = !matches!(open, b'(' | b'{') || used == b"eval";
        // The parameters of functions are numbers.
        let is_parameter = used.iter().all(u8::is_ascii_digit);
        refuse_if(is_of_place || is_parameter, format!("`{own}` depends on where it is used"))?;
        let is_defined = all.iter().any(|other| other.name == used);
        if bound_in(definition.value).any(|bound| bound == used) && !is_defined {
            continue;
        }
        let is_later = all.iter().any(|other| other.name == used && other.start >= definition.start)
            || is_set_for_a_target(makefile, used);
        let may_be_included = !is_defined && has_include_after(makefile, definition.end) && !FUNCTIONS.contains(used);
        refuse_if(is_later || may_be_included, format!("`{own}` uses `{}`, which may be set later", name(used)))?;
    }
    Ok(())
}

/// Checks that all that is added to a variable is evaluated where it is added, and nowhere else.
fn check_extensions(makefile: &[u8], all: &[Definition<'_>], definition: &Definition<'_>) -> Result<()> {
    let own = definition.name;
    let is_extended = all.iter().any(|each| definition.is_extended_by(each));
    let is_unclear = definition.operator == b"?=" || has_include_after(makefile, definition.end);
    refuse_if(
        is_extended && is_unclear || is_set_for_a_target(makefile, own),
        format!("`{}` is extended elsewhere", name(own)),
    )
}

/// Checks that nothing changes the files that a value and its commands name.
fn check_files(makefile: &[u8], own: &str, texts: &[&[u8]]) -> Result<()> {
    let words = texts.iter().flat_map(|text| text.split(|byte| b" \t()<>|;'\"".contains(byte)));
    let files: BTreeSet<&[u8]> = words.filter(|word| word.len() > 1 && !word.starts_with(b"-")).collect();
    let made = files.iter().find(|word| is_target(makefile, word) || is_in_recipe(makefile, word));
    refuse_for(made.map(|made| format!("`{own}` reads {}, which a rule may change", name(made))))?;
    let of_kernel = |word: &&&[u8]| [&b"/dev/"[..], b"/proc/", b"/sys/"].iter().any(|place| word.starts_with(place));
    let changing = files.iter().find(|word| of_kernel(word) && **word != b"/dev/null");
    refuse_for(changing.map(|file| format!("{} changes by itself", name(file))))
}

/// Returns the variables of the loops in a value: `$(foreach NAME,LIST,TEXT)`.
fn bound_in(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let loops = expansions(value).filter(|expansion| expansion.name == b"foreach");
    loops.filter_map(|expansion| Some(expansion.after.split(|byte| *byte == b',').next()?.trim_ascii()))
}

/// Returns the targets of the rule on a line, and what follows the colon.
fn rule_of(line: &[u8]) -> Option<[&[u8]; 2]> {
    let is_rule = !line.starts_with(b"\t") && !line.starts_with(b"#");
    let colon = line.iter().position(|byte| *byte == b':').filter(|_| is_rule)?;
    (line.get(colon + 1) != Some(&b'=')).then(|| [&line[..colon], &line[colon + 1..]])
}

fn rules(makefile: &[u8]) -> impl Iterator<Item = [&[u8]; 2]> {
    makefile.split(|byte| *byte == b'\n').filter_map(rule_of)
}

/// Whether a variable has another value for some targets: `debug: CFLAGS = -g`.
fn is_set_for_a_target(makefile: &[u8], variable: &[u8]) -> bool {
    rules(makefile).any(|[_, assigned]| {
        let value = assigned.trim_ascii_start().strip_prefix(variable).map(<[u8]>::trim_ascii_start);
        value.is_some_and(|value| value.iter().find(|byte| !b":?+!".contains(byte)) == Some(&b'='))
    })
}

/// Whether a rule of the makefile makes a file.
fn is_target(makefile: &[u8], file: &[u8]) -> bool {
    rules(makefile).any(|[targets, _]| targets.split(u8::is_ascii_whitespace).any(|target| target == file))
}

/// Whether a recipe names a file, and so may write it. A word that may also be the name of a
/// program must be where output goes.
fn is_in_recipe(makefile: &[u8], file: &[u8]) -> bool {
    let is_name = file.iter().any(|byte| b"./".contains(byte) || byte.is_ascii_uppercase());
    makefile.split(|byte| *byte == b'\n').filter_map(recipe_of).any(|recipe| {
        let recipe = String::from_utf8_lossy(recipe).replace('>', " > ");
        let words: Vec<&str> =
            recipe.split([' ', '\t', '<', '|', ';', '\'', '"', '&', '`']).filter(|word| !word.is_empty()).collect();
        (0..words.len()).any(|at| words[at].as_bytes() == file && (is_name || at > 0 && words[at - 1] == ">"))
    })
}

/// Returns the recipe on a line: after a tab, or after the `;` of a rule.
fn recipe_of(line: &[u8]) -> Option<&[u8]> {
    let of_rule = || rule_of(line)?[1].splitn(2, |byte| *byte == b';').nth(1);
    line.strip_prefix(b"\t").or_else(of_rule)
}

fn has_include_after(makefile: &[u8], at: usize) -> bool {
    let mut lines = makefile[at.min(makefile.len())..].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start);
    lines.any(|line| [&b"include "[..], b"-include ", b"sinclude "].iter().any(|word| line.starts_with(word)))
}
