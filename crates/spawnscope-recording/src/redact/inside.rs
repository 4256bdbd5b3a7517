//! Finds names with secret values inside one argument, in the syntax of any language:
//! `--password=X`, `a=1&token=X`, `{"secret": "X"}`, `[ "$PASSWORD" = X ]`, `("token", "X")`, HTTP
//! headers, and SQL clauses that set passwords. `names` decides which names are secret.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::{Captures, Match, Regex};

use super::names::{self, Evidence, List, is_among};
use super::values::{self, find_closing};
use super::words::{Found, Word};
use super::{compile, is_revealing, shapes, urls};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An argument, which may be one assignment as a whole, with spaces in its value.
    Argument,
    /// The same for a program whose `-D` sets properties instead of C macros.
    Property,
    Header,
    /// A text that contains other things, such as a script.
    Text,
}

static QUERY_NAMES: List = List::named("query names");
static SCHEMES: List = List::named("header schemes");
static HEADERS: List = List::named("headers");

/// A name, what closes it (`"name"`, `form[name]`, `${name}`), and what separates it from its
/// value.
static PAIR: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r#"([A-Za-z0-9_.\-]+)((?:["'\]}\\]|%5D|%22)*)([\x20\t]{0,2})(=>|=~|!=|[:?+]?=|[:,]|-eq\b|-ne\b)(=*)([\x20\t]{0,2})"#,
    )
});
/// A name and a string after it: `["password"] "X"`, `requirepass "X"`.
static STRING: LazyLock<Regex> = LazyLock::new(|| compile(r#"([A-Za-z0-9_.\-]+)["'\]]*[\x20\t]+\\?["']([^"'\\\s]+)"#));
/// `X = "$PASSWORD"`.
static REVERSED: LazyLock<Regex> =
    LazyLock::new(|| compile(r#"([^\s"'$\[]+)["']?\s+(?:==?|!=|=~)\s+["']?\$\{?([A-Za-z0-9_]+)"#));
/// `case "$PASSWORD" in X) ...`.
static CASE: LazyLock<Regex> = LazyLock::new(|| compile(r#"\bcase\s+["']?\$\{?([A-Za-z0-9_]+)\S*\s+in\b"#));
static CASE_PATTERN: LazyLock<Regex> =
    LazyLock::new(|| compile(r#"(?:^|;;|\||\s)\s*\(?["']?([^\s"'();|]+)["']?\s*[|)]"#));
/// `<password>X</password>`.
static ELEMENT: LazyLock<Regex> = LazyLock::new(|| compile(r"<([A-Za-z0-9_.:\-]+)[^<>]*>([^<]+)"));
/// `db.auth("user", "X")`.
static CALL: LazyLock<Regex> =
    LazyLock::new(|| compile(r#"(?:[._]auth|(?i:basic_?auth)|ConvertTo-SecureString)\s*\(?\s*(["'][^)]*)"#));
/// SQL: `IDENTIFIED BY 'X'`, `USER u PASSWORD 'X'`, `PASSWORD('X')`.
static CLAUSE: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r#"(?i:identified\b[^;'"]*\bby\s*|(?:user|role|login)\b[^;]*\bpassword\s+|\bpassword\s*\(\s*)\\?["']([^'"\\]*)"#,
    )
});
/// `Bearer X`, without the name of a header.
static BEARER: LazyLock<Regex> = LazyLock::new(|| compile(r"\b(?:[Bb]earer|BEARER|Basic)\s+([A-Za-z0-9+/=._~\-]{4,})"));

/// Finds the secrets in a word, as it is and with its escapes decoded.
pub(super) fn find(word: &Word<'_>, kind: Kind, found: &mut Found) {
    let decoded = word.decoded();
    for word in [Some(word), decoded.as_ref()].into_iter().flatten().filter(|word| is_revealing(&word.text)) {
        let mut within = Found::default();
        find_in_text(&word.text, kind, &mut within);
        found.add_within(within, word);
    }
}

fn find_in_text(text: &[u8], kind: Kind, found: &mut Found) {
    shapes::find(text, false, found);
    urls::find(text, found);
    if kind == Kind::Header
        && let Some(colon) = text.iter().position(|byte| *byte == b':')
        && names::is_secret_header(text[..colon].trim_ascii())
    {
        add_header_value(text, colon + 1..text.len(), found);
    }
    let mut at = 0;
    while let Some(captures) = PAIR.captures_at(text, at) {
        let pair = Pair::new(text, kind, &captures);
        at = pair.end;
        if !found.contains(pair.separator) {
            pair.find(found);
        }
    }
    for (regex, name, value, is_certain) in [(&ELEMENT, 1, 2, true), (&REVERSED, 2, 1, true), (&STRING, 1, 2, false)] {
        // These forms have several words, but for the first.
        if text.iter().any(|byte| *byte == b'<' || byte.is_ascii_whitespace()) {
            for captures in regex.captures_iter(text) {
                mark_named(text, [captures.get(name), captures.get(value)], is_certain, found);
            }
        }
    }
    if text.iter().any(|byte| matches!(byte, b'"' | b'\'')) {
        for value in [&CALL, &CLAUSE]
            .into_iter()
            .flat_map(|regex| regex.captures_iter(text))
            .filter_map(|captures| captures.get(1))
        {
            found.mark(Evidence::Password, text, value.range());
        }
    }
    if text.iter().any(u8::is_ascii_whitespace) {
        find_in_words(text, found);
    }
}

/// Finds `Bearer X` and `case "$PASSWORD" in X)`.
fn find_in_words(text: &[u8], found: &mut Found) {
    for value in BEARER.captures_iter(text).filter_map(|captures| captures.get(1)) {
        let is_word = value.as_bytes().iter().all(|byte| byte.is_ascii_alphabetic() || b".-".contains(byte));
        if !is_word {
            found.mark(Evidence::Secret, text, value.range());
        }
    }
    find_in_cases(text, found);
}

fn mark_named(text: &[u8], pair: [Option<Match<'_>>; 2], is_certain: bool, found: &mut Found) {
    if let [Some(name), Some(value)] = pair
        && let Some(evidence) = names::judge(name.as_bytes())
    {
        found.mark(if is_certain { evidence } else { Evidence::Weak }, text, value.range());
    }
}

fn find_in_cases(text: &[u8], found: &mut Found) {
    const MAX_CASES: usize = 16;
    for captures in CASE.captures_iter(text).take(MAX_CASES) {
        let (Some(all), Some(name)) = (captures.get(0), captures.get(1)) else { continue };
        let Some(evidence) = names::judge(name.as_bytes()) else { continue };
        let rest = &text[all.end()..];
        let end = rest.windows(4).position(|window| window == b"esac").unwrap_or(rest.len());
        for pattern in CASE_PATTERN.captures_iter(&rest[..end]).filter_map(|captures| captures.get(1)) {
            if pattern.as_bytes().iter().any(u8::is_ascii_alphanumeric) {
                found.mark(evidence, text, all.end() + pattern.start()..all.end() + pattern.end());
            }
        }
    }
}

/// A name, a separator and the place where a value begins.
struct Pair<'t> {
    text: &'t [u8],
    kind: Kind,
    name: Range<usize>,
    is_quoted: bool,
    separator: usize,
    /// The separator's first byte, or `~` for a comparison.
    sign: u8,
    /// Whether there are spaces at the separator.
    is_apart: bool,
    /// The end of the separator and the spaces after it.
    end: usize,
}

impl<'t> Pair<'t> {
    fn new(text: &'t [u8], kind: Kind, captures: &Captures<'_>) -> Pair<'t> {
        let group = |at| captures.get(at).map_or(0..0, |found| found.range());
        let separator = group(4);
        let sign = match &text[separator.clone()] {
            [b'!', ..] | [b'-', ..] | [b'=', b'~'] => b'~',
            _ if !group(5).is_empty() => b'~',
            [b'=', b'>'] | [_, b'='] => b'=',
            other => other[0],
        };
        let name = group(1);
        let is_variable = text[..name.start].ends_with(b"$") || text[..name.start].ends_with(b"${");
        Pair {
            text,
            kind,
            name,
            is_quoted: text[group(2)].iter().any(|byte| b"\"'2".contains(byte)),
            separator: separator.start,
            sign: if is_variable && sign == b'=' { b'~' } else { sign },
            is_apart: !group(3).is_empty()
                || !group(6).is_empty()
                || separator.len() == 2 && text[separator.start] == b'=',
            end: group(6).end,
        }
    }

    fn find(&self, found: &mut Found) {
        if self.sign == b':' && self.find_header(found) {
            return;
        }
        let value = quoted(self.text, self.end);
        let Some(evidence) = self.judge() else { return self.find_user(value, found) };
        match (self.sign, value) {
            (b'=', _) if self.is_single() => {
                let end = end_of_form_field(self.text, self.end);
                found.mark(evidence, self.text, self.end..end);
            }
            (b'=' | b'~', Some(value)) => {
                found.mark(evidence, self.text, value);
            }
            (b'=', None) => {
                // A word after spaces may belong to prose or to a program: `token = next`.
                let value = self.end..self.end_of_unquoted();
                let certain = if self.is_apart { Evidence::Weak } else { evidence };
                if !found.mark(certain, self.text, value.clone()) && evidence != Evidence::Weak {
                    found.add_references(&self.text[value]);
                }
            }
            (b'~', None) => {
                let is_variable =
                    self.text[..self.name.start].ends_with(b"$") || self.text[..self.name.start].ends_with(b"{");
                let evidence = if is_variable { evidence } else { Evidence::Weak };
                let end =
                    end_at(self.text, self.end, |byte| byte.is_ascii_whitespace() || b"\"'`;&|<>)]}".contains(byte));
                found.mark(evidence, self.text, self.end..end);
            }
            (b',', Some(value)) if self.is_quoted => {
                // `("user", "password", "email")` is a list of names.
                let is_word =
                    self.text[value.clone()].iter().all(|byte| byte.is_ascii_lowercase() || b"_-".contains(byte));
                found.mark(if is_word { Evidence::Weak } else { evidence }, self.text, value);
            }
            (b':', value) => self.find_after_colon(evidence, value, found),
            _ => {}
        }
    }

    /// Finds the password in curl's configuration: `user = "me:X"`.
    fn find_user(&self, value: Option<Range<usize>>, found: &mut Found) {
        if let Some(value) = value.filter(|_| is_among(&self.text[self.name.clone()], "user proxy-user")) {
            let colon = value.clone().find(|at| self.text[*at] == b':');
            colon.into_iter().for_each(|colon| urls::add_pair(self.text, value.clone(), colon, found));
        }
    }

    fn preceding(&self) -> Option<u8> {
        self.name.start.checked_sub(1).map(|before| self.text[before])
    }

    /// Whether the whole argument is this assignment. Its value may contain anything:
    /// `--from-literal=password=a b`.
    fn is_single(&self) -> bool {
        /// A longer text is not one assignment, and a limit keeps the search linear.
        const MAX_BYTES: usize = 1024;
        let before = &self.text[..self.name.start];
        let is_plain = before.len() < MAX_BYTES
            && !before.iter().any(|byte| byte.is_ascii_whitespace() || b"\"'?&<>(){}$`".contains(byte));
        is_plain && !self.is_apart && matches!(self.kind, Kind::Argument | Kind::Property)
    }

    fn judge(&self) -> Option<Evidence> {
        let name = &self.text[self.name.clone()];
        if self.kind != Kind::Property && self.sign == b'=' && names::is_macro(name) {
            return None;
        }
        let is_parameter = matches!(self.preceding(), Some(b'?' | b'&'));
        names::judge(name).or_else(|| match name {
            b"sonar.login" | b"-Dsonar.login" => Some(Evidence::Secret),
            b"data" if self.text[..self.name.start].starts_with(b"secret,") => Some(Evidence::Secret),
            b"code" if is_parameter => Some(Evidence::Weak),
            // A letter may precede the name: `-PsigningKey`, `-eTOKEN`. But clang's `-Rpass`
            // reports on its passes.
            [b'-', letter, rest @ ..] if letter.is_ascii_alphabetic() && rest != b"pass" => names::judge(rest),
            _ => (is_parameter && QUERY_NAMES.has(name)).then_some(Evidence::Secret),
        })
    }

    /// Finds `"name": "value"`, `name: "value"`, `--password:X`, and `password: value` at the end
    /// of a line.
    fn find_after_colon(&self, evidence: Evidence, value: Option<Range<usize>>, found: &mut Found) {
        let rest = &self.text[self.end..];
        let next = rest.first().copied();
        if matches!(next, None | Some(b':')) || rest.starts_with(b"//") {
            return;
        }
        // The colon may be at the end of a string, such as the prompt "Password: ".
        let ends_string = !self.is_quoted && matches!(next, Some(b'"' | b'\'')) && next == self.preceding();
        let name = &self.text[self.name.clone()];
        let line = self.end..end_at(self.text, self.end, |byte| b"\n\r\"'".contains(byte));
        if ends_string {
        } else if let Some(value) = value {
            found.mark(evidence, self.text, value);
        } else if self.is_quoted && !matches!(next, Some(b'{' | b'[')) {
            let end = end_at(self.text, self.end, |byte| byte.is_ascii_whitespace() || b",}]\"'".contains(byte));
            found.mark(evidence, self.text, self.end..end);
        } else if self.is_apart {
            // A value of letters only, or of several words, is prose: `password: unchanged`.
            let closers = self.text[line.clone()].iter().rev().take_while(|byte| b"},;) ".contains(byte)).count();
            let word = &self.text[line.start..line.end - closers];
            let is_prose = word.iter().any(u8::is_ascii_whitespace) || word.iter().all(u8::is_ascii_alphabetic);
            let evidence = if evidence == Evidence::Password { evidence } else { Evidence::Weak };
            if !is_prose {
                found.mark(evidence, self.text, line.start..line.start + word.len());
            }
        } else if self.kind != Kind::Text && (self.name.start == 0 || self.name.start == 1 && self.text[0] == b'/') {
            // Options of .NET and Windows programs, and `secretKey:X`. But `npm run token:reset`
            // and `auth-token:1.2` name something else.
            let is_option = !name.contains(&b'.') && (name.starts_with(b"-") || self.name.start == 1);
            if is_option || evidence != Evidence::Weak && is_generated(rest) {
                found.mark(evidence, self.text, self.end..self.text.len());
            }
        }
    }

    /// Finds the secret in a header with a well-known name, anywhere in a text. Returns whether
    /// there is such a header.
    fn find_header(&self, found: &mut Found) -> bool {
        let attached = usize::from(self.text[self.name.clone()].starts_with(b"-H")) * 2;
        let start = self.name.start + attached;
        let name = &self.text[start..self.name.end];
        let is_extension = name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case(b"x-"));
        let is_known = HEADERS.has(name) || is_extension && names::is_secret_header(name);
        let preceding = self.preceding();
        let begins =
            attached > 0 || preceding.is_none_or(|byte| byte.is_ascii_whitespace() || b"\"'=,{".contains(&byte));
        let is_string = matches!(self.text.get(self.end), Some(b'"' | b'\''));
        if !is_known || !begins || is_string || self.name.end != self.separator {
            return false;
        }
        // If there are no quotes and no space after the colon, the next word is another argument:
        // `http host X-Api-Token:X name=me`.
        let is_word = attached == 0 && preceding.is_some_and(|byte| byte.is_ascii_whitespace()) && !self.is_apart;
        let end =
            end_at(self.text, self.end, |byte| b"\n\r\"'".contains(byte) || is_word && byte.is_ascii_whitespace());
        add_header_value(self.text, self.end..end, found);
        true
    }

    /// Returns where an unquoted value ends. This depends on the byte before its name, which shows
    /// how the values are separated.
    fn end_of_unquoted(&self) -> usize {
        let substituted = match &self.text[self.end..] {
            [b'$', b'(', ..] => find_closing(self.text, self.end + 1, b'(', b')'),
            [b'$', b'{', ..] => find_closing(self.text, self.end + 1, b'{', b'}'),
            _ => None,
        };
        let separators: &[u8] = match self.preceding() {
            Some(b';') => b";\"'",
            Some(b'&' | b'?') => b"&#\"'`;|)",
            Some(b',') => b",\"'`;&|)",
            _ => b"\"'`;&|<>),}",
        };
        substituted.unwrap_or_else(|| {
            end_at(self.text, self.end, |byte| byte.is_ascii_whitespace() || separators.contains(byte))
        })
    }
}

/// Whether a value looks generated because it contains letters and digits. Words and versions do
/// not.
fn is_generated(value: &[u8]) -> bool {
    const MIN_LENGTH: usize = 6;
    let is_one_word = value.iter().all(|byte| byte.is_ascii_graphic() && !b"/.:,".contains(byte));
    let is_mixed = value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic);
    value.len() >= MIN_LENGTH && is_one_word && is_mixed
}

/// Returns where the value of a form field ends: before `&name=`, or at the end of the argument.
fn end_of_form_field(word: &[u8], start: usize) -> usize {
    static FIELD: LazyLock<Regex> = LazyLock::new(|| compile(r"&[A-Za-z0-9_.\-]+[=\[]"));
    FIELD.find_at(word, start).map_or(word.len(), |field| field.start())
}

fn add_header_value(text: &[u8], value: Range<usize>, found: &mut Found) {
    let skip_spaces = |start| end_at(text, start, |byte| *byte != b' ').min(value.end);
    let mut start = skip_spaces(value.start);
    let word_end = end_at(text, start, u8::is_ascii_whitespace).min(value.end);
    if SCHEMES.has(&text[start..word_end]) {
        start = skip_spaces(word_end);
    }
    if values::is_plain(&text[start..value.end]) {
        found.add_references(&text[start..value.end]);
    } else {
        found.add(start..value.end);
    }
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
