//! Builds the options of `spawnscope whatif` that try a fix. If no selectors match the launches of
//! the fix, the options are omitted, because they would predict a different saving.

use std::collections::BTreeSet;

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::phrases::{literal, name, quoted, selector};
use crate::model::grouped::grouped;
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;
use crate::sites::select::Selector;

/// Maximum number of options for one change.
const MAX_SELECTIONS: usize = 8;
/// Maximum number of script lines that select a parent's launches of a program.
const MAX_SELECTORS_PER_GROUP: usize = 4;
/// The launches that a selection misses or adds may take at most this share of the time of the
/// intended launches.
const MAX_ERROR_SHARE: f64 = 0.05;

/// Returns the options that make these changes. Empty if some of the launches cannot be
/// distinguished from other launches.
pub(super) fn options(context: &RuleContext<'_, '_>, changes: &[AppliedChange]) -> String {
    let options: Option<Vec<String>> = changes.iter().map(|fix| options_of(context, fix)).collect();
    options.unwrap_or_default().join(" ")
}

fn options_of(context: &RuleContext<'_, '_>, fix: &AppliedChange) -> Option<String> {
    let option = match fix.change {
        Change::Remove => "--remove",
        Change::Builtin => "--builtin",
        Change::InProcess => "--in-process",
        Change::Direct => "--direct",
        _ => return None,
    };
    let intended = affected(context, fix.change, &fix.launches);
    let by_kind = grouped(fix.launches.iter().map(|index| {
        let launch = context.launch(*index);
        ((launch.command.label(), launch.birth_command.name), *index)
    }));
    let mut selections = Vec::new();
    for ((program, parent), launches) in &by_kind {
        let selector = selector(program, parent);
        let candidates = [Some(vec![selector.clone()]), with_lines(context, &selector, launches)];
        selections.extend(
            candidates
                .into_iter()
                .flatten()
                .find(|selections| fits(context, fix.change, selections, launches, &intended))?,
        );
    }
    if selections.len() > MAX_SELECTIONS {
        return None;
    }
    Some(selections.iter().map(|selection| quoted(&format!("{option}={selection}"))).collect::<Vec<_>>().join(" "))
}

/// Returns the option that merges these launches into batches. It selects all of the parent's
/// launches of the program or, if those are too many, those with `word` among their arguments.
/// Empty if neither selector matches these launches.
pub(super) fn batch_option(
    context: &RuleContext<'_, '_>,
    (program, parent): (&[u8], &[u8]),
    word: &[u8],
    launches: &[u32],
    size: u32,
) -> String {
    let change = Change::Batch(size);
    let intended = affected(context, change, launches);
    let selector = selector(program, parent);
    let with_word = (!word.is_empty()).then(|| format!("{selector},argv=*{}*", literal(word)));
    let mut candidates = std::iter::once(selector).chain(with_word);
    let fitting =
        candidates.find(|selection| fits(context, change, std::slice::from_ref(selection), launches, &intended));
    fitting.map(|selection| quoted(&format!("--batch={selection}={size}"))).unwrap_or_default()
}

/// Returns selectors that are restricted to the call sites of the launches. `None` if there are too
/// many call sites, or if some are unknown.
fn with_lines(context: &RuleContext<'_, '_>, selector: &str, launches: &[u32]) -> Option<Vec<String>> {
    let lines = launches.iter().map(|index| context.callers.call_site_of(*index as usize));
    let lines: BTreeSet<Vec<u8>> = lines.map(|call_site| Some(call_site?.short_label())).collect::<Option<_>>()?;
    (lines.len() <= MAX_SELECTORS_PER_GROUP)
        .then(|| lines.iter().map(|line| format!("{selector},line={}", name(line))).collect())
}

/// Whether the selections of a change match `launches` and nothing outside `intended`, except for
/// launches that take little time.
fn fits(
    context: &RuleContext<'_, '_>,
    change: Change,
    selections: &[String],
    launches: &[u32],
    intended: &[bool],
) -> bool {
    let selected = selections.iter().map(|text| Selector::parse(text).ok()?.select(context.forest()).ok());
    let Some(selected) = selected.collect::<Option<Vec<_>>>() else {
        return false;
    };
    let selected = affected(context, change, &selected.concat());
    let missing = launches.iter().copied().filter(|index| !selected[*index as usize]);
    let additional = (0..).zip(selected.iter().zip(intended)).filter(|(_, (selected, intended))| selected > intended);
    let different: Vec<u32> = missing.chain(additional.map(|(index, _)| index)).collect();
    context.spent_on(&different).0 as f64 <= context.spent_on(launches).0 as f64 * MAX_ERROR_SHARE
}

/// Returns for each launch whether it is affected if `launches` are changed. Most changes also
/// affect the descendants.
fn affected(context: &RuleContext<'_, '_>, change: Change, launches: &[u32]) -> Vec<bool> {
    let mut affected = vec![false; context.forest().launches.len()];
    let steps = context.walk(launches).filter(|step| step.depth == 0 || change != Change::Direct);
    steps.for_each(|step| affected[step.index] = true);
    affected
}
