//! Filters on a text that fits into a variable, where the shell reads the result, as in `$(echo "$x" | tr a b)`.

use super::call::{AS_IT_IS, Call, Substitute, in_pattern, in_replaced, is_literal, is_replacement};
use crate::patterns::shells::Dialect;

const OF_VARIABLE: &str =
    "for the text of a variable; read files and the output of other programs into a variable first";
const OF_ONE_LINE: &str = "for one line: the program handles each line separately";
const OF_FIRST_LINE: &str = "read returns only the first line, and exits with status 1 if that has no newline";
const OF_LETTERS: &str =
    "tr changes only a to z, the shell all letters of its locale, as in émile; LC_ALL=C restricts it to a to z";
const OF_IFS: &str = "only with the default IFS";
const OF_SMALL: &str = "for small files, since mapfile stores every line, and not for output of another program; it counts a last line \
                        without a newline; wc also prints the name of a file argument";

pub(super) fn cat(call: &Call) -> Option<Substitute> {
    let words = call.words();
    let [file] = words[..] else { return None };
    if file.starts_with('-') || !call.is_captured {
        return None;
    }
    if call.has_extensions() {
        Substitute::builtin("$(cat \"$f\")", "$(<\"$f\")", &["for one readable file"])
    } else {
        Substitute::statement(
            "x=$(cat \"$f\")",
            "IFS= read -r x <\"$f\"",
            "x",
            &[
                "only for files of one line; sh has no equivalent for more",
                OF_FIRST_LINE,
            ],
        )
    }
}

pub(super) fn tr(call: &Call) -> Option<Substitute> {
    let words = call.words();
    if !call.is_captured || !call.has_extensions() {
        return None;
    }
    match words[..] {
        ["a-z" | "[a-z]" | "[:lower:]", "A-Z" | "[A-Z]" | "[:upper:]"] => {
            changed_case(call, &words, ["${x^^}", "typeset -u y=$x", "${(U)x}"])
        }
        ["A-Z" | "[A-Z]" | "[:upper:]", "a-z" | "[a-z]" | "[:lower:]"] => {
            changed_case(call, &words, ["${x,,}", "typeset -l y=$x", "${(L)x}"])
        }
        // tr works on bytes: a character of several bytes is not one character.
        ["-d", set] if is_literal(set) && set.is_ascii() && !set.contains(['-', '!', '/']) => Substitute::expansion(
            through(&format!("tr -d '{set}'")),
            format!("${{x//[{set}]/}}"),
            &[OF_VARIABLE, AS_IT_IS],
        ),
        [from, to] if is_character(from) && is_character(to) && is_replacement(to) => Substitute::expansion(
            through(&format!("tr '{from}' '{to}'")),
            format!("${{x//{}/{to}}}", in_replaced(from)),
            &[OF_VARIABLE, AS_IT_IS],
        ),
        _ => None,
    }
}

fn changed_case(call: &Call, words: &[&str], [bash, ksh, zsh]: [&str; 3]) -> Option<Substitute> {
    let after = match call.dialect {
        Dialect::Bash => bash,
        Dialect::Ksh => ksh,
        Dialect::Zsh => zsh,
        Dialect::Posix => return None,
    };
    let before = through(&format!("tr {}", words.join(" ")));
    match call.dialect {
        Dialect::Ksh => Substitute::statement(before, after, "y", &[OF_VARIABLE, OF_LETTERS, AS_IT_IS]),
        Dialect::Bash => Substitute::expansion(before, after, &["needs bash 4.0", OF_VARIABLE, OF_LETTERS, AS_IT_IS]),
        _ => Substitute::expansion(before, after, &[OF_VARIABLE, OF_LETTERS, AS_IT_IS]),
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
    let words = call.words();
    if !call.is_captured {
        return None;
    }
    let (delimiter, fields) = match words[..] {
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
        return Substitute::expansion(before, after, &[OF_VARIABLE, OF_ONE_LINE, AS_IT_IS]);
    }
    // `read` would merge several blanks in a row, and would find nothing in a text without delimiters.
    let others = format!("; y=${{y#*{pattern}}}").repeat(field - 2);
    let after = format!("y=${{x#*{pattern}}}{others}; y=${{y%%{pattern}*}}");
    let limits: &[&str] = match field {
        2 => &[OF_VARIABLE, OF_ONE_LINE, AS_IT_IS],
        _ => &[
            OF_VARIABLE,
            OF_ONE_LINE,
            "for a text with fewer fields it returns the last one, where cut prints nothing",
            AS_IT_IS,
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
    if !call.is_captured || !(1..=9).contains(&field) {
        return None;
    }
    let before = through(&format!("awk '{{ print ${field} }}'"));
    if call.has_extensions() {
        let after = format!("read -r {}y _ <<<\"$x\"", "_ ".repeat(field - 1));
        return Substitute::statement(before, after, "y", &[OF_VARIABLE, OF_ONE_LINE, OF_IFS, AS_IT_IS]);
    }
    Substitute::statement(
        before,
        format!("set -f; set -- $x; set +f; y=${field}"),
        "y",
        &[OF_VARIABLE, OF_ONE_LINE, OF_IFS, "it overwrites $1, $2, ...", AS_IT_IS],
    )
}

pub(super) fn head(call: &Call) -> Option<Substitute> {
    let words = call.words();
    if !call.is_captured {
        return None;
    }
    match words[..] {
        ["-1" | "-n1"] | ["-n", "1"] => {
            if call.has_extensions() {
                let after = "IFS= read -r y <<<\"$x\"";
                return Substitute::statement(through("head -n1"), after, "y", &[OF_VARIABLE, AS_IT_IS]);
            }
            Substitute::expansion(
                through("head -n1"),
                "${x%%\"$newline\"*}",
                &[OF_VARIABLE, "$newline must contain a newline", AS_IT_IS],
            )
        }
        ["-1" | "-n1", file] | ["-n", "1", file] if !file.starts_with('-') => {
            Substitute::statement("x=$(head -n1 \"$f\")", "IFS= read -r x <\"$f\"", "x", &[OF_FIRST_LINE])
        }
        _ => None,
    }
}

pub(super) fn wc(call: &Call) -> Option<Substitute> {
    let words = call.words();
    if !call.is_captured {
        return None;
    }
    match words[..] {
        // dash counts bytes in every locale.
        ["-m"] if call.is_fed && call.has_extensions() => {
            Substitute::expansion("$(printf %s \"$x\" | wc -m)", "${#x}", &[OF_ECHO])
        }
        ["-c"] if call.is_fed => Substitute::expansion(
            "$(printf %s \"$x\" | wc -c)",
            "${#x}",
            &["${#x} counts characters; it counts bytes only with LC_ALL=C", OF_ECHO],
        ),
        ["-l"] if call.is_bash() => count_of_lines("n=$(wc -l <\"$f\")"),
        ["-l", file] if call.is_bash() && !file.starts_with('-') => count_of_lines("n=$(wc -l \"$f\")"),
        _ => None,
    }
}

const OF_ECHO: &str = "if echo feeds wc, wc counts one newline more";

fn count_of_lines(before: &str) -> Option<Substitute> {
    Substitute::statement(before, "mapfile -t lines <\"$f\"; n=${#lines[@]}", "n", &[OF_SMALL])
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
    if !is_quiet || !call.is_fed || is_option || pattern.contains(['\'', '\n']) {
        return None;
    }
    let before = format!("echo \"$x\" | grep {options} '{pattern}'");
    let is_fixed = options.contains('F') || is_literal(pattern);
    if is_fixed && call.has_extensions() {
        return Substitute::expansion(before, format!("[[ $x == *'{pattern}'* ]]"), &[OF_VARIABLE, AS_IT_IS]);
    }
    if is_fixed {
        let after = format!("case $x in *'{pattern}'*) ... ;; esac");
        return Substitute::expansion(before, after, &[OF_VARIABLE, AS_IT_IS]);
    }
    if call.is_bash() && (options.contains('E') || is_the_same_extended(pattern)) {
        return Substitute::expansion(
            before,
            format!("re='{pattern}'; [[ $x =~ $re ]]"),
            &[
                OF_VARIABLE,
                "for one line: ^, $ and . match against the whole text",
                AS_IT_IS,
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
