//! Command lines that only ask a question about the machine, an installation or a repository. The
//! same command line almost always gives the same answer.

use super::programs::{has_property, is_question, subcommand_of};
use super::words::Words;
use crate::model::launch::{Exec, base_name};

/// Options that make any program print something about itself.
const ABOUT_ITSELF: Words = Words("--version -version --help -vV -dumpmachine -dumpversion --print-architecture");
/// Options that do so in many programs. In programs that read an input, they mean something else:
/// `sort -V`.
const MOSTLY_ABOUT_ITSELF: Words = Words("-V -v");
/// Subcommands of git that only read the repository and its files.
pub(crate) const GIT_READS: Words =
    Words("cat-file diff diff-tree log ls-files ls-tree merge-base name-rev rev-list rev-parse show");

/// Whether the answer to a repeated command line is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    /// It is the same: the program only answers questions about things that seldom change.
    Same,
    /// It may be the same: it is unknown whether the program's answer depends on more than the
    /// arguments.
    PerhapsSame,
}

/// Returns the arguments and, if the answer depends on it, the directory. Launches with the same
/// question get the same answer.
pub(crate) fn question_of<'a>(exec: &Exec<'a>) -> (&'a [u8], Option<&'a [u8]>) {
    let program = base_name(exec.path());
    let ignores_directory = has_property(program, "query") && !has_property(program, "directory");
    (exec.argv(), exec.cwd().filter(|_| !ignores_directory))
}

/// Returns whether the answer to the same command line is the same. `None` if the answer may
/// change, or if the program does more than answer.
pub(crate) fn answer_of(exec: &Exec<'_>) -> Option<Answer> {
    let program = base_name(exec.path());
    let mut arguments = exec.arguments().skip(1);
    let is_same = has_property(program, "query")
        || program.ends_with(b"-config")
        || subcommand_of(exec).is_some_and(|subcommand| is_question(program, subcommand))
        || is_about_itself(exec)
        || program == b"date" && (names_instant(exec) || prints_day(exec))
        || has_property(program, "compiler") && compiles_nothing(exec)
        || arguments.any(|argument| argument.starts_with(b"-print-") || argument == b"--print");
    if is_same {
        return Some(Answer::Same);
    }
    // Any other subcommand changes something, or reads something that changes.
    let may_change = has_property(program, "changing") || subcommand_of(exec).is_some();
    (!may_change).then_some(Answer::PerhapsSame)
}

pub(crate) fn is_git(exec: &Exec<'_>) -> bool {
    base_name(exec.path()) == b"git"
}

pub(crate) fn is_git_reading(exec: &Exec<'_>) -> bool {
    is_git(exec) && subcommand_of(exec).is_some_and(|subcommand| GIT_READS.contains(subcommand))
}

/// Whether the answer depends on commits, branches or files of a repository, which another git
/// process may change.
pub(crate) fn reads_repository(exec: &Exec<'_>) -> bool {
    let Some(subcommand) = subcommand_of(exec).filter(|_| is_git(exec)) else { return false };
    let mut after = exec.arguments().skip_while(|argument| *argument != subcommand).skip(1);
    let names_commit = after.any(|argument| !argument.starts_with(b"-"));
    match subcommand {
        b"rev-parse" => names_commit,
        b"describe" | b"symbolic-ref" => true,
        _ => GIT_READS.contains(subcommand),
    }
}

/// Whether a compiler only tells whether it knows its options: `cc -Wall -S -o /dev/null -xc
/// /dev/null`.
fn compiles_nothing(exec: &Exec<'_>) -> bool {
    let words: Vec<&[u8]> = exec.arguments().skip(1).collect();
    let is_null = |word: &&[u8]| *word == b"/dev/null";
    let has_output = words.windows(2).any(|two| two[0] == b"-o" && is_null(&two[1]));
    let is_file = |word: &&[u8]| !word.starts_with(b"-") && word.iter().any(|byte| b"./".contains(byte));
    has_output && words.last().is_some_and(is_null) && words.iter().filter(|word| is_file(word)).all(is_null)
}

/// Whether date formats an instant that its arguments name completely, such as `-d @0` or `-d
/// 2020-01-31`, and not the present time.
fn names_instant(exec: &Exec<'_>) -> bool {
    let mut arguments = exec.arguments().skip(1).filter(|argument| !argument.starts_with(b"+") && *argument != b"-u");
    let Some(first) = arguments.next() else { return false };
    let value = [&b"--date="[..], b"-d"].iter().find_map(|option| first.strip_prefix(*option));
    let value = value.and_then(|value| if value.is_empty() { arguments.next() } else { Some(value) });
    let is_instant = value.is_some_and(|value| {
        let is_day = value.len() >= 10 && value[4] == b'-' && value[7] == b'-';
        (value.starts_with(b"@") || is_day)
            && value.iter().all(|byte| byte.is_ascii_digit() || b"@-:. TZ".contains(byte))
    });
    is_instant && arguments.next().is_none()
}

/// Whether date prints no more of the present time than the day: it prints the same until midnight.
fn prints_day(exec: &Exec<'_>) -> bool {
    const FIELDS: &[u8] = b"aAbBCdDeFgGhjmntuUVwWxyYzZ%";
    let mut arguments = exec.arguments().skip(1).filter(|argument| *argument != b"-u");
    let format = arguments.next().and_then(|argument| argument.strip_prefix(b"+"));
    let is_day = |format: &[u8]| {
        let mut bytes = format.iter();
        let mut fields = std::iter::from_fn(|| {
            bytes.find(|byte| **byte == b'%')?;
            bytes.find(|byte| !b"-_0^#".contains(byte))
        });
        fields.all(|field| FIELDS.contains(field))
    };
    format.is_some_and(is_day) && arguments.next().is_none()
}

/// Whether the only argument asks a program about itself.
fn is_about_itself(exec: &Exec<'_>) -> bool {
    let mut arguments = exec.arguments().skip(1);
    let argument = arguments.next().filter(|_| arguments.next().is_none());
    let reads = ["changing", "filter", "reads"].iter().any(|property| has_property(base_name(exec.path()), property));
    argument.is_some_and(|option| ABOUT_ITSELF.contains(option) || !reads && MOSTLY_ABOUT_ITSELF.contains(option))
}
