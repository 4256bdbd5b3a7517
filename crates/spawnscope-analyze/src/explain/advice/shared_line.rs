//! What the command lines of several launches have in common. A recipe must keep all of it: without
//! its `-l`, php executes the files that it should only check.

use super::context::RuleContext;
use super::phrases::{INPUTS, name, quoted};
use crate::model::launch::{Exec, base_name};
use crate::patterns::programs::{has_property, takes_value};
use crate::patterns::runtimes::Runtime;
use crate::patterns::words::{Words, contains};

/// The words of the command lines, without those that differ.
pub(super) struct SharedLine {
    /// `None` where the launches differ.
    words: Vec<Option<String>>,
    /// What the words at each position have in common if they are an option with a value:
    /// `--filter=`. Otherwise empty.
    options: Vec<String>,
    /// Whether a word that differs is itself an option in some of the launches.
    pub(super) differs_in_options: bool,
    /// Whether the words that differ are files.
    are_files: bool,
}

impl SharedLine {
    /// Compares the command lines as the parents wrote them. `None` if not all are known. Where
    /// some are longer, they differ.
    pub(super) fn of(context: &RuleContext<'_, '_>, all: &[u32]) -> Option<SharedLine> {
        let execs: Option<Vec<&Exec<'_>>> = all.iter().map(|index| first_written(context, *index)).collect();
        let mut execs = execs?;
        execs.dedup_by_key(|exec| exec.texts());
        let lines: Vec<Vec<&[u8]>> = execs.into_iter().map(as_written).collect();
        let mut words: Vec<Option<&[u8]>> = lines.first()?.iter().copied().map(Some).collect();
        let mut options: Vec<&[u8]> = words.iter().flatten().map(|word| option_of(word)).collect();
        for line in &lines[1..] {
            options.resize(words.len().max(line.len()), b"");
            for (at, option) in options.iter_mut().enumerate() {
                *option = line.get(at).filter(|word| option_of(word) == *option).map_or(&b""[..], |_| *option);
            }
            words.resize(words.len().max(line.len()), None);
            for (at, word) in words.iter_mut().enumerate() {
                *word = word.filter(|word| line.get(at) == Some(word));
            }
        }
        let is_flag = |(at, word): (usize, &&[u8])| words[at].is_none() && options[at].is_empty() && is_flag(word);
        let differs_in_options = lines.iter().any(|line| line.iter().enumerate().any(is_flag));
        let program = context.launch(*all.first()?).command.name;
        let ends_with_files = || has_property(program, "names-files") && words.last() == Some(&None);
        let are_files = has_property(program, "many")
            || ends_with_files()
            || lines.iter().all(|line| {
                let mut own = line.iter().zip(&words).filter(|(_, shared)| shared.is_none());
                own.all(|(word, _)| is_path(word))
            });
        let words = words.into_iter().map(|word| word.map(name)).collect();
        Some(SharedLine { are_files, words, options: options.into_iter().map(name).collect(), differs_in_options })
    }

    /// Iterates over the words. `None` where the launches differ.
    pub(super) fn words(&self) -> impl Iterator<Item = Option<&str>> {
        self.words.iter().map(Option::as_deref)
    }

    /// Returns what the words that differ are called.
    pub(super) fn input(&self) -> &'static str {
        if self.are_files { "file" } else { "item" }
    }

    /// Returns how many words differ.
    pub(super) fn differing(&self) -> usize {
        self.words.iter().filter(|word| word.is_none()).count()
    }

    /// Returns the command with all inputs in place of the one word that differs. `None` if that
    /// word is not an input: it is where the output goes, or what a front end should run (`npm run
    /// NAME`).
    pub(super) fn with_all_inputs(&self) -> Option<String> {
        const OUTPUTS: Words =
            Words("-o -O -d -D --out --output --outfile --output-file --outdir --dest --destination");
        const VERBS: Words = Words("dlx exec run run-script start task x");
        let is_input = self.differing() == 1 && !self.differs_in_options;
        let at = self.words.iter().position(Option::is_none).filter(|_| is_input)?;
        let before = at.checked_sub(1).and_then(|before| self.words[before].as_deref()).unwrap_or_default();
        let is_output = OUTPUTS.contains(before.as_bytes())
            || OUTPUTS.contains(self.options.get(at)?.trim_end_matches('=').as_bytes());
        let is_job = VERBS.contains(before.as_bytes()) && at < 3;
        (!is_output && !is_job).then(|| self.with_inputs(INPUTS))
    }

    /// Returns the last word, quoted for a shell, if it is the same file each time and another word
    /// differs.
    pub(super) fn file_of_each(&self) -> Option<String> {
        let file =
            self.words.last()?.as_deref().filter(|word| is_path(word.as_bytes()) || !is_flag(word.as_bytes()))?;
        (self.differing() == 1 && self.words.len() > 2).then(|| quoted(file))
    }

    /// Whether all launches have a word.
    pub(super) fn has(&self, word: &str) -> bool {
        self.words().any(|shared| shared == Some(word))
    }

    /// Whether the word that differs ends a list of paths, or of files of a program that takes
    /// several.
    pub(super) fn ends_with_operand(&self, takes_many: bool) -> bool {
        let last = self.words.len().saturating_sub(1);
        let is_last = last > 0 && self.differing() == 1 && self.words[last].is_none() && self.options[last].is_empty();
        // `git log -1` would print one commit for all paths.
        let is_limit = |word: &str| {
            word.strip_prefix('-')
                .is_some_and(|rest| rest.trim_start_matches('n').bytes().all(|byte| byte.is_ascii_digit()))
        };
        let is_limited = self.words().flatten().any(|word| is_limit(word) && word.len() > 1);
        is_last && (takes_many || !is_limited && self.words[last - 1].as_deref() == Some("--"))
    }

    /// Returns the words before those that differ, if none is after them: `rm -f`. The first that
    /// differs must not be the value of an option: `touch -r REFERENCE FILE`.
    pub(super) fn before_inputs(&self) -> Option<String> {
        let shared = self.words.iter().take_while(|word| word.is_some()).count();
        let is_value = match &self.words[..shared] {
            [Some(program), .., Some(option)] => takes_value(base_name(program.as_bytes()), option.as_bytes()),
            _ => false,
        };
        let are_last = self.words[shared..].iter().all(Option::is_none) && !is_value;
        are_last.then(|| self.text(0..shared))?
    }

    /// Returns the words at these positions, quoted for a shell, if all launches have them.
    pub(super) fn text(&self, range: std::ops::Range<usize>) -> Option<String> {
        let words: Option<Vec<String>> =
            self.words.get(range)?.iter().map(|word| Some(quoted(word.as_ref()?))).collect();
        Some(words?.join(" "))
    }

    /// Returns the command for `xargs` that passes it one input at a time: `-n1 php -l`, or `-I{}
    /// convert {} -strip`. `None` if the launches differ in several words.
    pub(super) fn for_each_input(&self) -> Option<String> {
        (self.differing() == 1).then(|| match self.before_inputs() {
            Some(command) => format!("-n1 {command}"),
            None => format!("-I{{}} {}", self.with_inputs("{}")),
        })
    }

    /// Returns the command with this text in place of each word that differs.
    pub(super) fn with_inputs(&self, input: &str) -> String {
        let words = self.words.iter().zip(&self.options);
        let words =
            words.map(|(word, option)| word.as_ref().map_or_else(|| format!("{option}{input}"), |word| quoted(word)));
        words.collect::<Vec<_>>().join(" ")
    }
}

/// Returns the exec that has the command line which the parent wrote. A helper program of the
/// parent, which gets that through a pipe as jspawnhelper of Java does, is before it.
pub(super) fn first_written<'g, 'a>(context: &RuleContext<'g, 'a>, launch: u32) -> Option<&'g Exec<'a>> {
    let [first, .., last] = &context.launch(launch).execs[..] else { return context.launch(launch).execs.first() };
    let (before, after) = (arguments_of(first), arguments_of(last));
    let passes_on = before.is_empty() || after.is_empty() || after.iter().any(|word| before.contains(word));
    let is_helper = !passes_on && Runtime::named(first.program_name()) == Runtime::Native;
    Some(if is_helper && first.interpreter().is_none() { last } else { first })
}

/// Returns the arguments without the interpreter of a `#!` script, which the kernel inserts.
pub(super) fn as_written<'a>(exec: &Exec<'a>) -> Vec<&'a [u8]> {
    let arguments: Vec<&[u8]> = exec.arguments().collect();
    let script = arguments.iter().position(|argument| exec.interpreter().is_some() && *argument == exec.path());
    arguments[script.unwrap_or(0)..].to_vec()
}

/// Returns the arguments as the parent wrote them, without the program.
pub(super) fn arguments_of<'a>(exec: &Exec<'a>) -> Vec<&'a [u8]> {
    as_written(exec).into_iter().skip(1).collect()
}

/// Whether a word is a path or the name of a file, and no address.
fn is_path(word: &[u8]) -> bool {
    const DOMAINS: Words = Words("com de dev edu gov info io local net org");
    let extension = word.iter().rposition(|byte| *byte == b'.').map_or(&b""[..], |dot| &word[dot + 1..]);
    let has_extension = extension.first().is_some_and(u8::is_ascii_alphabetic) && !DOMAINS.contains(extension);
    (has_extension || word.contains(&b'/')) && !contains(word, b"://")
}

fn is_flag(word: &[u8]) -> bool {
    word.len() > 1 && word.starts_with(b"-")
}

/// Returns the part of an option with a value up to the value. Empty for other words.
fn option_of(word: &[u8]) -> &[u8] {
    let end = word.iter().position(|byte| *byte == b'=').filter(|_| word.starts_with(b"-"));
    end.map_or(b"", |end| &word[..=end])
}
