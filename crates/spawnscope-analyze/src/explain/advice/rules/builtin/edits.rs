//! The edits of lines whose calls the shell can replace exactly, as all recorded calls from the line show. `edit` then finds the calls in the
//! script.

use std::collections::BTreeMap;

use super::call::ExactFor;
use super::call_of;
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::edit::{Edit, EditRefusal, Form, shell_sites};
use crate::explain::advice::phrases::name;
use crate::explain::advice::shared_line::arguments_of;
use crate::patterns::shells::Dialect;

/// Returns the edits of the lines that request launches of a program, those with the most launches first. Calls with different arguments from one
/// line may have different edits. Calls that no edit is known for are left out.
pub(in crate::explain::advice) fn edits(context: &RuleContext<'_, '_>, program: &[u8], launches: &[u32]) -> Vec<Edit> {
    let mut edits = Vec::new();
    for site in shell_sites(context, program, launches) {
        let mut forms: BTreeMap<(Form, bool), (Vec<u32>, bool)> = BTreeMap::new();
        for index in &site.launches {
            if let Some((form, exact_for, is_exact)) = exact_form(context, *index) {
                let of_form = forms.entry((form, exact_for == ExactFor::Line)).or_insert((Vec::new(), true));
                of_form.0.push(*index);
                of_form.1 &= is_exact;
            }
        }
        for (form, (own, is_exact)) in forms {
            let inexact = "the replacement gives another result for some of the recorded arguments of";
            let form = if is_exact { Ok(form) } else { Err(EditRefusal(format!("{inexact} {}", name(program)))) };
            edits.extend(site.edit_of(context, program, &own, form));
        }
    }
    edits
}

/// Returns the code that replaces a recorded call, and whether it gives the same result for the recorded arguments.
fn exact_form(context: &RuleContext<'_, '_>, index: u32) -> Option<(Form, ExactFor, bool)> {
    let (rows, call) = call_of(context, index as usize)?;
    let arguments = arguments_of(context.launch(index).execs.first()?);
    // zsh does not split the result of `${ }` into words.
    let mut rows = rows.iter().filter(|row| call.dialect != Dialect::Zsh && row.matches(&call));
    let exact = rows.find_map(|row| row.substitute(&call)?.exact)?;
    let is_exact = exact.exact_for.includes(&exact.form, &arguments);
    Some((exact.form, exact.exact_for, is_exact))
}

#[cfg(test)]
mod tests {
    use super::super::{Call, TABLE};
    use super::*;
    use crate::explain::advice::edit::tests::executed::check;

    /// Returns the code that replaces `echo ... | PROGRAM` in `$( )`.
    fn computed_form(program: &str, arguments: &[&str], dialect: Dialect) -> Option<Form> {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let call = Call { program: program.to_owned(), arguments, dialect, is_fed: true, is_captured: true };
        let mut rows = TABLE[program.as_bytes()].iter().filter(|row| row.matches(&call));
        Some(rows.find_map(|row| row.substitute(&call)?.exact)?.form)
    }

    /// The code that the rules compute from the arguments.
    #[test]
    fn computed_code_does_what_the_programs_do() {
        let calls: [(&str, &[&str]); 5] = [
            ("cut", &["-d ", "-f3"]),
            ("cut", &["-d ", "-f1"]),
            ("cut", &["-d=", "-f2"]),
            ("sed", &["s/with space/x y/"]),
            ("sed", &["s/^with //"]),
        ];
        for (program, arguments) in calls {
            let words = arguments.join("' '");
            let script = format!(
                "for y in 'a b  c' '' x= 'a=b=c' 'with space'; do\n  x=$(echo \"$y\" | {program} '{words}')\n  echo \"$x\"\ndone\n"
            );
            for (shell, dialect) in [("bash", Dialect::Bash), ("dash", Dialect::Posix)] {
                let form = computed_form(program, arguments, dialect).unwrap();
                check(&[shell], program, arguments, form, &script, "x=");
            }
        }
    }
}
