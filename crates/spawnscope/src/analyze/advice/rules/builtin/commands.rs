//! Commands that every shell has built in, called as programs, and arithmetic.

use super::super::super::shell::Dialect;
use super::call::{Call, Substitute};

/// A program that shells have built in: who calls it by its path, or through `env` or `command -p`, launches it.
fn built_in(name: &str) -> Option<Substitute> {
    Substitute::builtin(
        format!("/usr/bin/{name} ..."),
        format!("{name} ..."),
        "the builtin may know fewer options than the program",
    )
}

pub(super) fn echo(_: &Call) -> Option<Substitute> {
    built_in("echo")
}

pub(super) fn printf(_: &Call) -> Option<Substitute> {
    built_in("printf")
}

pub(super) fn always_true(call: &Call) -> Option<Substitute> {
    call.arguments.is_empty().then(|| built_in("true")).flatten()
}

pub(super) fn always_false(call: &Call) -> Option<Substitute> {
    call.arguments.is_empty().then(|| built_in("false")).flatten()
}

pub(super) fn kill(_: &Call) -> Option<Substitute> {
    built_in("kill")
}

pub(super) fn test(call: &Call) -> Option<Substitute> {
    let bracket = if call.has_extensions() { "[[ ... ]]" } else { "[ ... ]" };
    Substitute::builtin(
        "/usr/bin/test ...",
        bracket,
        "[[ ]] compares with patterns where = has no quotes",
    )
}

pub(super) fn bracket(call: &Call) -> Option<Substitute> {
    let bracket = if call.has_extensions() { "[[ ... ]]" } else { "[ ... ]" };
    Substitute::builtin(
        "/usr/bin/[ ... ]",
        bracket,
        "[[ ]] compares with patterns where = has no quotes",
    )
}

pub(super) fn sleep(call: &Call) -> Option<Substitute> {
    match call.words()[..] {
        ["0" | "0.0" | "0s" | ".0"] => Substitute::expansion("sleep 0", ":", "sleep 0 also lets others have the CPU"),
        _ => None,
    }
}

pub(super) fn expr(call: &Call) -> Option<Substitute> {
    let words = call.words();
    match words[..] {
        [_, operator @ ("+" | "-" | "*" | "/" | "%"), _] => {
            let shown = if operator == "*" { "\\*" } else { operator };
            Substitute::expansion(
                format!("$(expr \"$a\" {shown} \"$b\")"),
                format!("$((a {operator} b))"),
                "$(( )) reads a number with a leading zero as octal; expr also ends with status 1 when the result is 0",
            )
        }
        [_, operator @ ("<" | "<=" | ">" | ">=" | "=" | "!="), _] => {
            let option = match operator {
                "<" => "-lt",
                "<=" => "-le",
                ">" => "-gt",
                ">=" => "-ge",
                other => other,
            };
            Substitute::expansion(
                format!("expr \"$a\" '{operator}' \"$b\""),
                format!("[ \"$a\" {option} \"$b\" ]"),
                "expr compares what is no number as text",
            )
        }
        ["length", _] => Substitute::expansion("$(expr length \"$s\")", "${#s}", ""),
        ["substr", _, _, _] if call.has_extensions() => Substitute::expansion(
            "$(expr substr \"$s\" 1 n)",
            "${s:0:n}",
            "positions begin with 0 and not with 1",
        ),
        [_, ":", _] if call.is_bash() => Substitute::expansion(
            "$(expr \"$s\" : '\\(regex\\)')",
            "[[ $s =~ ^(regex) ]] && ${BASH_REMATCH[1]}",
            "[[ =~ ]] takes extended regular expressions, expr basic ones, which are bound to the beginning",
        ),
        _ => None,
    }
}

pub(super) fn seq(call: &Call) -> Option<Substitute> {
    let is_number = |word: &&str| word.parse::<i64>().is_ok();
    let words = call.words();
    // In a pipeline its numbers are wanted, not a loop.
    if !call.is_captured || !words.iter().all(is_number) {
        return None;
    }
    let (from, step, to) = match words[..] {
        [to] => ("1", "1", to),
        [from, to] => (from, "1", to),
        [from, step, to] => (from, step, to),
        _ => return None,
    };
    if step.starts_with('-') {
        return None;
    }
    let before = format!("for i in $(seq {})", words.join(" "));
    let next = if step == "1" {
        "i++".to_owned()
    } else {
        format!("i += {step}")
    };
    let after = if call.dialect == Dialect::Posix {
        format!("i={from}; while [ \"$i\" -le {to} ]; do ...; i=$((i + {step})); done")
    } else {
        format!("for ((i = {from}; i <= {to}; {next}))")
    };
    Substitute::expansion(before, after, "")
}
