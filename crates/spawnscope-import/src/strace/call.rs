//! A whole call: its arguments, its result and its duration. Arguments are C-like text: strings
//! with escapes, arrays, structs, flags, comments, and with `-y` files in angle brackets. They are
//! kept as text, and each is decoded when it is needed.

use crate::text::{find, fraction, integer, number, skip_spaces, split_at_any};

/// A call that has returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<'l> {
    pub name: &'l [u8],
    pub arguments: Vec<&'l [u8]>,
    /// What the call returned. `None` if that is unknown or if it does not return.
    pub result: Option<i64>,
    /// The name of the error.
    pub error: Option<&'l [u8]>,
    /// What follows the result, without the duration, such as the descriptors that `poll` found.
    pub remark: &'l [u8],
    /// How long it took, in nanoseconds (`-T`).
    pub duration: Option<u64>,
}

impl<'l> Call<'l> {
    /// Parses a line from the name on. `None` if it is not complete.
    pub fn parse(text: &'l [u8]) -> Option<Call<'l>> {
        let (name, inside) = split_at_any(text, b"(")?;
        let (arguments, after) = items(inside, b')')?;
        let result = skip_spaces(skip_spaces(after).strip_prefix(b"=")?);
        let (result, duration) = take_duration(result);
        let (value, remark) = split_at_any(result, b" ").unwrap_or((result, b""));
        let error =
            matches!(value, b"-1" | b"?").then(|| split_at_any(remark, b" ").map_or(remark, |(error, _)| error));
        Some(Call {
            name,
            arguments,
            result: integer(value),
            error: error.filter(|error| error.first() == Some(&b'E')),
            remark,
            duration,
        })
    }

    /// Returns an argument, or nothing.
    pub fn argument(&self, index: usize) -> &'l [u8] {
        self.arguments.get(index).copied().unwrap_or_default()
    }

    /// Returns an argument that is a descriptor or another number.
    pub fn number(&self, index: usize) -> Option<i64> {
        integer(self.argument(index))
    }

    /// Returns the file of a descriptor, which strace writes with `-y`.
    pub fn file(&self, index: usize) -> Option<&'l [u8]> {
        file_of(self.argument(index))
    }

    /// Whether the call returned without an error.
    pub fn succeeded(&self) -> bool {
        self.error.is_none() && self.result.is_some_and(|result| result != -1)
    }

    pub fn has(&self, flag: &[u8]) -> bool {
        self.arguments.iter().any(|argument| find(argument, flag).is_some())
    }
}

/// Returns the file in angle brackets after a descriptor.
pub fn file_of(argument: &[u8]) -> Option<&[u8]> {
    let (descriptor, file) = split_at_any(argument, b"<")?;
    let is_descriptor = number(descriptor).is_some() || descriptor == b"AT_FDCWD";
    file.strip_suffix(b">").filter(|_| is_descriptor)
}

/// Removes the duration at the end of a line: `<0.000189>`.
pub fn take_duration(result: &[u8]) -> (&[u8], Option<u64>) {
    let duration = (|| {
        let at = result.strip_suffix(b">")?.iter().rposition(|byte| *byte == b'<')?;
        let (seconds, after) = number(&result[at + 1..])?;
        let (fraction, after) = fraction(after)?;
        (after == b">").then_some((at, seconds.checked_mul(1_000_000_000)?.checked_add(fraction)?))
    })();
    match duration {
        Some((at, duration)) => (result[..at].trim_ascii_end(), Some(duration)),
        None => (result.trim_ascii_end(), None),
    }
}

/// Divides a list at its commas. Returns the items, and what follows the bracket that closes the
/// list. `None` if nothing closes it.
pub fn items(text: &[u8], closing: u8) -> Option<(Vec<&[u8]>, &[u8])> {
    let (mut found, mut depth, mut start, mut at) = (Vec::new(), 0_usize, 0, 0);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => at = end_of_string(text, at)?,
            b'/' if text[at..].starts_with(b"/*") => at += find(&text[at..], b"*/")? + 1,
            b'<' if text.get(at + 1) == Some(&b'<') => at += 1,
            b'<' if at > 0 && text[at - 1].is_ascii_alphanumeric() => at = end_of_file(text, at)?,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth > 0 => depth -= 1,
            _ if byte == closing || byte == b',' && depth == 0 => {
                let item = text[start..at].trim_ascii();
                let is_empty_list = byte == closing && found.is_empty() && item.is_empty();
                if !is_empty_list {
                    found.push(item);
                }
                start = at + 1;
                if byte == closing {
                    return Some((found, &text[start..]));
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the position of the quote that ends a string.
fn end_of_string(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match *text.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Returns the position of the bracket that ends the file of a descriptor. Brackets in names of
/// files are escaped; `->` is between two addresses.
fn end_of_file(text: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.iter().enumerate().skip(start) {
        match byte {
            b'<' => depth += 1,
            b'>' if text[at - 1] != b'-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// A decoded string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    pub bytes: Vec<u8>,
    /// Whether strace cut it (`-s`).
    pub is_cut: bool,
}

/// Decodes a string argument. `None` if the argument is something else, such as an address.
pub fn string(argument: &[u8]) -> Option<Text> {
    let end = argument.first().filter(|byte| **byte == b'"').and_then(|_| end_of_string(argument, 0))?;
    Some(Text { bytes: unescape(&argument[1..end]), is_cut: argument[end + 1..].starts_with(b"...") })
}

/// Decodes an array of strings. Also returns whether it is complete.
pub fn strings(argument: &[u8]) -> Option<(Vec<Text>, bool)> {
    let (items, _) = items(argument.strip_prefix(b"[")?, b']')?;
    let texts: Vec<Text> = items.iter().map_while(|item| string(item)).collect();
    let is_whole = texts.len() == items.len();
    Some((texts, is_whole))
}

fn unescape(text: &[u8]) -> Vec<u8> {
    let (mut bytes, mut at) = (Vec::with_capacity(text.len()), 0);
    while let Some(&byte) = text.get(at) {
        at += 1;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let Some(&escape) = text.get(at) else { break };
        let (radix, from, most) = match escape {
            b'x' => (16, at + 1, 2),
            b'0'..=b'7' => (8, at, 3),
            _ => {
                at += 1;
                bytes.push(match escape {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    other => other,
                });
                continue;
            }
        };
        let digits = text[from..].iter().take(most).map_while(|digit| char::from(*digit).to_digit(radix));
        let (value, count) = digits.fold((0, 0), |(value, count), digit| (value * radix + digit, count + 1));
        bytes.push(value as u8);
        at = from + count;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Call<'_> {
        Call::parse(text.as_bytes()).unwrap_or_else(|| panic!("{text}"))
    }

    fn arguments<'l>(call: &Call<'l>) -> Vec<&'l str> {
        call.arguments.iter().map(|argument| std::str::from_utf8(argument).unwrap()).collect()
    }

    #[test]
    fn arguments_are_divided_at_commas_outside_of_brackets_strings_and_comments() {
        for (text, expected) in [
            ("getpid() = 5", vec![]),
            ("close(3)                  = 0", vec!["3"]),
            (
                r#"execve("/bin/a", ["a", "b,c)"], 0x7f /* 2 vars, */) = 0"#,
                vec![r#""/bin/a""#, r#"["a", "b,c)"]"#, "0x7f /* 2 vars, */"],
            ),
            (r#"write(1, "a\"b) = 7", 3) = 3"#, vec!["1", r#""a\"b) = 7""#, "3"]),
            ("read(3</a(b>, 0x1, 1) = 0", vec!["3</a(b>", "0x1", "1"]),
            ("read(0</dev/pts/1<char 136:1>>, 0x1) = 0", vec!["0</dev/pts/1<char 136:1>>", "0x1"]),
            ("recv(3<UNIX-STREAM:[1->2]>, 1<<2) = 0", vec!["3<UNIX-STREAM:[1->2]>", "1<<2"]),
            (
                "waitid(P_ALL, 0, {si_pid=5, si_uid=0}, WEXITED|WNOWAIT, NULL) = 0",
                vec!["P_ALL", "0", "{si_pid=5, si_uid=0}", "WEXITED|WNOWAIT", "NULL"],
            ),
        ] {
            assert_eq!(arguments(&parse(text)), expected, "{text}");
        }
        for torn in ["read(3, \"abc", "read(3, 5", "read(3)", "read", "open(\"a\", {x}", "close(3) 0", "read(3</a) = 0"]
        {
            assert_eq!(Call::parse(torn.as_bytes()), None, "{torn}");
        }
    }

    #[test]
    fn results_have_values_errors_remarks_and_durations() {
        let call = parse("open(\"a\", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000065>");
        assert_eq!((call.result, call.error, call.duration), (Some(-1), Some(&b"ENOENT"[..]), Some(65_000)));
        assert!(!call.succeeded());
        let call = parse("poll([{fd=3}], 1, -1) = 1 ([{fd=3, revents=POLLIN}]) <1.5>");
        assert_eq!((call.result, call.remark), (Some(1), &b"([{fd=3, revents=POLLIN}])"[..]));
        assert_eq!((call.error, call.duration), (None, Some(1_500_000_000)));
        let call = parse("exit_group(0) = ?");
        assert_eq!((call.result, call.succeeded()), (None, false));
        assert_eq!(parse("read(0) = ? ERESTARTSYS (To be restarted)").error, Some(&b"ERESTARTSYS"[..]));
        assert_eq!(parse("brk(NULL) = 0xffffffffffff0000").result, Some(-65_536));
        assert_eq!(parse("clone() = 1271<sh>").result, Some(1271));
        let call = parse("openat(AT_FDCWD</tmp>, \"a\", O_RDONLY) = 3</tmp/a>");
        assert_eq!((call.result, call.file(0), call.duration), (Some(3), Some(&b"/tmp"[..]), None));
    }

    #[test]
    fn strings_are_decoded_and_know_whether_they_were_cut() {
        for (text, bytes, is_cut) in [
            (r#""plain""#, &b"plain"[..], false),
            (r#""a\n\t\r\v\f\\\"\0\1778\x7fz"..."#, b"a\n\t\r\x0b\x0c\\\"\0\x7f8\x7fz", true),
            (r#""\303\244""#, "ä".as_bytes(), false),
            (r#""""#, b"", false),
        ] {
            assert_eq!(string(text.as_bytes()), Some(Text { bytes: bytes.to_vec(), is_cut }), "{text}");
        }
        assert_eq!(string(b"0x7ffc"), None);
        let (texts, is_whole) = strings(br#"["a", "b"..., ...]"#).unwrap();
        assert_eq!((texts.len(), texts[1].is_cut, is_whole), (2, true, false));
        assert_eq!(strings(b"[]"), Some((vec![], true)));
        assert_eq!(strings(b"0x7ffe /* 35 vars */"), None);
    }
}
