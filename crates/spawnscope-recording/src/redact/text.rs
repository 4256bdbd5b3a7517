//! Finds secrets in texts with commands: after `sh -c`, for `ssh`, in `$( )`, in here-documents. `command` searches each command. This module
//! also finds secrets that are piped from one command to another, and secrets that expect scripts send at prompts.

use super::command;
use super::names;
use super::secret_ranges::SecretRanges;
use super::shell::{self, Command};
use super::table::Template;
use super::template::secret_range;
use super::word::Word;

/// Maximum depth of nested texts.
pub(super) const MAX_DEPTH: u8 = 5;

/// Returns the ranges of secrets in the commands of a text.
pub(super) fn find(text: &[u8], depth: u8) -> SecretRanges {
    let mut ranges = SecretRanges::default();
    if depth > MAX_DEPTH {
        return ranges;
    }
    let script = shell::parse(text);
    for (at, line) in script.commands.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &script.commands[before]);
        let reads = command::find(&line.words, depth, &mut ranges);
        match reads {
            Some(template) => find_input(text, line, before, template, &mut ranges),
            None => find_in_documents(text, line, depth, &mut ranges),
        }
    }
    for inner in script.inner {
        let mut found = find(&text[inner.clone()], depth + 1);
        if is_secret_file(&text[..inner.start]) {
            find_echoed_file(&text[inner.clone()], &mut found);
        }
        ranges.add_relative(&found, inner.start);
    }
    find_sent_by_expect(text, &mut ranges);
    ranges
}

/// Finds the secret in the standard input of a command that reads one.
fn find_input(
    text: &[u8],
    line: &Command<'_>,
    before: Option<&Command<'_>>,
    template: Template,
    ranges: &mut SecretRanges,
) {
    for word in &line.here_words {
        add(word, template, ranges);
    }
    for document in &line.here_documents {
        let mut start = document.start;
        for content in text[document.clone()].split_inclusive(|byte| *byte == b'\n') {
            let found = secret_range(template, content.trim_ascii_end());
            found.into_iter().for_each(|part| ranges.add(start + part.start..start + part.end));
            start += content.len();
        }
    }
    if let Some(before) = before.filter(|before| before.is_piped) {
        find_echoed(before, template, ranges);
    }
}

/// Whether a text ends with `<(` after an option for a file with a secret: `--password-file=<(`.
fn is_secret_file(text: &[u8]) -> bool {
    let Some(before) = text.strip_suffix(b"<(") else {
        return false;
    };
    let before = before.trim_ascii_end();
    let before = before.strip_suffix(b"=").unwrap_or(before);
    let start = before.iter().rposition(|byte| !(byte.is_ascii_alphanumeric() || b"_-".contains(byte)));
    let option = &before[start.map_or(0, |start| start + 1)..];
    let name = [b"-file".as_slice(), b"_file", b"-fd", b"file"]
        .iter()
        .find_map(|end| option.strip_suffix(*end))
        .unwrap_or(option);
    option.starts_with(b"-") && names::judge(name).is_some()
}

/// Marks the words that the commands of a text print as secrets.
fn find_echoed_file(text: &[u8], ranges: &mut SecretRanges) {
    for command in shell::parse(text).commands {
        find_echoed(&command, Template::Whole, ranges);
    }
}

/// Finds the secret among the words that a command prints.
fn find_echoed(command: &Command<'_>, template: Template, ranges: &mut SecretRanges) {
    let [program, arguments @ ..] = &command.words[..] else {
        return;
    };
    if !matches!(&*program.text, b"echo" | b"printf" | b"yes" | b"/bin/echo" | b"/usr/bin/printf") {
        return;
    }
    for word in arguments {
        let is_format = word.text.contains(&b'%') && arguments.len() > 1;
        let is_switch = matches!(&*word.text, b"-n" | b"-e" | b"-ne" | b"-en" | b"--");
        if !is_format && !is_switch {
            add(word, template, ranges);
        }
    }
}

/// Adds the secret part of a word, without a newline at its end.
fn add(word: &Word, template: Template, ranges: &mut SecretRanges) {
    let stripped = [b"\\n".as_slice(), b"\n"].iter().find_map(|end| word.text.strip_suffix(*end));
    if let Some(part) = secret_range(template, stripped.unwrap_or(&word.text)) {
        ranges.add(word.outer(part));
    }
}

/// Finds secrets of commands in here-documents: `ssh host <<END`.
fn find_in_documents(text: &[u8], line: &Command<'_>, depth: u8, ranges: &mut SecretRanges) {
    for document in &line.here_documents {
        ranges.add_relative(&find(&text[document.clone()], depth + 1), document.start);
    }
}

/// Finds the text that an expect script sends at a password prompt: `expect "assword:"; send "X\r"`.
fn find_sent_by_expect(text: &[u8], ranges: &mut SecretRanges) {
    const SEND: &[u8] = b"send";
    let mut prompt_start = 0;
    let mut at = 0;
    while let Some(length) = find_word(&text[at..], SEND) {
        let send = at + length;
        at = send + SEND.len();
        if expects_password_prompt(&text[prompt_start..send]) {
            let rest = &text[at..];
            let opens = rest.iter().position(|byte| matches!(byte, b'"' | b'{' | b'\'' | b'\n' | b';'));
            let (Some(opens), Some(quote)) = (opens, opens.map(|opens| rest[opens])) else {
                return;
            };
            let start = at + opens + 1;
            let closes = if quote == b'{' { b'}' } else { quote };
            if matches!(quote, b'"' | b'{' | b'\'') {
                let end = text[start..].iter().position(|byte| *byte == closes);
                at = end.map_or(text.len(), |length| start + length);
                let sent = &text[start..at];
                let sent = sent.strip_suffix(b"\\").unwrap_or(sent);
                let sent = [b"\\r\\n".as_slice(), b"\\r", b"\\n"]
                    .iter()
                    .find_map(|end| sent.strip_suffix(*end))
                    .unwrap_or(sent);
                ranges.add(start..start + sent.len());
            }
            prompt_start = at;
        }
    }
}

fn find_word(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|window| window == word)
}

/// Whether an expect script waits for the prompt of a password or another secret.
fn expects_password_prompt(text: &[u8]) -> bool {
    const SECRETS: [&[u8]; 6] = [b"asswor", b"assphrase", b"PIN", b"oken", b"ecret", b" code"];
    find_word(text, b"expect").is_some() && SECRETS.iter().any(|word| find_word(text, word).is_some())
}
