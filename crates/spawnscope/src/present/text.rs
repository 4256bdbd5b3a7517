//! Escapes bytes from other programs so that no text can move the terminal's cursor, change its
//! state, or make a line look like another one. Also measures, cuts and pads text by its displayed
//! width.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

/// Arguments of up to this many bytes in total are quoted completely before they are abridged.
const MAX_QUOTED_BYTES: usize = 64 << 10;

/// Ranges of characters that are invisible or reorder the text around them: zero-width characters,
/// bidirectional controls, line separators, fillers, variation selectors and tags. Each range is a
/// pair of code points, the first and the last.
const HIDDEN_RANGES: [u32; 36] = [
    0xad, 0xad, 0x34f, 0x34f, 0x61c, 0x61c, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180b, 0x180f, 0x200b, 0x200f, 0x2028,
    0x202e, 0x2060, 0x206f, 0x3164, 0x3164, 0xfe00, 0xfe0f, 0xfeff, 0xfeff, 0xffa0, 0xffa0, 0xfff0, 0xfffb, 0x1bca0,
    0x1bca3, 0x1d173, 0x1d17a, 0xe0000, 0xe0fff, 0xf0000, 0x10ffff,
];

/// Writes everything that must not reach a terminal as an escape: `\n`, `\x1b`, `\u202e`.
pub fn escape(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    push_escaped(&mut shown, bytes, |_| false);
    shown
}

/// Quotes one argument for a shell. Uses `$'...'` if it contains characters that cannot be shown.
pub fn quote(argument: &[u8]) -> String {
    let plain = std::str::from_utf8(argument).ok().filter(|text| !text.chars().any(is_hidden));
    if let Some(quoted) = plain.and_then(|text| shlex::try_quote(text).ok()) {
        return quoted.into_owned();
    }
    let mut quoted = String::from("$'");
    push_escaped(&mut quoted, argument, |character| matches!(character, '\'' | '\\'));
    quoted.push('\'');
    quoted
}

/// Formats arguments as a line for a shell, cut to `width_limit` columns.
pub fn command_line<'a>(arguments: impl IntoIterator<Item = &'a [u8]>, width_limit: Option<usize>) -> String {
    let mut line = String::new();
    for argument in arguments {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&quote(shown_beginning(argument, width_limit)));
        if width_limit.is_some_and(|limit| width(&line) > limit) {
            break;
        }
    }
    match width_limit {
        Some(limit) => truncate(&line, limit),
        None => line,
    }
}

/// Returns as much of an argument as `width_limit` columns can show, so that a megabyte is not
/// quoted to show 80 columns.
fn shown_beginning(argument: &[u8], width_limit: Option<usize>) -> &[u8] {
    // A character has at most four bytes, and zero-width characters are rare enough to ignore.
    let Some(needed) = width_limit.map(|limit| 4 * limit + 8).filter(|needed| *needed < argument.len()) else {
        return argument;
    };
    let boundary = (needed - 3..=needed).rev().find(|position| !is_continuation(argument[*position]));
    &argument[..boundary.unwrap_or(needed)]
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// The glyphs that outputs use, and for each of them one that every terminal has. All are one
/// column wide.
const GLYPHS: &str = "…→±²│├└─█░▓▒▚·▄▀▁▂▃▅▆▇▲▼▏";
const ASCII: &str = "~>~2||`-#:%+/.=\"__-**#^v|";

pub fn to_ascii(text: &str) -> String {
    let replace =
        |each| GLYPHS.chars().zip(ASCII.chars()).find(|(glyph, _)| *glyph == each).map_or(each, |found| found.1);
    text.chars().map(|each| if each.is_ascii() { each } else { replace(each) }).collect()
}

pub fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// Returns the width of the widest of these names and their title, in columns.
pub fn widest(names: &[String], title: &str) -> usize {
    names.iter().map(|name| width(name)).fold(width(title), usize::max)
}

/// Returns the text, or as much of its beginning as fits into `limit` columns with a `…`.
pub fn truncate(text: &str, limit: usize) -> String {
    let mut used = 0;
    let mut fitting = 0;
    for (position, character) in text.char_indices() {
        used += columns(character);
        if used > limit {
            let ellipsis = if limit == 0 { "" } else { "…" };
            return format!("{}{ellipsis}", &text[..fitting]);
        }
        if used < limit {
            fitting = position + character.len_utf8();
        }
    }
    text.to_owned()
}

/// Returns the text, or its beginning and its end with a `…` between them, in `limit` columns. The
/// end begins with a whole word, if that keeps at least half of it. Showing the end helps because
/// many command lines begin with the same options.
pub fn abridge(text: &str, limit: usize) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let end = ending(text, limit * 2 / 3);
    let words = end.find(' ').map(|space| &end[space..]);
    let end = words.filter(|words| width(words) * 2 >= width(end)).unwrap_or(end);
    format!("{}{end}", truncate(text, limit.saturating_sub(width(end))))
}

/// Returns as much of the end of a text as fits into `limit` columns.
fn ending(text: &str, limit: usize) -> &str {
    let mut used = 0;
    let fitting = text.char_indices().rev().take_while(|(_, character)| {
        used += columns(*character);
        used <= limit
    });
    &text[fitting.last().map_or(text.len(), |(position, _)| position)..]
}

/// Formats arguments as a line for a shell. If it is longer than `limit` columns, only its
/// beginning and end are shown.
pub fn abridged_command_line<'a>(arguments: impl IntoIterator<Item = &'a [u8]> + Clone, limit: usize) -> String {
    let bytes: usize = arguments.clone().into_iter().map(<[u8]>::len).sum();
    if bytes > MAX_QUOTED_BYTES {
        return command_line(arguments, Some(limit));
    }
    abridge(&command_line(arguments, None), limit)
}

/// Cuts or pads the text on the right to exactly `limit` columns.
pub fn pad_right(text: &str, limit: usize) -> String {
    let mut padded = truncate(text, limit);
    padded.extend(std::iter::repeat_n(' ', limit.saturating_sub(width(&padded))));
    padded
}

/// Pads the text on the left to `limit` columns. Figures are never cut.
pub fn pad_left(text: &str, limit: usize) -> String {
    let mut padded = " ".repeat(limit.saturating_sub(width(text)));
    padded.push_str(text);
    padded
}

/// Units and signs that stay on one line with the figure before them.
const UNITS: [&str; 11] = ["ns", "us", "ms", "s", "%", "x", "times", "B", "KiB", "MiB", "GiB"];

/// Wraps the text at spaces into lines of at most `limit` columns. A figure and its unit stay on
/// one line, and so does text in backticks, if they fit.
pub fn wrap(text: &str, limit: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in split_at_breaks(text) {
        let is_wide = width(piece) > limit;
        for word in piece.split(|each| is_wide && each == ' ') {
            match lines.last_mut() {
                Some(line) if width(line) + 1 + width(word) <= limit => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(truncate(word, limit)),
            }
        }
    }
    lines
}

/// Splits the text at the spaces where a line may end.
fn split_at_breaks(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(' ') {
        let piece = &text[start..at];
        let next = text[at + 1..].split(' ').next().unwrap_or_default();
        let is_quoted = piece.matches('`').count() % 2 == 1;
        if !is_quoted && !must_stay_together(piece, next) {
            pieces.push(piece);
            start = at + 1;
        }
    }
    pieces.push(&text[start..]);
    pieces
}

/// Whether a line must not end between the words: between a figure and its unit, and after `13 x`.
fn must_stay_together(piece: &str, next: &str) -> bool {
    let unit = next.trim_end_matches([',', ';', ':', '.', ')']);
    let last = piece.rsplit(' ').next().unwrap_or_default();
    let is_figure = last.trim_start_matches('(').starts_with(|first: char| first.is_ascii_digit());
    (is_figure && UNITS.contains(&unit)) || (last == "x" && piece != last)
}

fn columns(character: char) -> usize {
    character.width().unwrap_or(0)
}

fn is_hidden(character: char) -> bool {
    let hidden = HIDDEN_RANGES.as_chunks::<2>().0;
    character.is_control() || hidden.iter().any(|[first, last]| (*first..=*last).contains(&u32::from(character)))
}

fn push_escaped(shown: &mut String, bytes: &[u8], needs_backslash: impl Fn(char) -> bool) {
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            push_character(shown, character, &needs_backslash);
        }
        for byte in chunk.invalid() {
            push_hex(shown, *byte);
        }
    }
}

fn push_character(shown: &mut String, character: char, needs_backslash: impl Fn(char) -> bool) {
    match character {
        '\n' => shown.push_str("\\n"),
        '\r' => shown.push_str("\\r"),
        '\t' => shown.push_str("\\t"),
        _ if character.is_ascii_control() => push_hex(shown, character as u8),
        // The escapes that `$'...'` of bash and zsh accepts.
        _ if is_hidden(character) && u32::from(character) > 0xffff => {
            // Writing to a string cannot fail.
            let _ = write!(shown, "\\U{:08x}", u32::from(character));
        }
        _ if is_hidden(character) => {
            let _ = write!(shown, "\\u{:04x}", u32::from(character));
        }
        _ => {
            if needs_backslash(character) {
                shown.push('\\');
            }
            shown.push(character);
        }
    }
}

fn push_hex(shown: &mut String, byte: u8) {
    let _ = write!(shown, "\\x{byte:02x}");
}

/// Changes lines of text that would be commands in the log of a job.
pub(super) fn without_commands(text: &str) -> String {
    text.lines().map(|line| without_command(line) + "\n").collect()
}

/// Changes a line that begins with `::` or contains `##[`. A terminal escape sequence for the style
/// may precede the text.
fn without_command(line: &str) -> String {
    let plain = anstream::adapter::strip_str(line).to_string();
    let mark = if plain.trim_start().starts_with("::") { "| " } else { "" };
    format!("{mark}{}", line.replace("##[", "# #["))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn glyphs_have_ascii_forms_of_the_same_width() {
        assert_eq!(to_ascii("├─ cc1 … 日"), "|- cc1 ~ 日");
        assert!(ASCII.is_ascii() && GLYPHS.chars().map(columns).eq(ASCII.chars().map(columns)));
    }

    #[test]
    fn controls_are_written_as_escapes() {
        assert_eq!(escape(b"a\nb\x1b[31m\xff\x7f"), "a\\nb\\x1b[31m\\xff\\x7f");
        assert_eq!(escape("a\u{202e}b\u{200b}\u{9b}".as_bytes()), "a\\u202eb\\u200b\\u009b");
        assert_eq!(escape("日本 é".as_bytes()), "日本 é");
    }

    #[test]
    fn quoted_arguments_can_be_pasted_into_a_shell() {
        assert_eq!(quote(b"plain-word_1.c"), "plain-word_1.c");
        assert_eq!(quote(b""), "''");
        assert_eq!(quote(b"a b"), "'a b'");
        assert_eq!(quote(b"it's\n\\"), "$'it\\'s\\n\\\\'");
    }

    #[test]
    fn wide_characters_count_twice_when_cut() {
        assert_eq!(truncate("日本語", 6), "日本語");
        assert_eq!(truncate("日本語", 5), "日本…");
        assert_eq!(truncate("日本語", 4), "日…");
        assert_eq!(truncate("abc", 1), "…");
        assert_eq!(truncate("abc", 0), "");
    }

    #[test]
    fn the_end_of_a_command_line_is_shown_as_well() {
        assert_eq!(abridge("git log", 7), "git log");
        let options = "git --no-pager -c a.b=c -c d.e=f rev-parse --git-dir";
        assert_eq!(abridge(options, 30), "git --no-… rev-parse --git-dir");
        assert_eq!(abridge(options, 20), "git --no-… --git-dir");
        assert_eq!(abridge("aaaaaaaaaabbbbbbbbbb", 10), "aaa…bbbbbb");
        assert_eq!(abridge("日本語日本語", 7), "日…本語");
        let many = [b"mv".as_slice(), b"a b", b"c"];
        assert_eq!(abridged_command_line(many, 40), "mv 'a b' c");
        let huge = vec![b'x'; MAX_QUOTED_BYTES + 1];
        assert_eq!(abridged_command_line([huge.as_slice()], 4), "xxx…");
        assert_eq!(pad_right("日本語", 4), "日… ");
    }

    #[test]
    fn a_megabyte_of_argument_is_cut_to_the_width() {
        let huge = vec![b'x'; 1 << 20];
        assert_eq!(width(&command_line([b"echo".as_slice(), &huge], Some(40))), 40);
        assert_eq!(command_line([b"echo".as_slice(), b"a b"], None), "echo 'a b'");
        let wide = "x日".repeat(100);
        assert_eq!(command_line([wide.as_bytes()], Some(7)), "'x日x…", "the text is not cut inside a character");
    }

    proptest! {
        #[test]
        fn no_control_reaches_the_terminal(
            bytes in proptest::collection::vec(any::<u8>(), 0..40), limit in 0usize..30,
        ) {
            for shown in [escape(&bytes), quote(&bytes)] {
                prop_assert!(!shown.chars().any(is_hidden), "{shown:?}");
                prop_assert!(width(&truncate(&shown, limit)) <= limit);
                prop_assert!(width(&abridge(&shown, limit)) <= limit);
                prop_assert_eq!(width(&pad_right(&shown, limit)), limit);
            }
        }

        #[test]
        fn no_hidden_character_reaches_the_terminal(text in any::<String>()) {
            prop_assert!(!escape(text.as_bytes()).chars().any(is_hidden));
        }
    }
}
