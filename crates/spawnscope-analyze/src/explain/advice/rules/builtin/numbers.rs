//! Replacements for seq and date.

use super::call::{Call, ExactFor, Form, Substitute};
use crate::patterns::shells::Dialect;

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

pub(super) fn date(call: &Call) -> Option<Substitute> {
    let (format, options) = call.words().split_last().map(|(last, options)| (*last, options.to_vec()))?;
    let format = format.strip_prefix('+').filter(|format| is_strftime_format(format))?;
    let is_universal = options.first() == Some(&"-u");
    let is_time =
        |text: &str| text.strip_prefix('@').is_some_and(|time| time.bytes().all(|byte| byte.is_ascii_digit()));
    let (shown, time) = match options[usize::from(is_universal)..] {
        [] => ("-1", "-1".to_owned()),
        ["-d", time] if is_time(time) => ("\"$seconds\"", format!("{{@{}}}", options.len())),
        _ => return None,
    };
    let [zone, option] = if is_universal { ["TZ=UTC0 ", "-u "] } else { ["", ""] };
    let of_time = if options.len() > 1 { "-d \"@$seconds\" " } else { "" };
    let substitute = Substitute::statement(
        format!("$(date {option}{of_time}'+{format}')"),
        format!("{zone}printf -v t '%({format})T' {shown}"),
        "t",
        &["`printf %(...)T` needs bash 4.2, and ignores a TZ that is set only for date"],
    )?;
    let form = Form::Statement(format!("{zone}printf -v {{y}} '%({format})T' {time}"));
    Some(substitute.edited_as(form, ExactFor::Any))
}

/// Maximum length of the format between `%(` and `)T`, in bytes. The expanded text must fit into
/// bash's buffer of 128 bytes.
const MAX_FORMAT_BYTES: usize = 40;

/// Whether strftime, which bash calls, supports the whole format. date supports some letters and
/// colons that strftime lacks. Characters that the shell would take for the end of the format or
/// for an escape are excluded.
fn is_strftime_format(format: &str) -> bool {
    let mut rest = format;
    while let Some((text, conversion)) = rest.split_once('%') {
        let conversion = conversion.trim_start_matches(['-', '_', '0', '^']);
        let mut letters = conversion.chars();
        let is_known = letters.next().is_some_and(|letter| "aAbBcCdDeFgGhHIjklmMpPrRsSTuUVwWxXyYzZ%".contains(letter));
        if !is_known || !is_plain_text(text) {
            return false;
        }
        rest = letters.as_str();
    }
    is_plain_text(rest) && (1..=MAX_FORMAT_BYTES).contains(&format.len())
}

fn is_plain_text(text: &str) -> bool {
    text.chars().all(|each| each.is_ascii_alphanumeric() || " _./:,=@+-".contains(each))
}
