//! Commands in a line of a shell script: the command substitutions of the line, and the words of the commands in them. Only commands that
//! are plain enough to be rewritten are returned: words without expansions, and variables in double quotes. `shell_syntax` reads the words.

use std::ops::Range;

use super::shell_syntax::Reader;

/// Lines with more nested substitutions are not searched.
const MAX_DEPTH: usize = 8;

/// A word of a command in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScriptWord {
    /// Text without expansions, without its quotes.
    Literal(Vec<u8>),
    /// A variable in double quotes, and nothing else: `"$path"`, `"${path}"`, `"$1"`. Contains the name.
    Variable(Vec<u8>),
}

/// A command of a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScriptCommand {
    /// The program and its arguments.
    pub(crate) words: Vec<ScriptWord>,
    /// The word after `<<<`.
    pub(crate) here_word: Option<ScriptWord>,
}

/// A command substitution in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Substitution {
    /// The bytes from `$(` to `)`, or from backquote to backquote.
    pub(crate) range: Range<usize>,
    /// The commands, each piped into the next. `None` if one of them is not plain.
    pub(crate) pipeline: Option<Vec<ScriptCommand>>,
}

/// Returns the command substitutions of a line, inner ones before those that contain them. Text in single quotes and comments has none.
pub(crate) fn substitutions(line: &[u8]) -> Vec<Substitution> {
    let mut scanner = Scanner { line, found: Vec::new() };
    // What was found before a place that cannot be read is valid.
    let _ = scanner.scan(0, None, 0);
    scanner.found
}

struct Scanner<'l> {
    line: &'l [u8],
    found: Vec<Substitution>,
}

impl Scanner<'_> {
    /// Scans to the byte that closes a substitution, or to the end of the line. Returns where that is; `None` if the rest cannot be read.
    fn scan(&mut self, start: usize, closing: Option<u8>, depth: usize) -> Option<usize> {
        let mut at = start;
        let mut is_quoted = false;
        while let Some(&byte) = self.line.get(at) {
            match byte {
                _ if Some(byte) == closing && !is_quoted => return Some(at),
                b'\\' => at += 2,
                b'"' => {
                    is_quoted = !is_quoted;
                    at += 1;
                }
                b'\'' if !is_quoted => {
                    let length = self.line[at + 1..].iter().position(|byte| *byte == b'\'')?;
                    at += length + 2;
                }
                b'#' if !is_quoted && (at == start || self.line[at - 1].is_ascii_whitespace()) => {
                    let length = self.line[at..].iter().position(|byte| *byte == b'\n');
                    at = length.map_or(self.line.len(), |length| at + length);
                }
                b'$' if self.line[at..].starts_with(b"$((") && closing.is_none() => at += 3,
                b'$' if self.line[at..].starts_with(b"$(") => at = self.substitution(at, 2, b')', depth)?,
                b'`' => at = self.substitution(at, 1, b'`', depth)?,
                // A subshell, a pattern of `case` or arithmetic: its end would look like that of the substitution.
                b'(' if closing == Some(b')') && !is_quoted => return None,
                _ => at += 1,
            }
        }
        (closing.is_none() && !is_quoted).then_some(at)
    }

    /// Adds the substitution that opens at a position. Returns where it ends.
    fn substitution(&mut self, at: usize, opening_bytes: usize, closing: u8, depth: usize) -> Option<usize> {
        if depth == MAX_DEPTH {
            return None;
        }
        let begin = at + opening_bytes;
        let end = self.scan(begin, Some(closing), depth + 1)?;
        let inside = &self.line[begin..end];
        // Within backquotes, backslashes have another meaning.
        let is_plain = closing == b')' || !inside.contains(&b'\\');
        let pipeline = if is_plain { pipeline_of(inside) } else { None };
        self.found.push(Substitution { range: at..end + 1, pipeline });
        Some(end + 1)
    }
}

/// Returns the commands of a pipeline. `None` if it has anything but plain words, `|` and `<<<`.
fn pipeline_of(text: &[u8]) -> Option<Vec<ScriptCommand>> {
    let mut reader = Reader::new(text);
    let mut commands = Vec::new();
    let mut command = ScriptCommand::default();
    while let Some(byte) = reader.peek_past_blanks() {
        if byte == b'|' {
            (!command.words.is_empty() && !reader.rest().starts_with(b"||") && !reader.rest().starts_with(b"|&"))
                .then_some(())?;
            reader.skip(1);
            commands.push(std::mem::take(&mut command));
        } else if reader.rest().starts_with(b"<<<") {
            reader.skip(3);
            reader.peek_past_blanks()?;
            command.here_word.is_none().then_some(())?;
            command.here_word = Some(script_word(&mut reader)?);
        } else {
            // A redirection, a comment and the like; digits may be the descriptor of a redirection.
            (!matches!(byte, b';' | b'\n' | b'&' | b'<' | b'>' | b'#')).then_some(())?;
            command.words.push(script_word(&mut reader)?);
            (!matches!(reader.rest().first(), Some(b'<' | b'>'))).then_some(())?;
        }
    }
    commands.push(command);
    let is_complete = commands.iter().all(|command| !command.words.is_empty());
    (is_complete && !reader.needs_more()).then_some(commands)
}

fn script_word(reader: &mut Reader<'_>) -> Option<ScriptWord> {
    match quoted_variable(reader.rest()) {
        Some((name, length)) => {
            let name = name.to_vec();
            reader.skip(length);
            Some(ScriptWord::Variable(name))
        }
        None => reader.literal_word().map(ScriptWord::Literal),
    }
}

/// Returns the name of the variable that is the whole next word, and the length of that word.
fn quoted_variable(text: &[u8]) -> Option<(&[u8], usize)> {
    let inside = text.strip_prefix(b"\"$")?;
    let (begin, has_braces) = match inside.strip_prefix(b"{") {
        Some(begin) => (begin, true),
        None => (inside, false),
    };
    let name = leading_name(begin, has_braces)?;
    let rest = begin[name.len()..].strip_prefix(if has_braces { &b"}\""[..] } else { b"\"" })?;
    let is_whole = rest.first().is_none_or(|next| matches!(next, b' ' | b'\t' | b'|'));
    is_whole.then_some((name, text.len() - rest.len()))
}

/// Returns the name of a variable or the number of a positional parameter from 1 at the beginning of a text. Without braces, such a number has one
/// digit.
fn leading_name(text: &[u8], has_braces: bool) -> Option<&[u8]> {
    let first = *text.first()?;
    let length = match first {
        b'1'..=b'9' if has_braces => text.iter().take_while(|byte| byte.is_ascii_digit()).count(),
        b'1'..=b'9' => 1,
        _ if is_name_byte(first) && !first.is_ascii_digit() => {
            text.iter().take_while(|byte| is_name_byte(**byte)).count()
        }
        _ => return None,
    };
    Some(&text[..length])
}

/// Returns the name that a line assigns a command substitution to, if the line does nothing else: `name=$(...)`. `range` is that of the
/// substitution.
pub(crate) fn assigned_name<'l>(line: &'l [u8], range: &Range<usize>) -> Option<&'l [u8]> {
    let before = line[..range.start].trim_ascii_start().strip_suffix(b"=")?;
    let is_name = leading_name(before, false).is_some_and(|name| name == before && !name[0].is_ascii_digit());
    (is_name && line[range.end..].trim_ascii().is_empty()).then_some(before)
}

/// Whether a line (from 1) begins a command of its own: it is not within quotes, a substitution or a here-document, and the line before does not
/// continue on it. `false` if that is not certain.
pub(crate) fn begins_command(script: &[u8], line: u32) -> bool {
    let lines = script.split(|byte| *byte == b'\n').take((line as usize).saturating_sub(1));
    let before: Vec<&[u8]> = lines.collect();
    let text = before.join(&b'\n');
    let is_closed = Scanner { line: &text, found: Vec::new() }.scan(0, None, 0).is_some();
    let is_code = |line: &&&[u8]| !line.trim_ascii().is_empty() && !line.trim_ascii_start().starts_with(b"#");
    let last = before.iter().rfind(is_code).map(|line| line.trim_ascii_end()).unwrap_or_default();
    let continues = [&b"&&"[..], b"|", b"\\"].iter().any(|end| last.ends_with(end));
    is_closed && !continues && !is_in_here_document(&before)
}

/// Whether a here-document begins in these lines, and does not end there.
fn is_in_here_document(lines: &[&[u8]]) -> bool {
    let mut delimiter: Option<Vec<u8>> = None;
    for line in lines {
        match &delimiter {
            Some(end) if line.trim_ascii() == end => delimiter = None,
            Some(_) => {}
            None => delimiter = here_delimiter(line),
        }
    }
    delimiter.is_some()
}

/// Returns the delimiter of the here-document that begins after a line: `END` after `cat <<-'END'`. Shifts in arithmetic look alike.
fn here_delimiter(line: &[u8]) -> Option<Vec<u8>> {
    let at = (0..line.len().saturating_sub(1)).find(|at| {
        let is_here_word = line[*at..].starts_with(b"<<<") || line[..*at].ends_with(b"<");
        line[*at..].starts_with(b"<<") && !is_here_word
    })?;
    let rest = &line[at + 2..];
    let rest = rest.strip_prefix(b"-").unwrap_or(rest).trim_ascii_start();
    let word = rest.iter().copied().take_while(|byte| !byte.is_ascii_whitespace() && !b";|&<>)".contains(byte));
    Some(word.filter(|byte| !b"'\"\\".contains(byte)).collect())
}

/// Whether only `read` sets a variable in a script, so that its value has no newline. `false` if that is not certain.
pub(crate) fn is_set_only_by_read(script: &[u8], name: &[u8]) -> bool {
    let lines = script.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii_start().starts_with(b"#"));
    let mut is_read = false;
    for line in lines {
        for at in occurrences(line, name) {
            let (before, after) = (&line[..at], &line[at + name.len()..]);
            let is_assigned = after.starts_with(b"=") || after.starts_with(b":=");
            if before.ends_with(b"$") || (before.ends_with(b"${") || before.ends_with(b"${#")) && !is_assigned {
                continue;
            }
            if !is_operand_of_read(before) || after.first().is_some_and(|next| !is_blank(*next) && *next != b';') {
                return false;
            }
            is_read = true;
        }
    }
    is_read
}

/// Returns where a name occurs in a line that is not part of a longer name.
fn occurrences<'l>(line: &'l [u8], name: &'l [u8]) -> impl Iterator<Item = usize> + 'l {
    let starts = 0..(line.len() + 1).saturating_sub(name.len());
    starts.filter(move |at| {
        let end = at + name.len();
        line[*at..end] == *name
            && !at.checked_sub(1).is_some_and(|before| is_name_byte(line[before]))
            && !line.get(end).is_some_and(|next| is_name_byte(*next))
    })
}

/// Whether the text before a name is a `read` that reads lines, its options and names.
fn is_operand_of_read(before: &[u8]) -> bool {
    let mut words = before.split(|byte| is_blank(*byte)).filter(|word| !word.is_empty()).rev();
    // The name itself is a word of its own.
    let is_separate = before.last().is_some_and(|last| is_blank(*last));
    let options = words.find(|word| !word.iter().all(|byte| is_name_byte(*byte)) || *word == b"read");
    match options {
        Some(b"read") => is_separate,
        Some(b"-r") => is_separate && words.next() == Some(b"read"),
        _ => false,
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> Vec<String> {
        let found = substitutions(line.as_bytes());
        let word = |word: &ScriptWord| match word {
            ScriptWord::Literal(text) => String::from_utf8_lossy(text).into_owned(),
            ScriptWord::Variable(name) => format!("<{}>", String::from_utf8_lossy(name)),
        };
        let command = |command: &ScriptCommand| {
            let words: Vec<String> = command.words.iter().map(word).collect();
            let here = command.here_word.as_ref().map(|here| format!(" <<< {}", word(here)));
            words.join(" ") + &here.unwrap_or_default()
        };
        let pipeline = |pipeline: &Vec<ScriptCommand>| pipeline.iter().map(command).collect::<Vec<_>>().join(" | ");
        found.iter().map(|each| each.pipeline.as_ref().map_or("?".to_owned(), pipeline)).collect()
    }

    #[test]
    fn plain_commands_in_substitutions_are_found() {
        for (line, expected) in [
            ("d=$(dirname \"$p\")", &["dirname <p>"][..]),
            ("d=`dirname \"${p}\"`", &["dirname <p>"]),
            ("mv \"$(dirname -- \"$1\")/x\" y", &["dirname -- <1>"]),
            ("a=$(b \"${10}\")", &["b <10>"]),
            ("a=$(b \"$12\")", &["?"]),
            ("n=$((1 + 2)) d=$(dirname \"$p\")", &["dirname <p>"]),
            ("x=$(basename \"$(dirname \"$p\")\")", &["dirname <p>", "?"]),
            ("x=$(echo \"$y\" | cut -d: -f1)", &["echo <y> | cut -d: -f1"]),
            ("x=$(echo \"$y\"|cut -d ':' -f1)", &["echo <y> | cut -d : -f1"]),
            ("x=$(cut -d: -f1 <<<\"$y\")", &["cut -d: -f1 <<< <y>"]),
            ("x=$(dirname $p)", &["?"]),
            ("x=$(dirname \"$p\"x)", &["?"]),
            ("x=$(dirname \"${p:-a}\")", &["?"]),
            ("x=$(dirname \"$0\")", &["?"]),
            ("x=$(dirname \"$@\")", &["?"]),
            ("x=$(dirname \"$p\" 2>/dev/null)", &["?"]),
            ("x=$(A=b dirname \"$p\")", &["A=b dirname <p>"]),
            ("x=$(a \"$p\" || b)", &["?"]),
            ("x=$(a \"$p\"; b)", &["?"]),
            ("x=$(a \"$p\" # b)", &[]),
            ("x=$(a \"$p\"", &[]),
            ("echo 'x=$(dirname \"$p\")'", &[]),
            ("echo \"it's $(dirname \"$p\")\"", &["dirname <p>"]),
            ("echo \"\\$(dirname \\\"$p\\\")\"", &[]),
            ("x=1 # $(dirname \"$p\")", &[]),
            ("x=${a#b} y=$(dirname \"$p\")", &["dirname <p>"]),
            ("x=$(case \"$a\" in *) dirname \"$p\";; esac)", &["?"]),
            ("x=$((a); b)", &[]),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
    }

    #[test]
    fn a_line_that_only_assigns_has_a_name() {
        for (line, expected) in [
            ("  b=$(basename \"$p\" .c)", Some(&b"b"[..])),
            ("b=$(basename \"$p\" .c); x", None),
            ("local b=$(basename \"$p\" .c)", None),
            ("b=x$(basename \"$p\" .c)", None),
            ("1=$(basename \"$p\" .c)", None),
            ("$(basename \"$p\" .c)", None),
        ] {
            let found = substitutions(line.as_bytes());
            assert_eq!(assigned_name(line.as_bytes(), &found[0].range), expected, "{line}");
        }
    }

    #[test]
    fn a_line_that_begins_a_command_is_recognized() {
        for (before, expected) in [
            ("", true),
            ("#!/bin/sh\n# it's a \"comment\nset -e\n", true),
            ("for p in 'a' \"b\nc\"; do\n", true),
            ("cat <<END\nx\nEND\n", true),
            ("x=$((1 + 2)) y=${x#a} z=$#\n", true),
            ("cat <<END\n", false),
            ("cat <<-'END'\nx\n", false),
            ("echo \"\n", false),
            ("eval '\n", false),
            ("x=$(\n", false),
            ("[ -n \"$p\" ] &&\n\n  # why\n", false),
            ("[ -n \"$p\" ] ||\n", false),
            ("a |\n", false),
            ("A=b \\\n", false),
        ] {
            let script = format!("{before}b=$(basename \"$p\" .c)\n");
            let line = before.matches('\n').count() as u32 + 1;
            assert_eq!(begins_command(script.as_bytes(), line), expected, "{script}");
        }
    }

    #[test]
    fn a_variable_has_no_newline_if_only_read_sets_it() {
        for (script, expected) in [
            ("while read -r x; do echo \"$x\" \"${x%a}\" ${#x}; done", true),
            ("while IFS= read -r a x\ndo :; done <f", true),
            ("while IFS=: read a x b; do :; done", true),
            ("# x is a line\nread -r x", true),
            ("read -r x; x=$y", false),
            ("read -r x; : ${x:=$y}", false),
            ("read -r -d '' x", false),
            ("read -d '' -r x", false),
            ("read -rd '' x", false),
            ("read -ra x", false),
            ("read -r x\nfor x in *; do :; done", false),
            ("for x in *; do :; done", false),
            ("read -r xx; echo $x", false),
            ("read -r x=1", false),
            ("unread x", false),
            ("read -r -p x y", false),
            ("", false),
        ] {
            assert_eq!(is_set_only_by_read(script.as_bytes(), b"x"), expected, "{script}");
        }
    }
}
