//! Cures: the few ways to spend less time on a site. Each function returns the cure if the
//! recording supports it.

mod files;
pub(super) mod front_ends;
mod in_language;
mod many;
mod once;
pub(super) mod parallel;
mod resident;
mod shell_lines;

use super::{Cure, Site, holders};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::edit::to_launches;
use crate::explain::advice::finding::{Finding, OneCall};
use crate::explain::advice::functions::functions;
use crate::explain::advice::phrases::{name, times};
use crate::explain::advice::rules::needless_shell;
use crate::explain::advice::selection::options;
use crate::explain::advice::shared_line::{SharedLine, first_written};
use crate::model::launch::NOT_FOUND;
use crate::patterns::runtimes::{Runtime, shell_between};
use crate::patterns::shells::{command_of, is_shell};
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;

/// Ids of the cures.
const NOT_AT_ALL: &str = "not-at-all";
const ONCE: &str = "once";
const IN_LANGUAGE: &str = "in-language";
const MANY: &str = "many-per-launch";
const RESIDENT: &str = "resident";
const PARALLEL: &str = "parallel";
const LOCK: &str = "lock-wait";

/// Ids of all cures of sites.
pub(in crate::explain::advice) const IDS: [&str; 7] = [NOT_AT_ALL, LOCK, ONCE, IN_LANGUAGE, MANY, RESIDENT, PARALLEL];

/// A function that returns a cure of a site, if it has one.
type CureOf = fn(&RuleContext<'_, '_>, &Site<'_>) -> Option<Cure>;

/// Cures of several launches.
const ALL: [CureOf; 10] = [
    parallel::waiting_for_lock,
    once::cure,
    resident::cure,
    many::cure,
    many::together,
    many::in_one_wrapper,
    in_language::cure,
    shell_lines::cure,
    without_shell,
    parallel::cure,
];

/// Returns the cures of a site.
pub(super) fn of(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Vec<Cure> {
    if let Some(cure) = not_at_all(context, site) {
        return vec![cure];
    }
    let mut cures: Vec<Cure> = match site.launches.len() {
        1 => resident::single(context, site).into_iter().collect(),
        _ => ALL.iter().filter_map(|cure| cure(context, site)).collect(),
    };
    // A shell takes one script: however little each does, as with `bash -n`, nothing else helps.
    if cures.is_empty() && is_shell(context.launch(site.launches[0]).command.name) {
        cures.extend(parallel::of_work(context, site, Nanos(0)));
    }
    for Cure { finding, .. } in &mut cures {
        let objection = to_launches(context, &finding.launches, finding.one_call.unwrap_or(OneCall::Inputs));
        objection.iter().for_each(|reason| finding.object(reason));
    }
    cures
}

/// Returns the cures of launches whose time is in what they launch: these may run at the same time,
/// or need fewer shells.
pub(super) fn around(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Vec<Cure> {
    [parallel::cure, shell_lines::per_file as CureOf].iter().filter_map(|cure| cure(context, site)).collect()
}

/// Returns the cure of launches that all failed because the program does not exist.
fn not_at_all(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    site.launches.iter().all(|index| context.launch(*index).outcome == NOT_FOUND).then_some(())?;
    let which = if site.program.is_empty() { "" } else { ", which does not exist" };
    let finding = finding(context, site, NOT_AT_ALL, which, site.launches.clone())
        .evidence("each ended with status 127, which shells use for programs that they do not find")
        .recipe(NOT_AT_ALL, &[], &[]);
    Some(removing(context, finding, site.launches.clone()))
}

/// Returns how Python does without the shells around programs of which it has functions. An edit
/// may be possible even if the function cannot replace this call. About other programs, the rule
/// `needless-shell` has the same advice.
fn without_shell(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    let shells: Option<Vec<u32>> =
        site.launches.iter().map(|launch| shell_between(context.forest(), *launch)).collect();
    let is_python = Runtime::of_parent(context.forest(), site.launches[0]) == Runtime::Python;
    let has_function = is_python && functions(context, site.launches[0]).is_some();
    Some(certain(needless_shell::finding(context, site.parent, shells.filter(|_| has_function)?)))
}

/// Whether a site launches command lines of a language other than the shell and make.
pub(super) fn are_lines_of_a_language(context: &RuleContext<'_, '_>, site: &Site<'_>) -> bool {
    let is_line = context.launch(site.launches[0]).execs.first().is_some_and(|exec| command_of(exec).is_some());
    is_line
        && !matches!(
            Runtime::of_parent(context.forest(), site.launches[0]),
            Runtime::Shell | Runtime::Make | Runtime::Native
        )
}

/// Returns `bash launches git 12 times`.
fn title(context: &RuleContext<'_, '_>, site: &Site<'_>) -> String {
    let program = if site.program.is_empty() { "a missing program".to_owned() } else { name(site.program) };
    let count = if site.launches.len() == 1 { "once".to_owned() } else { times(site.launches.len()) };
    let has_shell = site.launches.iter().all(|launch| shell_between(context.forest(), *launch).is_some());
    format!("{} launches {program}{} {count}", name(site.parent), if has_shell { " through a shell" } else { "" })
}

/// Returns `, at build.sh:7` if all launches of a site come from one line.
fn place(context: &RuleContext<'_, '_>, site: &Site<'_>) -> String {
    match (context.sites.count(&site.launches), site.launches.len() as u64) {
        // The text of a line that code of another language passes to a shell is not a place.
        _ if site.launches.iter().any(|launch| is_unplaced_line(context, *launch)) => String::new(),
        (counts, all) if counts.largest.first().is_some_and(|(_, count)| *count == all) => {
            format!(", at {}", name(&counts.largest[0].0.short_label()))
        }
        _ => String::new(),
    }
}

fn is_unplaced_line(context: &RuleContext<'_, '_>, launch: u32) -> bool {
    shell_between(context.forest(), launch).is_some()
        && context.sites.call_site_of(launch as usize).is_some_and(|site| site.file.is_none())
}

/// Begins the finding of a cure, with where the time of these launches of the site is.
fn finding(
    context: &RuleContext<'_, '_>,
    site: &Site<'_>,
    id: &'static str,
    what: &str,
    launches: Vec<u32>,
) -> Finding {
    let title = format!("{}{what}{}", title(context, site), place(context, site));
    Finding::modelled(id, title, launches).evidence_lines(holders::evidence(context, site)).with_example(context)
}

/// Returns the command lines of a site's launches, if all are known.
fn shared_line(context: &RuleContext<'_, '_>, launches: &[u32]) -> Option<SharedLine> {
    let mut execs = launches.iter().map(|index| first_written(context, *index));
    execs
        .all(|exec| exec.is_some_and(|exec| !exec.argv_cut && command_of(exec).is_none()))
        .then(|| SharedLine::of(context, launches))?
}

/// Returns a cure that removes launches.
fn removing(context: &RuleContext<'_, '_>, finding: Finding, removed: Vec<u32>) -> Cure {
    let all = removed.len() == finding.launches.len();
    let changes = vec![AppliedChange { change: Change::Remove, launches: removed }];
    let options = if all || finding.rule == ONCE { options(context, &changes) } else { String::new() };
    Cure { finding: finding.predicted_by_all(changes, options), is_open: false, kept: Nanos(0) }
}

/// Returns a cure whose saving is what its change saves.
fn certain(finding: Finding) -> Cure {
    Cure { finding, is_open: false, kept: Nanos(0) }
}

/// Returns a cure that may save up to everything that depends on the launches.
fn open(finding: Finding) -> Cure {
    Cure { finding, is_open: true, kept: Nanos(0) }
}
