//! Replacements for filters whose input is the text of a variable and whose output the shell reads,
//! as in `$(echo "$x" | tr a b)`.

use super::call::{
    Call, ECHO_DIFFERS, ExactFor, Form, Operand, Substitute, TEXT_LIMIT, VARIABLE_LIMIT, escape_pattern,
    escape_substitution_pattern, has_only, is_literal, is_literal_replacement,
};

const ONE_LINE_LIMIT: &str = "only for text of one line: the program handles each line separately";
const IFS_LIMIT: &str = "only with the default IFS";

/// Replaces or removes characters.
pub(super) fn tr(call: &Call) -> Option<Substitute> {
    match call.words()[..] {
        // Only ASCII, since tr works on bytes and the shell on characters.
        ["-d", set] if is_literal(set) && set.is_ascii() && !set.contains(['-', '!', '/']) => Substitute::code(
            filter_text(&format!("tr -d '{set}'")),
            format!("${{x//[{set}]/}}"),
            &[VARIABLE_LIMIT, ECHO_DIFFERS],
        )
        .map(|substitute| substitute.edited_with(Operand::Input, ExactFor::Any, [format!("//[{set}]/")])),
        [from, to] if is_character(from) && is_character(to) && is_literal_replacement(to) => {
            let step = format!("//{}/{to}", escape_substitution_pattern(from));
            let before = filter_text(&format!("tr '{from}' '{to}'"));
            let substitute = Substitute::code(before, format!("${{x{step}}}"), &[VARIABLE_LIMIT, ECHO_DIFFERS])?;
            Some(substitute.edited_with(Operand::Input, ExactFor::Any, [step]))
        }
        _ => None,
    }
}

/// Whether a set is a single ASCII character that needs no escape in single quotes.
fn is_character(set: &str) -> bool {
    set.len() == 1 && set.chars().all(|each| (each.is_ascii_graphic() || each == ' ') && !"\\'-".contains(each))
}

/// Formats a filter on a variable as it appears in a script.
fn filter_text(filter: &str) -> String {
    format!("$(echo \"$x\" | {filter})")
}

pub(super) fn cut(call: &Call) -> Option<Substitute> {
    let (delimiter, fields) = match (options_of(&call.words(), ["-d", "-f"]), options_of(&call.words(), ["-c", "-b"])) {
        (Some([Some(delimiter), Some(fields)]), _) => (delimiter, fields),
        (_, Some([Some(range), None] | [None, Some(range)])) if call.has_extensions() => return characters(range),
        _ => return None,
    };
    if fields.trim() == "2-" && is_character(delimiter) {
        let step = format!("#*{}", escape_pattern(delimiter));
        let before = filter_text(&format!("cut -d'{delimiter}' -f2-"));
        let substitute =
            Substitute::code(before, format!("${{x{step}}}"), &[VARIABLE_LIMIT, ONE_LINE_LIMIT, ECHO_DIFFERS])?;
        return Some(substitute.edited_with(Operand::Input, ExactFor::Line, [step]));
    }
    let field: usize = fields.trim().parse().ok()?;
    if !(is_character(delimiter) || delimiter == "-") || !(1..=9).contains(&field) {
        return None;
    }
    let before = filter_text(&format!("cut -d'{delimiter}' -f{field}"));
    let pattern = escape_pattern(delimiter);
    if field == 1 {
        let after = format!("${{x%%{pattern}*}}");
        let substitute = Substitute::code(before, after, &[VARIABLE_LIMIT, ONE_LINE_LIMIT, ECHO_DIFFERS])?;
        return Some(substitute.edited_with(Operand::Input, ExactFor::Line, [format!("%%{pattern}*")]));
    }
    // Unlike `cut`, `read` would merge consecutive blanks, and would set nothing for a text without
    // delimiters.
    let others = format!("; y=${{y#*{pattern}}}").repeat(field - 2);
    let after = format!("y=${{x#*{pattern}}}{others}; y=${{y%%{pattern}*}}");
    let limits: &[&str] = match field {
        2 => &[VARIABLE_LIMIT, ONE_LINE_LIMIT, ECHO_DIFFERS],
        _ => &[
            VARIABLE_LIMIT,
            ONE_LINE_LIMIT,
            "if the text has fewer fields, the replacement gives the last one, cut gives nothing",
            ECHO_DIFFERS,
        ],
    };
    let substitute = Substitute::statement(before, after, "y", limits)?;
    if field == 2 {
        let steps = [format!("#*{pattern}"), format!("%%{pattern}*")];
        return Some(substitute.edited_with(Operand::Input, ExactFor::Line, steps));
    }
    // cut gives nothing for a field that is missing, but the whole line if it has no delimiter at all.
    let (missing, quoted) = (delimiter.repeat(field - 1), pattern.replace(' ', "\\ "));
    let steps = format!("{{y}}=${{{{y}}#*{pattern}}}; ").repeat(field - 1);
    let exact = format!(
        "case {{x}} in *{quoted}*) {{y}}={{x}}'{missing}'; {steps}{{y}}=${{{{y}}%%{pattern}*}};; *) {{y}}={{x}};; esac"
    );
    Some(substitute.edited_as(Form::Statement(exact), ExactFor::Line))
}

/// Replaces a cut that prints a range of characters.
fn characters(range: &str) -> Option<Substitute> {
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    let number = |text: &str, default: Option<usize>| if text.is_empty() { default } else { text.parse().ok() };
    let from = number(from, Some(1)).filter(|from| *from > 0)?;
    let length = match to {
        "" => String::new(),
        to => format!(":{}", (to.parse::<usize>().ok()? + 1).checked_sub(from)?),
    };
    let step = format!(":{}{length}", from - 1);
    let before = filter_text(&format!("cut -c{range}"));
    let limits = &[VARIABLE_LIMIT, ONE_LINE_LIMIT, "cut counts bytes, the shell characters", ECHO_DIFFERS];
    let substitute = Substitute::code(before, format!("${{x{step}}}"), limits)?;
    Some(substitute.edited_with(Operand::Input, ExactFor::Line, [step]))
}

/// Returns the values of options that are written `-d:` or `-d :`. `None` if there is anything else.
fn options_of<'w>(words: &[&'w str], names: [&str; 2]) -> Option<[Option<&'w str>; 2]> {
    let mut values = [None; 2];
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        let at = names.iter().position(|name| word.starts_with(name))?;
        let value = word.strip_prefix(names[at]).filter(|value| !value.is_empty());
        values[at] = Some(value.or_else(|| words.next())?);
    }
    Some(values)
}

pub(super) fn awk(call: &Call) -> Option<Substitute> {
    let (program, separator) = match call.words()[..] {
        [program] => (program, None),
        ["-F", separator, program] => (program, Some(separator)),
        [option, program] => (program, Some(option.strip_prefix("-F")?)),
        _ => return None,
    };
    let body = program.trim().strip_prefix('{')?.strip_suffix('}')?;
    let field = body.trim().trim_end_matches(';').strip_prefix("print")?.trim();
    if let ("$NF", Some(separator)) = (field, separator) {
        let step = format!("##*{}", escape_pattern(separator));
        let before = filter_text(&format!("awk -F'{separator}' '{{ print $NF }}'"));
        let limits = &[VARIABLE_LIMIT, ONE_LINE_LIMIT, ECHO_DIFFERS];
        let substitute = Substitute::code(before, format!("${{x{step}}}"), limits)?;
        let is_plain = is_character(separator) && separator != " ";
        return is_plain.then(|| substitute.edited_with(Operand::Input, ExactFor::Line, [step]));
    }
    let field: usize = field.strip_prefix('$')?.parse().ok()?;
    if !(1..=9).contains(&field) {
        return None;
    }
    if let Some(separator) = separator {
        return field_between(separator, field);
    }
    let before = filter_text(&format!("awk '{{ print ${field} }}'"));
    if call.has_extensions() {
        let after = format!("read -r {}y _ <<<\"$x\"", "_ ".repeat(field - 1));
        let limits = &[VARIABLE_LIMIT, ONE_LINE_LIMIT, IFS_LIMIT, ECHO_DIFFERS];
        let exact = Form::Statement(format!("read -r {}{{y}} _ <<<{{x}}", "_ ".repeat(field - 1)));
        return Some(Substitute::statement(before, after, "y", limits)?.edited_as(exact, ExactFor::Line));
    }
    Substitute::statement(
        before,
        format!("set -f; set -- $x; set +f; y=${field}"),
        "y",
        &[VARIABLE_LIMIT, ONE_LINE_LIMIT, IFS_LIMIT, "`set` overwrites `$1`, `$2`, ...", ECHO_DIFFERS],
    )
}

/// Replaces an awk that prints the field between separators of one character. A missing field is empty.
fn field_between(separator: &str, field: usize) -> Option<Substitute> {
    if !is_character(separator) || separator == " " {
        return None;
    }
    let pattern = escape_pattern(separator);
    if field == 1 {
        let (before, step) = (filter_text(&format!("awk -F'{separator}' '{{ print $1 }}'")), format!("%%{pattern}*"));
        let substitute =
            Substitute::code(before, format!("${{x{step}}}"), &[VARIABLE_LIMIT, ONE_LINE_LIMIT, ECHO_DIFFERS])?;
        return Some(substitute.edited_with(Operand::Input, ExactFor::Line, [step]));
    }
    let missing = separator.repeat(field - 1);
    let steps = |y: &str| format!("{y}=${{{y}#*{pattern}}}; ").repeat(field - 1) + &format!("{y}=${{{y}%%{pattern}*}}");
    let before = filter_text(&format!("awk -F'{separator}' '{{ print ${field} }}'"));
    let exact = Form::Statement(format!("{{y}}={{x}}'{missing}'; {}", steps("{y}")));
    let after = format!("y=$x'{missing}'; {}", steps("y"));
    let limits = &[VARIABLE_LIMIT, ONE_LINE_LIMIT, ECHO_DIFFERS];
    Some(Substitute::statement(before, after, "y", limits)?.edited_as(exact, ExactFor::Line))
}

pub(super) fn grep(call: &Call) -> Option<Substitute> {
    let words = call.words();
    let (options, pattern) = match words[..] {
        [options, pattern] | [options, "--", pattern] | [options, "-e", pattern] => (options, pattern),
        _ => return None,
    };
    let is_quiet = options.strip_prefix('-').is_some_and(|letters| {
        letters.contains('q') && letters.chars().all(|letter| matches!(letter, 'q' | 'F' | 'E' | 's'))
    });
    let is_option = words.len() == 2 && pattern.starts_with('-');
    if !is_quiet || is_option || pattern.contains(['\'', '\n']) {
        return None;
    }
    let before = format!("echo \"$x\" | grep {options} '{pattern}'");
    let is_fixed = options.contains('F') || is_literal(pattern);
    if is_fixed && call.has_extensions() {
        let exact = Form::Condition(format!("[[ {{x}} == *'{pattern}'* ]]"));
        let limits = &[VARIABLE_LIMIT, TEXT_LIMIT, ECHO_DIFFERS];
        let substitute = Substitute::code(before, format!("[[ $x == *'{pattern}'* ]]"), limits)?;
        return Some(substitute.edited_as(exact, ExactFor::Any));
    }
    if is_fixed {
        let after = format!("case $x in *'{pattern}'*) ... ;; esac");
        let exact = Form::Condition(format!("case {{x}} in *'{pattern}'*) true;; *) false;; esac"));
        let limits = &[VARIABLE_LIMIT, TEXT_LIMIT, ECHO_DIFFERS];
        return Some(Substitute::code(before, after, limits)?.edited_as(exact, ExactFor::Any));
    }
    if call.is_bash() && (options.contains('E') || means_the_same_extended(pattern)) {
        let substitute = Substitute::code(
            before,
            format!("re='{pattern}'; [[ $x =~ $re ]]"),
            &[
                VARIABLE_LIMIT,
                "only for text of one line: in the shell, `^`, `$` and `.` match against the whole text",
                ECHO_DIFFERS,
            ],
        )?;
        let exact = match is_plain_regex(pattern) {
            true => format!("[[ {{x}} =~ {pattern} ]]"),
            false => format!("{{ {{y}}='{pattern}'; [[ {{x}} =~ ${{y}} ]]; }}"),
        };
        // Templates have braces, too.
        let is_edited = !pattern.contains(['{', '}']);
        return Some(if is_edited { substitute.edited_as(Form::Condition(exact), ExactFor::Line) } else { substitute });
    }
    None
}

/// Whether a regular expression can stand in `[[ =~ ]]` without quotes.
fn is_plain_regex(pattern: &str) -> bool {
    let inside = pattern.strip_suffix('$').unwrap_or(pattern);
    !inside.is_empty() && has_only(inside, "_-.^*+?()|[]/:,@%=")
}

/// Whether a basic regular expression means the same as an extended one, because it has no
/// character that is special in only one of the two.
fn means_the_same_extended(pattern: &str) -> bool {
    let inner = pattern.strip_prefix('^').unwrap_or(pattern);
    let inner = inner.strip_suffix('$').unwrap_or(inner);
    !inner.starts_with('*') && !inner.contains(['\\', '+', '?', '{', '}', '(', ')', '|', '^', '$'])
}
