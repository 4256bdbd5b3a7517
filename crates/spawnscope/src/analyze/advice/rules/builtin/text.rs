//! Filters on a text that fits in a variable: only where the shell reads the result, as in `$(echo "$x" | tr a b)`.

use super::super::super::shell::Dialect;
use super::call::{Call, Substitute, is_literal};

const OF_VARIABLE: &str = "for the text of a variable, not for files and not for what another program writes, unless that is \
                           put in a variable first";
const OF_FIRST_LINE: &str = "read gives the first line only, and ends with status 1 when that has no newline";

pub(super) fn cat(call: &Call) -> Option<Substitute> {
    let words = call.words();
    let [file] = words[..] else { return None };
    if file.starts_with('-') || !call.is_captured {
        return None;
    }
    if call.has_extensions() {
        Substitute::builtin("$(cat \"$f\")", "$(<\"$f\")", "for one file that can be read")
    } else {
        Substitute::expansion(
            "x=$(cat \"$f\")",
            "IFS= read -r x <\"$f\"",
            "only for files of one line; sh has nothing for more",
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
        ["-d", set] if is_literal(set) && !set.contains('-') => Substitute::expansion(
            through(&format!("tr -d '{set}'")),
            format!("${{x//[{set}]/}}"),
            OF_VARIABLE,
        ),
        [from, to]
            if [from, to]
                .iter()
                .all(|set| set.chars().count() == 1 && !"\\/'\"-".contains(*set)) =>
        {
            Substitute::expansion(
                through(&format!("tr '{from}' '{to}'")),
                format!("${{x//'{from}'/'{to}'}}"),
                OF_VARIABLE,
            )
        }
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
    let limits = if call.is_bash() {
        "needs bash 4.0; for the text of a variable"
    } else {
        OF_VARIABLE
    };
    Substitute::expansion(through(&format!("tr {}", words.join(" "))), after, limits)
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
    if delimiter.chars().count() != 1 || !(1..=9).contains(&field) {
        return None;
    }
    let before = through(&format!("cut -d'{delimiter}' -f{field}"));
    if field == 1 {
        return Substitute::expansion(before, format!("${{x%%'{delimiter}'*}}"), OF_VARIABLE);
    }
    let skipped = "_ ".repeat(field - 1);
    if call.has_extensions() {
        let after = format!("IFS='{delimiter}' read -r {skipped}y _ <<<\"$x\"");
        return Substitute::expansion(before, after, OF_VARIABLE);
    }
    let after = format!(
        "y=${{x#*'{delimiter}'}} {} times, then y=${{y%%'{delimiter}'*}}",
        field - 1
    );
    Substitute::expansion(before, after, OF_VARIABLE)
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
        return Substitute::expansion(before, after, OF_VARIABLE);
    }
    Substitute::expansion(
        before,
        format!("set -f; set -- $x; y=${field}"),
        "for the text of a variable of one line; it overwrites $1, $2, ...",
    )
}

pub(super) fn head(call: &Call) -> Option<Substitute> {
    let words = call.words();
    if !call.is_captured {
        return None;
    }
    match words[..] {
        ["-1" | "-n1"] | ["-n", "1"] => {
            let after = if call.has_extensions() {
                "IFS= read -r y <<<\"$x\""
            } else {
                "${x%%\"$newline\"*}"
            };
            Substitute::expansion(through("head -n1"), after, OF_VARIABLE)
        }
        ["-1" | "-n1", _] | ["-n", "1", _] => {
            Substitute::expansion("x=$(head -n1 \"$f\")", "IFS= read -r x <\"$f\"", OF_FIRST_LINE)
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
        ["-c" | "-m"] if call.is_fed => Substitute::expansion(
            format!("$(printf %s \"$x\" | wc {})", words[0]),
            "${#x}",
            "${#x} counts characters, and bytes only where LC_ALL=C is set",
        ),
        ["-l"] if call.is_bash() => Substitute::expansion(
            "n=$(wc -l <\"$f\")",
            "mapfile -t lines <\"$f\"; n=${#lines[@]}",
            OF_SMALL,
        ),
        ["-l", _] if call.is_bash() => Substitute::expansion(
            "n=$(wc -l \"$f\")",
            "mapfile -t lines <\"$f\"; n=${#lines[@]}",
            OF_SMALL,
        ),
        _ => None,
    }
}

const OF_SMALL: &str = "for small files: mapfile keeps every line";

pub(super) fn grep(call: &Call) -> Option<Substitute> {
    let words = call.words();
    let (options, pattern) = match words[..] {
        [options, pattern] | [options, "--", pattern] | [options, "-e", pattern] => (options, pattern),
        _ => return None,
    };
    let is_quiet = options.strip_prefix('-').is_some_and(|letters| {
        letters.contains('q') && letters.chars().all(|letter| matches!(letter, 'q' | 'F' | 'E' | 's'))
    });
    if !is_quiet || !call.is_fed {
        return None;
    }
    let before = format!("echo \"$x\" | grep {options} '{pattern}'");
    let is_fixed = options.contains('F') && !pattern.contains('\'') || is_literal(pattern);
    if is_fixed && call.has_extensions() {
        return Substitute::expansion(before, format!("[[ $x == *'{pattern}'* ]]"), OF_VARIABLE);
    }
    if is_fixed {
        return Substitute::expansion(before, format!("case $x in *'{pattern}'*) ... ;; esac"), OF_VARIABLE);
    }
    let is_extended = options.contains('E') || !pattern.contains(['\\', '+', '?', '{', '(', '|']);
    if call.is_bash() && is_extended {
        return Substitute::expansion(
            before,
            format!("re='{pattern}'; [[ $x =~ $re ]]"),
            "for one line: ^ and $ are the ends of the whole text",
        );
    }
    None
}
