//! Filters on a text that fits in a variable: only where the shell reads the result, as in `$(echo "$x" | tr a b)`.

use super::super::super::shell::Dialect;
use super::call::{AS_IT_IS, Call, Substitute, in_pattern, in_replaced, is_literal, is_replacement};

const OF_VARIABLE: &str = "for the text of a variable, not for files and not for what another program writes, unless that is \
                           put in a variable first";
const OF_ONE_LINE: &str = "for one line: of several, the program treats each";
const OF_FIRST_LINE: &str = "read gives the first line only, and ends with status 1 when that has no newline";
const OF_LETTERS: &str =
    "tr changes a to z only, the shell all letters that its locale knows, as in émile: LC_ALL=C keeps it to these";
const OF_IFS: &str = "with IFS as it is by default";
const OF_SMALL: &str = "for small files, since mapfile keeps every line, and not for what another program writes; a last line without a \
                        newline counts, and wc also writes the name of a file that is its argument";

pub(super) fn cat(call: &Call) -> Option<Substitute> {
    let words = call.words();
    let [file] = words[..] else { return None };
    if file.starts_with('-') || !call.is_captured {
        return None;
    }
    if call.has_extensions() {
        Substitute::builtin("$(cat \"$f\")", "$(<\"$f\")", &["for one file that can be read"])
    } else {
        Substitute::statement(
            "x=$(cat \"$f\")",
            "IFS= read -r x <\"$f\"",
            "x",
            &["only for files of one line, sh has nothing for more", OF_FIRST_LINE],
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
        // Its sets are of bytes: what has more than one is no single character to it.
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

/// One character that can be shown between single quotes.
fn is_character(set: &str) -> bool {
    set.len() == 1
        && set
            .chars()
            .all(|each| (each.is_ascii_graphic() || each == ' ') && !"\\'-".contains(each))
}

/// A filter as a script has it.
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
    // read would take several blanks in a row for one delimiter, and would find nothing in a text without any.
    let others = format!("; y=${{y#*{pattern}}}").repeat(field - 2);
    let after = format!("y=${{x#*{pattern}}}{others}; y=${{y%%{pattern}*}}");
    let limits: &[&str] = match field {
        2 => &[OF_VARIABLE, OF_ONE_LINE, AS_IT_IS],
        _ => &[
            OF_VARIABLE,
            OF_ONE_LINE,
            "of a text with some of the fields, but not with this one, it gives the last, and cut nothing",
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
                &[OF_VARIABLE, "where newline holds one", AS_IT_IS],
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
        // dash counts bytes, whatever the locale.
        ["-m"] if call.is_fed && call.has_extensions() => {
            Substitute::expansion("$(printf %s \"$x\" | wc -m)", "${#x}", &[OF_ECHO])
        }
        ["-c"] if call.is_fed => Substitute::expansion(
            "$(printf %s \"$x\" | wc -c)",
            "${#x}",
            &["${#x} counts characters, and bytes only where LC_ALL=C is set", OF_ECHO],
        ),
        ["-l"] if call.is_bash() => count_of_lines("n=$(wc -l <\"$f\")"),
        ["-l", file] if call.is_bash() && !file.starts_with('-') => count_of_lines("n=$(wc -l \"$f\")"),
        _ => None,
    }
}

const OF_ECHO: &str = "where echo feeds wc, that counts a newline more";

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
            &[OF_VARIABLE, "for one line: ^, $ and . see the whole text", AS_IT_IS],
        );
    }
    None
}

/// Whether a basic regular expression means the same as an extended one: no character in it is special in one of them only.
fn is_the_same_extended(pattern: &str) -> bool {
    let within = pattern.strip_prefix('^').unwrap_or(pattern);
    let within = within.strip_suffix('$').unwrap_or(within);
    !within.starts_with('*') && !within.contains(['\\', '+', '?', '{', '}', '(', ')', '|', '^', '$'])
}
