//! Replaces sed with expansions, if its script consists of `s` commands, and its input is the text of a variable.

use super::call::{
    Call, ECHO_DIFFERS, ExactFor, Form, Operand, Substitute, TEXT_LIMIT, escape_pattern, escape_substitution_pattern,
    is_literal_replacement,
};

const LIMITS: &[&str] = &["only for a variable with one line of text, not for files", TEXT_LIMIT, ECHO_DIFFERS];

pub(super) fn sed(call: &Call) -> Option<Substitute> {
    let (script, is_extended) = script_of(&call.words())?;
    let commands = Command::all(&script, is_extended)?;
    let before = format!("$(echo \"$x\" | sed '{script}')");
    if let ([only], false) = (&commands[..], call.has_extensions())
        && let Some(substitute) = only.in_any_shell(&before)
    {
        return Some(substitute);
    }
    let steps: Option<Vec<String>> = commands.iter().map(|each| each.expansion(call.has_extensions())).collect();
    let steps = steps?;
    let substitute = match &steps[..] {
        [step] => Substitute::code(before, format!("${{x{step}}}"), LIMITS)?,
        [first, others @ ..] => {
            let others: String = others.iter().map(|step| format!("; y=${{y{step}}}")).collect();
            Substitute::statement(before, format!("y=${{x{first}}}{others}"), "y", LIMITS)?
        }
        [] => return None,
    };
    // Each line of a text changes in the same way.
    let exact_for = if steps.iter().all(|step| step.starts_with("//")) { ExactFor::Any } else { ExactFor::Line };
    Some(substitute.edited_with(Operand::Input, exact_for, steps))
}

/// Returns the script of a sed that reads its input, and whether its patterns are extended ones.
fn script_of(words: &[&str]) -> Option<(String, bool)> {
    let (mut scripts, mut is_extended, mut words) = (Vec::new(), false, words.iter());
    while let Some(word) = words.next() {
        match *word {
            "-E" | "-r" => is_extended = true,
            "-e" => scripts.push(*words.next()?),
            script if scripts.is_empty() && words.len() == 0 && !script.starts_with('-') => scripts.push(script),
            _ => return None,
        }
    }
    let script = scripts.join("; ");
    (!script.contains(['\'', '\n'])).then_some((script, is_extended))
}

/// The sed command `s/pattern/replacement/g`, whose pattern is a text, perhaps with an anchor or `.*` before or after it.
struct Command {
    text: String,
    starts: Option<&'static str>,
    ends: Option<&'static str>,
    replacement: String,
    is_global: bool,
}

impl Command {
    fn all(script: &str, is_extended: bool) -> Option<Vec<Command>> {
        let (mut commands, mut rest) = (Vec::new(), script.trim());
        while !rest.is_empty() {
            let parts = rest.strip_prefix('s')?;
            let delimiter = parts.chars().next().filter(|first| "/|,#:;@!%~=_".contains(*first))?;
            let (pattern, after) = part(&parts[1..], delimiter)?;
            let (replacement, after) = part(after, delimiter)?;
            let (flags, after) = after.split_once(';').unwrap_or((after, ""));
            let is_global = match flags.trim() {
                "" => false,
                "g" => true,
                _ => return None,
            };
            commands.push(Command::of(&pattern, replacement, is_global, is_extended)?);
            rest = after.trim();
        }
        Some(commands)
    }

    fn of(pattern: &str, replacement: String, is_global: bool, is_extended: bool) -> Option<Command> {
        let strip_start = |text: &'static str| Some((pattern.strip_prefix(text)?, text));
        let (rest, starts) = ["^.*", ".*", "^"].into_iter().find_map(strip_start).unzip();
        let rest = rest.unwrap_or(pattern);
        let strip_end =
            |text: &'static str| Some((rest.strip_suffix(text).filter(|rest| !rest.ends_with('\\'))?, text));
        let (text, ends) = [".*$", ".*", "$"].into_iter().find_map(strip_end).unzip();
        let text = literal_of(text.unwrap_or(rest), is_extended)?;
        let is_plain = !replacement.contains(['\\', '&']) && is_literal_replacement(&replacement);
        is_plain.then_some(Command { text, starts, ends, replacement, is_global })
    }

    /// Returns the suffix of an expansion that does the same for one line: `#...` or `%...`, or one that not all shells have.
    fn expansion(&self, has_extensions: bool) -> Option<String> {
        let (pattern, is_removal, new) = (escape_pattern(&self.text), self.replacement.is_empty(), &self.replacement);
        let substituted = escape_substitution_pattern(&self.text);
        // sed removes the longest match, as `%%` and `##` do.
        match (self.starts, self.ends) {
            (Some("^"), None) if is_removal => Some(format!("#{pattern}")),
            (None, Some("$")) if is_removal => Some(format!("%{pattern}")),
            (Some("^.*" | ".*"), None) if is_removal => Some(format!("##*{pattern}")),
            (None, Some(".*$" | ".*")) if is_removal => Some(format!("%%{pattern}*")),
            (Some("^"), None) if has_extensions => Some(format!("/#{substituted}/{new}")),
            (None, Some("$")) if has_extensions => Some(format!("/%{substituted}/{new}")),
            (None, None) if has_extensions => {
                Some(format!("{}{substituted}/{new}", if self.is_global { "//" } else { "/" }))
            }
            _ => None,
        }
    }

    /// Returns commands that replace the first occurrence of a text in every shell.
    fn in_any_shell(&self, before: &str) -> Option<Substitute> {
        if self.starts.or(self.ends).is_some() || self.is_global {
            return None;
        }
        let (pattern, new) = (escape_pattern(&self.text), &self.replacement);
        let new = if new.chars().all(|each| each.is_ascii_alphanumeric() || "_./-".contains(each)) {
            new.to_owned()
        } else {
            format!("'{new}'")
        };
        let quoted = pattern.replace(' ', "\\ ");
        let after = format!("y=$x; case $y in *{quoted}*) y=${{y%%{pattern}*}}{new}${{y#*{pattern}}};; esac");
        let exact = format!(
            "{{y}}={{x}}; case ${{y}} in *{quoted}*) {{y}}=${{{{y}}%%{pattern}*}}{new}${{{{y}}#*{pattern}}};; esac"
        );
        Some(Substitute::statement(before, after, "y", LIMITS)?.edited_as(Form::Statement(exact), ExactFor::Line))
    }
}

/// Returns the text up to a delimiter, and what follows. A delimiter with a backslash belongs to the text.
fn part(text: &str, delimiter: char) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut characters = text.char_indices();
    while let Some((at, each)) = characters.next() {
        match each {
            '\\' => match characters.next()?.1 {
                next if next == delimiter && next != '|' => part.push(next),
                next => part.extend(['\\', next]),
            },
            _ if each == delimiter => return Some((part, &text[at + each.len_utf8()..])),
            _ => part.push(each),
        }
    }
    None
}

/// Returns the text that a pattern matches. `None` if it matches more than one.
fn literal_of(pattern: &str, is_extended: bool) -> Option<String> {
    let (mut literal, mut characters) = (String::new(), pattern.chars());
    while let Some(each) = characters.next() {
        let is_plain = each.is_alphanumeric() || "_-,:@%=#~!/&;<>\" ".contains(each);
        literal.push(match each {
            '\\' => characters.next().filter(|next| ".*[]^$".contains(*next))?,
            '[' => characters.next().filter(|_| characters.next() == Some(']')).filter(|one| !"]^\\".contains(*one))?,
            _ if is_plain || !is_extended && "(){}+?|".contains(each) => each,
            _ => return None,
        });
    }
    (!literal.is_empty()).then_some(literal)
}
