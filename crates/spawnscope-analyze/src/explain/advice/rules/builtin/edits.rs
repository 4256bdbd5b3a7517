//! The edits of lines whose calls the shell can replace exactly, as all recorded calls from the
//! line show. `edit` then finds the calls in the script.

use std::collections::{BTreeMap, HashMap};

use super::call::{Call, Exact, ExactFor};
use super::call_of;
use super::row::Row;
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::edit::{Edit, EditRefusal, NewCode, shell_sites};
use crate::explain::advice::phrases::name;
use crate::explain::advice::shared_line::arguments_of;
use crate::patterns::shells::Dialect;

/// Returns the edits of the lines that request launches of a program, those with the most launches
/// first. Calls with different arguments from one line may have different edits. Calls that no edit
/// is known for are left out.
pub(in crate::explain::advice) fn edits(context: &RuleContext<'_, '_>, program: &[u8], launches: &[u32]) -> Vec<Edit> {
    let mut edits = Vec::new();
    for site in shell_sites(context, program, launches) {
        let mut forms: BTreeMap<NewCode, (Vec<u32>, bool)> = BTreeMap::new();
        let mut known: HashMap<_, Option<(NewCode, bool)>> = HashMap::new();
        for index in &site.launches {
            let [exec] = &context.launch(*index).execs[..] else { continue };
            let call = (exec.texts(), exec.argv_cut, Dialect::of_parent(context.forest(), *index as usize));
            let exact = known.entry(call).or_insert_with(|| recorded_form(context, *index));
            if let Some((form, is_exact)) = exact {
                let of_form = forms.entry(form.clone()).or_insert((Vec::new(), true));
                of_form.0.push(*index);
                of_form.1 &= *is_exact;
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

/// Returns the code that replaces a call exactly, if a row has it.
fn exact(rows: &[Row], call: &Call) -> Option<Exact> {
    // zsh does not split the result of `${ }` into words.
    let mut rows = rows.iter().filter(|row| call.dialect != Dialect::Zsh && row.matches(call));
    rows.find_map(|row| row.substitute(call)?.exact)
}

/// Returns the code that replaces a recorded call, and whether it gives the same result for the
/// recorded arguments.
fn recorded_form(context: &RuleContext<'_, '_>, index: u32) -> Option<(NewCode, bool)> {
    let (rows, call) = call_of(context, index as usize)?;
    let arguments = arguments_of(context.launch(index).execs.first()?);
    let exact = exact(rows, &call)?;
    let is_exact = exact.exact_for.includes(&exact.form, &arguments);
    let needs_one_line = exact.exact_for == ExactFor::Line;
    Some((NewCode { form: exact.form, needs_one_line, limits: exact.limits }, is_exact))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::advice::edit::Form;
    use crate::explain::advice::edit::tests::executed::check;
    use crate::explain::advice::rules::builtin::row::TABLE;

    /// Returns the code that replaces `echo ... | PROGRAM` in `$( )`.
    fn exact_form(program: &str, arguments: &[&str], dialect: Dialect) -> Option<Form> {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let call = Call { program: program.to_owned(), arguments, dialect, is_fed: true, is_captured: true };
        exact(TABLE.get(program.as_bytes())?, &call).map(|exact| exact.form)
    }

    #[test]
    fn a_computed_condition_has_the_same_status() {
        let script = "for y in 'fix: a' 'fix(b): c' '' 'docs:' 'x fix: a' 'it'\\''s'; do\n  if ! echo \"$y\" | grep -qE '^(fix|docs)(\\([a-z]+\\))?: '; then echo \"$y\"; fi\ndone\n";
        let arguments = ["-qE", "^(fix|docs)(\\([a-z]+\\))?: "];
        let form = exact_form("grep", &arguments, Dialect::Bash).unwrap();
        check(&["bash"], "grep", &arguments, form, script, "if ! { grep_of_y='^(fix|docs)");
    }

    /// The code that the rules compute from the arguments.
    #[test]
    fn computed_code_does_what_the_programs_do() {
        let calls: [(&str, &[&str]); 23] = [
            ("cut", &["-d ", "-f3"]),
            ("cut", &["-d ", "-f1"]),
            ("cut", &["-d=", "-f2"]),
            ("sed", &["s/with space/x y/"]),
            ("sed", &["s/^with //"]),
            ("sed", &["s/^with //; s/\\.c$//"]),
            ("sed", &["-e", "s/a/A/", "-e", "s|=|/|g;"]),
            ("sed", &["s/\\..*//"]),
            ("sed", &["s/^.*\\/(//"]),
            ("sed", &["-E", "s/[.]c$/.o/"]),
            ("sed", &["s/^a/+/;s/\"//g"]),
            ("sed", &["s/[^0-9]*//g"]),
            ("sed", &["s/[0-9]*$//"]),
            ("sed", &["-E", "s/^[[:space:]]+//; s/[[:space:]]+$//"]),
            ("sed", &["s/^ *//;s/ *$//"]),
            ("sed", &["s/[a=]*//"]),
            ("sed", &["s/[0-9]/#/g"]),
            ("sed", &["s/^[^0-9]*//"]),
            ("cut", &["-d=", "-f", "2-"]),
            ("cut", &["-c2-3"]),
            ("cut", &["-c", "3-"]),
            ("tr", &["-d", " c"]),
            ("tr", &["=", "/"]),
        ];
        for (program, arguments) in calls {
            let words = arguments.join("' '");
            let script = format!(
                "for y in 'a b  c' '' x= 'a=b=c' 'with space' 'with x.c.c' '/(\"a/(' ab.c ' 1a2 ' 12 7up a1b22; do\n  x=$(echo \"$y\" | {program} '{words}')\n  echo \"$x\"\ndone\n"
            );
            for (shell, dialect) in [("bash", Dialect::Bash), ("dash", Dialect::Posix)] {
                let Some(form) = exact_form(program, arguments, dialect) else {
                    assert_eq!(shell, "dash", "{program} {arguments:?}");
                    continue;
                };
                check(&[shell], program, arguments, form, &script, "x=");
            }
        }
    }
}
