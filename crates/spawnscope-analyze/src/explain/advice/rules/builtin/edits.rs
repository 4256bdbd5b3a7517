//! The edits of lines whose calls the shell can replace exactly, as all recorded calls from the line show. `edit` then finds the calls in the
//! script.

use super::call::{Call, ExactFor};
use super::table::TABLE;
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::edit::{Edit, EditRefusal, Form, shell_sites};
use crate::explain::advice::phrases::name;
use crate::explain::advice::shared_line::arguments_of;
use crate::patterns::shells::Dialect;

/// Returns the edits of the lines that request launches of a program, those with the most launches first. Lines that no edit is known for are
/// left out.
pub(in crate::explain::advice) fn edits(context: &RuleContext<'_, '_>, program: &[u8], launches: &[u32]) -> Vec<Edit> {
    let sites = shell_sites(context, program, launches).into_iter();
    let edits = sites.filter_map(|site| {
        let form = form_of(context, program, &site.launches)?;
        site.edit(context, program, form)
    });
    edits.collect()
}

/// Returns the code that replaces all calls from a line, and whether it is exact only for one line. `None` if the table has none for the first
/// call.
fn form_of(
    context: &RuleContext<'_, '_>,
    program: &[u8],
    launches: &[u32],
) -> Option<Result<(Form, bool), EditRefusal>> {
    let mut forms = launches.iter().map(|index| exact_form(context, *index));
    let (first, exact_for, mut is_exact) = forms.next()??;
    for form in forms {
        match form {
            Some((form, _, is_same)) if form == first => is_exact &= is_same,
            _ => {
                let program = name(program);
                let reason =
                    format!("the line also calls {program} with arguments that the replacement does not handle");
                return Some(Err(EditRefusal(reason)));
            }
        }
    }
    if !is_exact {
        let program = name(program);
        let reason = format!("the replacement gives another result than {program} for some of the recorded arguments");
        return Some(Err(EditRefusal(reason)));
    }
    Some(Ok((first, exact_for == ExactFor::Line)))
}

/// Returns the code that replaces a recorded call, and whether it gives the same result for the recorded arguments.
fn exact_form(context: &RuleContext<'_, '_>, index: u32) -> Option<(Form, ExactFor, bool)> {
    let launch = context.launch(index);
    let [exec] = &launch.execs[..] else { return None };
    let dialect = Dialect::of_parent(context.forest(), index as usize)?;
    let program = TABLE.binary_search_by_key(&launch.command.name, |(program, _)| program).ok()?;
    let arguments = arguments_of(exec);
    let call = Call {
        program: name(launch.command.name),
        arguments: arguments.iter().map(|argument| name(argument)).collect(),
        dialect,
        is_fed: true,
        is_captured: true,
    };
    // zsh does not split the result of `${ }` into words.
    let has_edits = dialect != Dialect::Zsh && !exec.argv_cut;
    let mut rows = TABLE[program].1.iter().filter(|row| has_edits && row.matches(&call));
    let exact = rows.find_map(|row| row.substitute(&call)?.exact)?;
    let is_exact = exact.exact_for.includes(&exact.form, &arguments);
    Some((exact.form, exact.exact_for, is_exact))
}
