//! Sites: all launches of one program from one place in the code, and the cures of each. The engine
//! knows nothing about the launched programs, except for rows of tables (`programs`, `languages`,
//! `front_ends.tsv`). Each cure is one of few ways to spend less time on a site; the recorded
//! arguments decide which of them fit, the replay what each saves, and `merge` which comes first.
//! So repeated launches never stay without an answer. A single launch that simply does its work has
//! none.

mod cures;
mod grouping;
mod repeated;

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::edits;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::owner::foreign_code;
use crate::explain::advice::selection::options;
use crate::explain::advice::shared_line::arguments_of;
use crate::model::external_wait::{ExternalWait, external_wait_of};
use crate::model::unknown_waits::merge_overlapping;
use crate::patterns::programs::has_property;
use crate::patterns::runtimes::{Runtime, shell_between};
use crate::patterns::shells::is_shell;
use crate::predict::whatif::changes::Change;
use crate::predict::whatif::{AppliedChange, Prediction};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

pub(super) use cures::IDS;

/// Maximum number of sites. Each needs several replays, which take long for large recordings.
const MAX_SITES: usize = 8;
const MAX_SITES_IF_LARGE: usize = 4;
/// Maximum number of sites whose cures are looked for.
const MAX_EXAMINED: usize = 4 * MAX_SITES;
/// A recording with at least this many launches is large.
const MIN_LARGE_LAUNCHES: usize = 20_000;
/// A fix saves at most this part of what the launches take.
const SPENT: f64 = 1.1;
/// A site explains another one around it if it holds at least this share of the other's time on the
/// critical path.
const MAJORITY: f64 = 0.5;
/// Lines ask about the same inputs if they have at least this share of them in common: some rounds
/// of a loop end early.
const SAME_INPUTS: f64 = 0.8;

/// The programs that make launches for the values of its variables.
const FUNCTIONS_OF_MAKE: &[u8] = b"$(shell)";

/// The launches of one program from one place.
struct Site<'a> {
    /// The parent's program.
    parent: &'a [u8],
    /// The program or the script that is really executed. Empty if it does not exist.
    program: &'a [u8],
    /// Launch indices, ascending.
    launches: Vec<u32>,
    /// Time of the launches and their descendants on the critical path. Hardly more of the wall can
    /// depend on them.
    critical: Nanos,
    /// What `repeated::of` returns, since several sites may be below this one.
    repeated: OnceCell<Nanos>,
}

impl Site<'_> {
    /// Returns the part of `critical` that more than one of the launches needs.
    fn repeated(&self, context: &RuleContext<'_, '_>) -> Nanos {
        *self.repeated.get_or_init(|| repeated::of(context, &self.launches))
    }
}

/// The cures of one site.
pub(crate) struct Answer {
    /// Ways to spend less time on the site.
    pub(super) cures: Vec<Finding>,
    /// Removes the site's launches, which shows how much of the wall depends on them.
    removal: AppliedChange,
    /// Time on the critical path that belongs to one of the launches only. A launch that takes the
    /// place of all of them needs it, too.
    unrepeated: Nanos,
}

impl Answer {
    /// Returns the changes to predict: the removal of the launches, and those of each cure.
    pub(super) fn changes(&self) -> impl Iterator<Item = &[AppliedChange]> {
        let removal = std::slice::from_ref(&self.removal);
        std::iter::once(removal).chain(self.cures.iter().map(|cure| cure.changes.as_slice()))
    }

    /// Returns each cure with what it saves, and whether that is worth printing. `predictions` are
    /// those of `changes`.
    pub(super) fn evaluate(
        self,
        context: &RuleContext<'_, '_>,
        predictions: &[Prediction],
    ) -> Vec<(Finding, [Nanos; 3], bool)> {
        let Some((removal, predictions)) = predictions.split_first() else { return Vec::new() };
        let [dependent, least, most] = removal.saving();
        // Without recorded wakers, often only the most that may depend on the launches is known.
        let likely = if dependent == Nanos(0) { Nanos(least.0.midpoint(most.0)) } else { dependent };
        let depends = context.is_much(likely);
        let limit = removal.unrecorded.since(sleep_of(context, &self.removal.launches));
        let up_to = if dependent == Nanos(0) { "up to " } else { "" };
        let share = units::percent(if dependent == Nanos(0) { most } else { dependent }, removal.unrecorded);
        let them = if self.removal.launches.len() == 1 { "it" } else { "them" };
        let cures = self.cures.into_iter().zip(predictions).map(|(cure, prediction)| {
            let [expected, low, high] = prediction.saving();
            let saving = [expected.since(cure.kept), low.since(cure.kept), high];
            // A cure of these launches alone saves no more than their removal.
            let is_own = cure.changes.iter().all(|change| change.launches == self.removal.launches);
            let limit = if is_own && expected <= most { limit.min(most) } else { limit };
            let saving = match cure.is_open {
                true => [saving[0], saving[1], high.max(dependent.since(self.unrepeated))].map(|time| time.min(limit)),
                false => within_spent(context, &cure.changes, saving),
            };
            // A fix may also do the work of other launches.
            let is_all = expected <= most;
            let evidence = (depends && is_all).then(|| format!("{up_to}{share} of the wall time depends on {them}"));
            let finding = Finding { dependent: likely, ..cure.evidence_lines(evidence) };
            let is_worth = context.is_worth(&finding.launches, saving, likely);
            (finding, saving, is_worth)
        });
        cures.collect()
    }
}

/// Limits a saving to what the launches take: this differs between runs, but hardly by more.
fn within_spent(
    context: &RuleContext<'_, '_>,
    changes: &[AppliedChange],
    [expected, low, high]: [Nanos; 3],
) -> [Nanos; 3] {
    let launches: BTreeSet<u32> = changes.iter().flat_map(|change| &change.launches).copied().collect();
    let spent = context.spent_on(&launches.into_iter().collect::<Vec<_>>());
    let limit = Nanos((spent.0 as f64 * SPENT) as u64);
    [expected, low, if spent >= expected { high.min(limit) } else { high }]
}

/// Returns the time in which these launches waited for timers. One process that does their work
/// waits for them, too.
fn sleep_of(context: &RuleContext<'_, '_>, launches: &[u32]) -> Nanos {
    // A launch that polls its children waits for these.
    let without_children = launches.iter().filter(|index| context.forest().children(**index as usize).is_empty());
    let slices = without_children.flat_map(|index| context.timelines().slices(*index).iter());
    let sleeps = slices.filter(|slice| external_wait_of(slice) == ExternalWait::Timer);
    let spans = sleeps.filter_map(|slice| Some((slice.off, Nanos(slice.off.0 + slice.off_span?.0))));
    Nanos(merge_overlapping(spans.collect()).into_iter().map(|(from, to)| to.since(from).0).sum())
}

/// Returns the cures of each site on which enough of the wall may depend. The replays decide which
/// of them hold.
pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Answer> {
    let mut sites = grouping::sites(context);
    sites.sort_by_key(|site| (Reverse(site.critical), site.program, site.launches[0]));
    let (sites, around) = without_nested(context, sites);
    let is_large = context.forest().launches.len() >= MIN_LARGE_LAUNCHES;
    let mut found = cured(context, sites, if is_large { MAX_SITES_IF_LARGE } else { MAX_SITES });
    found.extend(around.into_iter().filter_map(|site| {
        let cures = cures::around(context, &site);
        (!cures.is_empty()).then_some((site, cures))
    }));
    let answers = found.into_iter().map(|(site, mut cures)| {
        cures.iter_mut().for_each(|cure| include_shells(context, cure));
        let removal = AppliedChange { change: Change::Remove, launches: outermost(context, &site.launches) };
        Answer { cures, removal, unrepeated: site.critical.since(site.repeated(context)) }
    });
    answers.collect()
}

/// Returns the shells that exist only for launches, and the launches without such a shell.
fn outermost(context: &RuleContext<'_, '_>, launches: &[u32]) -> Vec<u32> {
    let outermost = launches.iter().map(|launch| shell_between(context.forest(), *launch).unwrap_or(*launch));
    outermost.collect()
}

/// Lets the changes of a fix also do without the shells that exist only for its launches.
fn include_shells(context: &RuleContext<'_, '_>, finding: &mut Finding) {
    let mut shells: Vec<u32> = Vec::new();
    for applied in &mut finding.changes {
        let outer = outermost(context, &applied.launches);
        let own = outer.iter().copied().filter(|launch| applied.launches.binary_search(launch).is_err());
        match applied.change {
            Change::Remove => applied.launches = outer,
            Change::InProcess | Change::Batch(_) => shells.extend(own),
            _ => {}
        }
    }
    if outermost(context, &finding.launches) != finding.launches {
        shells.sort_unstable();
        let in_process = AppliedChange { change: Change::InProcess, launches: shells };
        finding.changes.extend((!in_process.launches.is_empty()).then_some(in_process));
        finding.whatif = options(context, &finding.changes);
    }
}

/// Returns the first `max` sites that have cures. Several lines that launch one program and have
/// the same cures are one cause, and become one site.
fn cured<'a>(context: &RuleContext<'_, 'a>, sites: Vec<Site<'a>>, max: usize) -> Vec<(Site<'a>, Vec<Finding>)> {
    let mut found: Vec<(Site<'a>, Vec<Finding>)> = Vec::new();
    for site in sites.into_iter().take(MAX_EXAMINED) {
        let is_of_make = is_same_function_of_make(context, &site);
        // What make evaluates again and again is one cause, whichever programs that launches. Only
        // what stays the same has an edit.
        let is_stable = |site: &Site<'_>| site.launches.iter().all(|launch| edits::is_stable(context, *launch));
        let is_alike = |other: &Site<'_>| {
            other.parent == site.parent
                && is_same_function_of_make(context, other)
                && is_stable(other) == is_stable(&site)
        };
        let is_of_programs = |other: &Site<'_>| {
            (other.parent, other.program) == (site.parent, site.program) || is_of_make && is_alike(other)
        };
        // Once there are enough sites, others can only become a part of one of them.
        let is_full = found.len() == max;
        if is_full && !found.iter().any(|(other, _)| is_of_programs(other)) {
            continue;
        }
        let cures = cures::of(context, &site);
        // The inputs of several lines are no list, unless they are the same.
        let line = |site: &Site<'_>| context.callers.number_of(site.launches[0] as usize);
        let has_list = cures.iter().any(|cure| cure.one_call.is_some());
        let alike = found.iter_mut().filter(|(other, _)| is_of_programs(other)).find(|(other, known)| {
            let has_inputs = have_same_inputs(context, &other.launches, &site.launches);
            (!has_list || has_inputs || line(other) == line(&site))
                && have_same_fixes(known, &cures, is_of_make || has_inputs)
        });
        match alike {
            Some((other, known)) => *known = cures_with(context, other, site),
            None if cures.is_empty() || is_full => {}
            None => found.push((site, cures)),
        }
    }
    found
}

/// Adds the launches of a site to another one, and returns the cures of both.
fn cures_with<'a>(context: &RuleContext<'_, 'a>, site: &mut Site<'a>, other: Site<'a>) -> Vec<Finding> {
    site.launches.extend(other.launches);
    site.launches.sort_unstable();
    site.critical.0 += other.critical.0;
    site.repeated.take();
    let has_several = site.program != other.program;
    if has_several {
        site.program = FUNCTIONS_OF_MAKE;
    }
    let mut cures = cures::of(context, site);
    cures.truncate(if has_several { 1 } else { cures.len() });
    cures
}

/// Whether the arguments that are not those of all launches are mostly those of others.
fn have_same_inputs(context: &RuleContext<'_, '_>, one: &[u32], other: &[u32]) -> bool {
    let inputs = |launches: &[u32]| {
        let mut counts: BTreeMap<&[u8], usize> = BTreeMap::new();
        let execs = launches.iter().filter_map(|index| context.launch(*index).execs.last());
        execs.flat_map(arguments_of).for_each(|word| *counts.entry(word).or_default() += 1);
        counts.retain(|_, count| *count < launches.len());
        counts.into_keys().collect::<BTreeSet<_>>()
    };
    let (one, other) = (inputs(one), inputs(other));
    let common = one.intersection(&other).count();
    common > 1 && common as f64 >= SAME_INPUTS * one.len().max(other.len()) as f64
}

/// Whether cures are the same ones, or only the first counts, and the first has the same fix.
fn have_same_fixes(one: &[Finding], other: &[Finding], is_first: bool) -> bool {
    let rules = |cures: &[Finding]| cures.iter().map(|cure| cure.rule).collect::<Vec<_>>();
    let first = |cures: &[Finding]| cures.first().map(|cure| cure.fix.clone());
    !one.is_empty() && (is_first || rules(one) == rules(other)) && first(one) == first(other)
}

/// Keeps one of two sites of which one launches the other. Returns also those around another one,
/// which may still run at the same time.
fn without_nested<'a>(context: &RuleContext<'_, 'a>, sites: Vec<Site<'a>>) -> (Vec<Site<'a>>, Vec<Site<'a>>) {
    let mut site_of = vec![None; context.forest().launches.len()];
    for (number, site) in sites.iter().enumerate() {
        site.launches.iter().for_each(|launch| site_of[*launch as usize] = Some(number));
    }
    let (mut dropped, mut explained) = (BTreeSet::new(), BTreeSet::new());
    for (inner, site) in sites.iter().enumerate() {
        if is_needed_by_each_parent(context, site) {
            dropped.insert(inner);
        }
        for outer in sites_around(context, site, &site_of) {
            if !dropped.contains(&outer) && !dropped.contains(&inner) {
                let drops_inner = is_consequence(context, &sites[outer], site);
                let explains = site.critical.0 as f64 >= MAJORITY * sites[outer].critical.0 as f64;
                if drops_inner {
                    dropped.insert(inner);
                } else if explains {
                    explained.insert(outer);
                    dropped.insert(outer);
                }
            }
        }
    }
    let (mut kept, mut around) = (Vec::new(), Vec::new());
    for (number, site) in sites.into_iter().enumerate() {
        match dropped.contains(&number) {
            false => kept.push(site),
            true if explained.contains(&number) => around.push(site),
            true => {}
        }
    }
    (kept, around)
}

/// Returns the other sites to which ancestors of most of a site's launches belong.
fn sites_around(context: &RuleContext<'_, '_>, site: &Site<'_>, site_of: &[Option<usize>]) -> Vec<usize> {
    let own = site_of[site.launches[0] as usize];
    let mut all = Vec::new();
    for launch in &site.launches {
        let ancestors = context.forest().ancestors(*launch as usize);
        let around: BTreeSet<usize> = ancestors.filter_map(|ancestor| site_of[ancestor]).collect();
        all.extend(around.into_iter().filter(|around| Some(*around) != own));
    }
    all.sort_unstable();
    let counted = all.chunk_by(|one, other| one == other);
    counted.filter(|same| same.len() * 2 > site.launches.len()).map(|same| same[0]).collect()
}

/// Whether a site is a consequence of the launches around it: it is part of a loop, or a known
/// front end or a third party requests it.
fn is_consequence(context: &RuleContext<'_, '_>, around: &Site<'_>, site: &Site<'_>) -> bool {
    if cures::resident::FrontEnd::of(context, around).is_some() {
        return true;
    }
    // Neither a single launch, such as that of cmake by a build script, nor steps of one work are a
    // loop.
    let is_wrapper = is_shell(around.program) || has_property(around.program, "launcher");
    // A line with a loop is a script of its own.
    let has_few = site.launches.len() <= 2 * around.launches.len();
    around.launches.len() > 1
        && (is_same_function_of_make(context, around)
            || has_few && cures::have_cure_of_lines(context, around) && !has_property(site.program, "library")
            || !is_wrapper
                && foreign_code(context, &site.launches).is_some()
                && around.repeated(context).0 as f64 >= MAJORITY * around.critical.0 as f64)
}

/// Whether make read the output of the same few commands again and again, whose first answers it
/// can keep.
fn is_same_function_of_make(context: &RuleContext<'_, '_>, around: &Site<'_>) -> bool {
    let lines = around.launches.iter().filter_map(|index| Some(context.launch(*index).execs.last()?.argv()));
    let lines: BTreeSet<&[u8]> = lines.collect();
    let first = around.launches[0];
    lines.len() * 2 <= around.launches.len()
        && Runtime::of_parent(context.forest(), first) == Runtime::Make
        && context.is_captured(first)
}

/// Whether each process of a compiled program made only one of the launches, as each `collect2`
/// starts one linker. Such a program needs its launch; the loop is in whatever launches the
/// program.
fn is_needed_by_each_parent(context: &RuleContext<'_, '_>, site: &Site<'_>) -> bool {
    let forest = context.forest();
    // The forks of a program that forks for each launch count as the program itself.
    let parents = site.launches.iter().filter_map(|launch| {
        forest.ancestors(*launch as usize).find(|ancestor| !forest.launches[*ancestor].is_fork_without_exec())
    });
    let parents: BTreeSet<usize> = parents.collect();
    site.launches.len() > 1
        && parents.len() == site.launches.len()
        && Runtime::of_parent(forest, site.launches[0]) == Runtime::Native
}
