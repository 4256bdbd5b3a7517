//! Sites: all launches of one program from one place in the code. The engine knows nothing about the launched programs,
//! except for the table in `front_ends`. It gives every site that a large part of the wall depends on the best of a few
//! general cures, so that repeated launches never stay without an answer. A single launch that simply does its work has
//! no cure. An answer is dropped if a rule's advice about the same launches saves about as much.

mod answer;
mod cures;
mod front_ends;
mod grouping;
mod holders;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::owner::foreign_code;
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::is_shell;
use crate::predict::dependence::is_launcher;
use spawnscope_data::event::Nanos;

pub(crate) use answer::Answer;

/// Id of the answers about many launches, each of which works for less time than it takes to launch it.
pub(super) const LOOP: &str = "launch-loop";
/// Id of the answers about programs that are prepared again at each launch. Whatever launches them, their configuration is the user's.
pub(super) const BUILD: &str = "build-once";
/// Id of all other answers.
pub(super) const SITE: &str = "site";

/// Ids of all answers.
pub(super) const IDS: [&str; 3] = [LOOP, BUILD, SITE];

/// A site is answered if at least this share of the wall depends on it.
const MIN_DEPENDENT_SHARE: f64 = 0.1;
/// Maximum number of answers. Each needs two replays.
const MAX_ANSWERS: usize = 5;
/// A site explains another one around it if it holds at least this share of the other's time on the critical path.
const MAJORITY: f64 = 0.5;

/// The launches of one program from one place.
struct Site<'a> {
    /// The parent's program.
    parent: &'a [u8],
    /// The program or the script that is really executed. Empty if it does not exist.
    program: &'a [u8],
    /// Launch indices, ascending.
    launches: Vec<u32>,
    /// Time of the launches and their descendants on the critical path. Hardly more of the wall can depend on them.
    critical: Nanos,
    /// Whether there are many launches, each of which works for less time than it takes to launch it.
    is_loop: bool,
}

/// Returns an answer for each site on which much of the wall may depend. The replays decide which of them hold.
pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Answer> {
    let mut sites = grouping::sites(context);
    sites.sort_by_key(|site| (Reverse(site.critical), site.program, site.launches[0]));
    let sites = without_nested(context, sites);
    sites.iter().filter_map(|site| cures::answer(context, site)).take(MAX_ANSWERS).collect()
}

/// Keeps one of two sites of which one launches the other.
fn without_nested<'a>(context: &RuleContext<'_, 'a>, sites: Vec<Site<'a>>) -> Vec<Site<'a>> {
    let mut site_of = vec![None; context.forest().launches.len()];
    for (number, site) in sites.iter().enumerate() {
        site.launches.iter().for_each(|launch| site_of[*launch as usize] = Some(number));
    }
    let mut dropped = BTreeSet::new();
    for (inner, site) in sites.iter().enumerate() {
        if is_needed_by_each_parent(context, site) {
            dropped.insert(inner);
        }
        for outer in sites_around(context, site, &site_of) {
            if !dropped.contains(&outer) && !dropped.contains(&inner) {
                let drops_inner = is_consequence(context, &sites[outer], site);
                let explains = site.critical.0 as f64 >= MAJORITY * sites[outer].critical.0 as f64;
                dropped.extend((drops_inner || explains).then_some(if drops_inner { inner } else { outer }));
            }
        }
    }
    let numbered = sites.into_iter().enumerate();
    numbered.filter(|(number, _)| !dropped.contains(number)).map(|(_, site)| site).collect()
}

/// Returns the other sites to which ancestors of most of a site's launches belong.
fn sites_around(context: &RuleContext<'_, '_>, site: &Site<'_>, site_of: &[Option<usize>]) -> Vec<usize> {
    let own = site_of[site.launches[0] as usize];
    let mut all = Vec::new();
    for launch in &site.launches {
        let around: BTreeSet<usize> = ancestors(context, *launch).filter_map(|ancestor| site_of[ancestor]).collect();
        all.extend(around.into_iter().filter(|around| Some(*around) != own));
    }
    all.sort_unstable();
    let counted = all.chunk_by(|one, other| one == other);
    counted.filter(|same| same.len() * 2 > site.launches.len()).map(|same| same[0]).collect()
}

fn ancestors(context: &RuleContext<'_, '_>, launch: u32) -> impl Iterator<Item = usize> {
    let forest = context.forest();
    std::iter::successors(forest.parent(launch as usize), |ancestor| forest.parent(*ancestor))
}

/// Whether a site is a consequence of the launches around it: it is part of a loop, or a known front end or a third party requests it.
fn is_consequence(context: &RuleContext<'_, '_>, around: &Site<'_>, site: &Site<'_>) -> bool {
    let is_wrapper = is_shell(around.program) || is_launcher(around.program);
    let is_front_end = front_ends::of(context, around).is_some();
    around.is_loop || is_front_end || !is_wrapper && foreign_code(context, SITE, &site.launches).is_some()
}

/// Whether each process of a compiled program made only one of the launches, as each `collect2` starts one linker. Such a program needs its
/// launch; the loop is in whatever launches the program.
fn is_needed_by_each_parent(context: &RuleContext<'_, '_>, site: &Site<'_>) -> bool {
    let forest = context.forest();
    // The forks of a program that forks for each launch count as the program itself.
    let parents = site.launches.iter().filter_map(|launch| {
        ancestors(context, *launch).find(|ancestor| !forest.launches[*ancestor].is_fork_without_exec())
    });
    let parents: BTreeSet<usize> = parents.collect();
    site.launches.len() > 1
        && parents.len() == site.launches.len()
        && Runtime::of_parent(forest, site.launches[0]) == Runtime::Native
}
