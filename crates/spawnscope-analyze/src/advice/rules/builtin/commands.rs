//! Commands that every shell has as builtins but that are launched as programs, and arithmetic.

use super::call::{AS_IT_IS, Call, Substitute};
use crate::patterns::shells::Dialect;

/// Returns the substitute for a program that is a shell builtin. A script launches the program if it uses its path, `env` or `command -p`.
fn built_in(name: &str) -> Option<Substitute> {
    Substitute::builtin(
        format!("/usr/bin/{name} ..."),
        format!("{name} ..."),
        &["the builtin may know fewer options than the program"],
    )
}

pub(super) fn echo(call: &Call) -> Option<Substitute> {
    // Shells other than bash differ in options and backslashes.
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

// `[[ ]]` would save no more, would match patterns, and would evaluate names.
pub(super) fn test(_: &Call) -> Option<Substitute> {
    built_in("test")
}

pub(super) fn bracket(_: &Call) -> Option<Substitute> {
    let limits = &["the builtin may know fewer options than the program"];
    Substitute::builtin("/usr/bin/[ ... ]", "[ ... ]", limits)
}

pub(super) fn sleep(call: &Call) -> Option<Substitute> {
    match call.words()[..] {
        ["0" | "0.0" | "0s" | ".0"] => Substitute::expansion("sleep 0", ":", &["sleep 0 also yields the CPU"]),
        _ => None,
    }
}

pub(super) fn expr(call: &Call) -> Option<Substitute> {
    match call.words()[..] {
        [_, operator @ ("+" | "-" | "*" | "/" | "%"), _] => arithmetic(operator),
        [a, operator @ ("<" | "<=" | ">" | ">=" | "=" | "!="), b] => comparison(a, operator, b),
        ["length", _] if call.has_extensions() => Substitute::expansion("$(expr length \"$s\")", "${#s}", &[]),
        ["length", _] => {
            let limits = &["sh may count bytes; expr counts characters"];
            Substitute::expansion("$(expr length \"$s\")", "${#s}", limits)
        }
        ["substr", _, _, _] if call.has_extensions() => Substitute::expansion(
            "$(expr substr \"$s\" 1 n)",
            "${s:0:n}",
            &["positions start at 0, not at 1", AS_IT_IS],
        ),
        // Without a group, expr prints the length of the match.
        [_, ":", regex] if call.is_bash() && regex.contains("\\(") => Substitute::statement(
            "$(expr \"$s\" : '\\(regex\\)')",
            "y=; [[ $s =~ ^(regex) ]] && y=${BASH_REMATCH[1]}",
            "y",
            &[
                "[[ =~ ]] takes extended regular expressions; expr takes basic ones, anchored at the beginning",
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
            "$(( )) reads a number with a leading zero as octal, treats other text as a variable name or as 0, and has 64 bits",
            "expr also exits with status 1 when the result is 0",
        ],
    )
}

/// Compares numbers if both operands are numbers, and text otherwise. sh cannot compare the order of texts.
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
            "expr compares numbers if both operands are numbers, and text otherwise; [ -eq ] compares only numbers, [ = ] only text; expr \
             also prints 1 or 0",
        ],
    )
}

pub(super) fn seq(call: &Call) -> Option<Substitute> {
    // In a pipeline, another program reads the numbers.
    if !call.is_captured {
        return None;
    }
    // Only plain numbers: a loop would read 010 as octal.
    let numbers: Option<Vec<i64>> = call.words().iter().map(|word| word.parse().ok()).collect();
    let (from, step, to) = match numbers?[..] {
        [to] => (1, 1, to),
        [from, to] => (from, 1, to),
        [from, step, to] => (from, step, to),
        _ => return None,
    };
    // The loop ends only if a number after the last one exists.
    if step < 1 || to.checked_add(step).is_none() {
        return None;
    }
    let before = format!("for i in $(seq {})", call.words().join(" "));
    if matches!(call.dialect, Dialect::Posix | Dialect::Ksh) {
        let after = format!("i={from}; while [ \"$i\" -le {to} ]; do ...; i=$((i + {step})); done");
        return Substitute::expansion(
            before,
            after,
            &["code in the loop that changes i or uses continue must increment i itself"],
        );
    }
    let next = if step == 1 {
        "i++".to_owned()
    } else {
        format!("i += {step}")
    };
    let after = format!("for ((i = {from}; i <= {to}; {next}))");
    Substitute::expansion(before, after, &["not if the loop body changes i"])
}
