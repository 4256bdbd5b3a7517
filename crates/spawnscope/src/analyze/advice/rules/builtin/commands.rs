//! Commands that every shell has built in, called as programs, and arithmetic.

use super::super::super::shell::Dialect;
use super::call::{AS_IT_IS, Call, Substitute};

/// A program that shells have built in: who calls it by its path, or through `env` or `command -p`, launches it.
fn built_in(name: &str) -> Option<Substitute> {
    Substitute::builtin(
        format!("/usr/bin/{name} ..."),
        format!("{name} ..."),
        &["the builtin may know fewer options than the program"],
    )
}

pub(super) fn echo(call: &Call) -> Option<Substitute> {
    // Of shells but bash, each makes its own of these.
    let words = call.words();
    let has_options = words.first().is_some_and(|word| word.starts_with('-') && *word != "-n");
    let is_plain = !has_options && words.iter().all(|word| !word.contains('\\'));
    (is_plain || matches!(call.dialect, Dialect::Bash))
        .then(|| built_in("echo"))
        .flatten()
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

// `[[ ]]` would save nothing more, and would compare with patterns and evaluate names.
pub(super) fn test(_: &Call) -> Option<Substitute> {
    built_in("test")
}

pub(super) fn bracket(_: &Call) -> Option<Substitute> {
    let limits = &["the builtin may know fewer options than the program"];
    Substitute::builtin("/usr/bin/[ ... ]", "[ ... ]", limits)
}

pub(super) fn sleep(call: &Call) -> Option<Substitute> {
    match call.words()[..] {
        ["0" | "0.0" | "0s" | ".0"] => {
            Substitute::expansion("sleep 0", ":", &["sleep 0 also lets others have the CPU"])
        }
        _ => None,
    }
}

pub(super) fn expr(call: &Call) -> Option<Substitute> {
    match call.words()[..] {
        [_, operator @ ("+" | "-" | "*" | "/" | "%"), _] => arithmetic(operator),
        [a, operator @ ("<" | "<=" | ">" | ">=" | "=" | "!="), b] => comparison(a, operator, b),
        ["length", _] if call.has_extensions() => Substitute::expansion("$(expr length \"$s\")", "${#s}", &[]),
        ["length", _] => {
            let limits = &["sh may count bytes, where expr counts characters"];
            Substitute::expansion("$(expr length \"$s\")", "${#s}", limits)
        }
        ["substr", _, _, _] if call.has_extensions() => Substitute::expansion(
            "$(expr substr \"$s\" 1 n)",
            "${s:0:n}",
            &["positions begin with 0 and not with 1", AS_IT_IS],
        ),
        // Without a group it tells how much fits.
        [_, ":", regex] if call.is_bash() && regex.contains("\\(") => Substitute::statement(
            "$(expr \"$s\" : '\\(regex\\)')",
            "y=; [[ $s =~ ^(regex) ]] && y=${BASH_REMATCH[1]}",
            "y",
            &[
                "[[ =~ ]] takes extended regular expressions, expr basic ones, which are bound to the beginning",
                AS_IT_IS,
            ],
        ),
        _ => None,
    }
}

fn arithmetic(operator: &str) -> Option<Substitute> {
    let shown = if operator == "*" { "\\*" } else { operator };
    Substitute::expansion(
        format!("$(expr \"$a\" {shown} \"$b\")"),
        format!("$((a {operator} b))"),
        &[
            "$(( )) reads a number with a leading zero as octal, takes what is no number for a name or for 0, and has 64 bits",
            "expr also ends with status 1 when the result is 0",
        ],
    )
}

/// As numbers when both are, as text otherwise; for the order of texts sh has nothing.
fn comparison(a: &str, operator: &str, b: &str) -> Option<Substitute> {
    let is_of_numbers = [a, b].iter().all(|operand| operand.parse::<i64>().is_ok());
    let option = match operator {
        "=" | "!=" if !is_of_numbers => operator,
        _ if !is_of_numbers => return None,
        "<" => "-lt",
        "<=" => "-le",
        ">" => "-gt",
        ">=" => "-ge",
        "=" => "-eq",
        _ => "-ne",
    };
    Substitute::expansion(
        format!("expr \"$a\" '{operator}' \"$b\""),
        format!("[ \"$a\" {option} \"$b\" ]"),
        &[
            "expr compares as numbers when both are, and else as text: [ -eq ] only numbers, [ = ] only text; it also writes 1 or 0",
        ],
    )
}

pub(super) fn seq(call: &Call) -> Option<Substitute> {
    // In a pipeline its numbers are wanted, not a loop.
    if !call.is_captured {
        return None;
    }
    // As numbers: a loop would take 010 for eight.
    let numbers: Option<Vec<i64>> = call.words().iter().map(|word| word.parse().ok()).collect();
    let (from, step, to) = match numbers?[..] {
        [to] => (1, 1, to),
        [from, to] => (from, 1, to),
        [from, step, to] => (from, step, to),
        _ => return None,
    };
    // Beyond the last number there has to be another one, for the loop to end.
    if step < 1 || to.checked_add(step).is_none() {
        return None;
    }
    let before = format!("for i in $(seq {})", call.words().join(" "));
    if matches!(call.dialect, Dialect::Posix | Dialect::Ksh) {
        let after = format!("i={from}; while [ \"$i\" -le {to} ]; do ...; i=$((i + {step})); done");
        return Substitute::expansion(
            before,
            after,
            &["what changes i in the loop, or leaves a turn by continue, has to count too"],
        );
    }
    let next = if step == 1 {
        "i++".to_owned()
    } else {
        format!("i += {step}")
    };
    let after = format!("for ((i = {from}; i <= {to}; {next}))");
    Substitute::expansion(before, after, &["not where the loop itself changes i"])
}
