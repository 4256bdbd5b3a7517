//! One sed in place of neighbours in a pipeline: `sed A | sed B`, `grep P | sed A`, and `head -n 1`
//! before or after a sed. Only scripts whose commands see the same lines when they are joined.

use super::shell::FoundCall;
use super::{Result, Splice, limited, or_refuse, splice};
use crate::explain::advice::phrases::{name, quoted};
use crate::model::launch::base_name;
use crate::patterns::script::{names, span};

/// What a filter of a pipeline does, as commands of sed.
#[derive(Default)]
pub(in crate::explain::advice) struct Filter {
    is_sed: bool,
    /// How many of its words do not name files.
    pub(in crate::explain::advice) own: usize,
    scripts: Vec<String>,
    is_extended: bool,
    /// The command that ends it.
    quit: Option<String>,
    deletes: bool,
    /// Whether it depends on the numbers of lines.
    counts: bool,
}

impl Filter {
    /// Reads the words of a command.
    pub(in crate::explain::advice) fn of(words: &[String]) -> Option<Filter> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (program, arguments) = words.split_first()?;
        let filter = match base_name(program.as_bytes()) {
            b"sed" => Filter::of_sed(arguments)?,
            b"grep" => Filter::of_grep(arguments)?,
            b"head" => {
                let (own, count) = lines_of_head(arguments)?;
                Filter { own, quit: Some(format!("{count}q")), ..Filter::default() }
            }
            _ => return None,
        };
        let files = &words[filter.own..];
        let has_options = files.iter().any(|word| word.starts_with('-'));
        ((filter.is_sed || files.len() < 2) && !has_options).then_some(filter)
    }

    fn of_sed(words: &[&str]) -> Option<Filter> {
        let (mut filter, mut rest) = (Filter { is_sed: true, ..Filter::default() }, words);
        while let [word, others @ ..] = rest {
            match (*word, others) {
                ("-E" | "-r", _) => filter.is_extended = true,
                ("-e", [script, ..]) => filter.scripts.push((*script).to_owned()),
                (script, _) if filter.scripts.is_empty() => filter.scripts.push(script.to_owned()),
                _ => break,
            }
            rest = if *word == "-e" { others.get(1..)? } else { others };
        }
        filter.own = 1 + words.len() - rest.len();
        for script in &filter.scripts {
            let [deletes, counts] = effects(script)?;
            (filter.deletes, filter.counts) = (filter.deletes | deletes, filter.counts | counts);
        }
        (!filter.scripts.is_empty()).then_some(filter)
    }

    fn of_grep(words: &[&str]) -> Option<Filter> {
        let own = words.iter().take_while(|word| matches!(**word, "-v" | "-E" | "-m1")).count();
        let pattern = words.get(own).filter(|pattern| !pattern.is_empty() && !pattern.starts_with('-'))?;
        let has = |option| words[..own].contains(&option);
        let scripts = vec![format!("/{pattern}/{}", if has("-v") { "d" } else { "!d" })];
        let quit = has("-m1").then(|| "q".to_owned());
        let filter = Filter { own: own + 2, scripts, is_extended: has("-E"), quit, deletes: true, ..Filter::default() };
        (!pattern.contains(['\n', '/'])).then_some(filter)
    }

    /// Returns the one sed that does what this filter and the next one do, without its files. The
    /// next one sees only lines that this one prints.
    pub(in crate::explain::advice) fn joined(&self, next: &Filter) -> Option<String> {
        let is_other = !self.scripts.is_empty() && !next.scripts.is_empty() && self.is_extended != next.is_extended;
        let (is_cut, cuts) = (self.deletes || self.quit.is_some(), next.counts || next.quit.is_some());
        let changes = is_other || is_cut && cuts || self.quit.is_some() && next.deletes;
        ((self.is_sed || next.is_sed) && !changes).then_some(())?;
        let option = if self.is_extended || next.is_extended { " -E" } else { "" };
        let scripts = self.scripts.iter().chain(&next.scripts).chain(&self.quit).chain(&next.quit);
        Some(format!("sed{option}{}", scripts.map(|script| format!(" -e {}", quoted(script))).collect::<String>()))
    }
}

/// Returns how many words of a head do not name files, and the number of lines that it prints.
pub(super) fn lines_of_head(arguments: &[&str]) -> Option<(usize, u32)> {
    let (own, count) = match arguments {
        ["-n", count, ..] => (3, *count),
        [option, ..] => (2, option.strip_prefix("-n").or_else(|| option.strip_prefix('-'))?),
        [] => return None,
    };
    Some((own, count.parse().ok().filter(|count| *count > 0)?))
}

/// Returns whether a script deletes lines, and whether it names them by numbers. `None` if it does
/// more than to replace and to delete.
fn effects(script: &str) -> Option<[bool; 2]> {
    let ([mut deletes, mut counts], mut rest) = ([false; 2], script.trim());
    loop {
        let command = rest.trim_start_matches(|each: char| each.is_ascii_digit() || each == '$');
        counts |= command != rest;
        rest = if let Some(pattern) = rest.strip_prefix('/') { part(pattern, '/')?.1 } else { command };
        rest = rest.strip_prefix('!').unwrap_or(rest);
        if let Some(after) = rest.strip_prefix('d') {
            (deletes, rest) = (true, after);
        } else {
            let delimiter = rest.strip_prefix('s')?.chars().next().filter(char::is_ascii_punctuation)?;
            let (pattern, after) = part(&rest[2..], delimiter)?;
            let (replacement, after) = part(after, delimiter)?;
            (!pattern.is_empty() && !replacement.contains("\\n")).then_some(())?;
            rest = after.trim_start_matches(|flag: char| flag.is_ascii_digit() || "gI".contains(flag));
        }
        if rest.trim().is_empty() {
            return Some([deletes, counts]);
        }
        rest = rest.trim_start_matches(' ').strip_prefix(';')?.trim_start_matches(' ');
    }
}

/// Splits a text at the delimiter that ends a part of a command. A delimiter in a set does not.
fn part(text: &str, delimiter: char) -> Option<(&str, &str)> {
    let is_escaped = |at: usize| text[..at].len() % 2 != text[..at].trim_end_matches('\\').len() % 2;
    let (at, _) = text.match_indices(delimiter).find(|(at, _)| !is_escaped(*at))?;
    let part = &text[..at];
    let is_whole = part.matches('[').count() == part.matches(']').count() && !part.contains('\n');
    is_whole.then_some((part, &text[at + 1..]))
}

/// `sed A "$f" | sed B` becomes `sed -e A -e B "$f"`.
pub(super) fn joined(call: &FoundCall<'_>) -> Result<Vec<Splice>> {
    let at = call.pipeline.iter().position(|each| *each == call.command).unwrap_or_default();
    let mut pairs = call.pipeline.windows(2).skip(at.saturating_sub(1)).take(2).rev();
    let splices = pairs.find_map(|pair| pair_joined(call, pair[0], pair[1]));
    or_refuse(splices, format!("no sed beside {} can do its work", call.program()))
}

fn pair_joined(call: &FoundCall<'_>, first: usize, second: usize) -> Option<Vec<Splice>> {
    let script = call.script;
    let [one, other] = [script.simple(first)?, script.simple(second)?];
    let [words, others] = [one, other].map(|simple| simple.texts().iter().map(|word| name(word)).collect::<Vec<_>>());
    let is_program = |command| script.program(command).is_some_and(|program| !script.is_function(&program));
    let is_read = one.redirections.iter().all(|each| each.operator == b"<" && each.range.start > span(&one.words).end);
    let has_input = other.redirections.iter().any(|each| each.operator.contains(&b'<'));
    let is_plain = is_read && !has_input && one.assignments.is_empty() && other.assignments.is_empty();
    let (filter, next) = (Filter::of(&words)?, Filter::of(&others)?);
    let code = filter.joined(&next).filter(|_| next.own == others.len())?;
    // grep fails if it finds nothing, and ends its last line with a newline, which wc would count.
    let is_last = call.substitution.is_some() && call.pipeline.last() == Some(&second);
    let is_same = || !filter.deletes || is_last && !names(script.text, b"pipefail");
    let has_one_file = || one.words[filter.own..].iter().all(|file| call.plain_source(file).is_ok());
    let can_join = is_plain && is_program(first) && is_program(second) && !call.rewrite.has_errors;
    (can_join && (filter.is_sed || has_one_file() && is_same())).then_some(())?;
    let own = one.words[0].range.start..one.words[filter.own - 1].range.end;
    let splices = vec![splice(own, code), splice(script.end(first)..span(&other.words).end, "")];
    let limits: &[&str] = &["if the file is missing, sed reports it, and the pipeline fails"];
    Some(limited(splices, if words.len() > filter.own { limits } else { &[] }))
}
