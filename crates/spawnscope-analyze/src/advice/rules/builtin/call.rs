//! A call of a small program by a shell, and the shell code that replaces it.

use crate::patterns::shells::Dialect;

/// The arguments of a program and its context in the script.
pub(super) struct Call {
    /// Name of the program.
    pub(super) program: String,
    /// Arguments without the program name.
    pub(super) arguments: Vec<String>,
    /// Dialect of the calling shell.
    pub(super) dialect: Dialect,
    /// A fork of the shell writes its input: `echo "$x" | program`.
    pub(super) is_fed: bool,
    /// The shell reads its output: `$(program)`.
    pub(super) is_captured: bool,
}

impl Call {
    /// Returns the arguments as `&str`, for matching.
    pub(super) fn words(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }

    /// Returns the program and its arguments, separated by spaces.
    pub(super) fn in_words(&self) -> String {
        let words: Vec<&str> = [self.program.as_str()].into_iter().chain(self.words()).collect();
        words.join(" ")
    }

    /// Whether the shell is one of bash, ksh and zsh, which agree on most extensions.
    pub(super) fn has_extensions(&self) -> bool {
        self.dialect != Dialect::Posix
    }

    pub(super) fn is_bash(&self) -> bool {
        self.dialect == Dialect::Bash
    }
}

/// The launches that disappear when the shell does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    /// The launch and the forks around it: an expansion needs no process.
    Gone,
    /// The program. A fork for `$( )` or a pipe stays.
    Builtin,
    /// All calls but the first, since the result does not change.
    Once,
}

/// Shell code that replaces a call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Substitute {
    /// The code in the script, as far as the arguments reveal it.
    pub(super) before: String,
    /// The replacement.
    pub(super) after: String,
    /// The variable that `after` sets, if it is a statement and not a word.
    pub(super) sets: Option<&'static str>,
    /// The launches that disappear.
    pub(super) effect: Effect,
    /// Cases in which the replacement differs. May be empty.
    pub(super) limits: &'static [&'static str],
}

impl Substitute {
    /// Returns a substitute that is a word, such as `${x%.c}`.
    pub(super) fn expansion(
        before: impl Into<String>,
        after: impl Into<String>,
        limits: &'static [&'static str],
    ) -> Option<Substitute> {
        Some(Substitute {
            before: before.into(),
            after: after.into(),
            sets: None,
            effect: Effect::Gone,
            limits,
        })
    }

    /// Returns a substitute that is a command and sets the variable `sets`.
    pub(super) fn statement(
        before: impl Into<String>,
        after: impl Into<String>,
        sets: &'static str,
        limits: &'static [&'static str],
    ) -> Option<Substitute> {
        let substitute = Substitute::expansion(before, after, limits)?;
        Some(Substitute {
            sets: Some(sets),
            ..substitute
        })
    }

    /// Adapts the substitute to a call without `$( )`, whose output is printed. Uses printf, since echo would interpret -n.
    pub(super) fn printed(mut self) -> Substitute {
        let Some(inner) = self.before.strip_prefix("$(").and_then(|inner| inner.strip_suffix(')')) else {
            return self;
        };
        self.after = match (self.sets, self.after.strip_prefix("$(")) {
            (Some(variable), _) => format!("{}; printf '%s\\n' \"${variable}\"", self.after),
            (_, Some(command)) if !command.starts_with('(') => command.trim_end_matches(')').to_owned(),
            _ => format!("printf '%s\\n' \"{}\"", self.after),
        };
        self.before = inner.to_owned();
        self
    }
}

/// Differences between an expansion and the `$( )` and echo that it replaces.
pub(super) const ECHO_DIFFERS: &str =
    "unlike $(echo), it keeps newlines at the end and what echo interprets (-n, -e; in sh, backslashes)";

pub(super) const OF_BASENAME: &str =
    "${p##*/} turns a path that ends with a slash into nothing: remove the slash first with ${p%/}";
pub(super) const OF_NEWLINES: &str = "newlines at the end of a name are kept, where $( ) removes them";
pub(super) const OF_VARIABLE: &str =
    "for the text of a variable; read files and the output of other programs into a variable first";

/// Whether a text has no characters that are special in regular expressions or in single quotes.
pub(super) fn is_literal(text: &str) -> bool {
    !text.is_empty() && has_only(text, "_-,:@%=#~!/&; ")
}

/// Returns a pattern that matches only this text, inside and outside double quotes. `#` and `%` are escaped, since they would anchor the
/// pattern. Characters without a special meaning in any shell stay unescaped, for readability.
pub(super) fn in_pattern(text: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        if !character.is_alphanumeric() && !"_-,:@=.+/ ".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

/// Like `in_pattern`, for `${x/a/b}`, where a slash would end the pattern.
pub(super) fn in_replaced(text: &str) -> String {
    in_pattern(text).replace('/', "\\/")
}

/// Whether a text is literal after the second slash of `${x/a/b}`. Three kinds of characters are not literal there: bash 5.2 replaces `&`
/// with the match, `~` becomes the home directory, and some shells remove quotes.
pub(super) fn is_replacement(text: &str) -> bool {
    has_only(text, "_-,:@%=#/+.!^;|*?<> ")
}

/// Whether a text has only letters, digits and these characters.
pub(super) fn has_only(text: &str, others: &str) -> bool {
    text.chars()
        .all(|character| character.is_alphanumeric() || others.contains(character))
}
