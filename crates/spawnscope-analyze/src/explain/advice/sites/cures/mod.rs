//! Cures: the few ways to spend less time on a site. Each function returns the cure if the
//! recording supports it. Its finding begins with the title of the site, and with where the time of
//! its launches is, which may be in the launch tax, in start-up, in the work of its programs, or in
//! what they launch.

mod files;
mod in_language;
mod many;
mod once;
pub(super) mod parallel;
pub(super) mod resident;
mod wrapper;

use std::collections::BTreeMap;

use super::Site;
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::edit::to_launches;
use crate::explain::advice::finding::{Finding, OneCall};
use crate::explain::advice::languages::functions;
use crate::explain::advice::phrases::{launches, name, time, times};
use crate::explain::advice::rules::shell;
use crate::explain::advice::selection::options;
use crate::explain::advice::shared_line::{SharedLine, first_written};
use crate::explain::advice::tables::case;
use crate::model::launch::{NOT_FOUND, Outcome};
use crate::model::phases::Phase;
use crate::patterns::runtimes::{Runtime, shell_between, shell_of_line};
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

/// Launches that use less than this share of their time on a CPU mostly wait.
const MOSTLY: f64 = 0.5;
/// A start-up is mentioned if it takes at least this share of the time of the launches.
const NOTABLE: f64 = 0.1;

/// A function that returns a cure of a site, if it has one.
type CureOf = fn(&RuleContext<'_, '_>, &Site<'_>) -> Option<Finding>;

/// Cures of several launches.
const ALL: [CureOf; 10] = [
    parallel::waiting_for_lock,
    once::cure,
    resident::cure,
    many::cure,
    many::together,
    wrapper::cure,
    in_language::small_programs,
    in_language::lines,
    without_shell,
    parallel::cure,
];

/// Returns the cures of a site.
pub(super) fn of(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Vec<Finding> {
    if let Some(cure) = not_at_all(context, site) {
        return vec![cure];
    }
    let mut cures: Vec<Finding> = match site.launches.len() {
        1 => resident::single(context, site).into_iter().collect(),
        _ => ALL.iter().filter_map(|cure| cure(context, site)).collect(),
    };
    // A shell takes one script: however little each does, as with `bash -n`, nothing else helps.
    if cures.is_empty() && is_shell(context.launch(site.launches[0]).command.name) {
        cures.extend(parallel::of_work(context, site, Nanos(0)));
    }
    for finding in &mut cures {
        let objection = to_launches(context, &finding.launches, finding.one_call.unwrap_or(OneCall::Inputs));
        objection.iter().for_each(|reason| finding.object(reason));
    }
    cures
}

/// Returns the cures of launches whose time is in what they launch: these may run at the same time,
/// or need fewer shells.
pub(super) fn around(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Vec<Finding> {
    [parallel::cure, in_language::per_file as CureOf].iter().filter_map(|cure| cure(context, site)).collect()
}

/// Returns the cure of launches that all failed because the program does not exist.
fn not_at_all(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
    site.launches.iter().all(|index| context.launch(*index).outcome == NOT_FOUND).then_some(())?;
    let which = if site.program.is_empty() { "" } else { ", which does not exist" };
    let finding =
        finding(context, site, NOT_AT_ALL, which, site.launches.clone()).recipe(context, NOT_AT_ALL, &[], &[]);
    Some(removing(context, finding, site.launches.clone()))
}

/// Returns how Python does without the shells around programs of which it has functions. An edit
/// may be possible even if the function cannot replace this call. About other programs, the rule
/// `needless-shell` has the same advice.
fn without_shell(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
    let shells: Option<Vec<u32>> =
        site.launches.iter().map(|launch| shell_between(context.forest(), *launch)).collect();
    let is_python = Runtime::of_parent(context.forest(), site.launches[0]) == Runtime::Python;
    let has_function = is_python && functions(context, site.launches[0]).is_some();
    Some(shell::without_shell(context, site.parent, shells.filter(|_| has_function)?))
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

/// Whether a site launches such command lines and has a cure for them as a whole, such as functions
/// of the language. Running them at the same time does not count. Without such a cure, the programs
/// of the lines are sites of their own.
pub(super) fn have_cure_of_lines(context: &RuleContext<'_, '_>, site: &Site<'_>) -> bool {
    are_lines_of_a_language(context, site) && of(context, site).iter().any(|cure| cure.rule != PARALLEL)
}

/// Returns the command lines of a site's launches, if all are known.
fn shared_line(context: &RuleContext<'_, '_>, launches: &[u32]) -> Option<SharedLine> {
    let mut execs = launches.iter().map(|index| first_written(context, *index));
    execs
        .all(|exec| exec.is_some_and(|exec| !exec.argv_cut && command_of(exec).is_none()))
        .then(|| SharedLine::of(context, launches))?
}

/// Returns a cure that removes launches.
fn removing(context: &RuleContext<'_, '_>, finding: Finding, removed: Vec<u32>) -> Finding {
    let all = removed.len() == finding.launches.len();
    let changes = vec![AppliedChange { change: Change::Remove, launches: removed }];
    let options = if all || finding.rule == ONCE { options(context, &changes) } else { String::new() };
    finding.predicted_by_all(changes, options)
}

/// Begins the finding of a cure of some launches of a site, with where the time of the site is.
/// `what` follows the number of launches in the title.
fn finding(
    context: &RuleContext<'_, '_>,
    site: &Site<'_>,
    id: &'static str,
    what: &str,
    launches: Vec<u32>,
) -> Finding {
    let shells: Option<Vec<u32>> = launches.iter().map(|launch| shell_of_line(context.forest(), *launch)).collect();
    let parent = shells.as_ref().map_or(site.parent, |shells| context.launch(shells[0]).birth_command.name);
    let values = [
        ("parent", &name(parent)[..]),
        ("program", &if site.program.is_empty() { "a missing program".to_owned() } else { name(site.program) }),
        ("through", if shells.is_some() { " through a shell" } else { "" }),
        ("count", &times(launches.len())),
        ("what", what),
        ("place", &place(context, &launches)),
    ];
    let example = context.example(&launches);
    let finding = Finding { rule: id, launches, example, ..Finding::default() };
    let number = number(&finding.launches);
    with_time(context, finding.recipe(context, "site", &[number], &values))
}

fn number(launches: &[u32]) -> &'static str {
    if launches.len() == 1 { "one" } else { "several" }
}

/// Returns `, at build.sh:7` if all launches come from one line.
fn place(context: &RuleContext<'_, '_>, launches: &[u32]) -> String {
    match (context.sites.count(launches), launches.len() as u64) {
        // The text of a line that code of another language passes to a shell is not a place.
        _ if launches.iter().any(|launch| is_unplaced_line(context, *launch)) => String::new(),
        (counts, all) if counts.largest.first().is_some_and(|(_, count)| *count == all) => {
            format!(", at {}", name(&counts.largest[0].0.short_label()))
        }
        _ => String::new(),
    }
}

fn is_unplaced_line(context: &RuleContext<'_, '_>, launch: u32) -> bool {
    shell_of_line(context.forest(), launch).is_some()
        && context.sites.call_site_of(launch as usize).is_some_and(|site| site.file.is_none())
}

/// Adds where the time of a finding's launches is.
fn with_time(context: &RuleContext<'_, '_>, finding: Finding) -> Finding {
    let all = &finding.launches.clone();
    let spent = context.spent_on(all);
    let charges = all.iter().map(|index| &context.path.launches[*index as usize]);
    let (own, tax) = charges.fold((0, 0), |(own, tax), each| (own + each.get(Phase::Run).0, tax + each.tax().0));
    let steps = context.walk(&super::outermost(context, all));
    let critical = Nanos(steps.map(|step| context.path.launches[step.index].total().0).sum());
    let below = critical.since(Nanos(own + tax));
    let (inner, held) = largest_descendant(context, all).unzip();
    let if_known = |span: Option<Nanos>| span.map(time).unwrap_or_default();
    let values = [
        ("launches", &launches(all.len())[..]),
        ("spent", &time(spent)),
        ("own", &time(Nanos(own))),
        ("tax", &time(Nanos(tax))),
        ("below", &time(below)),
        ("inner", &inner.map(name).unwrap_or_default()),
        ("held", &if_known(held)),
        ("starting", &if_known(start_up(context, all, spent))),
        ("used", &if_known(cpu_of_waiting(context, all, below))),
        ("status", &failure(context, all).map(|status| status.to_string()).unwrap_or_default()),
    ];
    let is_unplaced = all.iter().all(|index| context.sites.number_of(*index as usize).is_none());
    let cases = [number(all), case(is_unplaced, "unplaced")];
    finding.recipe(context, "site-time", &cases, &values)
}

/// Returns the status with which all launches failed. A status of 1 is an answer for many programs.
fn failure(context: &RuleContext<'_, '_>, all: &[u32]) -> Option<u8> {
    let first = context.launch(all[0]).outcome;
    let Outcome::Code(status) = first else { return None };
    let are_alike = all.len() > 1 && all.iter().all(|index| context.launch(*index).outcome == first);
    (are_alike && status > 1).then_some(status)
}

/// Returns the CPU time of launches that mostly wait, and not for what they launch.
fn cpu_of_waiting(context: &RuleContext<'_, '_>, all: &[u32], below: Nanos) -> Option<Nanos> {
    let used = all.iter().map(|index| context.launch(*index).cpu_phases.get(Phase::Run));
    let used = Nanos(used.collect::<Option<Vec<Nanos>>>()?.iter().map(|cpu| cpu.0).sum());
    let run = context.total_phase(all, Phase::Run);
    (((used.0 + below.0) as f64) < MOSTLY * run.0 as f64).then_some(used)
}

/// Returns the program among the descendants with the most time on the critical path, and that
/// time.
fn largest_descendant<'a>(context: &RuleContext<'_, 'a>, all: &[u32]) -> Option<(&'a [u8], Nanos)> {
    let mut programs: BTreeMap<&[u8], u64> = BTreeMap::new();
    for step in context.walk(all).filter(|step| step.depth > 0) {
        let program = context.forest().launches[step.index].command.name;
        *programs.entry(program).or_default() += context.path.launches[step.index].total().0;
    }
    let largest = programs.into_iter().max_by_key(|(_, critical)| *critical);
    largest.filter(|(_, critical)| *critical > 0).map(|(program, critical)| (program, Nanos(critical)))
}

/// Returns the recorded start-up, which every launch repeats, if it is worth mentioning.
fn start_up(context: &RuleContext<'_, '_>, all: &[u32], spent: Nanos) -> Option<Nanos> {
    let known = all.iter().filter_map(|index| context.launch(*index).start_up.get());
    let start_up = Nanos(known.map(|start_up| start_up.0).sum());
    (all.len() > 1 && start_up.0 as f64 >= NOTABLE * spent.0 as f64).then_some(start_up)
}
