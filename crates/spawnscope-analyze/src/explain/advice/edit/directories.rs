//! Edits of code that makes a directory each time: `mkdir -p $(dir $@)` in a recipe becomes an
//! order-only prerequisite, which make checks without a launch. A shell tests first whether the
//! directory exists.

use std::ops::Range;

use super::around::first_of_list;
use super::shell::FoundCall;
use super::{Result, Splice, inserted, or_refuse, refuse, refuse_if, splice};
use crate::patterns::script::{Kind, Part};
use crate::patterns::words::contains;

/// How recipes name the directory of their target.
const OF_TARGET: [&[u8]; 6] = [b"$(@D)", b"${@D}", b"\"$(@D)\"", b"$(dir $@)", b"\"$(dir $@)\"", b"$(dir $(@))"];

/// Returns the changes for the recipe line at a line of a makefile.
pub(super) fn splices(makefile: &[u8], line: u32) -> Result<Vec<Splice>> {
    let mut lines = Vec::new();
    for text in makefile.split_inclusive(|byte| *byte == b'\n') {
        let start = lines.last().map_or(0, |(start, text): &(usize, &[u8])| start + text.len());
        lines.push((start, text));
    }
    let own = (line as usize).wrapping_sub(1);
    let is_recipe = |at: usize| lines.get(at).is_some_and(|(_, text)| text.starts_with(b"\t"));
    let is_continued = |at: usize| lines.get(at).is_some_and(|(_, text)| text.trim_ascii_end().ends_with(b"\\"));
    let rule = or_refuse((0..own).rev().find(|at| !is_recipe(*at)), "the recipe has no rule")?;
    let prefix = lines.get(own).filter(|_| is_recipe(own)).and_then(|(_, text)| prefix_of(text, lines[rule].1));
    let prefix = or_refuse(prefix, "the line does more than to make the directory of its target")?;
    let has_others = is_recipe(own + 1) || own > rule + 1;
    let of_lines = [own.wrapping_sub(1), rule, rule.wrapping_sub(1)];
    let is_plain = has_others && !of_lines.into_iter().any(is_continued) && is_plain_rule(lines[rule].1);
    refuse_if(!is_plain, "the rule is not plain")?;
    let expands_twice = |(_, text): &(usize, &[u8])| !text.starts_with(b"\t") && contains(text, b"$$");
    let has_dollars = lines.iter().any(expands_twice) && !contains(makefile, b".SECONDEXPANSION");
    refuse_if(has_dollars, "the makefile has `$$` outside of recipes")?;
    let (start, text) = lines[rule];
    let end = start + text.trim_ascii_end().len();
    let mut splices = vec![inserted(end, b" | $$(@D)/."), splice(lines[own].0..lines[own].0 + lines[own].1.len(), "")];
    if !contains(&makefile[..start], b".SECONDEXPANSION") {
        splices.push(inserted(start, b".SECONDEXPANSION:\n"));
    }
    if !contains(makefile, b"\n%/.:") {
        let newline: &[u8] = if makefile.ends_with(b"\n") { b"" } else { b"\n" };
        let rule = [newline, b"\n.PRECIOUS: %/.\n%/.:\n\t", prefix, b"mkdir -p $@\n"].concat();
        splices.push(inserted(makefile.len(), rule));
    }
    Ok(splices)
}

/// Puts a test before a call: `[ -d "$d" ] || mkdir -p "$d"`. Both succeed if the directory exists.
pub(super) fn tested(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    let script = call.script;
    let [_, option, directory] = &call.simple.words[..] else { return refuse("the line makes several directories") };
    let is_plain = option.literal().as_deref() == Some(b"-p") && call.pipeline.len() == 1;
    let launches = directory.parts.iter().any(|part| matches!(part, Part::Substitution { .. }));
    refuse_if(!is_plain || launches, "the line does more than to make a directory")?;
    let test = format!("[ -d {} ] || ", call.quoted_source(directory)?);
    let Range { start, end } = script.range(call.command);
    let pipeline = script.parent(call.command).map(|pipeline| script.kind(pipeline));
    let is_first = first_of_list(script, call.command).is_some();
    Ok(match pipeline {
        Some(Kind::Pipeline { is_negated: false }) if is_first => vec![inserted(start, test)],
        _ => vec![inserted(start, format!("{{ {test}")), inserted(end, "; }")],
    })
}

/// Returns what is before the command of a recipe line that only makes the directory of the target:
/// `@`. The line names it as such, or by its name, as the targets do.
fn prefix_of<'m>(line: &'m [u8], rule: &[u8]) -> Option<&'m [u8]> {
    let line = line.trim_ascii();
    let (prefix, command) = line.split_at(line.iter().take_while(|byte| b"@-+ ".contains(byte)).count());
    let directory = command.strip_prefix(b"mkdir -p ")?.trim_ascii();
    let is_plain = directory.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(byte));
    let is_inside = |target: &[u8]| {
        let name = target.strip_prefix(directory).and_then(|rest| rest.strip_prefix(b"/"));
        name.is_some_and(|name| !name.contains(&b'/'))
    };
    let mut targets = rule.split(|byte| *byte == b':').next()?.trim_ascii().split(u8::is_ascii_whitespace);
    (OF_TARGET.contains(&directory) || is_plain && targets.all(is_inside)).then_some(prefix)
}

/// Whether a line begins a rule to which a prerequisite can be added.
fn is_plain_rule(line: &[u8]) -> bool {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return false };
    let (targets, rest) = line.split_at(colon);
    // A target of any name would be a directory, too.
    !targets.trim_ascii().is_empty()
        && !targets.split(u8::is_ascii_whitespace).any(|target| target.ends_with(b"%"))
        && !targets.iter().any(|byte| b"&=#".contains(byte))
        && !rest[1..].iter().any(|byte| b":;|=#".contains(byte))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;
    use crate::explain::advice::edit::{in_order, spliced};

    const RECIPES: &str = "all: out/a/x.o out/a/y.o out/b/c/z.o out/n.x top\n\nout/%.o: in/%\n\t@mkdir -p $(dir $@)\n\t@cp $< $@\n\t@echo made $@\n\ntop:\n\t@mkdir -p $(@D)\n\t@echo >$@\nout/n.x: in/a/x\n\t@mkdir -p out\n\t@cp $< $@\nclean:\n\trm -r out top\n";

    fn edited(makefile: &str, line: u32) -> Result<String> {
        let splices = in_order(splices(makefile.as_bytes(), line)?)?;
        Ok(String::from_utf8(spliced(makefile.as_bytes(), &splices)).unwrap())
    }

    /// Makes twice, with a `clean` in between, and returns what it printed.
    fn make(makefile: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["a/x", "a/y", "b/c/z"] {
            fs::create_dir_all(at("in").join(name).parent().unwrap()).unwrap();
            fs::write(at("in").join(name), name).unwrap();
        }
        fs::write(at("Makefile"), makefile).unwrap();
        let run = |words: &[&str]| {
            // The tests may be run by make.
            let mut make = Command::new("make");
            make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
            let output = make.args(words).current_dir(directory.path()).output().unwrap();
            assert!(output.status.success(), "{makefile}: {output:?}");
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
        };
        let printed = [&["-j2"][..], &["all"], &["clean", "all"]].map(run);
        let left =
            Command::new("find").args(["out", "top", "-type", "f"]).current_dir(directory.path()).output().unwrap();
        let mut lines: Vec<String> = printed.concat().lines().map(str::to_owned).collect();
        lines.sort();
        format!("{}\n{}", lines.join("\n"), String::from_utf8_lossy(&left.stdout))
    }

    #[test]
    fn directories_of_targets_become_prerequisites() {
        let first = edited(RECIPES, 4).unwrap();
        assert!(first.contains(".SECONDEXPANSION:\nout/%.o: in/% | $$(@D)/.\n\t@cp"), "{first}");
        assert!(first.ends_with("\n.PRECIOUS: %/.\n%/.:\n\t@mkdir -p $@\n"), "{first}");
        let line = 1 + first.lines().position(|line| line.ends_with("mkdir -p $(@D)")).unwrap();
        let both = edited(&first, line as u32).unwrap();
        let line = 1 + both.lines().position(|line| line.ends_with("mkdir -p out")).unwrap();
        let all = edited(&both, line as u32).unwrap();
        assert_eq!((all.matches("%/.:").count(), all.matches(".SECONDEXPANSION").count()), (1, 1), "{all}");
        assert_eq!(make(&all), make(RECIPES), "{all}");
    }

    #[test]
    fn other_lines_stay() {
        for (makefile, line) in [
            (RECIPES, 1),
            (RECIPES, 5),
            ("x:\n\tmkdir -p $(dir $@)\n", 2),
            ("x/%: y/%\n\tmkdir -p $(dir $@)\n\tz\n", 2),
            ("x: y; z\n\tmkdir -p $(dir $@)\n\tz\n", 2),
            ("x: y | z\n\tmkdir -p $(dir $@)\n\tz\n", 2),
            ("x: $$(y)\n\tmkdir -p $(dir $@)\n\tz\n", 2),
            ("x: y\n\tmkdir -p $(dir $@) && z\n\tz\n", 2),
            ("x: y\n\tmkdir -p $(OUT)\n\tz\n", 2),
            ("o/x p/x: y\n\tmkdir -p o\n\tz\n", 2),
            ("o/p/x: y\n\tmkdir -p o\n\tz\n", 2),
            ("x: y \\\n z\n\tmkdir -p $(dir $@)\n\tz\n", 3),
        ] {
            edited(makefile, line).expect_err(makefile);
        }
    }
}
