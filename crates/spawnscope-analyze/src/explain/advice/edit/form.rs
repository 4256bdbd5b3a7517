//! The code that replaces a call in a shell script, as a template in which the words of the call
//! are inserted.

use std::collections::BTreeSet;

use super::shell::ShellRewrite;
use super::{Result, or_refuse};
use crate::explain::advice::phrases::name;
use crate::patterns::script::Simple;

/// What replaces a call. In templates, `{1}` is the first argument as it is written in the script,
/// `{#1}` the same as a number in arithmetic, `{@1}` without its `@`, `{x}` the text that the
/// program reads, `{y}` the variable that gets the result, and `{r}` another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// Expansions of one operand, each of the result of the one before: `%/*` for `${p%/*}`. `{v}`
    /// stands for the variable.
    Steps { operand: Operand, steps: Vec<String> },
    /// A word for one line of text, which replaces `$( )` or is printed.
    Word(String),
    /// A word for any text, which replaces `$( )` only: printed, it would lose its last newlines
    /// and zero bytes.
    Captured(String),
    /// A command that sets a variable.
    Statement(String),
    /// A command with the same exit status, in place of a pipeline.
    Condition(String),
    /// The name of a builtin in place of the program.
    Builtin(String),
    /// One call before the loop, for all calls in it.
    Once,
    /// One call in place of a loop, with all its inputs, or one reading of the file that the calls
    /// search.
    Many,
    /// All inputs at once from xargs or find.
    Pass,
    /// A redirection in place of a `cat` that begins a pipeline, or an option of grep in place of
    /// a `wc` that ends one.
    Feed,
    /// One call in place of several that ask different things about the same input.
    Together,
    /// A wait for a child in place of a loop that polls it.
    Wait,
    /// A test before the call whether its directory exists.
    Tested,
}

/// New code for the calls of a line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NewCode {
    pub(crate) form: Form,
    /// Whether it does the same only for a text of one line.
    pub(crate) needs_one_line: bool,
    /// What the code of a table changes besides the launches.
    pub(crate) limits: Vec<&'static str>,
}

impl From<Form> for NewCode {
    fn from(form: Form) -> NewCode {
        NewCode { form, needs_one_line: false, limits: Vec::new() }
    }
}

/// What one call in place of several gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OneCall {
    /// All inputs, as operands.
    Inputs,
    /// All questions, in the form of its manual. Its output is split.
    Items,
}

/// Where a call has the text that an expansion replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operand {
    First,
    Last,
    /// The input: `echo "$x" | program`.
    Input,
}

impl Form {
    /// Returns expansions of the text that the program reads.
    pub(crate) fn of_input(steps: impl IntoIterator<Item = String>) -> Form {
        Form::Steps { operand: Operand::Input, steps: steps.into_iter().collect() }
    }

    /// Returns the new code for a text in `$x`, and the variable that it sets.
    pub(crate) fn shown(&self) -> (String, Option<&'static str>) {
        match self {
            Form::Steps { steps, .. } if steps.len() == 1 => (expansion("x", &steps[0]), None),
            Form::Steps { steps, .. } => {
                let from = std::iter::once("x").chain(std::iter::repeat("y"));
                let steps = from.zip(steps).map(|(from, step)| format!("y={}", expansion(from, step)));
                (steps.collect::<Vec<_>>().join("; "), Some("y"))
            }
            other => {
                let code =
                    other.texts().concat().replace("<<<{x}", "<<<\"$x\"").replace("{x}", "$x").replace("{y}", "y");
                let code = code.replace("{r}", "regex");
                (code, matches!(other, Form::Statement(_)).then_some("y"))
            }
        }
    }

    /// Returns the templates of the new code.
    pub(super) fn texts(&self) -> &[String] {
        match self {
            Form::Steps { steps, .. } => steps,
            Form::Word(text) | Form::Captured(text) | Form::Statement(text) | Form::Condition(text) => {
                std::slice::from_ref(text)
            }
            _ => &[],
        }
    }

    /// Returns what the new code changes besides the launches, if that is the same for all of it.
    pub(super) const fn limits(&self) -> &'static [&'static str] {
        match self {
            Form::Pass => &["if one fails, xargs or find may exit with another status"],
            Form::Together => &["the answers must be texts of one line, numbers or null"],
            _ => &[],
        }
    }

    /// Returns the form with an expansion in place of its recorded value. `None` where the value is
    /// not a text of its own.
    pub(super) fn with_expansion(&self, value: &str, expansion: &str) -> Option<Form> {
        match self {
            Form::Steps { operand, steps } => {
                let mut having = steps.iter().filter(|step| step.contains(value));
                let step =
                    having.next().filter(|step| step.matches(value).count() == 1 && step.starts_with(['#', '%']))?;
                having.next().is_none().then_some(())?;
                let changed = step.replace(value, expansion);
                let steps = steps.iter().map(|each| if each == step { changed.clone() } else { each.clone() });
                Some(Form::Steps { operand: *operand, steps: steps.collect() })
            }
            Form::Condition(template) => {
                let quoted = format!("'{value}'");
                let is_whole = template.contains(&quoted) && template.matches(value).count() == 1;
                is_whole.then(|| Form::Condition(template.replace(&quoted, expansion)))
            }
            _ => None,
        }
    }

    /// Whether the new code contains the word of a call with this number, from 1. `count` is the
    /// number of words.
    pub(super) fn has_word(&self, number: usize, count: usize) -> bool {
        let is_operand = match self {
            Form::Steps { operand: Operand::First, .. } => number == 1,
            Form::Steps { operand: Operand::Last, .. } => number == count,
            _ => false,
        };
        let has = |text: &String| ["", "#", "$", "@"].iter().any(|kind| text.contains(&format!("{{{kind}{number}}}")));
        is_operand || self.texts().iter().any(has)
    }

    /// Whether the new code reads the text that was the input of the program.
    pub(super) fn has_input(&self) -> bool {
        match self {
            Form::Steps { operand, .. } => *operand == Operand::Input,
            _ => self.texts().iter().any(|text| text.contains("{x}") || text.contains("{#x}")),
        }
    }
}

/// Replaces the placeholders of words in a template: `{2}`, `{#1}`. `value` returns what stands
/// for a word, after what is before its number.
pub(super) fn filled<W>(
    template: &str,
    words: &[W],
    value: impl Fn(&str, &W) -> Option<Result<String>>,
) -> Result<String> {
    let (mut text, mut rest) = (String::new(), template);
    while let Some((before, after)) = rest.split_once('{') {
        let placeholder = after.split_once('}').and_then(|(inside, after)| {
            let number = inside.trim_start_matches(|each: char| !each.is_ascii_digit());
            let word = words.get(number.parse::<usize>().ok()?)?;
            Some((inside.strip_suffix(number)?, word, after))
        });
        let source = placeholder.and_then(|(kind, word, _)| value(kind, word)).transpose()?;
        text.extend([before, source.as_deref().unwrap_or("{")]);
        rest = placeholder.filter(|_| source.is_some()).map_or(after, |(.., after)| after);
    }
    Ok(text + rest)
}

/// Returns an expansion of a variable.
pub(super) fn expansion(variable: &str, step: &str) -> String {
    format!("${{{variable}{}}}", step.replace("{v}", variable))
}

/// Returns the new code for the words of a call. They are those of the recorded calls, apart from
/// the variables in them: a variable in a script of sed is also in the new code, as a text.
pub(super) fn form_for(rewrite: &ShellRewrite, simple: &Simple<'_>) -> Result<Form> {
    let count = simple.words.len() - 1;
    let mut words = simple.words.iter().enumerate().skip(1);
    let changing = words.find(|(number, word)| word.literal().is_none() && !rewrite.code.form.has_word(*number, count));
    let Some((number, word)) = changing.filter(|_| !rewrite.code.form.texts().is_empty()) else {
        return Ok(rewrite.code.form.clone());
    };
    let has_others = words.any(|(number, word)| word.literal().is_none() && !rewrite.code.form.has_word(number, count));
    let form = word.around_variable().filter(|_| !has_others).and_then(|([before, after], variable)| {
        let value_in = |call: &Vec<Vec<u8>>| {
            Some(call.get(number - 1)?.strip_prefix(&before[..])?.strip_suffix(&after[..])?.to_vec())
        };
        let values: BTreeSet<Option<Vec<u8>>> = rewrite.calls.iter().map(value_in).collect();
        let value = values.first().cloned().flatten().filter(|_| values.len() == 1)?;
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_/-".contains(byte);
        let is_text = !value.is_empty() && value.iter().all(is_plain);
        // Braces would be those of a placeholder.
        let is_short = !variable[0].is_ascii_digit() || variable.len() == 1;
        (is_text && is_short)
            .then(|| rewrite.code.form.with_expansion(&name(&value), &format!("\"${}\"", name(variable))))?
    });
    or_refuse(form, format!("the arguments of {} depend on more than its input", name(&rewrite.program)))
}
