//! Edits of makefiles: a variable that is defined with `=` as the output of a command becomes one
//! that is evaluated once, with `:=`. The variable may be in an included makefile, and may call a
//! function of the makefile.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{Result, Splice, inserted, limited, line_end, make_functions, refuse, refuse_for, refuse_if, splice};
use crate::explain::advice::phrases::{EVALUATED_LIMIT, name};
use crate::patterns::words::{Words, fits};

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
            let commands = self.commands.difference(&replaced).filter(|command| definition.evaluates(command, &all));
            let texts: Vec<&[u8]> = commands.map(Vec::as_slice).chain([definition.value]).collect();
            if texts.len() == 1 {
                continue;
            }
            let checked = self.check_commands(definition, &all).and_then(|()| check(text, &all, definition));
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

    /// Returns the commands of each `$(shell COMMAND)` in the value and in the functions that it
    /// calls.
    fn codes(&self, all: &[Definition<'t>]) -> Vec<&'t [u8]> {
        let called = called_in(self.value).filter_map(|function| all.iter().find(|each| each.name == function));
        let called = called.flat_map(|function| shell_calls(function.value));
        shell_calls(self.value).chain(called).map(|(_, code)| code).collect()
    }
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
    let mut functions = Vec::new();
    for called in called_in(definition.value) {
        let function = all.iter().find(|each| each.name == called && each.start < definition.start);
        let value =
            function.filter(|function| called_in(function.value).next().is_none()).map(|function| function.value);
        functions.extend(expansions(value.unwrap_or(b"$(eval)")));
    }
    // The parameters of a function are in its calls.
    functions.retain(|each| !each.name.iter().all(u8::is_ascii_digit) || each.name.is_empty());
    for Expansion { open, name: used, .. } in expansions(definition.value).chain(functions) {
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
    let is_extended = all.iter().any(|other| other.name == definition.name && other.operator == b"+=");
    refuse_if(is_extended, format!("`{own}` is extended elsewhere"))
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

    /// make itself must expand both makefiles to the same text.
    #[test]
    fn an_included_makefile_and_a_function_are_evaluated_once() {
        let directory = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &[u8]| std::fs::write(directory.path().join(file), text).unwrap();
        let run = || {
            let mut make = std::process::Command::new("make");
            make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
            String::from_utf8(make.current_dir(directory.path()).output().unwrap().stdout).unwrap()
        };
        let main = "X = 1\ninclude flags.mk\nall: ; @echo $(FLAGS) $(FLAGS) $(V)\n";
        let flags = "opt = $(shell if test $(1) = a; then echo $(1); else echo $(2); fi)\nFLAGS = -O $(call opt,a,) $(call opt,b,-c)\nV = $(shell cat V)\n";
        [("V", "2\n"), ("Makefile", main), ("flags.mk", flags)]
            .iter()
            .for_each(|(file, text)| write(file, text.as_bytes()));
        let before = run();
        assert_eq!(before, "-O a -c -O a -c 2\n");
        let of = |main: &str, flags: &str| {
            let test = |a: &str, b: &str| format!("if test {a} = a; then echo {a}; else echo {b}; fi");
            let commands = [test("a", ""), test("b", "-c"), "cat V".to_owned()].map(String::into_bytes).into();
            let all = MakeRewrite { commands, ..MakeRewrite::default() }.included(main.as_bytes());
            let (file, rewrite) = all.into_iter().next()?;
            assert_eq!(file, b"flags.mk");
            Some(String::from_utf8(spliced(flags.as_bytes(), &rewrite.splices(flags.as_bytes()).ok()?)).unwrap())
        };
        let edited = of(main, flags).unwrap();
        assert_eq!(edited, flags.replace("FLAGS =", "FLAGS :=").replace("V =", "V :="));
        write("flags.mk", edited.as_bytes());
        assert_eq!(run(), before);
        let of_flags = flags.replace("V = $(shell cat V)\n", "");
        for (main, flags) in [
            (main.replace("include ", "-include "), flags.to_owned()),
            (main.replace("all:", "FLAGS += -g\nall:"), of_flags.clone()),
            (main.to_owned(), of_flags.replace("b,-c", "$@,-c")),
            (main.to_owned(), of_flags.replace("b,-c", "b,$(LATER)") + "LATER = x\n"),
            (main.replace("all:", "LATER = x\nall:"), of_flags.replace("echo $(2)", "echo $(LATER)")),
        ] {
            assert_eq!(of(&main, &flags), None, "{main}{flags}");
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
