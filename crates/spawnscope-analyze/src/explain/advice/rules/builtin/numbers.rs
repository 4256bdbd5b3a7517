//! Replacements for arithmetic and comparisons by expr, and for seq.

use super::call::{Call, ExactFor, Form, Substitute};
use crate::patterns::shells::Dialect;

pub(super) fn arithmetic(call: &Call) -> Option<Substitute> {
    let operator = &call.arguments[1];
    let shown = if operator == "*" { "\\*" } else { operator };
    let substitute = Substitute::code(
        format!("$(expr \"$a\" {shown} \"$b\")"),
        format!("$((a {operator} b))"),
        &[
            "`$(( ))` reads a number with a leading zero as octal, treats other text as a variable name or as 0, and computes with 64-bit integers",
            "expr also exits with status 1 when the result is 0",
        ],
    )?;
    Some(substitute.edited_as(Form::Word(format!("$(({{#1}} {operator} {{#3}}))")), ExactFor::Integers))
}

/// Replaces a comparison that expr makes: of numbers if both operands are numbers, otherwise of
/// strings. `None` if strings are compared with < or >, which sh cannot do.
pub(super) fn comparison(call: &Call) -> Option<Substitute> {
    let [a, operator, b] = call.words()[..] else {
        return None;
    };
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
    Substitute::code(
        format!("expr \"$a\" '{operator}' \"$b\""),
        format!("[ \"$a\" {option} \"$b\" ]"),
        &[
            "expr compares numbers if both operands are numbers, otherwise text; `[ -eq ]` compares only numbers, `[ = ]` only text; \
             expr also prints 1 or 0",
        ],
    )
}

/// Replaces a sequence of numbers that a loop reads.
pub(super) fn seq(call: &Call) -> Option<Substitute> {
    // Only integers are replaced. They are printed without leading zeros, because 010 would be
    // octal in a loop.
    let numbers: Option<Vec<i64>> = call.words().iter().map(|word| word.parse().ok()).collect();
    let (from, step, to) = match numbers?[..] {
        [to] => (1, 1, to),
        [from, to] => (from, 1, to),
        [from, step, to] => (from, step, to),
        _ => return None,
    };
    // The loop would not end if the number after the last one overflowed.
    if step < 1 || to.checked_add(step).is_none() {
        return None;
    }
    let before = format!("for i in $(seq {})", call.words().join(" "));
    if matches!(call.dialect, Dialect::Posix | Dialect::Ksh) {
        let after = format!("i={from}; while [ \"$i\" -le {to} ]; do ...; i=$((i + {step})); done");
        return Substitute::code(
            before,
            after,
            &["before `continue`, the loop body must increment `i` itself; it must not change `i` otherwise"],
        );
    }
    let next = if step == 1 { "i++".to_owned() } else { format!("i += {step}") };
    let after = format!("for ((i = {from}; i <= {to}; {next}))");
    Substitute::code(before, after, &["only if the loop body does not change `i`"])
}
