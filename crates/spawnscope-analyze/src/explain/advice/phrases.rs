//! Phrases that several rules print: names, times and counts, and selectors and options of
//! `spawnscope whatif`, quoted for a shell.

use spawnscope_data::units;
pub(super) use spawnscope_data::units::time;

/// Stands for all inputs in a command.
pub(super) const INPUTS: &str = "INPUT...";
/// Ends a fix that may also be one launch.
pub(super) const OR_ALL: &str = ", or pass all inputs to one launch";
/// The limit of an answer that is kept.
pub(super) const ANSWER_LIMIT: &str =
    "if the work in between changes the answer (a commit, an installation), ask again after that step";
/// The limit of a call without a shell.
pub(super) const WITHOUT_SHELL_LIMIT: &str =
    "without a shell, a value with blanks or quotes stays one argument, and a missing program is an error of the call";
/// The limit of a variable of make that is evaluated once.
pub(super) const EVALUATED_LIMIT: &str =
    "the command then runs even if no target needs it, and does not see files that the build makes later";
pub(super) const VARIABLE_LIMIT: &str =
    "only for the text of a variable; read files and the output of other programs into a variable first";
/// The limit of a replacement of `$(echo "$x" | program)`.
pub(super) const ECHO_LIMIT: &str = "unlike `$(echo)`, the replacement keeps newlines at the end, and what echo interprets (-n, -e, and in sh backslashes)";
pub(super) const ONE_LINE_LIMIT: &str = "only for text of one line: the program handles each line separately";
/// Maximum number of columns of a replacement on one line, so that it fits on a narrow page.
const MAX_COLUMNS: usize = 70;

/// Formats a replacement `before -> after`, on one line if it fits, otherwise on two.
pub(super) fn replacement(before: &str, after: &str) -> Vec<String> {
    let line = format!("  {before}  ->  {after}");
    if line.chars().count() <= MAX_COLUMNS {
        return vec![line];
    }
    vec![format!("  {before}"), format!("    ->  {after}")]
}

/// Returns an option of `spawnscope whatif` that selects a parent's launches of a program, quoted
/// for a shell.
pub(super) fn option(change: &str, program: &[u8], parent: &[u8]) -> String {
    quoted(&format!("{change}={}", selector(program, parent)))
}

/// Returns a selector of a parent's launches of a program.
pub(super) fn selector(program: &[u8], parent: &[u8]) -> String {
    format!("{},parent={}", literal(program), literal(parent))
}

/// Returns a glob that matches exactly this name, except that a comma, which would end the term of
/// a selector, becomes `?`.
pub(super) fn literal(bytes: &[u8]) -> String {
    let mut glob = String::new();
    for character in name(bytes).chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            glob.push('\\');
        }
        glob.push(if character == ',' { '?' } else { character });
    }
    glob
}

/// Quotes a word for a shell where necessary.
pub(super) fn quoted(word: &str) -> String {
    let mut characters = word.chars();
    if !word.is_empty() && characters.all(|character| character.is_alphanumeric() || "-_=,./:+@%".contains(character)) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Formats the bytes of a file name or argument. Invalid UTF-8 becomes U+FFFD.
pub(super) fn name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns a command line, or its beginning and its end if it has more than `max` characters. The
/// end gets two thirds, because command lines of one build often begin with the same options.
pub(super) fn abridged(line: &str, max: usize) -> String {
    let characters: Vec<char> = line.chars().collect();
    if characters.len() <= max {
        return line.to_owned();
    }
    let end = &characters[characters.len() - max * 2 / 3..];
    // Starts at a word, if at least half of the end remains.
    let word = end.iter().position(|character| *character == ' ');
    let end = &end[word.filter(|word| *word <= end.len() / 2).unwrap_or(0)..];
    let begin = &characters[..max - 1 - end.len()];
    begin.iter().chain(&['…']).chain(end).collect()
}

/// Formats `1,234 times`.
pub(super) fn times(count: usize) -> String {
    units::counted(count as u64, "time", "times")
}

/// Formats `1,234 forks`.
pub(super) fn forks(count: usize) -> String {
    units::counted(count as u64, "fork", "forks")
}

/// Formats `1,234 launches`.
pub(super) fn launches(count: usize) -> String {
    units::counted(count as u64, "launch", "launches")
}
