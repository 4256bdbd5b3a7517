//! Functions of make in place of `$(shell ...)`: make itself can do what `basename`, `dirname` and
//! short filters do with one word.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::makefile::{can_be, expansion_length, shell_calls};
use super::{Splice, splice};
use crate::explain::advice::phrases::name;

/// Returns the changes of all calls whose recorded commands a function does exactly, and these
/// commands.
pub(super) fn splices(commands: &BTreeSet<Vec<u8>>, text: &[u8]) -> (Vec<Splice>, BTreeSet<Vec<u8>>) {
    let (mut splices, mut replaced): (Vec<Splice>, BTreeSet<Vec<u8>>) = (Vec::new(), BTreeSet::new());
    for (range, code) in shell_calls(text) {
        let recorded: Vec<&Vec<u8>> = commands.iter().filter(|command| can_be(code, command)).collect();
        let function = words(code).and_then(|written| function(&written));
        let is_exact = |function: &Function| recorded.iter().all(|command| function.is_exact(command));
        let is_inside = splices.last().is_some_and(|last| last.range.end > range.start);
        if let Some(function) = function.filter(is_exact).filter(|_| !is_inside && !recorded.is_empty()) {
            splices.push(splice(range, function.text));
            replaced.extend(recorded.into_iter().cloned());
        }
    }
    (splices, replaced)
}

/// A function, and what the word that it gets must be like.
struct Function {
    text: String,
    /// The number of words of the command.
    words: usize,
    exact_for: ExactFor,
}

enum ExactFor {
    AnyWord,
    /// A command without words.
    Nothing,
    /// A path with a name, and without superfluous slashes.
    Path,
    /// A text in which this occurs that often, and neither at its beginning nor twice in a row.
    Contains(String, RangeInclusive<usize>),
}

impl Function {
    fn is_exact(&self, command: &[u8]) -> bool {
        let command = name(command).replace(['\'', '"'], "");
        let words: Vec<&str> = command.split_ascii_whitespace().collect();
        let word = words.get(1).copied().unwrap_or_default();
        let is_plain = words.len() == self.words
            && word.is_empty() == matches!(self.exact_for, ExactFor::Nothing)
            && !word.contains(['%', '*', '?', '[', '~', '$'])
            && !word.starts_with('-');
        is_plain
            && match &self.exact_for {
                ExactFor::AnyWord | ExactFor::Nothing => true,
                ExactFor::Path => {
                    let file = word.rsplit('/').next().unwrap_or_default();
                    let is_root = word.starts_with('/') && word.matches('/').count() == 1;
                    !file.is_empty() && !word.contains("//") && !is_root && words.get(2) != Some(&file)
                }
                ExactFor::Contains(part, times) => {
                    times.contains(&word.matches(&part[..]).count())
                        && !word.starts_with(&part[..])
                        && !word.contains(&part.repeat(2))
                }
            }
    }
}

/// Splits code into words, without quotes. What make expands stays whole. `None` for syntax of the
/// shell other than `|`.
fn words(code: &[u8]) -> Option<Vec<String>> {
    let mut words: Vec<Vec<u8>> = vec![Vec::new()];
    let (mut at, mut quote) = (0, None);
    while let Some(&byte) = code.get(at) {
        let mut length = 1;
        match (byte, quote) {
            (b'$', _) if code[at..].starts_with(b"$$") => {
                words.last_mut()?.push(b'$');
                length = 2;
            }
            (b'$', _) => {
                length = expansion_length(&code[at..])?;
                words.last_mut()?.extend(&code[at..at + length]);
            }
            (byte, Some(open)) if byte == open => quote = None,
            (b'\'' | b'"', None) => quote = Some(byte),
            (b' ' | b'\t', None) => words.push(Vec::new()),
            (b'|', None) => words.extend([b"|".to_vec(), Vec::new()]),
            (b'\n' | b'<' | b'>' | b'&' | b';' | b'`' | b'(' | b')' | b'*' | b'?' | b'~' | b'#' | b'\\', None) => {
                return None;
            }
            _ => words.last_mut()?.push(byte),
        }
        at += length;
    }
    let words = words.into_iter().filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8(word).ok()).collect()
}

/// Returns the function that does what a command does.
fn function(written: &[String]) -> Option<Function> {
    let words: Vec<&str> = written.iter().map(String::as_str).collect();
    let is_expanded =
        |word: &str| word.starts_with('$') || word.contains("$(") || word.contains("${") || word.contains("$@");
    let of = |text: String, exact_for| Some(Function { text, words: words.len(), exact_for });
    match words[..] {
        // make executes this one without a shell, whose builtin would print $PWD.
        ["pwd"] => of("$(CURDIR)".to_owned(), ExactFor::Nothing),
        ["basename", path] if is_expanded(path) => of(format!("$(notdir {path})"), ExactFor::Path),
        ["basename", path, suffix] if is_expanded(path) && is_plain(suffix) => {
            of(format!("$(patsubst %{suffix},%,$(notdir {path}))"), ExactFor::Path)
        }
        ["dirname", path] if is_expanded(path) => of(format!("$(patsubst %/,%,$(dir {path}))"), ExactFor::Path),
        ["echo", word, "|", ref filter @ ..] if is_expanded(word) => {
            let (text, exact_for) = filtered(word, filter)?;
            of(text, exact_for)
        }
        _ => None,
    }
}

/// Whether a text means itself in the arguments of functions, in patterns of sed, and in those of
/// make.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./+@=:".contains(&byte))
}

/// Returns the function that does what a filter does with one word.
fn filtered(word: &str, filter: &[&str]) -> Option<(String, ExactFor)> {
    let field = |delimiter: &str, number: &str| {
        let number: usize = number.parse().ok()?;
        let is_known = is_plain(delimiter) && delimiter.len() == 1 && number > 0;
        let exact = ExactFor::Contains(delimiter.to_owned(), usize::from(number > 1)..=usize::MAX);
        is_known.then(|| (format!("$(word {number},$(subst {delimiter}, ,{word}))"), exact))
    };
    match filter {
        ["tr", from, to] if is_plain(from) && is_plain(to) && from.len() == 1 && to.len() == 1 => {
            Some((format!("$(subst {from},{to},{word})"), ExactFor::AnyWord))
        }
        ["tr", "-d", from] if is_plain(from) && from.len() == 1 => {
            Some((format!("$(subst {from},,{word})"), ExactFor::AnyWord))
        }
        ["cut", delimiter, number] => field(delimiter.strip_prefix("-d")?, number.strip_prefix("-f")?),
        ["cut", "-d", delimiter, "-f", number] => field(delimiter, number),
        ["sed", script] | ["sed", "-e" | "-E", script] => substituted(word, script),
        _ => None,
    }
}

/// Returns the function that does what `s/pattern/new/` does.
fn substituted(word: &str, script: &str) -> Option<(String, ExactFor)> {
    let delimiter = script.strip_prefix('s')?.chars().next().filter(char::is_ascii_punctuation)?;
    let mut parts = script[2..].split(delimiter);
    let (pattern, new, flags) = (parts.next()?, parts.next()?, parts.next()?);
    let is_known = parts.next().is_none() && (new.is_empty() || is_plain(new)) && matches!(flags, "" | "g");
    let (start, end) = (pattern.starts_with('^'), pattern.ends_with('$'));
    let inside = pattern.strip_prefix('^').unwrap_or(pattern);
    let inside = inside.strip_suffix('$').unwrap_or(inside);
    let literal = inside.replace("\\.", "\u{1}");
    let is_literal =
        !literal.contains(['.', '\\', '+']) && (inside.is_empty() || is_plain(&literal.replace('\u{1}', "x")));
    let literal = literal.replace('\u{1}', ".");
    if !is_known || !is_literal {
        return None;
    }
    let text = match (start, end, literal.is_empty()) {
        (true, false, true) => format!("$(addprefix {new},{word})"),
        (false, true, true) => format!("$(addsuffix {new},{word})"),
        (true, false, false) => format!("$(patsubst {literal}%,{new}%,{word})"),
        (false, true, false) => format!("$(patsubst %{literal},%{new},{word})"),
        (false, false, false) if flags == "g" => format!("$(subst {literal},{new},{word})"),
        (false, false, false) => {
            return Some((format!("$(subst {literal},{new},{word})"), ExactFor::Contains(literal, 0..=1)));
        }
        _ => return None,
    };
    Some((text, ExactFor::AnyWord))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::advice::edit::spliced;

    /// Returns what make prints for a text with this value of `F`.
    fn printed(text: &str, value: &str) -> String {
        let makefile = format!("F := {value}\nall: ; @:\n$(info {text})\n");
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("Makefile"), makefile).unwrap();
        let output = std::process::Command::new("make").arg("-s").current_dir(directory.path()).output().unwrap();
        let own = directory.path().canonicalize().unwrap();
        String::from_utf8(output.stdout).unwrap().replace(own.to_str().unwrap(), "HERE")
    }

    #[test]
    fn functions_print_what_the_commands_print() {
        for (code, value, expected) in [
            ("basename $(F)", "a/b.c", "$(notdir $(F))"),
            ("basename $(F) .c", "a/b.c", "$(patsubst %.c,%,$(notdir $(F)))"),
            ("basename $(F) .c", "b.h", "$(patsubst %.c,%,$(notdir $(F)))"),
            ("dirname $(F)", "a/b.c", "$(patsubst %/,%,$(dir $(F)))"),
            ("dirname $(F)", "b.c", "$(patsubst %/,%,$(dir $(F)))"),
            ("pwd", "a", "$(CURDIR)"),
            ("echo $(F) | sed 's/\\.c$$/.o/'", "a/b.c", "$(patsubst %.c,%.o,$(F))"),
            ("echo $(F) | sed 's,^,x_,'", "a", "$(addprefix x_,$(F))"),
            ("echo $(F) | sed s/a/b/g", "aca", "$(subst a,b,$(F))"),
            ("echo $(F) | tr . _", "a.b.c", "$(subst .,_,$(F))"),
            ("echo $(F) | cut -d. -f2", "1.2.3", "$(word 2,$(subst ., ,$(F)))"),
        ] {
            let text = format!("$(shell {code})");
            let command = code.replace("$(F)", value).replace("$$", "$").into_bytes();
            let (splices, _) = splices(&[command].into(), text.as_bytes());
            let edited = String::from_utf8(spliced(text.as_bytes(), &splices)).unwrap();
            assert_eq!(edited, expected, "{text}");
            assert_eq!(printed(&edited, value), printed(&text, value), "{text}");
        }
        for (code, value) in [
            ("basename $(F)", "a/"),
            ("basename $(F) .c", ".c"),
            ("dirname $(F)", "/a"),
            ("dirname $(F)", "a//b"),
            ("basename $(F)", "a b"),
            ("echo $(F) | sed s/a/b/", "aca"),
            ("echo $(F) | sed s/./b/", "aca"),
            ("echo $(F) | cut -d. -f2", "1"),
            ("echo $(F) | cut -d. -f2", "1..2"),
            ("echo $(F) >x", "a"),
        ] {
            let command = code.replace("$(F)", value).into_bytes();
            assert!(splices(&[command].into(), format!("$(shell {code})").as_bytes()).0.is_empty(), "{code}: {value}");
        }
    }
}
