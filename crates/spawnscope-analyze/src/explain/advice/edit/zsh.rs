//! Which edits are also right in zsh. It splits a substitution into words, but not an expansion,
//! and has more operators in patterns. The edits of loops are for shells that split both.

use super::around::declared;
use super::shell::FoundCall;
use super::{Form, Result, refuse_if};
use crate::patterns::script::{Kind, Part, Word};
use crate::patterns::shells::Dialect;

/// What begins the removal or the replacement of a pattern.
const OPERATORS: [&str; 6] = ["##", "#", "%%", "%", "//", "/"];
/// Characters that are operators in patterns of zsh, with some options, and in no other shell.
const IN_PATTERNS: [char; 6] = ['#', '^', '~', '(', '|', '<'];

/// Checks that the new code does the same in the shell of the script.
pub(super) fn check(call: &FoundCall<'_>) -> Result<()> {
    let is_whole = call.substitution.is_none_or(|substitution| is_one_word(call, substitution));
    let is_plain = |step: &String| {
        let pattern = OPERATORS.iter().find_map(|operator| step.strip_prefix(operator));
        pattern.is_some_and(|pattern| !pattern.contains(IN_PATTERNS))
    };
    let is_same = match &call.form {
        Form::Steps { steps, .. } => is_whole && steps.iter().all(is_plain),
        Form::Word(_) | Form::Captured(_) => is_whole,
        Form::Once => is_whole && call.substitution.is_some(),
        Form::Condition(_) => true,
        _ => false,
    };
    refuse_if(call.rewrite.dialect == Dialect::Zsh && !is_same, "zsh may do something else")
}

/// Whether a substitution is not split: it is assigned, also by `local`, quoted, or in `[[ ]]`.
fn is_one_word(call: &FoundCall<'_>, substitution: usize) -> bool {
    let Some(holder) = call.script.parent(substitution) else { return false };
    let own = Part::Substitution { node: substitution, is_quoted: true };
    let is_quoted = |word: &Word<'_>| word.parts.contains(&own);
    match call.script.kind(holder) {
        Kind::Expression(_) => call.script.code(holder).starts_with(b"[["),
        Kind::Simple(simple) => {
            let is_assigned = |(_, value): (_, &Word<'_>)| value.substitution() == Some(substitution);
            let is_declared =
                matches!(&simple.words[..], [builtin, word] if declared(builtin, word, substitution).is_some());
            call.script.assigned(holder).is_some_and(is_assigned) || is_declared || simple.words.iter().any(is_quoted)
        }
        _ => false,
    }
}
