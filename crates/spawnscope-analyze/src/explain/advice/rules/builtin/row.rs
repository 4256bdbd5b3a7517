//! A row of the table of replacements: the calls that it matches, and the shell code that replaces
//! them.

use super::call::{Call, Effect, Exact, ExactFor, Form, Operand, Substitute};
use crate::patterns::shells::Dialect;

pub(super) const BUILTIN_LIMITS: &[&str] = &["the builtin may support fewer options than the program"];

/// An argument of a call.
#[derive(Clone, Copy)]
pub(super) enum Word {
    Any,
    /// Any word except an option.
    Operand,
    Is(&'static str),
    OneOf(&'static [&'static str]),
}

/// A row of a program's table. The first row that matches a call provides the replacement.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// Alternative lists of arguments. If empty, any arguments match.
    arguments: &'static [&'static [Word]],
    /// The dialects. If empty, all dialects match.
    dialects: &'static [Dialect],
    needs_capture: bool,
    needs_feeder: bool,
    condition: fn(&Call) -> bool,
    /// Computes the replacement. If `None`, the replacement is `code`.
    computed: Option<fn(&Call) -> Option<Substitute>>,
    /// The replaced code and the new code. `{program}` stands for the program, `{call}` for the
    /// program and its arguments.
    code: [&'static str; 2],
    /// The variable that the code sets.
    sets: Option<&'static str>,
    effect: Effect,
    limits: &'static [&'static str],
    /// The code of an edit.
    edit: Option<RowEdit>,
}

/// The code that an edit puts in place of a call, and the arguments for which it is exact.
#[derive(Clone, Copy)]
pub(super) enum RowEdit {
    /// An expansion of the last argument, a path.
    OfDirectory(&'static str),
    /// An expansion of the last argument, a path that ends with a name.
    OfName(&'static str),
    /// An expansion of the text that the program reads.
    OfInput(&'static str),
    /// A word, as a template.
    Word(&'static str),
    /// A word in place of `$( )` only.
    Captured(&'static str),
    /// The name of a builtin in place of the program, for programs that are not builtins themselves.
    Lookup(&'static str),
}

/// Matches calls with any arguments.
pub(super) const fn any_call() -> Row {
    calls_with(&[])
}

/// Matches calls with one of these lists of arguments.
pub(super) const fn calls_with(arguments: &'static [&'static [Word]]) -> Row {
    Row {
        arguments,
        dialects: &[],
        needs_capture: false,
        needs_feeder: false,
        condition: |_| true,
        computed: None,
        code: [""; 2],
        sets: None,
        effect: Effect::NoProcess,
        limits: &[],
        edit: None,
    }
}

impl Row {
    /// Restricts the row to these dialects.
    pub(super) const fn in_shells(mut self, dialects: &'static [Dialect]) -> Row {
        self.dialects = dialects;
        self
    }

    /// Restricts the row to calls whose output the shell reads.
    pub(super) const fn if_captured(mut self) -> Row {
        self.needs_capture = true;
        self
    }

    /// Restricts the row to calls whose input a fork of the shell writes.
    pub(super) const fn if_fed(mut self) -> Row {
        self.needs_feeder = true;
        self
    }

    /// Restricts the row to calls that meet a condition.
    pub(super) const fn only_if(mut self, condition: fn(&Call) -> bool) -> Row {
        self.condition = condition;
        self
    }

    /// Replaces the call with shell code that launches nothing: a word such as `${p##*/}` or, if
    /// the row sets a variable, a command.
    pub(super) const fn replaced_with(mut self, code: [&'static str; 2], limits: &'static [&'static str]) -> Row {
        self.code = code;
        self.limits = limits;
        self
    }

    /// Declares the code of an edit.
    pub(super) const fn edited(mut self, edit: RowEdit) -> Row {
        self.edit = Some(edit);
        self
    }

    /// Declares the variable that the new code sets.
    pub(super) const fn sets_variable(mut self, variable: &'static str) -> Row {
        self.sets = Some(variable);
        self
    }

    /// Replaces the program with a builtin of the shell.
    pub(super) const fn builtin(mut self, code: [&'static str; 2], limits: &'static [&'static str]) -> Row {
        self.effect = Effect::Builtin;
        self.replaced_with(code, limits)
    }

    /// Replaces the program with the builtin of the same name. A script launches such a program
    /// only if it calls the program by path, or through `env` or `command -p`.
    pub(super) const fn same_builtin(self) -> Row {
        self.builtin(["/usr/bin/{program} ...", "{program} ..."], BUILTIN_LIMITS)
    }

    /// Keeps the output of one call in a variable, for programs whose output rarely changes.
    pub(super) const fn once(mut self) -> Row {
        self.effect = Effect::Once;
        self.replaced_with(
            ["$({call}) each time", "fact=$({call}) once, before the loop, then \"$fact\""],
            &["the variable does not follow later changes"],
        )
    }

    /// Computes the replacement from the arguments. The function returns `None` if the result might
    /// differ.
    pub(super) const fn computed_by(mut self, compute: fn(&Call) -> Option<Substitute>) -> Row {
        self.computed = Some(compute);
        self
    }

    /// Returns the replacement of a call that the row matches.
    pub(super) fn substitute(&self, call: &Call) -> Option<Substitute> {
        if let Some(computed) = self.computed {
            return computed(call);
        }
        // Arguments may contain `{program}`, so `{call}` is replaced last.
        let [before, after] =
            self.code.map(|code| code.replace("{program}", &call.program).replace("{call}", &call.command_line()));
        let exact = self.exact(call);
        Some(Substitute { before, after, sets: self.sets, effect: self.effect, limits: self.limits, exact })
    }

    fn exact(&self, call: &Call) -> Option<Exact> {
        let steps = |operand, step: &str| Form::Steps { operand, steps: vec![step.to_owned()] };
        let (form, exact_for) = match self.edit {
            Some(RowEdit::OfDirectory(step)) => (steps(Operand::Last, step), ExactFor::Directory),
            Some(RowEdit::OfName(step)) => (steps(Operand::Last, step), ExactFor::Name { suffix: String::new() }),
            Some(RowEdit::OfInput(step)) => (steps(Operand::Input, step), ExactFor::Any),
            Some(RowEdit::Word(template)) => (Form::Word(template.to_owned()), ExactFor::Any),
            Some(RowEdit::Captured(template)) => (Form::Captured(template.to_owned()), ExactFor::Any),
            Some(RowEdit::Lookup(builtin)) => (Form::Builtin(builtin.to_owned()), ExactFor::Program),
            None => match self.effect {
                Effect::Once => (Form::Once, ExactFor::Any),
                Effect::Builtin if self.code[1].starts_with("{program}") => {
                    (Form::Builtin(call.program.clone()), ExactFor::Any)
                }
                _ => return None,
            },
        };
        Some(Exact { form, exact_for })
    }

    pub(super) fn matches(&self, call: &Call) -> bool {
        let mut lists = self.arguments.iter();
        (self.arguments.is_empty() || lists.any(|words| all_match(words, &call.arguments)))
            && (self.dialects.is_empty() || self.dialects.contains(&call.dialect))
            && (call.is_captured || !self.needs_capture)
            && (call.is_fed || !self.needs_feeder)
            && (self.condition)(call)
    }
}

fn all_match(words: &[Word], arguments: &[String]) -> bool {
    words.len() == arguments.len() && words.iter().zip(arguments).all(|(word, argument)| word.matches(argument))
}

impl Word {
    fn matches(self, argument: &str) -> bool {
        match self {
            Word::Any => true,
            Word::Operand => !argument.starts_with('-'),
            Word::Is(word) => word == argument,
            Word::OneOf(words) => words.contains(&argument),
        }
    }
}
