//! Replaces sed with expansions, if its script consists of `s` commands, and its input is the text
//! of a variable.

use super::call::{
    Call, ExactFor, Form, Substitute, TEXT_LIMIT, escape_pattern, escape_substitution_pattern, is_literal_replacement,
};
use crate::patterns::expressions::extended;

pub(super) fn sed(call: &Call) -> Option<Substitute> {
    let (script, is_extended) = script_of(&call.words())?;
    if let Some(statement) = groups(&script, is_extended).filter(|_| call.is_bash()) {
        let substitute = Substitute::of_filter(call, Form::Statement(statement), ExactFor::Line, &[]);
        // Templates have braces, too.
        return Some(Substitute { exact: substitute.exact.filter(|_| !script.contains(['{', '}'])), ..substitute });
    }
    let commands = SedCommand::all(&script, is_extended)?;
    let substitute = |form, exact_for| Some(Substitute::of_filter(call, form, exact_for, &[TEXT_LIMIT]));
    if let ([only], false) = (&commands[..], call.has_extensions())
        && let Some(statement) = only.in_any_shell()
    {
        return substitute(Form::Statement(statement), ExactFor::Line);
    }
    let steps: Vec<String> =
        commands.iter().map(|each| each.expansion(call.has_extensions())).collect::<Option<_>>()?;
    // Each line of a text changes in the same way, but a set may contain newlines.
    let is_for_lines = commands.iter().all(|each| each.is_global && matches!(each.pattern, Pattern::Text(_)));
    (!steps.is_empty()).then_some(())?;
    substitute(Form::of_input(steps), if is_for_lines { ExactFor::Any } else { ExactFor::Line })
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

/// The sed command `s/pattern/replacement/g`, whose pattern may have an anchor or `.*` before or
/// after it.
struct SedCommand {
    pattern: Pattern,
    starts: Option<&'static str>,
    ends: Option<&'static str>,
    replacement: String,
    is_global: bool,
}

/// What a command looks for.
enum Pattern {
    Text(String),
    /// Everything up to the first, or from the last of a character: `^[^:]*:`, `/[^/]*$`. Contains
    /// the expansion that removes it.
    Nearest(String),
    /// A character of a set, such as `0-9`, or all that follow each other, if there is at least
    /// this number.
    Set {
        set: String,
        at_least: Option<u8>,
    },
}

impl SedCommand {
    fn all(script: &str, is_extended: bool) -> Option<Vec<SedCommand>> {
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
            commands.push(SedCommand::of(&pattern, replacement, is_global, is_extended)?);
            rest = after.trim();
        }
        Some(commands)
    }

    fn of(pattern: &str, replacement: String, is_global: bool, is_extended: bool) -> Option<SedCommand> {
        let strip_start = |text: &'static str| Some((pattern.strip_prefix(text)?, text));
        let (rest, starts) = ["^.*", ".*", "^"].into_iter().find_map(strip_start).unzip();
        let rest = rest.unwrap_or(pattern);
        let strip_end =
            |text: &'static str| Some((rest.strip_suffix(text).filter(|rest| !rest.ends_with('\\'))?, text));
        let (text, ends) = [".*$", ".*", "$"].into_iter().find_map(strip_end).unzip();
        let text = text.unwrap_or(rest);
        if let Some(step) = nearest(pattern, is_extended).filter(|_| replacement.is_empty() && !is_global) {
            let pattern = Pattern::Nearest(step);
            return Some(SedCommand { pattern, starts: None, ends: None, replacement, is_global });
        }
        let pattern = literal_of(text, is_extended).map(Pattern::Text).or_else(|| set_of(text, is_extended))?;
        let is_plain = !replacement.contains(['\\', '&']) && is_literal_replacement(&replacement);
        is_plain.then_some(SedCommand { pattern, starts, ends, replacement, is_global })
    }

    /// Returns the suffix of an expansion that does the same for one line: `#...` or `%...`, or one
    /// that not all shells have.
    fn expansion(&self, has_extensions: bool) -> Option<String> {
        let (is_removal, new) = (self.replacement.is_empty(), &self.replacement);
        let all = if self.is_global { "//" } else { "/" };
        let (pattern, substituted) = match &self.pattern {
            Pattern::Text(text) => (escape_pattern(text), escape_substitution_pattern(text)),
            Pattern::Nearest(step) => return Some(step.clone()),
            Pattern::Set { set, at_least: None } => (format!("[{set}]"), format!("[{set}]")),
            Pattern::Set { set, at_least: Some(least) } => {
                return self.removal_of_all(set, *least, has_extensions).filter(|_| is_removal);
            }
        };
        // sed removes the longest match, as `%%` and `##` do.
        match (self.starts, self.ends) {
            (Some("^"), None) if is_removal => Some(format!("#{pattern}")),
            (None, Some("$")) if is_removal => Some(format!("%{pattern}")),
            (Some("^.*" | ".*"), None) if is_removal => Some(format!("##*{pattern}")),
            (None, Some(".*$" | ".*")) if is_removal => Some(format!("%%{pattern}*")),
            (Some("^"), None) if has_extensions => Some(format!("/#{substituted}/{new}")),
            (None, Some("$")) if has_extensions => Some(format!("/%{substituted}/{new}")),
            (None, None) if has_extensions => Some(format!("{all}{substituted}/{new}")),
            _ => None,
        }
    }

    /// Returns an expansion that removes all characters of a set that follow each other.
    fn removal_of_all(&self, set: &str, at_least: u8, has_extensions: bool) -> Option<String> {
        let other = set.strip_prefix('!').map_or_else(|| format!("[!{set}]"), |set| format!("[{set}]"));
        match (self.starts, self.ends, self.is_global) {
            (Some("^"), None, _) => Some(format!("#\"${{{{v}}%%{other}*}}\"")),
            // Without an anchor, the first match is at the beginning of the line, even if it is
            // empty there.
            (None, None, false) if at_least == 0 => Some(format!("#\"${{{{v}}%%{other}*}}\"")),
            (None, Some("$"), _) => Some(format!("%\"${{{{v}}##*{other}}}\"")),
            (None, None, true) if has_extensions => Some(format!("//[{set}]/")),
            _ => None,
        }
    }

    /// Returns commands that replace the first occurrence of a text in every shell.
    fn in_any_shell(&self) -> Option<String> {
        let Pattern::Text(text) = &self.pattern else { return None };
        (self.starts.or(self.ends).is_none() && !self.is_global).then_some(())?;
        let (pattern, new) = (escape_pattern(text), &self.replacement);
        let is_plain = new.chars().all(|each| each.is_ascii_alphanumeric() || "_./-".contains(each));
        let new = if is_plain { new.to_owned() } else { format!("'{new}'") };
        let quoted = pattern.replace(' ', "\\ ");
        Some(format!(
            "{{y}}={{x}}; case ${{y}} in *{quoted}*) {{y}}=${{{{y}}%%{pattern}*}}{new}${{{{y}}#*{pattern}}};; esac"
        ))
    }
}

/// Returns the expansion that removes everything up to the first of a character, or from the last
/// one.
fn nearest(pattern: &str, is_extended: bool) -> Option<String> {
    let at_end = || pattern.strip_suffix("]*$")?.rsplit_once("[^");
    let at_start = || pattern.strip_prefix('^').unwrap_or(pattern).strip_prefix("[^")?.split_once("]*");
    let (one, set, is_end) = match at_end() {
        Some((one, set)) => (one, set, true),
        None => at_start().map(|(set, one)| (one, set, false))?,
    };
    let text = escape_pattern(&literal_of(one, is_extended).filter(|text| text == set && text.chars().count() == 1)?);
    Some(if is_end { format!("%{text}*") } else { format!("#*{text}") })
}

/// Returns commands of bash that put groups of a line in its place: `s/.*-\([0-9]*\).*/\1/`, for a
/// pattern that matches the whole line or nothing.
fn groups(script: &str, is_extended: bool) -> Option<String> {
    let parts = script.trim().strip_prefix('s')?;
    let delimiter = parts.chars().next().filter(|first| "/|,#:;@!%~=_".contains(*first))?;
    let (pattern, after) = part(&parts[1..], delimiter)?;
    let (replacement, flags) = part(after, delimiter)?;
    let expression = extended(&pattern, is_extended)?;
    let is_whole = (expression.starts_with('^') || expression.starts_with(".*"))
        && (expression.ends_with('$') || expression.ends_with(".*"));
    (is_whole && flags.is_empty() && !expression.contains('|')).then_some(())?;
    let (mut new, mut rest) = (String::new(), &replacement[..]);
    while let Some((text, after)) = rest.split_once('\\') {
        let group = after.chars().next().filter(|group| ('1'..='9').contains(group))?;
        new.extend([text, "${BASH_REMATCH[", &group.to_string(), "]}"]);
        rest = &after[1..];
    }
    let is_plain = |text: &str| text.chars().all(|each| each.is_ascii_alphanumeric() || "_.,:/+-".contains(each));
    (!new.is_empty() && replacement.split('\\').all(is_plain)).then_some(())?;
    new.push_str(rest);
    Some(format!("{{r}}='{expression}'; if [[ {{x}} =~ ${{r}} ]]; then {{y}}={new}; else {{y}}={{x}}; fi"))
}

/// Returns the text up to a delimiter, and what follows. A delimiter with a backslash belongs to
/// the text.
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

/// Returns the set of characters that a pattern matches, as a pattern of the shell: `[^0-9]*`,
/// `[[:space:]]\+`, ` *`.
fn set_of(pattern: &str, is_extended: bool) -> Option<Pattern> {
    let plus = if is_extended { "+" } else { "\\+" };
    let repeated = [("*", 0), (plus, 1)].into_iter().find_map(|(end, least)| Some((pattern.strip_suffix(end)?, least)));
    let (one, at_least) = repeated.map_or((pattern, None), |(one, least)| (one, Some(least)));
    let inside = match one.strip_prefix('[').and_then(|one| one.strip_suffix(']')) {
        Some(inside) => inside,
        None => Some(one).filter(|one| one.len() == 1 && " _,:/0-".contains(one) && at_least.is_some())?,
    };
    let (not, members) = inside.strip_prefix('^').map_or(("", inside), |members| ("!", members));
    // Other ranges and classes depend on the locale, not in the same way in all shells.
    let others = ["0-9", "[:digit:]", "[:blank:]", "[:space:]"];
    let others = others.iter().fold(members.to_owned(), |members, class| members.replace(class, ""));
    let others = others.strip_suffix('-').unwrap_or(&others);
    let is_plain = others.chars().all(|each| each.is_ascii_alphanumeric() || "_.,:= ".contains(each));
    (is_plain && !members.is_empty()).then(|| Pattern::Set { set: format!("{not}{members}"), at_least })
}
