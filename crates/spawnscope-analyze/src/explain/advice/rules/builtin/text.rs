//! Replacements that are computed from the arguments: for filters whose input is the text of a
//! variable and whose output the shell reads, as in `$(echo "$x" | tr a b)`, and for seq and date.

use super::call::{
    Call, Exact, ExactFor, Form, Substitute, TEXT_LIMIT, escape_pattern, escape_substitution_pattern, has_only,
    is_literal, is_literal_replacement,
};
use crate::explain::advice::phrases::quoted;
use crate::patterns::expressions::extended;
use crate::patterns::shells::Dialect;

const OCTAL_LIMIT: &str = "`$(( ))` reads a number with a leading zero as octal, treats other text as a variable name or as 0, and computes with 64-bit integers";
const ZERO_LIMIT: &str = "expr also exits with status 1 when the result is 0";
const IFS_LIMIT: &str = "only with the default IFS";

/// Replaces or removes characters.
pub(super) fn tr(call: &Call) -> Option<Substitute> {
    let step = match call.words()[..] {
        // Only ASCII, since tr works on bytes and the shell on characters.
        ["-d", set] if is_character(set) => format!("//{}/", escape_substitution_pattern(set)),
        ["-d", set] if is_literal(set) && set.is_ascii() && !set.contains(['-', '!', '/']) => format!("//[{set}]/"),
        [from, to] if [from, to].iter().all(|set| is_character(set) || *set == "-") && is_literal_replacement(to) => {
            format!("//{}/{to}", escape_substitution_pattern(from))
        }
        _ => return None,
    };
    Some(Substitute::of_filter(call, Form::of_input([step]), ExactFor::Any, &[]))
}

/// Whether a set is a single ASCII character that needs no escape in single quotes.
fn is_character(set: &str) -> bool {
    set.len() == 1 && set.chars().all(|each| (each.is_ascii_graphic() || each == ' ') && !"\\'-".contains(each))
}

pub(super) fn cut(call: &Call) -> Option<Substitute> {
    let (delimiter, fields) = match (options_of(&call.words(), ["-d", "-f"]), options_of(&call.words(), ["-c", "-b"])) {
        (Some([Some(delimiter), Some(fields)]), _) => (delimiter, fields),
        (_, Some([Some(range), None] | [None, Some(range)])) => return characters(call, range, ExactFor::Line),
        _ => return None,
    };
    let pattern = escape_pattern(delimiter);
    let form = match fields.trim() {
        _ if !(is_character(delimiter) || delimiter == "-") => return None,
        "2-" if delimiter != "-" => Form::of_input([format!("#*{pattern}")]),
        // What follows these fields is removed, and the delimiter before it.
        fields if fields.starts_with("1-") => {
            let count = fields[2..].parse().ok().filter(|count| (2..10).contains(count) && delimiter != "-")?;
            Form::of_input([format!("%{pattern}\"${{{{v}}#{}}}\"", format!("*{pattern}").repeat(count))])
        }
        field => match field.parse().ok()? {
            1 => Form::of_input([format!("%%{pattern}*")]),
            2 => Form::of_input([format!("#*{pattern}"), format!("%%{pattern}*")]),
            // cut gives nothing for a field that is missing, but the whole line if it has no
            // delimiter at all. Unlike `cut`, `read` would merge consecutive blanks.
            field @ 3..10 => {
                let quoted = pattern.replace(' ', "\\ ");
                let field = between(delimiter, field);
                Form::Statement(format!("case {{x}} in *{quoted}*) {field};; *) {{y}}={{x}};; esac"))
            }
            _ => return None,
        },
    };
    Some(Substitute::of_filter(call, form, ExactFor::Line, &[]))
}

/// Returns commands that set a variable to the field between separators of one character. A missing
/// field is empty.
fn between(separator: &str, field: usize) -> String {
    let (missing, pattern) = (separator.repeat(field - 1), escape_pattern(separator));
    let steps = format!("{{y}}=${{{{y}}#*{pattern}}}; ").repeat(field - 1);
    format!("{{y}}={{x}}'{missing}'; {steps}{{y}}=${{{{y}}%%{pattern}*}}")
}

/// Replaces a head that prints the first characters of a text.
pub(super) fn head(call: &Call) -> Option<Substitute> {
    let count = options_of(&call.words(), ["-c", "--bytes="])?[0].filter(|count| count.parse::<usize>().is_ok())?;
    characters(call, &format!("-{count}"), ExactFor::Any)
}

/// Replaces a program that prints a range of characters.
fn characters(call: &Call, range: &str, exact_for: ExactFor) -> Option<Substitute> {
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    let number = |text: &str, default: Option<usize>| if text.is_empty() { default } else { text.parse().ok() };
    let from = number(from, Some(1)).filter(|from| *from > 0)?;
    let length = match to {
        "" => String::new(),
        to => format!(":{}", (to.parse::<usize>().ok()? + 1).checked_sub(from)?),
    };
    let step = match (from, &length[..]) {
        _ if call.has_extensions() => format!(":{}{length}", from - 1),
        (1, ":1") => "%\"${{v}#?}\"".to_owned(),
        (2, "") => "#?".to_owned(),
        _ => return None,
    };
    let limit = "the program counts bytes, the shell characters";
    Some(Substitute::of_filter(call, Form::of_input([step]), exact_for, &[limit]))
}

/// Returns the values of options that are written `-d:` or `-d :`. `None` if there is anything
/// else.
fn options_of<'w>(words: &[&'w str], names: [&str; 2]) -> Option<[Option<&'w str>; 2]> {
    let mut values = [None; 2];
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        let at = names.iter().position(|name| word.starts_with(name))?;
        let value = word.strip_prefix(names[at]).filter(|value| !value.is_empty());
        values[at] = Some(value.or_else(|| words.next())?);
    }
    Some(values)
}

pub(super) fn awk(call: &Call) -> Option<Substitute> {
    let (program, separator) = match call.words()[..] {
        [program] => (program, None),
        ["-F", separator, program] => (program, Some(separator)),
        [option, program] => (program, Some(option.strip_prefix("-F")?)),
        _ => return None,
    };
    let body = program.trim().strip_prefix('{')?.strip_suffix('}')?;
    let field = body.trim().trim_end_matches(';').strip_prefix("print")?.trim();
    let number = field.strip_prefix('$').and_then(|field| field.parse().ok()).filter(|field| (1..=20).contains(field));
    if let Some(separator) = separator {
        let pattern = escape_pattern(separator);
        let form = match number {
            _ if !is_character(separator) || separator == " " => return None,
            None if field == "$NF" => Form::of_input([format!("##*{pattern}")]),
            Some(1) => Form::of_input([format!("%%{pattern}*")]),
            field => Form::Statement(between(separator, field?)),
        };
        return Some(Substitute::of_filter(call, form, ExactFor::Line, &[]));
    }
    let field: usize = number?;
    if call.has_extensions() {
        let form = Form::Statement(format!("read -r {}{{y}} _ <<<{{x}}", "_ ".repeat(field - 1)));
        return Some(Substitute::of_filter(call, form, ExactFor::Line, &[IFS_LIMIT]));
    }
    // The parameters of the script may be needed.
    let field = if field > 9 { format!("{{{field}}}") } else { field.to_string() };
    let form = Form::Statement(format!("set -f; set -- {{x}}; set +f; {{y}}=${field}"));
    let limits = &[IFS_LIMIT, "`set` overwrites `$1`, `$2`, ..."];
    Some(Substitute { exact: None, ..Substitute::of_filter(call, form, ExactFor::Line, limits) })
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
    let is_known = !is_option && !pattern.contains(['\'', '\n']);
    if is_known && call.is_bash() && matches!(options, "-o" | "-oE" | "-Eo") {
        return Some(first_match(call, &extended(pattern, options.contains('E'))?));
    }
    if !is_quiet || !is_known {
        return None;
    }
    let is_fixed = options.contains('F') || is_literal(pattern);
    let (test, exact_for, limit) = match (is_fixed, call.has_extensions()) {
        (true, true) => (format!("[[ {{x}} == *'{pattern}'* ]]"), ExactFor::Any, TEXT_LIMIT),
        (true, false) => (format!("case {{x}} in *'{pattern}'*) true;; *) false;; esac"), ExactFor::Any, TEXT_LIMIT),
        _ if !call.is_bash() => {
            let test = case_of(&extended(pattern, options.contains('E'))?)?;
            (test, ExactFor::Line, "the pattern of `case` matches the whole text")
        }
        _ => {
            let pattern = &extended(pattern, options.contains('E'))?;
            let test = match is_plain_regex(pattern) {
                true => format!("[[ {{x}} =~ {pattern} ]]"),
                false => format!("{{ {{y}}='{pattern}'; [[ {{x}} =~ ${{y}} ]]; }}"),
            };
            (test, ExactFor::Line, "in the shell, `^`, `$` and `.` match against the whole text")
        }
    };
    let substitute = Substitute::of_filter(call, Form::Condition(test), exact_for, &[limit]);
    // Templates have braces, too.
    Some(Substitute { exact: substitute.exact.filter(|_| !pattern.contains(['{', '}'])), ..substitute })
}

/// Returns a `case` that asks whether a text of one line matches an extended regular expression.
fn case_of(expression: &str) -> Option<String> {
    let inside = expression.strip_prefix('^').and_then(|rest| rest.strip_suffix('$'));
    // A number: `^[0-9]+$`, or `^[0-9][0-9]*$`.
    let repeated = inside.and_then(|inside| {
        let set = inside.strip_suffix('+').or_else(|| {
            let two = inside.strip_suffix('*')?;
            two.get(..two.len() / 2).filter(|set| set.repeat(2) == two)
        })?;
        (set.starts_with('[') && set_length(set)? == set.len()).then_some(set)
    });
    if let Some(set) = repeated {
        return Some(format!("case {{x}} in '' | *[!{}*) false;; *) true;; esac", &set[1..]));
    }
    let mut glob = if expression.starts_with('^') { String::new() } else { "*".to_owned() };
    let mut rest = expression.strip_prefix('^').unwrap_or(expression);
    while let Some(first) = rest.chars().next().filter(|_| rest != "$") {
        let (part, length) = match first {
            '.' if rest.starts_with(".*") => ("*".to_owned(), 2),
            '[' => (rest[..set_length(rest)?].to_owned(), set_length(rest)?),
            '\\' => (escape_pattern(&rest.chars().nth(1)?.to_string()), 1 + rest.chars().nth(1)?.len_utf8()),
            _ if ".*+?(){}|^$".contains(first) => return None,
            _ => (escape_pattern(&first.to_string()), first.len_utf8()),
        };
        rest = &rest[length..];
        (!rest.starts_with(['*', '+', '?', '{'])).then_some(())?;
        glob.push_str(&part);
    }
    let end = if rest == "$" { "" } else { "*" };
    Some(format!("case {{x}} in {glob}{end}) true;; *) false;; esac"))
}

/// Returns the length of a set that means the same in a pattern of a shell: `[[:space:]_]`. `None`
/// if it contains characters that a shell interprets.
fn set_length(text: &str) -> Option<usize> {
    let length = text.replace(":]", "::").find(']')? + 1;
    let set = &text[1..length - 1];
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:,=@%+/-[]".contains(&byte);
    (!set.is_empty() && !set.starts_with(['!', '^', ']']) && set.bytes().all(is_plain)).then_some(length)
}

/// Replaces a grep that prints what matches.
fn first_match(call: &Call, pattern: &str) -> Substitute {
    let form = Form::Statement(format!("{{y}}='{pattern}'; [[ {{x}} =~ ${{y}} ]]; {{y}}=${{BASH_REMATCH[0]}}"));
    let limits = &["grep -o prints every match, `${BASH_REMATCH[0]}` is only the first one"];
    Substitute { exact: None, ..Substitute::of_filter(call, form, ExactFor::Line, limits) }
}

/// Whether a regular expression can stand in `[[ =~ ]]` without quotes.
fn is_plain_regex(pattern: &str) -> bool {
    let inside = pattern.strip_suffix('$').unwrap_or(pattern);
    !inside.is_empty() && has_only(inside, "_-.^*+?()|[]/:,@%=")
}

/// Replaces an expr that prints a group of a regular expression, or computes with whole numbers.
pub(super) fn expr(call: &Call) -> Option<Substitute> {
    if let [_, ":", pattern] = call.words()[..] { matched(call, pattern) } else { arithmetic(call) }
}

fn arithmetic(call: &Call) -> Option<Substitute> {
    let (mut before, mut after, mut edit, mut names) = (String::new(), String::new(), String::new(), 'a'..='z');
    for (number, word) in (1..).zip(call.words()) {
        match word {
            "+" | "-" | "/" | "%" => {
                [&mut before, &mut after, &mut edit].map(|text| text.push_str(&format!(" {word}")))
            }
            "*" | "(" | ")" => [(&mut before, "\\"), (&mut after, ""), (&mut edit, "")]
                .map(|(text, escape)| text.push_str(&format!(" {escape}{word}"))),
            _ => {
                word.parse::<i64>().ok()?;
                let name = names.next()?;
                [
                    (&mut before, format!(" \"${name}\"")),
                    (&mut after, format!(" {name}")),
                    (&mut edit, format!(" {{#{number}}}")),
                ]
                .map(|(text, word)| text.push_str(&word))
            }
        };
    }
    (call.arguments.len() > 2).then_some(())?;
    let [after, edit] = [after, edit].map(|text| format!("$(({}))", text.trim().replace("( ", "(").replace(" )", ")")));
    let limits = vec![OCTAL_LIMIT, ZERO_LIMIT];
    let exact = Some(Exact { form: Form::Word(edit), exact_for: ExactFor::Integers, limits: limits.clone() });
    Some(Substitute { exact, ..Substitute::code(format!("$(expr{before})"), after, &limits) })
}

fn matched(call: &Call, written: &str) -> Option<Substitute> {
    const LIMIT: &str = "a text that does not match no longer ends a script with `set -e`";
    if let Some((glob, steps)) = around_group(written).filter(|_| !call.is_bash()) {
        let steps: String = steps.iter().map(|step| format!(" {{y}}=${{{{y}}{step}}};")).collect();
        let form = Form::Statement(format!("{{y}}={{1}}; case ${{y}} in {glob}){steps}; *) {{y}}=;; esac"));
        let after = form.shown().0.replace("{1}", "$s");
        let exact = Some(Exact { form, exact_for: ExactFor::Any, limits: vec![LIMIT] });
        let before = format!("$(expr \"$s\" : {})", quoted(written));
        return Some(Substitute { sets: Some("y"), exact, ..Substitute::code(before, after, &[LIMIT]) });
    }
    let pattern = extended(written.strip_prefix('^').unwrap_or(written), false)?;
    (call.is_bash() && pattern.contains('(') && !pattern.contains('|')).then_some(())?;
    let template = format!("{{r}}='^{pattern}'; [[ {{1}} =~ ${{r}} ]] && {{y}}=${{BASH_REMATCH[1]}} || ! {{y}}=");
    let form = Form::Statement(template);
    let after = form.shown().0.replace("{1}", "$s");
    let limits = vec![LIMIT];
    let exact = Some(Exact { form, exact_for: ExactFor::Any, limits: limits.clone() });
    // Templates have braces, too.
    let exact = exact.filter(|_| !pattern.contains(['{', '}']));
    let before = format!("$(expr \"$s\" : {})", quoted(written));
    Some(Substitute { sets: Some("y"), exact, ..Substitute::code(before, after, &limits) })
}

/// Returns the pattern of a shell for an expression of expr that takes the text between others, and
/// the expansions that remove these: `X\(.*\)\.h$`, `x[^=]*=\(.*\)`, `.*/\(.*\)`.
fn around_group(written: &str) -> Option<(String, Vec<String>)> {
    let (before, after) = written.split_once("\\(.*\\)")?;
    let before = before.strip_prefix('^').unwrap_or(before);
    let (mut glob, mut steps) = (String::new(), Vec::new());
    if let Some(last) = before.strip_prefix(".*") {
        let last = literal_of(last)?;
        glob.push_str(&format!("*{last}"));
        steps.push(format!("##*{last}"));
    } else if let Some((start, end)) = before.split_once("[^") {
        let (separator, rest) = end.split_once("]*")?;
        let (start, rest) = (if start.is_empty() { String::new() } else { literal_of(start)? }, literal_of(rest)?);
        let separator = Some(escape_pattern(separator)).filter(|_| separator.chars().count() == 1);
        let separator = separator.filter(|separator| *separator == rest && !start.contains(&rest))?;
        glob.push_str(&format!("{start}*{separator}"));
        steps.push(format!("#*{separator}"));
    } else if !before.is_empty() {
        glob.push_str(&literal_of(before)?);
        steps.push(format!("#{glob}"));
    }
    glob.push('*');
    if !after.is_empty() {
        let end = literal_of(after.strip_suffix('$')?)?;
        glob.push_str(&end);
        steps.push(format!("%{end}"));
    }
    Some((glob, steps))
}

/// Returns a text that is the same in an expression and, unquoted, in a pattern of a shell.
fn literal_of(expression: &str) -> Option<String> {
    let text = expression.replace("\\.", ".");
    let is_plain = !text.is_empty() && !expression.replace("\\.", "").contains('.') && has_only(&text, "_-.,:=/@%+");
    is_plain.then(|| escape_pattern(&text))
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
        let limit = "before `continue`, the loop body must increment `i` itself; it must not change `i` otherwise";
        return Some(Substitute::code(before, after, &[limit]));
    }
    let next = if step == 1 { "i++".to_owned() } else { format!("i += {step}") };
    let after = format!("for ((i = {from}; i <= {to}; {next}))");
    Some(Substitute::code(before, after, &["only if the loop body does not change `i`"]))
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
    let before = format!("$(date {option}{of_time}'+{format}')");
    let after = format!("{zone}printf -v t '%({format})T' {shown}");
    let limits = vec!["`printf %(...)T` needs bash 4.2, and ignores a TZ that is set only for date"];
    let form = Form::Statement(format!("{zone}printf -v {{y}} '%({format})T' {time}"));
    let substitute = Substitute::code(before, after, &limits);
    let exact = Some(Exact { form, exact_for: ExactFor::Any, limits });
    Some(Substitute { sets: Some("t"), exact, ..substitute })
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
