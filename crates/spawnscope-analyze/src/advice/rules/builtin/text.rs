//! Filters on a text that fits into a variable, where the shell reads the result, as in `$(echo "$x" | tr a b)`.

use super::call::{Call, ECHO_DIFFERS, OF_VARIABLE, Substitute, in_pattern, in_replaced, is_literal, is_replacement};

const OF_ONE_LINE: &str = "for one line: the program handles each line separately";
const OF_IFS: &str = "only with the default IFS";

/// Replaces or removes characters.
pub(super) fn tr(call: &Call) -> Option<Substitute> {
    match call.words()[..] {
        // tr works on bytes: a character of several bytes is not one character.
        ["-d", set] if is_literal(set) && set.is_ascii() && !set.contains(['-', '!', '/']) => Substitute::expansion(
            through(&format!("tr -d '{set}'")),
            format!("${{x//[{set}]/}}"),
            &[OF_VARIABLE, ECHO_DIFFERS],
        ),
        [from, to] if is_character(from) && is_character(to) && is_replacement(to) => Substitute::expansion(
            through(&format!("tr '{from}' '{to}'")),
            format!("${{x//{}/{to}}}", in_replaced(from)),
            &[OF_VARIABLE, ECHO_DIFFERS],
        ),
        _ => None,
    }
}

/// Whether a set is one character that can be shown in single quotes.
fn is_character(set: &str) -> bool {
    set.len() == 1
        && set
            .chars()
            .all(|each| (each.is_ascii_graphic() || each == ' ') && !"\\'-".contains(each))
}

/// Formats a filter as it appears in a script.
fn through(filter: &str) -> String {
    format!("$(echo \"$x\" | {filter})")
}

pub(super) fn cut(call: &Call) -> Option<Substitute> {
    let (delimiter, fields) = match call.words()[..] {
        [delimiter, fields] if delimiter.starts_with("-d") && delimiter.len() > 2 => (&delimiter[2..], fields),
        ["-d", delimiter, fields] => (delimiter, fields),
        [fields, delimiter] if delimiter.starts_with("-d") && delimiter.len() > 2 => (&delimiter[2..], fields),
        _ => return None,
    };
    let field: usize = fields.strip_prefix("-f")?.trim().parse().ok()?;
    if !(is_character(delimiter) || delimiter == "-") || !(1..=9).contains(&field) {
        return None;
    }
    let before = through(&format!("cut -d'{delimiter}' -f{field}"));
    let pattern = in_pattern(delimiter);
    if field == 1 {
        let after = format!("${{x%%{pattern}*}}");
        return Substitute::expansion(before, after, &[OF_VARIABLE, OF_ONE_LINE, ECHO_DIFFERS]);
    }
    // `read` would merge several blanks in a row, and would find nothing in a text without delimiters.
    let others = format!("; y=${{y#*{pattern}}}").repeat(field - 2);
    let after = format!("y=${{x#*{pattern}}}{others}; y=${{y%%{pattern}*}}");
    let limits: &[&str] = match field {
        2 => &[OF_VARIABLE, OF_ONE_LINE, ECHO_DIFFERS],
        _ => &[
            OF_VARIABLE,
            OF_ONE_LINE,
            "for a text with fewer fields it returns the last one, where cut prints nothing",
            ECHO_DIFFERS,
        ],
    };
    Substitute::statement(before, after, "y", limits)
}

pub(super) fn awk(call: &Call) -> Option<Substitute> {
    let words = call.words();
    let [program] = words[..] else { return None };
    let body = program.trim().strip_prefix('{')?.strip_suffix('}')?;
    let field = body.trim().trim_end_matches(';').strip_prefix("print")?.trim();
    let field: usize = field.strip_prefix('$')?.parse().ok()?;
    if !(1..=9).contains(&field) {
        return None;
    }
    let before = through(&format!("awk '{{ print ${field} }}'"));
    if call.has_extensions() {
        let after = format!("read -r {}y _ <<<\"$x\"", "_ ".repeat(field - 1));
        return Substitute::statement(before, after, "y", &[OF_VARIABLE, OF_ONE_LINE, OF_IFS, ECHO_DIFFERS]);
    }
    Substitute::statement(
        before,
        format!("set -f; set -- $x; set +f; y=${field}"),
        "y",
        &[
            OF_VARIABLE,
            OF_ONE_LINE,
            OF_IFS,
            "it overwrites $1, $2, ...",
            ECHO_DIFFERS,
        ],
    )
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
        return Substitute::expansion(
            before,
            format!("[[ $x == *'{pattern}'* ]]"),
            &[OF_VARIABLE, ECHO_DIFFERS],
        );
    }
    if is_fixed {
        let after = format!("case $x in *'{pattern}'*) ... ;; esac");
        return Substitute::expansion(before, after, &[OF_VARIABLE, ECHO_DIFFERS]);
    }
    if call.is_bash() && (options.contains('E') || is_the_same_extended(pattern)) {
        return Substitute::expansion(
            before,
            format!("re='{pattern}'; [[ $x =~ $re ]]"),
            &[
                OF_VARIABLE,
                "for one line: ^, $ and . match against the whole text",
                ECHO_DIFFERS,
            ],
        );
    }
    None
}

/// Whether a basic regular expression means the same as an extended one: it has no character that is special in only one of them.
fn is_the_same_extended(pattern: &str) -> bool {
    let within = pattern.strip_prefix('^').unwrap_or(pattern);
    let within = within.strip_suffix('$').unwrap_or(within);
    !within.starts_with('*') && !within.contains(['\\', '+', '?', '{', '}', '(', ')', '|', '^', '$'])
}
