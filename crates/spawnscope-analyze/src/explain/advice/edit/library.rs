//! Edits of Python and Perl programs that launch small programs: the standard library does their
//! work. One table (`library.tsv`) has the code of both languages; `python` and `perl` find the
//! launches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::command::{CommandWord, FoundLaunch, Piece, Usage};
use super::form::filled;
use super::{
    Result, Splice, limited, line_start, or_refuse, perl, python, python_functions, refuse, refuse_if, splice,
};
use crate::explain::advice::phrases::{ANSWER_LIMIT, name};
use crate::explain::advice::tables::rows;
use crate::model::launch::base_name;
use crate::patterns::script::identifier_length;
use crate::patterns::words::contains;
use spawnscope_data::event::Language;

/// The launches of a program from a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LibraryRewrite {
    pub(crate) language: Language,
    pub(crate) program: Vec<u8>,
    /// The different lists of arguments of the recorded launches.
    pub(crate) calls: BTreeSet<Vec<Vec<u8>>>,
    pub(crate) has_failures: bool,
    /// What to do if the library cannot do the same.
    pub(crate) otherwise: Otherwise,
}

/// What to do with a launch that the library cannot replace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Otherwise {
    #[default]
    Nothing,
    /// Call the program without a shell, which got these commands.
    WithoutShell(BTreeSet<Vec<u8>>),
    /// Keep the answer.
    Once,
}

const NOT_PLAIN: &str = "an argument is not a plain value";

/// A row of the table.
struct Row {
    arguments: &'static str,
    kind: &'static str,
    /// Modules and code, for Python and for Perl.
    codes: [[&'static str; 2]; 2],
    limit: &'static str,
}

static TABLE: LazyLock<BTreeMap<&'static [u8], Vec<Row>>> = LazyLock::new(|| {
    let mut programs: BTreeMap<&[u8], Vec<Row>> = BTreeMap::new();
    for [names, arguments, kind, modules, python, uses, perl, limit] in rows(include_str!("../library.tsv")) {
        for program in names.split(' ') {
            let row = Row { arguments, kind, codes: [[modules, python], [uses, perl]], limit };
            programs.entry(program.as_bytes()).or_default().push(row);
        }
    }
    programs
});

/// The name of a kept answer consists of at most this many words of the command.
const MAX_NAMED_WORDS: usize = 3;
/// Conversions of date that are numbers, which do not depend on the locale.
const NUMBERS: &[u8] = b"YmdHMSFTjyDReuVGgCIlk";

impl Row {
    /// Returns one of the lists of words that these arguments match.
    fn pattern(&self, arguments: &[Vec<u8>]) -> Option<Vec<&'static str>> {
        let mut lists = self.arguments.split(" OR ").map(|list| list.split_whitespace().collect::<Vec<_>>());
        lists.find(|list| {
            let words = list.strip_suffix(&["<"]).unwrap_or(list);
            words.len() == arguments.len()
                && words.iter().zip(arguments).all(|(word, argument)| matches(word, argument))
        })
    }

    fn code(&self, language: Language) -> [&'static str; 2] {
        self.codes[usize::from(language != Language::Python)]
    }
}

fn matches(word: &str, argument: &[u8]) -> bool {
    let is_operand = !argument.is_empty() && !argument.starts_with(b"-");
    match word {
        "OPERAND" => is_operand,
        // A path that ends with a name.
        "NAME" => is_operand && !argument.ends_with(b"/"),
        "OCTAL" => (3..5).contains(&argument.len()) && argument.iter().all(|byte| (b'0'..b'8').contains(byte)),
        "FORMAT" => argument.strip_prefix(b"+").is_some_and(|format| {
            let mut fields = format.split(|byte| *byte == b'%');
            fields.next().is_some_and(|text| text.len() < format.len())
                && fields.all(|field| field.first().is_some_and(|first| NUMBERS.contains(first)))
        }),
        _ => word.as_bytes() == argument,
    }
}

impl LibraryRewrite {
    /// Returns the row for all recorded calls, with the words that they match. `is_first`: whether
    /// only the first word of the output is used.
    fn row(&self, has_input: bool, is_first: bool) -> Option<(&'static Row, Vec<&'static str>)> {
        TABLE.get(&self.program[..])?.iter().filter(|row| (row.kind == "first") <= is_first).find_map(|row| {
            let mut patterns = self.calls.iter().map(|call| row.pattern(call));
            let first = patterns.next()??;
            let is_same = patterns.all(|pattern| pattern.as_ref() == Some(&first));
            let is_row = is_same && first.ends_with(&["<"]) == has_input && !row.code(self.language)[1].is_empty();
            is_row.then_some((row, first))
        })
    }

    /// Whether the table has code for these calls.
    pub(crate) fn is_known(&self) -> bool {
        [false, true].iter().any(|has_input| self.row(*has_input, true).is_some())
    }

    /// Returns what the new code does in another way.
    fn limit(&self, row: &Row, pattern: &[&str]) -> Option<&'static str> {
        const MESSAGES: &str =
            "error messages are then those of the language, and blanks and `$` in a name are ordinary characters";
        let is_own = !row.limit.is_empty() && (self.language == Language::Python || !row.limit.contains("Python"));
        let has_names = pattern.iter().any(|word| matches!(*word, "OPERAND" | "NAME" | "<"));
        match row.kind {
            _ if is_own => Some(row.limit),
            "do" => Some(MESSAGES),
            _ => has_names.then_some("blanks and `$` in a name are then ordinary characters"),
        }
    }

    /// Returns when the library answers as the program does. Otherwise, as for a missing file, the
    /// program is still called, which reports the error in its own way.
    fn condition(&self, row: &Row, pattern: &[&str], launch: &FoundLaunch) -> Result<Option<String>> {
        let operand = pattern.iter().position(|word| *word == "OPERAND");
        let operand = launch.command.input.as_ref().or(operand.map(|at| &launch.command.words[at + 1]));
        let Some(operand) = operand.filter(|_| row.kind != "do" && self.program != b"which") else { return Ok(None) };
        let value = or_refuse(self.value(operand).filter(|value| !value.contains('(')), NOT_PLAIN)?;
        let reads = matches!(&self.program[..], b"cat" | b"wc") || self.program.ends_with(b"sum");
        Ok(Some(match (self.language, reads) {
            (Language::Python, true) => format!("os.path.isfile({value}) and os.access({value}, os.R_OK)"),
            (Language::Python, false) => format!("os.path.exists({value})"),
            (_, true) => format!("-f {value} && -r _"),
            (_, false) => format!("-e {value}"),
        }))
    }

    pub(super) fn splices(&self, text: &[u8], line: u32) -> Result<Vec<Splice>> {
        let by_library = self.splices_by_library(text, line);
        by_library.or_else(|reason| match &self.otherwise {
            Otherwise::WithoutShell(commands) => python::without_shell(commands, text, line),
            Otherwise::Once => self.splices_for_once(text, line),
            Otherwise::Nothing => Err(reason),
        })
    }

    /// Keeps the answer, which is always the same for the same arguments.
    fn splices_for_once(&self, text: &[u8], line: u32) -> Result<Vec<Splice>> {
        let launch = self.launch_at(text, line)?;
        refuse_if(self.has_failures, format!("the exit status of {} was not always 0", name(&self.program)))?;
        let words = launch.command.words.iter().map_while(CommandWord::literal).take(MAX_NAMED_WORDS);
        let words: Vec<String> = words.map(|word| name(base_name(word)).to_lowercase()).collect();
        let is_separator = |character: char| !character.is_ascii_alphanumeric();
        let words = words.iter().flat_map(|word| word.split(is_separator)).filter(|word| !word.is_empty());
        let kept = words.chain(["once"]).collect::<Vec<_>>().join("_");
        refuse_if(contains(text, kept.as_bytes()), format!("`{kept}` may already be the name of something else"))?;
        let is_python = self.language == Language::Python;
        let splices = if is_python { python_functions::kept } else { perl::kept }(text, &launch, &kept)?;
        Ok(limited(splices, &[ANSWER_LIMIT]))
    }

    /// Returns the launch of a line.
    fn launch_at(&self, text: &[u8], line: u32) -> Result<FoundLaunch> {
        let is_python = self.language == Language::Python;
        let found = if is_python { python::launches(text, line)? } else { perl::launches(text, line)? };
        let mut found = found.into_iter().filter(|launch| self.is_made_by(launch));
        let only = found.next().filter(|_| found.next().is_none());
        or_refuse(only, format!("the line does not have exactly one plain launch of {}", name(&self.program)))
    }

    fn splices_by_library(&self, text: &[u8], line: u32) -> Result<Vec<Splice>> {
        let is_python = self.language == Language::Python;
        let launch = &self.launch_at(text, line)?;
        let row = self.row(launch.command.input.is_some(), launch.usage == Usage::FirstWord);
        let other = format!("no function does the same as {} with these arguments", name(&self.program));
        let (row, pattern) = or_refuse(row, other)?;
        let arguments = &launch.command.words[1..];
        // A value may become another option.
        let is_fixed = |(word, argument): (&&str, &CommandWord)| {
            matches!(*word, "OPERAND" | "NAME") || argument.literal().is_some()
        };
        let are_fixed = pattern.iter().zip(arguments).all(is_fixed);
        refuse_if(!are_fixed, "the options of the program are not written in this line")?;
        // Python translates the ends of lines in text.
        refuse_if(row.kind == "text" && launch.is_bytes, "the program decodes the output itself")?;
        let condition = self.condition(row, &pattern, launch)?;
        if condition.is_none() {
            self.check_failures(row, launch, text)?;
        }
        let [modules, template] = row.code(self.language);
        let code = self.filled(template, launch)?;
        let used = if is_python { self.in_python(row, launch, text, code)? } else { self.in_perl(row, launch, code)? };
        let used = self.chosen(text, launch, used, condition);
        let others = [("os.path.", "os"), ("sys.stderr", "sys")].into_iter();
        let others = others.filter(|(part, _)| is_python && used.contains(part)).map(|(_, module)| module);
        let mut splices = Vec::new();
        for module in modules.split_whitespace().chain(others).collect::<BTreeSet<_>>() {
            splices.extend(if is_python { python::import(text, module)? } else { perl::import(text, module)? });
        }
        splices.push(splice(launch.range.clone(), used));
        Ok(limited(splices, self.limit(row, &pattern).as_slice()))
    }

    /// Returns the expression that uses the library where this answers as the program does.
    fn chosen(&self, text: &[u8], launch: &FoundLaunch, used: String, condition: Option<String>) -> String {
        let call = name(&text[launch.range.clone()]);
        let used = match (condition, self.language) {
            (None, _) => used,
            (Some(condition), Language::Python) => format!("({used} if {condition} else {call})"),
            (Some(condition), _) => format!("({condition} ? {used} : {call})"),
        };
        // In Perl, `print (...), "x"` would print only what is in the parentheses.
        let follows_word = text[..launch.range.start].trim_ascii_end().last().is_some_and(u8::is_ascii_alphanumeric);
        let is_list = self.language == Language::Perl && follows_word && used.starts_with('(');
        if is_list { format!("+{used}") } else { used }
    }

    /// Refuses an edit after which failures are handled in another way.
    fn check_failures(&self, row: &Row, launch: &FoundLaunch, text: &[u8]) -> Result<()> {
        let is_ignored = row.kind == "do" && matches!(launch.usage, Usage::Ignored | Usage::Negated | Usage::Status);
        let may_fail = row.kind == "do" || self.program == b"which";
        refuse_if(
            self.has_failures && !is_ignored,
            format!("the exit status of {} was not always 0", name(&self.program)),
        )?;
        let handles = self.language == Language::Python && contains(text, b"CalledProcessError");
        refuse_if(handles && may_fail && !is_ignored, "the program handles failures of programs")
    }

    /// Whether a launch in the program may have been each of the recorded ones.
    fn is_made_by(&self, launch: &FoundLaunch) -> bool {
        let words = &launch.command.words;
        let is_program = words[0].literal().is_some_and(|program| base_name(program) == self.program);
        let is_same = |call: &Vec<Vec<u8>>| {
            call.len() + 1 == words.len() && words[1..].iter().zip(call).all(|(word, argument)| word.can_be(argument))
        };
        is_program && self.calls.iter().all(is_same)
    }

    fn value(&self, word: &CommandWord) -> Option<String> {
        if self.language == Language::Python { python::value(word) } else { perl::value(word) }
    }

    fn filled(&self, template: &str, launch: &FoundLaunch) -> Result<String> {
        let value = |word: &CommandWord| or_refuse(self.value(word), NOT_PLAIN);
        let mut code = template.replace("{algorithm}", name(&self.program).trim_end_matches("sum"));
        if let Some(input) = &launch.command.input {
            code = code.replace("{<}", &value(input)?);
        }
        filled(&code, &launch.command.words, |kind, word| {
            let literal = word.literal().unwrap_or_default();
            match kind {
                "" => Some(value(word)),
                "=" => Some(Ok(name(literal))),
                "+" => Some(value(&CommandWord::Pieces(vec![Piece::Text(literal[1..].to_vec())]))),
                _ => None,
            }
        })
    }

    fn in_python(&self, row: &Row, launch: &FoundLaunch, text: &[u8], code: String) -> Result<String> {
        // Names may have blanks at their ends.
        let has_operand = ["{1}", "{2}"].iter().any(|operand| row.codes[0][1].contains(operand));
        Ok(match (row.kind, launch.usage) {
            ("do", Usage::Checked) => code,
            ("do", Usage::Ignored | Usage::Status) => {
                let start = line_start(text, launch.range.start);
                let indentation = name(&text[start..launch.range.start]);
                let own = &text[launch.range.start..];
                let set = |status| match launch.usage {
                    Usage::Status => {
                        format!("\n{indentation}    {} = {status}", name(&own[..identifier_length(own)]))
                    }
                    _ => String::new(),
                };
                let [done, failed] = [0, 1].map(set);
                format!(
                    "try:\n{indentation}    {code}{done}\n{indentation}except OSError as error:\n{indentation}    print(error, file=sys.stderr){failed}"
                )
            }
            ("line", Usage::Line) | ("first", Usage::FirstWord) => code,
            ("line", Usage::FirstWord) => format!("{code}.split()[0]"),
            ("line", Usage::Trimmed) if has_operand => format!("{code}.strip()"),
            ("line", Usage::Trimmed) => code,
            ("line", Usage::Text) => format!("({code} + \"\\n\")"),
            ("line", Usage::Bytes) => format!("({code} + \"\\n\").encode()"),
            ("text", Usage::Text) => code,
            ("text", Usage::Trimmed) => format!("{code}.strip()"),
            _ => return refuse("the result is used in another way"),
        })
    }

    fn in_perl(&self, row: &Row, launch: &FoundLaunch, code: String) -> Result<String> {
        Ok(match (row.kind, launch.usage) {
            ("do", Usage::Checked) => code,
            ("do", Usage::Negated) => format!("!{code}"),
            ("do", Usage::Fatal) => format!("{code} or die \"{}: $!\\n\"", name(&self.program)),
            ("do", Usage::Ignored) => format!("{code} or warn \"{}: $!\\n\"", name(&self.program)),
            ("line", Usage::Text) => format!("({code} . \"\\n\")"),
            ("text", Usage::Text) if launch.is_scalar => code,
            _ => return refuse("the result is used in another way"),
        })
    }
}

/// Languages whose programs these edits change.
pub(crate) const fn has_library(language: Language) -> bool {
    matches!(language, Language::Python | Language::Perl)
}

/// All programs of the table.
#[cfg(test)]
pub(super) fn programs() -> impl Iterator<Item = &'static str> {
    TABLE.keys().map(|program| std::str::from_utf8(program).unwrap())
}
