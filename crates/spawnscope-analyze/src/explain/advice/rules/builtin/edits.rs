//! The edits of lines whose calls the shell can replace exactly, as all recorded calls from the line show. `Edit::apply` then finds the call in
//! the line.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::call::{Call, Operand};
use super::table::TABLE;
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::edit::{Edit, EditRefusal, Rewrite, SubstitutionRewrite};
use crate::explain::advice::phrases::name;
use crate::patterns::shells::Dialect;
use spawnscope_data::event::Language;

/// Maximum number of lines that one finding edits.
const MAX_EDITS: usize = 100;

/// The number of a call site in a script, and the directory in which the script was started.
type Site<'a> = (u32, Option<&'a [u8]>);

/// A rewrite of a recorded call, and whether the replacement gives the same result for the recorded arguments.
type CallRewrite = (SubstitutionRewrite, bool);

/// Returns the edits of the lines that request launches of a program, those with the most launches first. Lines that no edit is known for are
/// left out.
pub(super) fn edits(context: &RuleContext<'_, '_>, program: &[u8], launches: &[u32]) -> Vec<Edit> {
    let mut counts: BTreeMap<Site<'_>, usize> = BTreeMap::new();
    for site in launches.iter().filter_map(|index| site_of(context, *index)) {
        *counts.entry(site).or_default() += 1;
    }
    // Also the launches that the finding does not contain: the edit changes them, too.
    let mut calls: BTreeMap<Site<'_>, Vec<u32>> = BTreeMap::new();
    for (index, _) in context.launched().filter(|(_, launch)| launch.command.name == program) {
        if let Some(site) = site_of(context, index).filter(|site| counts.contains_key(site)) {
            calls.entry(site).or_default().push(index);
        }
    }
    let mut sites: Vec<(Site<'_>, usize)> = counts.into_iter().collect();
    sites.sort_by_key(|(_, count)| Reverse(*count));
    sites.truncate(MAX_EDITS);
    sites.into_iter().filter_map(|(site, _)| edit_of(context, program, site, &calls[&site])).collect()
}

/// Returns the line of a script from which a launch was requested. `None` for scripts in other languages and without a file.
fn site_of<'a>(context: &RuleContext<'_, 'a>, index: u32) -> Option<Site<'a>> {
    let number = context.callers.number_of(index as usize)?;
    let call_site = context.callers.call_site(number);
    let is_shell_line = matches!(call_site.language, Language::Bash | Language::Dash)
        && call_site.file.is_some()
        && call_site.line.is_some();
    let directory = context.forest().launcher(index as usize).and_then(|shell| shell.cwd());
    is_shell_line.then_some((number, directory))
}

fn edit_of(
    context: &RuleContext<'_, '_>,
    program: &[u8],
    (number, directory): Site<'_>,
    calls: &[u32],
) -> Option<Edit> {
    let rewrites: Vec<Option<CallRewrite>> = calls.iter().map(|index| rewrite_of(context, *index)).collect();
    let (first, _) = rewrites.iter().flatten().next()?;
    let is_same = |call: &Option<CallRewrite>| call.as_ref().is_some_and(|(rewrite, _)| rewrite == first);
    let is_exact = |call: &Option<CallRewrite>| call.as_ref().is_some_and(|(_, is_exact)| *is_exact);
    let rewrite = if !rewrites.iter().all(is_same) {
        Err(EditRefusal::OtherCalls(name(program)))
    } else if !rewrites.iter().all(is_exact) {
        Err(EditRefusal::OtherResults(name(program)))
    } else {
        Ok(Rewrite::Substitution(first.clone()))
    };
    let call_site = context.callers.call_site(number);
    Some(Edit {
        file: call_site.file.clone()?,
        directory: directory.map(<[u8]>::to_vec),
        line: call_site.line?,
        rewrite,
    })
}

/// Returns how to rewrite a recorded call, if it is one in `$( )`, which the text of the line decides. `None` if the table has no expansions for
/// it.
fn rewrite_of(context: &RuleContext<'_, '_>, index: u32) -> Option<CallRewrite> {
    let launch = context.launch(index);
    let [exec] = &launch.execs[..] else { return None };
    let dialect = Dialect::of_parent(context.forest(), index as usize)?;
    let program = TABLE.binary_search_by_key(&launch.command.name, |(program, _)| program).ok()?;
    let mut arguments: Vec<Option<Vec<u8>>> =
        exec.arguments().skip(1).map(|argument| Some(argument.to_vec())).collect();
    let call = Call {
        program: name(launch.command.name),
        arguments: exec.arguments().skip(1).map(name).collect(),
        dialect,
        is_fed: true,
        is_captured: true,
    };
    // zsh does not split the result of `${ }` into words.
    let has_edits = dialect != Dialect::Zsh && !exec.argv_cut;
    let row = TABLE[program].1.iter().find(|row| has_edits && row.matches(&call))?;
    let expansions = row.substitute(&call)?.expansions?;
    let operand = match expansions.operand {
        Operand::First => arguments.first_mut()?.take(),
        Operand::Last => arguments.last_mut()?.take(),
        Operand::Input => None,
    };
    let rewrite = SubstitutionRewrite {
        program: launch.command.name.to_vec(),
        arguments,
        has_plain_echo: dialect == Dialect::Bash,
        steps: expansions.steps,
    };
    Some((rewrite, expansions.exact_for.includes(&operand.unwrap_or_default())))
}
