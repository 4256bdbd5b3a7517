//! How one launch of a program does the work of many: with all files, items or questions. A program
//! that is unknown here gets the same cures, with an "if".

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::tables::rows;
use crate::model::grouped::grouped;
use crate::model::launch::Exec;
use crate::patterns::programs::{has_property, subcommand_of};
use crate::patterns::words::Words;

/// A call whose operands are handled one after the other, so that one launch does and prints what
/// several do.
struct Joined {
    program: &'static str,
    /// A letter of the first argument, or an argument. Empty if any arguments match.
    needs: &'static str,
    /// The letters of options without a value, after which an operand may follow.
    flags: &'static str,
    /// Options that stand for one operand, or change the output.
    refuses: Words,
}

static JOINED: LazyLock<Vec<Joined>> = LazyLock::new(|| {
    let joined = |[program, needs, flags, refuses]: [_; 4]| Joined { program, needs, flags, refuses: Words(refuses) };
    rows(include_str!("joined.tsv")).map(joined).collect()
});

/// Whether a word is one of these options, or a group of options with its letter.
fn is_option(word: &[u8], option: &str) -> bool {
    let letter = option.strip_prefix('-').filter(|rest| rest.len() == 1).map(|rest| rest.as_bytes()[0]);
    let is_group = word.starts_with(b"-") && !word.starts_with(b"--");
    word == option.as_bytes() || letter.is_some_and(|letter| is_group && word.contains(&letter))
}

impl Joined {
    fn includes(&self, arguments: &[&[u8]]) -> bool {
        let Some(before) = arguments.len().checked_sub(2).map(|at| arguments[at]) else {
            return self.needs.is_empty();
        };
        let is_needed = match self.needs.as_bytes() {
            [letter] => arguments[0].contains(letter),
            _ => self.needs.is_empty() || arguments.iter().any(|argument| is_option(argument, self.needs)),
        };
        // The word after an option may be its value.
        let may_follow = !before.starts_with(b"-")
            || !before.starts_with(b"--") && before[1..].iter().all(|letter| self.flags.as_bytes().contains(letter));
        is_needed
            && may_follow
            && !arguments.iter().any(|word| self.refuses.iter().any(|option| is_option(word, option)))
    }
}

/// Whether this is a sed that edits files in place, or handles them separately. Without these
/// options, sed treats several files as one text.
pub(super) fn is_sed_for_each_file(program: &[u8], arguments: &[&[u8]]) -> bool {
    let separates = ["-i", "-s"].iter().any(|option| arguments.iter().any(|word| word.starts_with(option.as_bytes())))
        || arguments.iter().any(|word| word.starts_with(b"--in-place") || *word == b"--separate");
    // The last argument of `sed -i FILE -e SCRIPT` is not a file. A script that quits would end at
    // the first file.
    let before_last = arguments.len().checked_sub(2).map_or(&b""[..], |at| arguments[at]);
    let is_script_last = [&b"-e"[..], b"-f", b"--expression", b"--file"].contains(&before_last);
    let quits = arguments.iter().any(|word| word.ends_with(b"q") || word.ends_with(b"Q"));
    program == b"sed" && separates && !is_script_last && !quits
}

/// Whether one launch with the last arguments of several launches does and prints the same as
/// these. `arguments` are without the program.
pub(super) fn joins<W: AsRef<[u8]>>(program: &[u8], arguments: &[W]) -> bool {
    let arguments: Vec<&[u8]> = arguments.iter().map(AsRef::as_ref).collect();
    let mut rows = JOINED.iter().filter(|row| row.program.as_bytes() == program);
    has_property(program, "many") && !has_property(program, "summary")
        || is_sed_for_each_file(program, &arguments)
        || rows.any(|row| row.includes(&arguments))
}

/// How one call of a program answers several questions about the same input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Together {
    /// One filter prints assignments in the syntax of the shell.
    Jq,
    /// One format with several lines. Holds the prefixes that a format may have, and what ends a
    /// line in it.
    Formats(&'static [&'static str], &'static str),
    /// One format, or several options.
    Options,
}

impl Together {
    pub(super) fn of(program: &[u8]) -> Option<Together> {
        match program {
            b"jq" => Some(Together::Jq),
            b"date" => Some(Together::Formats(&["+"], "%n")),
            b"stat" => Some(Together::Formats(&["--format=", "-c", ""], "\n")),
            b"git" => Some(Together::Options),
            _ => None,
        }
    }

    /// Returns one argument (or several) that asks all questions. `is_expanded`: whether the shell
    /// expands variables in them. `None` unless each certainly has one line of text as its answer
    /// or, for jq, one value.
    pub(super) fn join(self, questions: &[Vec<u8>], variables: &[String], is_expanded: bool) -> Option<String> {
        let texts: Vec<&str> = questions.iter().map(|text| std::str::from_utf8(text).ok()).collect::<Option<_>>()?;
        let quoted = |text: String| match is_expanded {
            true => Some(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))),
            false => (!text.contains('\'')).then(|| format!("'{text}'")),
        };
        match self {
            Together::Jq => {
                let values = variables.iter().zip(&texts).map(|(variable, text)| format!("{variable}=\\({text})"));
                let values = values.collect::<Vec<_>>().join(" ");
                texts.iter().all(|text| is_value_of_jq(text)).then(|| quoted(format!("@sh \"{values}\"")))?
            }
            // A variable may have a format of several lines.
            _ if is_expanded => None,
            Together::Formats(prefixes, end) => lines(&texts, prefixes, end).and_then(quoted),
            Together::Options => {
                const ANSWERS: Words =
                    Words("--absolute-git-dir --git-common-dir --git-dir --is-inside-work-tree --show-toplevel");
                match lines(&texts, &["--format=", "--pretty=format:"], "%n") {
                    Some(format) => quoted(format),
                    None => texts.iter().all(|text| ANSWERS.contains(text.as_bytes())).then(|| texts.join(" ")),
                }
            }
        }
    }
}

/// Whether a filter of jq prints one value for each value that it reads. `.[]` has any number.
pub(super) fn is_value_of_jq(filter: &str) -> bool {
    let is_path = |step: &str| {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._[]$".contains(&byte);
        step == "length" || step.starts_with('.') && step != "." && step.bytes().all(is_name)
    };
    let is_text = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" ._-".contains(&byte));
    let is_default = |step: &str| step.strip_prefix('"').and_then(|step| step.strip_suffix('"')).is_some_and(is_text);
    let is_step = |step: &str| {
        let mut choices = step.split("//").map(str::trim);
        choices.next().is_some_and(is_path) && choices.all(|choice| is_path(choice) || is_default(choice))
    };
    !filter.contains("..") && !filter.contains("[]") && filter.split('|').all(is_step)
}

/// Joins formats that all begin with one of these prefixes. `None` unless each prints one line.
fn lines(formats: &[&str], prefixes: &[&str], end: &str) -> Option<String> {
    /// Formats that print several lines, or none.
    const NOT_ONE_LINE: [&str; 5] = ["%b", "%B", "%N", "%n", "%GG"];
    let is_line = |format: &&str| {
        format.contains('%') && !format.contains('\n') && !NOT_ONE_LINE.iter().any(|several| format.contains(several))
    };
    prefixes.iter().find_map(|prefix| {
        let formats: Vec<&str> = formats.iter().map(|text| text.strip_prefix(prefix)).collect::<Option<_>>()?;
        formats.iter().all(is_line).then(|| format!("{prefix}{}", formats.join(end)))
    })
}

/// Whether the launch of a program is its purpose.
pub(super) fn is_worth_a_launch(program: &[u8]) -> bool {
    has_property(program, "wrapper") || has_property(program, "waits")
}

/// Programs that scripts ask about one item at a time, and how one launch handles all items.
static ITEMS: LazyLock<BTreeMap<&'static [u8], Vec<[&'static str; 3]>>> = LazyLock::new(|| {
    let row = |[programs, rest @ ..]: [&'static str; 4]| programs.split(' ').map(move |each| (each.as_bytes(), rest));
    grouped(rows(include_str!("items.tsv")).flat_map(row))
});

/// Returns how one launch of this program handles all items, the subcommand if that depends on it,
/// and whether it depends on the program that reads the output. `None` if no row matches.
pub(super) fn items_form<'a>(
    program: &[u8],
    exec: &Exec<'a>,
    reader: Option<&[u8]>,
) -> Option<(&'static str, &'a [u8], bool)> {
    let word = subcommand_of(exec).or_else(|| exec.arguments().nth(1)).unwrap_or_default();
    let has_option = |option: &str| option.starts_with('-') && exec.arguments().any(|word| word == option.as_bytes());
    let is_row = |[subcommand, _, readers]: &&[&'static str; 3]| {
        let is_read = readers.is_empty() || reader.is_some_and(|reader| Words(readers).contains(reader));
        let is_called = |each: &str| each.as_bytes() == word || has_option(each);
        is_read && (subcommand.is_empty() || subcommand.split('|').any(is_called))
    };
    let [subcommand, form, readers] = ITEMS.get(program)?.iter().find(is_row)?;
    let is_option = subcommand.split('|').any(has_option);
    Some((form, if subcommand.is_empty() || is_option { b"" } else { word }, !readers.is_empty()))
}

/// Programs of which many launches repeat what is already done, and how each language skips that.
pub(super) fn is_idempotent(exec: &Exec<'_>) -> bool {
    let options = exec.arguments().nth(1).unwrap_or_default();
    exec.program_name() == b"mkdir" && options.starts_with(b"-") && options.contains(&b'p')
}
