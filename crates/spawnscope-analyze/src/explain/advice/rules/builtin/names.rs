//! Replacements for basename with a suffix, and for date.

use super::call::{BASENAME_LIMIT, Call, ExactFor, Form, NEWLINES_LIMIT, Operand, Substitute, has_only};

pub(super) fn basename_with_suffix(call: &Call) -> Option<Substitute> {
    let suffix = match call.words()[..] {
        ["--", _, suffix] | ["-s", suffix, _] => suffix,
        [path, suffix] if !path.starts_with('-') => suffix,
        _ => return None,
    };
    let is_plain = has_only(suffix, "._-+");
    let edits_first = is_plain && call.arguments.len() == 2;
    let exact_for = ExactFor::Name { suffix: suffix.to_owned() };
    let suffix = if is_plain { suffix } else { "\"$suffix\"" };
    let substitute = Substitute::statement(
        format!("$(basename \"$p\" {suffix})"),
        format!("b=${{p##*/}}; b=${{b%{suffix}}}"),
        "b",
        &[BASENAME_LIMIT, "basename does not remove a suffix that is the whole name", NEWLINES_LIMIT],
    )?;
    let steps = ["##*/", "%{2}"].map(str::to_owned).to_vec();
    let form = Form::Steps { operand: Operand::First, steps };
    Some(if edits_first { substitute.edited_as(form, exact_for) } else { substitute })
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
