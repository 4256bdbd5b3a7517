//! Finds names with secret values inside one argument, in the syntax of any language: `--password=X`, `a=1&token=X`, `{"secret": "X"}`,
//! `Password=X;`, `auth=("u", "X")`, HTTP headers, and SQL clauses that set passwords. `names` decides which names are secret.

use std::ops::Range;

use super::names::{self, SecretType};
use super::secret_ranges::SecretRanges;
use super::values::{self, find_closing, secret_part};

/// Only this many bytes at the end of a name are examined.
const MAX_NAME_BYTES: usize = 64;
/// Names of URL parameters whose values are secret.
const QUERY_NAMES: [&str; 12] = [
    "sig",
    "signature",
    "x-amz-signature",
    "x-goog-signature",
    "sid",
    "session",
    "sessionid",
    "hmac",
    "ticket",
    "jsessionid",
    "phpsessid",
    "code",
];
/// Words at the start of a header's value that say what kind of credentials follows.
const SCHEMES: [&str; 13] = [
    "bearer",
    "basic",
    "token",
    "digest",
    "negotiate",
    "apikey",
    "ssws",
    "geniekey",
    "bot",
    "oauth",
    "splunk",
    "key",
    "sso-key",
];

/// Finds the secrets in a text.
pub(super) fn find(text: &[u8], ranges: &mut SecretRanges) {
    let separators =
        text.iter().enumerate().filter(|(_, byte)| matches!(byte, b'=' | b':' | b'>' | b'(' | b'\'' | b'"'));
    for (at, byte) in separators {
        // Does not search within a secret that was already found.
        if ranges.iter().next_back().is_some_and(|last| last.contains(&at)) {
            continue;
        }
        match byte {
            b'=' => find_assignment(text, at, ranges),
            b':' => find_colon_pair(text, at, ranges),
            b'>' => find_element(text, at, ranges),
            b'(' => find_call(text, at, ranges),
            b'\'' | b'"' => find_clause(text, at, ranges),
            _ => {}
        }
    }
}

/// Finds the secret in an argument that is a single assignment. Its value may contain anything, including spaces and quotes. Text before further
/// equals signs is also checked as a name: `--from-literal=password=X`. If `is_property`, `-D` does not define C macros. Returns whether there
/// is a secret.
pub(super) fn find_whole(word: &[u8], is_property: bool, ranges: &mut SecretRanges) -> bool {
    const MAX_LEVELS: usize = 4;
    let mut start = 0;
    for _ in 0..MAX_LEVELS {
        let Some(length) = word[start..].iter().position(|byte| *byte == b'=') else {
            break;
        };
        let equals = start + length;
        if word[start..equals].iter().any(|byte| byte.is_ascii_whitespace() || b"\"'?&<>(){}$`".contains(byte)) {
            break;
        }
        let name = name_before(word, skip_closers(word, equals).0);
        if let Some(judged) = judge(&word[name], is_property) {
            let value = equals + 1..end_of_form_field(word, equals + 1);
            return add(judged, value, word, ranges);
        }
        start = equals + 1;
    }
    find_colon_option(word, ranges)
}

/// Finds `--password:X` and `/password:X`, which are options of .NET and Windows programs, and `secretKey:X`.
fn find_colon_option(word: &[u8], ranges: &mut SecretRanges) -> bool {
    let Some(colon) = word.iter().position(|byte| *byte == b':') else {
        return false;
    };
    let name = &word[..colon];
    let is_apart = word.get(colon + 1).is_some_and(u8::is_ascii_whitespace);
    let is_option = matches!(name, [b'-' | b'/', rest @ ..] if is_dotless_name(rest)) && !is_apart;
    let value = &word[colon + 1..];
    let is_pair = !name.is_empty() && is_dotless_name(name) && !name.starts_with(b"-") && is_generated(value);
    match names::judge(name).filter(|judged| is_option || is_pair && *judged != SecretType::Key) {
        Some(judged) => add(judged, colon + 1..word.len(), word, ranges),
        None => false,
    }
}

/// Whether a text consists of bytes of a name other than dots.
fn is_dotless_name(name: &[u8]) -> bool {
    name.iter().all(|byte| is_name_byte(byte) && *byte != b'.')
}

/// Whether a value looks generated because it contains letters and digits. Words and versions do not: `npm run token:reset`, `auth-token:1.2`.
fn is_generated(value: &[u8]) -> bool {
    const MIN_LENGTH: usize = 6;
    let is_one_word = value.iter().all(|byte| byte.is_ascii_graphic() && !b"/.:,".contains(byte));
    let is_mixed = value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic);
    value.len() >= MIN_LENGTH && is_one_word && is_mixed
}

fn judge(name: &[u8], is_property: bool) -> Option<SecretType> {
    if !is_property && names::is_macro(name) {
        return None;
    }
    names::judge(name).or_else(|| match name {
        b"sonar.login" | b"-Dsonar.login" => Some(SecretType::Secret),
        // A letter may precede the name: `-PsigningKey`, `-eTOKEN`. But clang's `-Rpass` reports on its passes.
        [b'-', letter, rest @ ..] if letter.is_ascii_alphabetic() && rest != b"pass" => names::judge(rest),
        _ => None,
    })
}

fn add(secret_type: SecretType, value: Range<usize>, text: &[u8], ranges: &mut SecretRanges) -> bool {
    let Some(part) = secret_part(secret_type, &text[value.clone()]) else {
        return false;
    };
    ranges.add(value.start + part.start..value.start + part.end);
    true
}

/// Returns where the value of a form field ends: before `&name=`, or at the end of the argument.
fn end_of_form_field(word: &[u8], start: usize) -> usize {
    let mut ampersands = (start..word.len()).filter(|at| word[*at] == b'&');
    ampersands.find(|at| begins_form_field(&word[at + 1..])).unwrap_or(word.len())
}

fn begins_form_field(text: &[u8]) -> bool {
    let length = text.iter().position(|byte| !is_name_byte(byte));
    length.is_some_and(|length| length > 0 && matches!(text[length], b'=' | b'['))
}

fn is_name_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(byte)
}

/// Returns the name that ends at `end`.
fn name_before(text: &[u8], end: usize) -> Range<usize> {
    let start = end.saturating_sub(MAX_NAME_BYTES);
    let before = text[start..end].iter().rposition(|byte| !is_name_byte(byte));
    before.map_or(start, |before| start + before + 1)..end
}

/// Returns the end of a name before characters that close it, as in `"name"` and `form[name]`, and whether a quote is among them.
fn skip_closers(text: &[u8], end: usize) -> (usize, bool) {
    let mut at = end;
    let mut is_quoted = false;
    while let Some(before) = at.checked_sub(1) {
        match text[before] {
            b'"' | b'\'' => is_quoted = true,
            b']' | b'\\' => {}
            _ if text[..at].ends_with(b"%5D") || text[..at].ends_with(b"%22") => at -= 2,
            _ => break,
        }
        at -= 1;
    }
    (at, is_quoted)
}

/// Returns the name before a separator, and whether the name is quoted. Spaces and quotes between them are skipped.
fn name_before_separator(text: &[u8], separator: usize) -> (Range<usize>, bool) {
    let separators = text[..separator].iter().rev().take_while(|byte| b"=:+?".contains(byte)).count().min(1);
    let spaces = text[..separator - separators].iter().rev().take_while(|byte| **byte == b' ').count().min(2);
    let (end, is_quoted) = skip_closers(text, separator - separators - spaces);
    (name_before(text, end), is_quoted)
}

/// Finds `name=value`, `name = "value"`, `name => "value"`.
fn find_assignment(text: &[u8], at: usize, ranges: &mut SecretRanges) {
    let after = &text[at + 1..];
    if after.first() == Some(&b'=') {
        return;
    }
    let (name, _) = name_before_separator(text, at);
    let preceding = name.start.checked_sub(1).map(|before| text[before]);
    let judged = judge(&text[name.clone()], false)
        .or_else(|| judge_parameter(&text[name.clone()], preceding))
        .or_else(|| judge_object(text, name.clone()));
    let Some(judged) = judged else {
        return;
    };
    let arrow = usize::from(after.first() == Some(&b'>'));
    let spaces = after[arrow..].iter().take_while(|byte| **byte == b' ').count();
    let start = at + 1 + arrow + spaces;
    let is_apart = spaces + arrow > 0 || name.end < at && text[at - 1] == b' ';
    if let Some(value) = quoted(text, start) {
        add(judged, value, text, ranges);
    } else if !is_apart {
        let end = end_of_unquoted(text, start, preceding);
        add(judged, start..end, text, ranges);
    }
}

/// Judges the name `data` in QEMU's option `-object secret,id=a,data=X`.
fn judge_object(text: &[u8], name: Range<usize>) -> Option<SecretType> {
    let word = text[..name.start].rsplit(u8::is_ascii_whitespace).next().unwrap_or_default();
    (&text[name] == b"data" && word.starts_with(b"secret,")).then_some(SecretType::Secret)
}

/// Judges the name of a URL parameter.
fn judge_parameter(name: &[u8], preceding: Option<u8>) -> Option<SecretType> {
    if !matches!(preceding, Some(b'?' | b'&')) {
        return None;
    }
    if name.eq_ignore_ascii_case(b"code") {
        return Some(SecretType::Key);
    }
    let is_secret = QUERY_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
    is_secret.then_some(SecretType::Secret)
}

/// Finds `"name": "value"`, `name: "value"`, a header, and `password: value` at the end of a line.
fn find_colon_pair(text: &[u8], at: usize, ranges: &mut SecretRanges) {
    let after = &text[at + 1..];
    if matches!(after.first(), Some(b'=' | b':') | None) || after.starts_with(b"//") {
        return;
    }
    let (name, is_quoted) = name_before_separator(text, at);
    if name.is_empty() || find_header(text, name.clone(), at, ranges) {
        return;
    }
    let preceding = name.start.checked_sub(1).map(|before| text[before]);
    let Some(judged) = names::judge(&text[name]) else {
        return;
    };
    let spaces = after.iter().take_while(|byte| **byte == b' ').count();
    let start = at + 1 + spaces;
    let next = text.get(start).copied();
    if !is_quoted && matches!(next, Some(b'"' | b'\'')) && next == preceding {
        // The colon is at the end of a string, such as the prompt "Password: ".
        return;
    }
    if let Some(value) = quoted(text, start) {
        add(judged, value, text, ranges);
    } else if is_quoted {
        add(
            judged,
            start..end_at(text, start, |byte| byte.is_ascii_whitespace() || b",}]\"'".contains(byte)),
            text,
            ranges,
        );
    } else if spaces > 0 {
        let value = start..end_at(text, start, |byte| matches!(byte, b'\n' | b'\r' | b'"' | b'\''));
        // A value of letters only, or of several words, is prose: `password: unchanged`.
        let word = text[value.clone()].trim_ascii_end();
        let is_word = !word.iter().any(u8::is_ascii_whitespace) && !word.iter().all(u8::is_ascii_alphabetic);
        let judged = if judged == SecretType::Password { judged } else { SecretType::Key };
        if is_word {
            add(judged, value, text, ranges);
        }
    }
}

/// Finds the secret in a header with a well-known name, anywhere in a text. Returns whether there is such a header.
fn find_header(text: &[u8], name: Range<usize>, colon: usize, ranges: &mut SecretRanges) -> bool {
    let attached = usize::from(text[name.clone()].starts_with(b"-H")) * 2;
    let start = name.start + attached;
    let is_known = is_known_header(&text[start..name.end]) && name.end == colon;
    let preceding = start.checked_sub(1).map(|before| text[before]);
    let begins = attached > 0 || preceding.is_none_or(|byte| byte.is_ascii_whitespace() || b"\"'=,{".contains(&byte));
    if !is_known || !begins {
        return false;
    }
    // If there are no quotes and no space after the colon, the next word is another argument: `http host X-Api-Token:X name=me`.
    let is_word = attached == 0
        && preceding.is_some_and(|byte| byte.is_ascii_whitespace())
        && !text[colon + 1..].first().is_some_and(u8::is_ascii_whitespace);
    let end = end_at(text, colon, |byte| {
        matches!(byte, b'\n' | b'\r' | b'"' | b'\'') || is_word && byte.is_ascii_whitespace()
    });
    add_header_value(text, colon + 1..end, ranges);
    true
}

/// Whether this is the name of a header that does not occur in prose or YAML.
fn is_known_header(name: &[u8]) -> bool {
    const NAMES: [&str; 10] = [
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "private-token",
        "job-token",
        "deploy-token",
        "api-key",
        "apikey",
        "ocp-apim-subscription-key",
    ];
    let is_extension = name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case(b"x-"));
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
        || (is_extension && names::is_secret_header(name))
}

/// Finds the secret in an argument that is a header: `name: value` or `name:value`.
pub(super) fn find_in_header(word: &[u8], ranges: &mut SecretRanges) {
    let Some(colon) = word.iter().position(|byte| *byte == b':') else {
        return;
    };
    if names::is_secret_header(word[..colon].trim_ascii()) {
        add_header_value(word, colon + 1..word.len(), ranges);
    }
}

fn add_header_value(text: &[u8], value: Range<usize>, ranges: &mut SecretRanges) {
    let text = &text[..value.end];
    let mut start = skip_spaces(text, value.start);
    let word_end = end_at(text, start, u8::is_ascii_whitespace);
    if SCHEMES.iter().any(|scheme| text[start..word_end].eq_ignore_ascii_case(scheme.as_bytes())) {
        start = skip_spaces(text, word_end);
    }
    if !values::is_plain(&text[start..]) {
        ranges.add(start..value.end);
    }
}

fn skip_spaces(text: &[u8], start: usize) -> usize {
    start + text[start..].iter().take_while(|byte| **byte == b' ').count()
}

/// Finds `<password>X</password>`.
fn find_element(text: &[u8], at: usize, ranges: &mut SecretRanges) {
    let name = name_before(text, at);
    let opens = name.start.checked_sub(1).is_some_and(|before| text[before] == b'<');
    if let Some(judged) = names::judge(&text[name]).filter(|_| opens) {
        let end = end_at(text, at + 1, |byte| *byte == b'<');
        add(judged, at + 1..end, text, ranges);
    }
}

/// Finds `db.auth("user", "X")`.
fn find_call(text: &[u8], at: usize, ranges: &mut SecretRanges) {
    let is_call = [".auth", "_auth", "BasicAuth", "ConvertTo-SecureString"]
        .iter()
        .any(|name| text[..at].ends_with(name.as_bytes()));
    if is_call && matches!(text.get(at + 1), Some(b'"' | b'\'')) {
        let end = end_at(text, at, |byte| *byte == b')');
        ranges.add(at + 1..end);
    }
}

/// Finds the SQL clauses `IDENTIFIED BY 'X'`, `WITH PASSWORD 'X'` and `PASSWORD('X')`, which have no separator before the value.
fn find_clause(text: &[u8], at: usize, ranges: &mut SecretRanges) {
    let before = &text[..at];
    let call = before.strip_suffix(b"(");
    let before = call.unwrap_or(before).trim_ascii_end();
    let sets_password = ends_with(before, b"password") && before.len() < at && (call.is_some() || is_sql(text));
    let is_clause = sets_password || ends_with(before, b" by") && contains(text, b"identified");
    if let Some(value) = quoted(text, at).filter(|_| is_clause) {
        add(SecretType::Password, value, text, ranges);
    }
}

fn is_sql(text: &[u8]) -> bool {
    [b"user".as_slice(), b"role", b"login"].iter().any(|word| contains(text, word))
}

/// Whether a text ends with a word, regardless of case.
fn ends_with(text: &[u8], word: &[u8]) -> bool {
    let start = text.len().checked_sub(word.len());
    start.is_some_and(|start| text[start..].eq_ignore_ascii_case(word))
}

/// Whether a text contains a word, regardless of case.
fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
}

/// Returns the text between the quotes that open at `start`, or in the parentheses of a tuple.
fn quoted(text: &[u8], start: usize) -> Option<Range<usize>> {
    let escape = usize::from(text.get(start) == Some(&b'\\'));
    let quote = *text.get(start + escape)?;
    if escape == 0 && quote == b'(' {
        let end = find_closing(text, start, b'(', b')').unwrap_or(text.len());
        return Some(start..end);
    }
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    let inside = start + escape + 1;
    let end = (inside..text.len())
        .find(|at| text[*at] == quote && (text[*at - 1] == b'\\') == (escape == 1))
        .map_or(text.len(), |end| end - escape);
    Some(inside..end.max(inside))
}

fn end_at(text: &[u8], start: usize, ends: impl Fn(&u8) -> bool) -> usize {
    text[start..].iter().position(ends).map_or(text.len(), |length| start + length)
}

/// Returns where an unquoted value ends. This depends on the byte before its name, which shows how the values are separated.
fn end_of_unquoted(text: &[u8], start: usize, preceding: Option<u8>) -> usize {
    let substituted = match &text[start..] {
        [b'$', b'(', ..] => find_closing(text, start + 1, b'(', b')'),
        [b'$', b'{', ..] => find_closing(text, start + 1, b'{', b'}'),
        _ => None,
    };
    if let Some(end) = substituted {
        return end;
    }
    let separators: &[u8] = match preceding {
        Some(b';') => b";\"'",
        Some(b'&' | b'?') => b"&#\"'`;|)",
        Some(b',') => b",\"'`;&|)",
        _ => b"\"'`;&|<>),}",
    };
    end_at(text, start, |byte| byte.is_ascii_whitespace() || separators.contains(byte))
}
