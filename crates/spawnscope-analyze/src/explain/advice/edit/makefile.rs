//! Edits of makefiles: a variable that is defined with `=` as the output of a command becomes one
//! that is evaluated once, with `:=`.

use std::collections::BTreeSet;

use super::{EditRefusal, Splice, limited, line_end, make_functions, refuse, refuse_if, splice};
use crate::explain::advice::phrases::{EVALUATED_LIMIT, name};
use crate::patterns::words::Words;

/// Commands whose output make read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::explain::advice) struct MakeRewrite {
    /// The texts of the commands, as the shell got them, or the words of commands that make
    /// executed directly, joined by blanks.
    pub(in crate::explain::advice) commands: BTreeSet<Vec<u8>>,
    /// Those that may print something else the next time.
    pub(in crate::explain::advice) unstable: BTreeSet<Vec<u8>>,
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
    pub(super) fn splices(&self, text: &[u8]) -> Result<Vec<Splice>, EditRefusal> {
        let (mut splices, replaced) = make_functions::splices(&self.commands, text);
        let all = definitions(text);
        let mut refusal = None;
        for definition in all.iter().filter(|each| matches!(each.operator, b"=" | b"?=")) {
            let commands = self.commands.difference(&replaced).filter(|command| definition.evaluates(command));
            let texts: Vec<&[u8]> = commands.map(Vec::as_slice).chain([definition.value]).collect();
            if texts.len() == 1 {
                continue;
            }
            let checked = self.check_commands(definition).and_then(|()| check(text, &all, definition));
            match checked.and_then(|()| check_files(text, &name(definition.name), &texts)) {
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
}

impl MakeRewrite {
    /// Checks that a definition always runs the same command, which always prints the same.
    fn check_commands(&self, definition: &Definition<'_>) -> Result<(), EditRefusal> {
        let own = name(definition.name);
        let mut all = self.commands.iter().filter(|command| definition.evaluates(command));
        if let Some(unstable) = all.clone().find(|command| self.unstable.contains(*command)) {
            return refuse(format!("`{own}`: {} may print something else each time", name(unstable)));
        }
        // A value with a loop runs several commands wherever it is used.
        let is_fixed = has_only_constant_calls(definition.value) || bound_in(definition.value).next().is_some();
        match all.nth(1).filter(|_| !is_fixed) {
            Some(_) => refuse(format!("`{own}` depends on where it is used")),
            None => Ok(()),
        }
    }
}

fn splices_of(definition: &Definition<'_>) -> Vec<Splice> {
    let operator = definition.operator_at..definition.operator_at + definition.operator.len();
    let once = splice(operator, b":=");
    if definition.operator == b"=" {
        return vec![once];
    }
    let condition = [b"ifeq ($(origin ", definition.name, b"),undefined)\n"].concat();
    let before = splice(definition.start..definition.start, condition);
    let after = splice(definition.end..definition.end, b"\nendif");
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
    let is_name = name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(byte));
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

impl Definition<'_> {
    /// Whether the value contains `$(shell command)`.
    fn evaluates(&self, command: &[u8]) -> bool {
        let value = self.value;
        let starts = (0..value.len())
            .filter(|at| value[*at..].starts_with(b"$(shell ") || value[*at..].starts_with(b"${shell "));
        starts.filter_map(|at| call_at(value, at)).any(|inside| can_be(&inside[b"shell ".len()..], command))
    }
}

/// Returns what is between the parentheses of a call.
pub(super) fn call_at(text: &[u8], at: usize) -> Option<&[u8]> {
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
    let command = plain(command);
    let mut rest = &command[..];
    let mut is_open = false;
    let mut at = 0;
    let text = plain(text);
    while at < text.len() {
        if text[at] == b'$' && text.get(at + 1) != Some(&b'$') {
            let is_call = matches!(text.get(at + 1), Some(b'(' | b'{'));
            at += if is_call { call_at(&text, at).map_or(2, |inside| inside.len() + 3) } else { 2 };
            is_open = true;
            continue;
        }
        let length = text[at..].iter().position(|byte| *byte == b'$').map_or(text.len() - at, |length| length.max(1));
        let literal = &text[at..at + length];
        at += length + usize::from(literal == b"$");
        let found = if is_open {
            rest.windows(literal.len()).position(|window| window == literal)
        } else {
            rest.starts_with(literal).then_some(0)
        };
        let Some(found) = found else { return false };
        rest = &rest[found + literal.len()..];
        is_open = false;
    }
    is_open || rest.is_empty()
}

/// Whether make expands nothing in a value but calls of `$(shell)` with constant commands.
fn has_only_constant_calls(value: &[u8]) -> bool {
    let value = name(value).replace("$$", "");
    let calls = ["$(shell ", "${shell "].iter().map(|call| value.matches(call).count());
    calls.sum::<usize>() == value.matches('$').count()
}

/// Returns a text without quotes, and with single blanks.
fn plain(text: &[u8]) -> Vec<u8> {
    let words = text.split(|byte| byte.is_ascii_whitespace() || *byte == b'\\').filter(|word| !word.is_empty());
    let words: Vec<Vec<u8>> =
        words.map(|word| word.iter().copied().filter(|byte| !b"'\"".contains(byte)).collect()).collect();
    words.join(&b' ')
}

/// Checks that the value is the same when it is evaluated where it is defined.
fn check(makefile: &[u8], all: &[Definition<'_>], definition: &Definition<'_>) -> Result<(), EditRefusal> {
    let own = name(definition.name);
    let mut at = 0;
    while let Some(dollar) = definition.value.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'$')) {
        at += dollar + 2;
        let next = definition.value.get(at - 1).copied().unwrap_or_default();
        if next == b'$' {
            continue;
        }
        let length = definition.value[at.min(definition.value.len())..]
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(byte))
            .count();
        let inside = definition.value.get(at..at + length).unwrap_or_default();
        refuse_if(
            !matches!(next, b'(' | b'{')
                || length == 0
                || inside.iter().all(u8::is_ascii_digit)
                || matches!(inside, b"call" | b"eval"),
            format!("`{own}` depends on where it is used"),
        )?;
        if bound_in(definition.value).any(|bound| bound == inside) && !all.iter().any(|other| other.name == inside) {
            continue;
        }
        let is_later = all.iter().any(|other| other.name == inside && other.start >= definition.start)
            || is_set_for_a_target(makefile, inside);
        let is_included = !all.iter().any(|other| other.name == inside) && has_include_after(makefile, definition.end);
        if is_later || is_included && !is_function(inside) {
            return refuse(format!("`{own}` uses `{}`, which may be set later", name(inside)));
        }
    }
    match all.iter().any(|other| other.name == definition.name && other.operator == b"+=") {
        true => refuse(format!("`{own}` is extended elsewhere")),
        false => Ok(()),
    }
}

/// Checks that nothing changes the files that a value and its commands name.
fn check_files(makefile: &[u8], own: &str, texts: &[&[u8]]) -> Result<(), EditRefusal> {
    let words = texts.iter().flat_map(|text| text.split(|byte| b" \t()<>|;'\"".contains(byte)));
    let files: BTreeSet<&[u8]> = words.filter(|word| word.len() > 1 && !word.starts_with(b"-")).collect();
    let made = files.iter().find(|word| is_target(makefile, word) || is_in_recipe(makefile, word));
    if let Some(made) = made {
        return refuse(format!("`{own}` reads {}, which a rule may change", name(made)));
    }
    let of_kernel = |word: &&&[u8]| [&b"/dev/"[..], b"/proc/", b"/sys/"].iter().any(|place| word.starts_with(place));
    match files.iter().find(|word| of_kernel(word) && **word != b"/dev/null") {
        Some(file) => refuse(format!("{} changes by itself", name(file))),
        None => Ok(()),
    }
}

/// Returns the variables of the loops in a value: `$(foreach NAME,LIST,TEXT)`.
fn bound_in(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    const FOREACH: &[u8] = b"foreach ";
    let starts = (2..value.len())
        .filter(|at| value[*at..].starts_with(FOREACH) && value[*at - 2] == b'$' && b"({".contains(&value[*at - 1]));
    starts.filter_map(|at| Some(value[at + FOREACH.len()..].split(|byte| *byte == b',').next()?.trim_ascii()))
}

/// Whether a variable has another value for some targets: `debug: CFLAGS = -g`.
fn is_set_for_a_target(makefile: &[u8], variable: &[u8]) -> bool {
    makefile.split(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"\t")).any(|line| {
        let colon = line.iter().position(|byte| *byte == b':');
        let assigned = colon.and_then(|colon| line.get(colon + 1..)).map(<[u8]>::trim_ascii_start);
        let value = assigned.and_then(|assigned| assigned.strip_prefix(variable)).map(<[u8]>::trim_ascii_start);
        value.is_some_and(|value| value.iter().find(|byte| !b":?+!".contains(byte)) == Some(&b'='))
    })
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
    let after = |byte: u8| line.iter().position(|each| *each == byte);
    match after(b';') {
        _ if line.starts_with(b"\t") => Some(&line[1..]),
        Some(semicolon) if after(b':').is_some_and(|colon| colon < semicolon) => Some(&line[semicolon + 1..]),
        _ => None,
    }
}

fn is_function(name: &[u8]) -> bool {
    const FUNCTIONS: Words = Words(
        "abspath addprefix addsuffix basename dir filter filter-out findstring firstword foreach if join lastword notdir or patsubst realpath
         shell sort strip subst",
    );
    FUNCTIONS.contains(name)
}

fn has_include_after(makefile: &[u8], at: usize) -> bool {
    let lines = makefile[at.min(makefile.len())..].split(|byte| *byte == b'\n');
    lines
        .map(<[u8]>::trim_ascii_start)
        .any(|line| [&b"include "[..], b"-include ", b"sinclude "].iter().any(|word| line.starts_with(word)))
}

/// Whether a rule of the makefile makes a file.
fn is_target(makefile: &[u8], file: &[u8]) -> bool {
    makefile.split(|byte| *byte == b'\n').any(|line| {
        let colon = line.iter().position(|byte| *byte == b':');
        let targets = colon.filter(|colon| line.get(colon + 1) != Some(&b'=')).map(|colon| &line[..colon]);
        let is_rule = !line.starts_with(b"\t") && !line.starts_with(b"#");
        is_rule && targets.is_some_and(|targets| targets.split(u8::is_ascii_whitespace).any(|target| target == file))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::advice::edit::spliced;

    fn edited(command: &str, makefile: &str) -> Option<String> {
        let rewrite = MakeRewrite { commands: [command.as_bytes().to_vec()].into(), ..MakeRewrite::default() };
        let splices = rewrite.splices(makefile.as_bytes()).ok()?;
        String::from_utf8(spliced(makefile.as_bytes(), &splices)).ok()
    }

    /// make itself must expand both makefiles to the same text.
    #[test]
    fn a_loop_of_functions_is_expanded_once() {
        let of = |makefile: &str| {
            let commands = ["cat a1", "cat b1"].map(|command| command.as_bytes().to_vec()).into();
            let splices = MakeRewrite { commands, ..MakeRewrite::default() }.splices(makefile.as_bytes());
            splices.map(|splices| String::from_utf8(spliced(makefile.as_bytes(), &splices)).unwrap())
        };
        let looped = "M = a1 b1\nV = $(foreach m,$(M),$(shell cat $(m)))\nall: ; @echo $(V) $(V)\n";
        let edited = of(looped).unwrap();
        assert_eq!(edited, looped.replace("V =", "V :="));
        let run = |makefile: &str| {
            let directory = tempfile::tempdir().unwrap();
            let write = |file: &str, text: &str| std::fs::write(directory.path().join(file), text).unwrap();
            [("a1", "1\n"), ("b1", "2 3\n"), ("Makefile", makefile)].iter().for_each(|(file, text)| write(file, text));
            let mut make = std::process::Command::new("make");
            make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
            make.current_dir(directory.path()).output().unwrap().stdout
        };
        assert_eq!(String::from_utf8(run(&edited)).unwrap(), "1 2 3 1 2 3\n");
        assert_eq!(run(&edited), run(looped));
        let two = "V = a $(shell cat a1)-$(shell cat b1)\nall: ; @echo $(V) $(V)\n";
        assert_eq!(of(two).unwrap(), two.replace("V =", "V :="));
        assert_eq!(run(&of(two).unwrap()), run(two));
        for refused in [
            looped.replace("all:", "M = b1\nall:"),
            looped.replace("all:", "a1: ; touch $@\nall:"),
            looped.replace("all:", "all: M = b1\nall:"),
            format!("m = b\n{looped}").replace(")))", "))) $(m)\nm = a"),
            looped.replace("$(foreach m,$(M),$(shell cat $(m)))", "$(shell cat $(M))"),
        ] {
            assert!(of(&refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn variables_are_defined_once() {
        for (makefile, expected) in [
            ("V = $(shell cat VERSION)\nall:\n\techo $(V)", Some("V := $(shell cat VERSION)\nall:\n\techo $(V)")),
            ("V=$(shell cat VERSION)", Some("V:=$(shell cat VERSION)")),
            ("export V = x-$(shell cat VERSION)-y", Some("export V := x-$(shell cat VERSION)-y")),
            ("V = ${shell cat 'VERSION'}", Some("V := ${shell cat 'VERSION'}")),
            ("V = $(shell cat \\\n  VERSION)", Some("V := $(shell cat \\\n  VERSION)")),
            (
                "V = $(shell cat VERSION)\nW = $(shell cat VERSION)",
                Some("V := $(shell cat VERSION)\nW := $(shell cat VERSION)"),
            ),
            ("F = VERSION\nV = $(shell cat $(F))", Some("F = VERSION\nV := $(shell cat $(F))")),
            ("V ?= $(shell cat VERSION)\n", Some("ifeq ($(origin V),undefined)\nV := $(shell cat VERSION)\nendif\n")),
            ("V = $(shell cat $(F))\nF = VERSION", None),
            ("V = $(shell cat $(F))\ninclude config.mk", None),
            ("V = $(shell cat $@)", None),
            ("V = $(shell cat $(1))", None),
            ("V := $(shell cat VERSION)", None),
            ("V = $(shell cat VERSION)\nV += x", None),
            ("V = $(shell cat VERSION)\nVERSION:\n\ttouch VERSION", None),
            ("V = $(shell cat VERSION)\nt:\n\techo 2 >VERSION", None),
            ("V = $(shell cat VERSION)\nt: ; echo 2 > VERSION", None),
            ("V = $(shell cat $(F))\nt: F = VERSION", None),
            ("define V =\nV = $(shell cat VERSION)\nendef", None),
            ("\tV = $(shell cat VERSION)", None),
            ("V = $(shell cat OTHER)", None),
            ("", None),
        ] {
            assert_eq!(edited("cat VERSION", makefile).as_deref(), expected, "{makefile}");
        }
    }
}
