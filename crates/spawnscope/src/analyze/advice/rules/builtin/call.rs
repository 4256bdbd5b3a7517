//! A call of a small program as its shell made it, and what the shell can write instead.

use super::super::super::shell::Dialect;

/// A program's arguments and what is around it.
pub(super) struct Call {
    /// Behind the program's name.
    pub(super) arguments: Vec<String>,
    /// What the shell that made it understands.
    pub(super) dialect: Dialect,
    /// A fork of the shell writes what it reads: `echo "$x" | program`.
    pub(super) is_fed: bool,
    /// The shell reads what it writes: `$(program)`.
    pub(super) is_captured: bool,
}

impl Call {
    /// Its arguments, to be matched.
    pub(super) fn words(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }

    /// Whether the shell is one of bash, ksh and zsh, which agree on most extensions.
    pub(super) fn has_extensions(&self) -> bool {
        self.dialect != Dialect::Posix
    }

    pub(super) fn is_bash(&self) -> bool {
        self.dialect == Dialect::Bash
    }
}

/// What goes when the shell does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    /// The launch and its surroundings: an expansion needs no process.
    Gone,
    /// The program: where the shell forks for `$( )` or a pipe, that fork stays.
    Builtin,
    /// All calls but the first: the answer does not change.
    Once,
}

/// What to write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Substitute {
    /// What is in the script, as far as the arguments tell.
    pub(super) before: String,
    /// What does the same.
    pub(super) after: String,
    /// The variable that `after` sets, where it is a statement and not a word.
    sets: Option<&'static str>,
    /// What goes.
    pub(super) effect: Effect,
    /// Where it does not do the same; may be empty.
    pub(super) limits: &'static [&'static str],
}

impl Substitute {
    /// A word that stands where the substitution stood.
    pub(super) fn expansion(
        before: impl Into<String>,
        after: impl Into<String>,
        limits: &'static [&'static str],
    ) -> Option<Substitute> {
        Substitute::new(before, after, Effect::Gone, limits)
    }

    /// A command that leaves the answer in a variable.
    pub(super) fn statement(
        before: impl Into<String>,
        after: impl Into<String>,
        sets: &'static str,
        limits: &'static [&'static str],
    ) -> Option<Substitute> {
        let substitute = Substitute::new(before, after, Effect::Gone, limits)?;
        Some(Substitute {
            sets: Some(sets),
            ..substitute
        })
    }

    pub(super) fn builtin(
        before: impl Into<String>,
        after: impl Into<String>,
        limits: &'static [&'static str],
    ) -> Option<Substitute> {
        Substitute::new(before, after, Effect::Builtin, limits)
    }

    pub(super) fn once(
        before: impl Into<String>,
        after: impl Into<String>,
        limits: &'static [&'static str],
    ) -> Option<Substitute> {
        Substitute::new(before, after, Effect::Once, limits)
    }

    /// The same where no `$( )` is around the call, and what it says is written: by printf, since echo would take -n for itself.
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

    fn new(
        before: impl Into<String>,
        after: impl Into<String>,
        effect: Effect,
        limits: &'static [&'static str],
    ) -> Option<Substitute> {
        Some(Substitute {
            before: before.into(),
            after: after.into(),
            sets: None,
            effect,
            limits,
        })
    }
}

/// What `$( )` and echo do to a text, and an expansion does not.
pub(super) const AS_IT_IS: &str =
    "newlines at the end stay, and what echo takes for itself (-n, -e; in sh, backslashes)";

/// Whether a text stands for itself in regular expressions and between single quotes.
pub(super) fn is_literal(text: &str) -> bool {
    let is_plain = |character: char| character.is_alphanumeric() || "_-,:@%=#~!/&; ".contains(character);
    !text.is_empty() && text.chars().all(is_plain)
}

/// A text as a pattern that fits only itself, in double quotes or not: `#` and `%` would bind it to an end. What stays without a
/// backslash is nothing special in any shell, which keeps it readable.
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

/// The same for `${x/a/b}`, where a slash would end it.
pub(super) fn in_replaced(text: &str) -> String {
    in_pattern(text).replace('/', "\\/")
}

/// Whether a text stands for itself behind the second slash of `${x/a/b}`: not `&`, which bash 5.2 takes for what fitted, not `~`,
/// which is a home there, and no quote, since shells differ in whether they take it away.
pub(super) fn is_replacement(text: &str) -> bool {
    let is_plain = |character: char| character.is_alphanumeric() || "_-,:@%=#/+.!^;|*?<> ".contains(character);
    text.chars().all(is_plain)
}
