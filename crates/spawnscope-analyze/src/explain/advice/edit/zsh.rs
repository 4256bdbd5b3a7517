//! Which edits are also right in zsh. It splits a substitution into words, but not an expansion,
//! and has more operators in patterns. The edits of loops are for shells that split both.

use super::shell::FoundCall;
use super::{EditRefusal, Form, refuse_if};
use crate::patterns::shells::Dialect;

/// What begins the removal or the replacement of a pattern.
const OPERATORS: [&str; 6] = ["##", "#", "%%", "%", "//", "/"];
/// Characters that are operators in patterns of zsh, with some options, and in no other shell.
const IN_PATTERNS: [char; 6] = ['#', '^', '~', '(', '|', '<'];

/// Checks that the new code does the same in the shell of the script.
pub(super) fn check(call: &FoundCall<'_, '_>) -> Result<(), EditRefusal> {
    let holder = call.substitution.and_then(|substitution| call.script.node(substitution).parent);
    let value = holder.and_then(|holder| call.script.assigned(holder)).and_then(|(_, value)| value.substitution());
    let is_assigned = value.is_some() && value == call.substitution;
    let is_plain = |step: &String| {
        let pattern = OPERATORS.iter().find_map(|operator| step.strip_prefix(operator));
        pattern.is_some_and(|pattern| !pattern.contains(IN_PATTERNS))
    };
    let is_same = match &call.form {
        Form::Steps { steps, .. } => is_assigned && steps.iter().all(is_plain),
        Form::Captured(_) => is_assigned,
        Form::Condition(_) => true,
        _ => false,
    };
    refuse_if(call.rewrite.dialect == Dialect::Zsh && !is_same, "zsh may do something else")
}
