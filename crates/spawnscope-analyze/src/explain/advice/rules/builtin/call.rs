//! A shell's call of a small program, and the shell code that replaces the call.

pub(super) use crate::explain::advice::edit::{Form, Operand};
use crate::explain::advice::phrases::{ECHO_LIMIT, ONE_LINE_LIMIT, VARIABLE_LIMIT, quoted};
use crate::patterns::programs::has_property;
use crate::patterns::shells::Dialect;

/// The arguments of a program and its context in the script.
pub(super) struct Call {
    /// Name of the program.
    pub(super) program: String,
    /// Arguments without the program name.
    pub(super) arguments: Vec<String>,
    /// Dialect of the calling shell.
    pub(super) dialect: Dialect,
    /// Whether a fork of the shell writes the program's input: `echo "$x" | program`.
    pub(super) is_fed: bool,
    /// Whether the shell reads the program's output: `$(program)`.
    pub(super) is_captured: bool,
}

impl Call {
    /// Returns the arguments as `&str`, for matching.
    pub(super) fn words(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }

    /// Returns the program and its arguments, separated by spaces.
    pub(super) fn command_line(&self) -> String {
        let words: Vec<&str> = [self.program.as_str()].into_iter().chain(self.words()).collect();
        words.join(" ")
    }

    /// Whether the shell is bash, ksh or zsh, which agree on most extensions.
    pub(super) fn has_extensions(&self) -> bool {
        self.dialect != Dialect::Posix
    }

    pub(super) fn is_bash(&self) -> bool {
        self.dialect == Dialect::Bash
    }
}

/// The code that an edit puts in place of a call. Only for calls that it replaces exactly, with the
/// arguments of `exact_for`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Exact {
    pub(super) form: Form,
    pub(super) exact_for: ExactFor,
    /// Other cases in which it behaves differently. An edit sees in the script what it replaces.
    pub(super) limits: Vec<&'static str>,
}

/// The arguments or texts for which the new code does the same as a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ExactFor {
    Any,
    /// Paths with a directory other than `/`, and without superfluous slashes.
    Directory,
    /// Paths that do not end with a slash, and whose name is not this suffix.
    Name {
        suffix: String,
    },
    /// Texts of one line.
    Line,
    /// Numbers that a shell reads as expr does: integers without leading zeros.
    Integers,
    /// Programs that are not also builtins of a shell.
    Program,
}

impl ExactFor {
    /// Whether the replacement of a call with these arguments is exact.
    pub(super) fn includes(&self, form: &Form, arguments: &[&[u8]]) -> bool {
        let operand = match form {
            Form::Steps { operand: Operand::First, .. } => arguments.first(),
            _ => arguments.last(),
        };
        let operand = operand.copied().unwrap_or_default();
        let slash = operand.iter().rposition(|byte| *byte == b'/');
        let (directory, name) = match slash {
            Some(slash) => (&operand[..slash], &operand[slash + 1..]),
            None => (&b""[..], operand),
        };
        match self {
            // `$( )` removes newlines at the end.
            ExactFor::Directory => {
                !name.is_empty() && !directory.is_empty() && !directory.ends_with(b"/") && !directory.ends_with(b"\n")
            }
            ExactFor::Name { suffix } => {
                let stem = name.strip_suffix(suffix.as_bytes()).unwrap_or(name);
                !name.is_empty() && !stem.is_empty() && !stem.ends_with(b"\n")
            }
            ExactFor::Integers => {
                let is_operator = |word: &[u8]| matches!(word, [one] if b"+-*/%()".contains(one));
                arguments.iter().all(|word| is_operator(word) || is_plain_integer(word))
            }
            ExactFor::Program => !has_property(operand, "builtin"),
            // The input is not recorded. The edit examines the script.
            ExactFor::Line | ExactFor::Any => true,
        }
    }
}

fn is_plain_integer(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_short = (1..=18).contains(&digits.len());
    is_short && digits.iter().all(u8::is_ascii_digit) && (digits == b"0" || !digits.starts_with(b"0"))
}

/// Shell code that replaces a call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Substitute {
    /// The code in the script, as far as the arguments reveal it.
    pub(super) before: String,
    /// The replacement.
    pub(super) after: String,
    /// The variable that `after` sets. `None` if it sets no variable.
    pub(super) sets: Option<&'static str>,
    /// Whether it saves only the launch of the program, but not a fork for `$( )` or a pipe. Others
    /// need no process.
    pub(super) is_builtin: bool,
    /// Cases in which the replacement behaves differently. May be empty.
    pub(super) limits: Vec<&'static str>,
    /// The replacement for an edit. `None` if the user must adapt it.
    pub(super) exact: Option<Exact>,
}

impl Substitute {
    /// Returns a substitute that sets no variable, such as a loop, and that no edit can make.
    pub(super) fn code(before: String, after: String, limits: &[&'static str]) -> Substitute {
        Substitute { before, after, sets: None, is_builtin: false, limits: limits.to_vec(), exact: None }
    }

    /// Returns the substitute for a filter of the text of a variable: what the edit writes, for
    /// `$x`.
    pub(super) fn of_filter(call: &Call, form: Form, exact_for: ExactFor, others: &[&'static str]) -> Substitute {
        let words: Vec<String> = [call.program.as_str()].into_iter().chain(call.words()).map(quoted).collect();
        let filter = format!("echo \"$x\" | {}", words.join(" "));
        let before = if matches!(form, Form::Condition(_)) { filter } else { format!("$({filter})") };
        let (after, sets) = form.shown();
        let one_line = (exact_for == ExactFor::Line).then_some(ONE_LINE_LIMIT);
        let general = [VARIABLE_LIMIT, ECHO_LIMIT].into_iter().chain(one_line);
        let limits = general.chain(others.iter().copied()).collect();
        let exact = Some(Exact { form, exact_for, limits: others.to_vec() });
        Substitute { before, after, sets, is_builtin: false, limits, exact }
    }

    /// Adapts the substitute to a call without `$( )`, whose output must be printed. Uses printf,
    /// since echo would interpret -n.
    pub(super) fn with_printed_result(mut self) -> Substitute {
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

pub(super) const TEXT_LIMIT: &str = "a variable in the pattern is compared as text";

/// Whether no character of a text is special in regular expressions or in single quotes.
pub(super) fn is_literal(text: &str) -> bool {
    !text.is_empty() && has_only(text, "_-,:@%=#~!/&; ")
}

/// Returns a pattern that matches only this text, inside and outside double quotes. `#` and `%` are
/// escaped, since they would anchor the pattern. Characters without a special meaning in any shell
/// stay unescaped, for readability.
pub(super) fn escape_pattern(text: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        if !character.is_alphanumeric() && !"_-,:@=.+/ ".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

/// Like `escape_pattern`, for the pattern in `${x/a/b}`, which a slash would end.
pub(super) fn escape_substitution_pattern(text: &str) -> String {
    escape_pattern(text).replace('/', "\\/")
}

/// Whether a text is literal as the replacement in `${x/a/b}`. Some characters are special there:
/// bash 5.2 replaces `&` with the match, `~` becomes the home directory, and some shells remove
/// quotes.
pub(super) fn is_literal_replacement(text: &str) -> bool {
    has_only(text, "_-,:@%=#/+.!^;|*?<> ")
}

/// Whether a text has only letters, digits and these characters.
pub(super) fn has_only(text: &str, others: &str) -> bool {
    text.chars().all(|character| character.is_alphanumeric() || others.contains(character))
}
