//! Finds secrets in texts with commands: after `sh -c`, for `ssh`, in `$( )`, in here-documents.
//! `command` searches each command. This module also finds secrets that are piped from one command
//! to another, that expect scripts send at prompts, that configuration texts contain, and that
//! reach a secret place through a variable, a function or a positional parameter.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::command::{self, is_assignment, mark_template};
use super::compile;
use super::names::{self, Evidence, is_among};
use super::shell::{self, SimpleCommand};
use super::table::Template;
use super::words::{Found, Word};

const MAX_DEPTH: u8 = 5;
/// Maximum number of variables through which a secret is followed.
const MAX_STEPS: usize = 8;
const MAX_FUNCTIONS: usize = 64;

/// Finds the secrets of a script in one word of a command. The words after it are the script's
/// parameters, from `$0` on.
pub(super) fn find_script(word: &Word<'_>, parameters: &[Word<'_>], depth: u8, found: &mut Found) {
    let mut within = Found::default();
    find(&word.text, depth + 1, &mut within);
    mark_parameters(parameters, &within.references, found);
    found.add_within(within, word);
}

pub(super) fn find(text: &[u8], depth: u8, found: &mut Found) {
    if depth > MAX_DEPTH {
        return;
    }
    let script = shell::parse(text);
    for (at, line) in script.commands.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &script.commands[before]).filter(|before| before.is_piped);
        match command::find(&line.words, depth, found) {
            Some(template) => find_input(text, line, before, template, found),
            None => find_in_documents(text, line, before, depth, found),
        }
    }
    for inner in &script.inner {
        let mut within = Found::default();
        find(&text[inner.clone()], depth + 1, &mut within);
        let word = Word::plain(&text[inner.clone()], inner.start);
        found.add_within(within, &word);
        if is_secret_file(&text[..inner.start]) {
            find_printed(&word, found);
        }
    }
    find_sent_by_expect(text, found);
    resolve(text, &script.commands, found);
}

/// Finds the secret in the standard input of a command that reads one.
fn find_input(
    text: &[u8],
    line: &SimpleCommand<'_>,
    before: Option<&SimpleCommand<'_>>,
    template: Template,
    found: &mut Found,
) {
    line.here_words.iter().for_each(|word| add(word, template, found));
    for document in &line.here_documents {
        let mut start = document.start;
        for content in text[document.clone()].split_inclusive(|byte| *byte == b'\n') {
            let word = Word::plain(content.trim_ascii_end(), start);
            mark_template(&word, 0..word.text.len(), template, found);
            start += content.len();
        }
    }
    before.into_iter().for_each(|before| find_echoed(before, template, found));
}

/// Whether a text ends with `<(` after an option for a file with a secret: `--password-file=<(`.
fn is_secret_file(text: &[u8]) -> bool {
    static OPTION: LazyLock<Regex> = LazyLock::new(|| compile(r"-([A-Za-z0-9_-]+?)(?:[-_]?(?:file|fd))?[\s=]*<\($"));
    let name = OPTION.captures(text).and_then(|captures| captures.get(1));
    name.is_some_and(|name| names::judge(name.as_bytes()).is_some())
}

/// Finds the secrets that a text with commands prints.
pub(super) fn find_printed(word: &Word<'_>, found: &mut Found) {
    let mut within = Found::default();
    shell::parse(&word.text).commands.iter().for_each(|command| find_echoed(command, Template::Whole, &mut within));
    found.add_within(within, word);
}

fn find_echoed(command: &SimpleCommand<'_>, template: Template, found: &mut Found) {
    let [program, arguments @ ..] = &command.words[..] else { return };
    if !is_among(&program.text, "echo printf yes /bin/echo /usr/bin/printf") {
        return;
    }
    for word in arguments {
        let is_format = word.text.contains(&b'%') && arguments.len() > 1;
        if !is_format && !is_among(&word.text, "-n -e -ne -en --") {
            add(word, template, found);
        }
    }
}

/// Adds the secret part of a word, without a newline at its end.
fn add(word: &Word<'_>, template: Template, found: &mut Found) {
    let newline = [b"\\n".as_slice(), b"\n"].into_iter().find(|end| word.text.ends_with(end)).map_or(0, <[u8]>::len);
    mark_template(word, 0..word.text.len() - newline, template, found);
}

/// Finds secrets in the text that a command reads: commands for `ssh host <<END`, and the lines of
/// a configuration.
fn find_in_documents(
    text: &[u8],
    line: &SimpleCommand<'_>,
    before: Option<&SimpleCommand<'_>>,
    depth: u8,
    found: &mut Found,
) {
    for document in &line.here_documents {
        let word = Word::plain(&text[document.clone()], document.start);
        let mut within = Found::default();
        find(&word.text, depth + 1, &mut within);
        found.add_within(within, &word);
        find_in_configuration(&word, found);
    }
    let printed = before.map_or(&[][..], |before| before.words.get(1..).unwrap_or_default());
    for word in line.here_words.iter().chain(printed).filter(|word| word.text.len() > 2) {
        find_in_configuration(word, found);
        word.decoded().into_iter().for_each(|word| find_in_configuration(&word, found));
    }
}

/// Finds lines of the form `password X`, and `machine host login me password X`.
fn find_in_configuration(word: &Word<'_>, found: &mut Found) {
    static ENTRY: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(?m-u)(?:^[ \t]*|[ \t](?:login|user|account)[ \t]+\S+\s+)([A-Za-z0-9_.-]+)[ \t]+["']?([^\s"'=:]+)["']?[ \t]*$"#)
            .expect("the pattern is valid")
    });
    for captures in ENTRY.captures_iter(&word.text) {
        if let (Some(name), Some(value)) = (captures.get(1), captures.get(2))
            && let Some(evidence) = names::judge(name.as_bytes())
        {
            found.mark_word(evidence, word, value.range());
        }
    }
}

/// Finds the text that an expect script sends at a password prompt:
/// `expect "assword:"; send "X\r"`.
fn find_sent_by_expect(text: &[u8], found: &mut Found) {
    static SENT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(?s-u)expect\b.*?(?:asswor|assphrase|PIN|oken|ecret| code).*?send\b[^"{'\n;]*(?:["']([^"']*?)|\{([^}]*?))(?:\\*\\[rn])*["'}]"#)
            .expect("the pattern is valid")
    });
    for sent in SENT.captures_iter(text).filter_map(|captures| captures.get(1).or(captures.get(2))) {
        found.mark(Evidence::Password, text, sent.range());
    }
}

/// Follows the variables that are used as secrets to where they get their values.
pub(super) fn resolve(text: &[u8], commands: &[SimpleCommand<'_>], found: &mut Found) {
    for step in 0..MAX_STEPS {
        let Some(name) = found.references.get(step).cloned() else { return };
        for command in commands {
            find_values(&name, command, found);
        }
        if is_parameter(&name) {
            static FUNCTION: LazyLock<Regex> = LazyLock::new(|| {
                Regex::new(r"(?-u)(?:function\s+([A-Za-z0-9_.-]+)|([A-Za-z0-9_.-]+)\s*\(\s*\))\s*(?:\(\s*\)\s*)?\{")
                    .expect("the pattern is valid")
            });
            for captures in FUNCTION.captures_iter(text).take(MAX_FUNCTIONS) {
                let function = captures.iter().skip(1).flatten().next().map_or(&[][..], |name| name.as_bytes());
                let calls =
                    commands.iter().filter(|command| command.words.first().is_some_and(|word| &*word.text == function));
                calls.for_each(|call| mark_parameters(&call.words, std::slice::from_ref(&name), found));
            }
            for command in commands {
                if matches!(&command.words[..], [set, dashes, ..] if &*set.text == b"set" && &*dashes.text == b"--") {
                    mark_parameters(&command.words[1..], std::slice::from_ref(&name), found);
                }
            }
        }
    }
}

fn is_parameter(name: &[u8]) -> bool {
    matches!(name, b"@" | b"*") || name.iter().all(u8::is_ascii_digit)
}

/// Marks the positional parameters, counted from `$0` on, that are used as secrets.
fn mark_parameters(parameters: &[Word<'_>], references: &[Vec<u8>], found: &mut Found) {
    for name in references.iter().filter(|name| is_parameter(name)) {
        let number = std::str::from_utf8(name).ok().and_then(|name| name.parse::<usize>().ok());
        let which = number.map_or(1..parameters.len(), |number| number..number.saturating_add(1));
        for word in parameters.get(which).unwrap_or_default() {
            found.mark_word(Evidence::Password, word, 0..word.text.len());
        }
    }
}

/// Marks the values that a command gives a variable: `name=X`, `for name in X`, `read name <<< X`,
/// `--arg name X`. `%s` is the variable of a format.
fn find_values(name: &[u8], command: &SimpleCommand<'_>, found: &mut Found) {
    let words = &command.words;
    for (at, word) in words.iter().enumerate() {
        let is_next = at > 0 && words[at - 1].text.starts_with(b"-") && &*word.text == name;
        let is_one = !word.text.iter().any(|byte| byte.is_ascii_whitespace()) || word.text.ends_with(b")");
        if is_one
            && is_assignment(&word.text)
            && word.text.strip_prefix(name).is_some_and(|rest| rest.starts_with(b"="))
        {
            let value = name.len() + 1..word.text.len();
            if let [b'$', b'(', ..] = word.text[value.clone()] {
                find_printed(&word.part(value.start + 2..value.end.max(value.start + 3) - 1), found);
            }
            found.mark_word(Evidence::Password, word, value);
        } else if let (true, Some(value)) = (is_next, words.get(at + 1)) {
            found.mark_word(Evidence::Password, value, 0..value.text.len());
        }
    }
    let values = match &words[..] {
        [first, variable, keyword, values @ ..]
            if &*first.text == b"for" && &*variable.text == name && &*keyword.text == b"in" =>
        {
            values
        }
        [first, _, values @ ..] if &*first.text == b"printf" && name == b"%s" => values,
        [first, ..] if &*first.text == b"read" && words.iter().any(|word| &*word.text == name) => &command.here_words,
        _ => return,
    };
    for value in values {
        found.mark_word(Evidence::Password, value, 0..value.text.len());
    }
}
