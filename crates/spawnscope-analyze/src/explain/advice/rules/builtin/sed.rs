//! Replaces sed with an expansion, if its script is a single `s` command on the text of a variable.

use super::call::{
    Call, ECHO_DIFFERS, ExactFor, Form, Operand, Substitute, escape_pattern, escape_substitution_pattern, is_literal,
    is_literal_replacement,
};

const LIMITS: &[&str] = &["only for a variable with one line of text, not for files", ECHO_DIFFERS];

pub(super) fn sed(call: &Call) -> Option<Substitute> {
    let words = call.words();
    let script = match words[..] {
        [script] | ["-E" | "-r" | "-e", script] => script,
        _ => return None,
    };
    if script.starts_with('-') {
        return None;
    }
    let command = Command::parse(script)?;
    if !call.has_extensions()
        && let Some(substitute) = command.in_any_shell(script)
    {
        return Some(substitute);
    }
    let step = command.portable_expansion().or_else(|| {
        let is_simple = is_literal(command.pattern) && is_literal_replacement(command.replacement);
        let slashes = if command.is_global { "//" } else { "/" };
        (call.has_extensions() && is_simple)
            .then(|| format!("{slashes}{}/{}", escape_substitution_pattern(command.pattern), command.replacement))
    })?;
    let substitute = Substitute::code(format!("$(echo \"$x\" | sed '{script}')"), format!("${{x{step}}}"), LIMITS)?;
    Some(substitute.edited_with(Operand::Input, ExactFor::Line, [step]))
}

/// The sed command `s/pattern/replacement/g`.
struct Command<'s> {
    pattern: &'s str,
    replacement: &'s str,
    is_global: bool,
}

impl<'s> Command<'s> {
    fn parse(script: &'s str) -> Option<Command<'s>> {
        let rest = script.trim().trim_end_matches(';').strip_prefix('s')?;
        let delimiter = rest.chars().next().filter(|first| first.is_ascii_punctuation() && !"\\'".contains(*first))?;
        let mut parts = rest[1..].split(delimiter);
        let (pattern, replacement, flags) = (parts.next()?, parts.next()?, parts.next()?);
        let is_plain = parts.next().is_none() && !script.contains(['\\', '\n']) && !pattern.is_empty();
        let is_global = match flags {
            "" => false,
            "g" => true,
            _ => return None,
        };
        is_plain.then_some(Command { pattern, replacement, is_global })
    }

    /// Returns commands that replace the first occurrence of a text in every shell.
    fn in_any_shell(&self, script: &str) -> Option<Substitute> {
        let is_simple = is_literal(self.pattern) && is_literal_replacement(self.replacement) && !self.is_global;
        if !is_simple {
            return None;
        }
        let (pattern, new) = (escape_pattern(self.pattern), self.replacement);
        let new = if new.chars().all(|each| each.is_ascii_alphanumeric() || "_./-".contains(each)) {
            new.to_owned()
        } else {
            format!("'{new}'")
        };
        let before = format!("$(echo \"$x\" | sed '{script}')");
        let quoted = pattern.replace(' ', "\\ ");
        let after = format!("y=$x; case $y in *{quoted}*) y=${{y%%{pattern}*}}{new}${{y#*{pattern}}};; esac");
        let exact = format!(
            "{{y}}={{x}}; case ${{y}} in *{quoted}*) {{y}}=${{{{y}}%%{pattern}*}}{new}${{{{y}}#*{pattern}}};; esac"
        );
        Some(Substitute::statement(before, after, "y", LIMITS)?.edited_as(Form::Statement(exact), ExactFor::Line))
    }

    /// Returns the suffix of an expansion that works in every shell, `#...` or `%...`, for a command
    /// that removes text at one end.
    fn portable_expansion(&self) -> Option<String> {
        let pattern = self.pattern;
        if !self.replacement.is_empty() {
            return None;
        }
        // sed removes the longest match, as `%%` and `##` do.
        let (rest, cut) = if let Some(rest) = pattern.strip_suffix(".*$").or_else(|| pattern.strip_suffix(".*")) {
            (rest, "%%")
        } else if let Some(rest) = pattern.strip_prefix("^.*").or_else(|| pattern.strip_prefix(".*")) {
            (rest, "##*")
        } else if let Some(rest) = pattern.strip_suffix('$') {
            (rest, "%")
        } else {
            (pattern.strip_prefix('^')?, "#")
        };
        let star = if cut == "%%" { "*" } else { "" };
        is_literal(rest).then(|| format!("{cut}{}{star}", escape_pattern(rest)))
    }
}
