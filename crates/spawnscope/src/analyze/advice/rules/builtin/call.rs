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
    /// What goes.
    pub(super) effect: Effect,
    /// Where it does not do the same; may be empty.
    pub(super) limits: &'static str,
}

impl Substitute {
    pub(super) fn expansion(
        before: impl Into<String>,
        after: impl Into<String>,
        limits: &'static str,
    ) -> Option<Substitute> {
        Substitute::new(before, after, Effect::Gone, limits)
    }

    pub(super) fn builtin(
        before: impl Into<String>,
        after: impl Into<String>,
        limits: &'static str,
    ) -> Option<Substitute> {
        Substitute::new(before, after, Effect::Builtin, limits)
    }

    pub(super) fn once(
        before: impl Into<String>,
        after: impl Into<String>,
        limits: &'static str,
    ) -> Option<Substitute> {
        Substitute::new(before, after, Effect::Once, limits)
    }

    /// The same where no `$( )` is around the call, and what it says is written.
    pub(super) fn printed(mut self) -> Substitute {
        let Some(inner) = self.before.strip_prefix("$(").and_then(|inner| inner.strip_suffix(')')) else {
            return self;
        };
        self.after = match (self.after.strip_prefix("b="), self.after.strip_prefix("$(")) {
            (Some(_), _) => format!("{}; echo \"$b\"", self.after),
            (_, Some(command)) if !command.starts_with('(') => command.trim_end_matches(')').to_owned(),
            _ => format!("echo \"{}\"", self.after),
        };
        self.before = inner.to_owned();
        self
    }

    fn new(
        before: impl Into<String>,
        after: impl Into<String>,
        effect: Effect,
        limits: &'static str,
    ) -> Option<Substitute> {
        Some(Substitute {
            before: before.into(),
            after: after.into(),
            effect,
            limits,
        })
    }
}

/// Whether a text stands for itself in patterns, expansions and quotes of a shell and in regular expressions.
pub(super) fn is_literal(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|character| {
            character.is_alphanumeric() || matches!(character, '_' | '-' | ',' | ':' | '@' | '%' | '=' | ' ')
        })
}
