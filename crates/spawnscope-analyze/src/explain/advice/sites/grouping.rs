//! Groups launches into sites: by the parent's program and the program that is really executed, and by the line or the subcommand if much
//! may depend on one of these alone.

use std::collections::BTreeMap;

use super::{MIN_DEPENDENT_SHARE, Site};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::rules::off_path::critical_with_descendants;
use crate::explain::advice::thresholds::is_mostly_tax_by_cpu_time;
use crate::model::launch::{Launch, NOT_FOUND, base_name};
use crate::model::tree::Forest;
use crate::patterns::calls::Call;
use crate::patterns::chains::is_in_version_manager;
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::{command_of, is_shell, needless_shell};
use crate::patterns::subcommands::subcommand_of;
use crate::sites::callers::CallSite;
use spawnscope_data::event::Nanos;

/// Minimum number of launches, or of command lines, in a loop. If there are only a few, each may be necessary.
const MIN_LAUNCHES_OF_LOOP: usize = 20;
/// Maximum number of launches of one command line. With more launches, it is a script.
const MAX_LAUNCHES_OF_LINE: usize = 32;
/// A site is replayed if at least this share of the minimum is on the critical path, since more may depend on it.
const MIN_CRITICAL: f64 = 0.5 * MIN_DEPENDENT_SHARE;
/// Programs whose purpose is to launch others. Their input determines how many launches they make.
const LAUNCHERS: [&[u8]; 10] =
    [b"find", b"gfind", b"gmake", b"gxargs", b"make", b"ninja", b"parallel", b"xargs", b"cc", b"gcc"];
/// Programs whose work the parent cannot do itself.
const IRREPLACEABLE: [&[u8]; 3] = [b"sleep", b"sudo", b"ssh"];

/// The programs of the parent and of the launch.
type Programs<'a> = (&'a [u8], &'a [u8]);
/// The line that requests a launch, and the script that it executes; without a line, the script or the subcommand.
type Place<'g, 'a> = (Option<&'g CallSite>, Option<&'a [u8]>);

/// Returns the sites that may be worth an answer.
pub(super) fn sites<'a>(context: &RuleContext<'_, 'a>) -> Vec<Site<'a>> {
    let critical = critical_with_descendants(context);
    let critical_of = |launches: &[u32]| {
        let sum: u64 = launches.iter().map(|launch| critical[*launch as usize]).sum();
        Nanos(sum.min(context.wall().0))
    };
    let by_programs = context.grouped_by(|index, launch| {
        let program = program_of(context.forest(), index, launch)?;
        (!is_in_version_manager(context.forest(), index)).then_some((launch.birth_command.name, program))
    });
    let mut sites = Vec::new();
    for (programs, launches) in by_programs {
        let loop_launches = loop_launches(context, programs, &launches);
        let rest: Vec<u32> = launches.into_iter().filter(|index| loop_launches.binary_search(index).is_err()).collect();
        let loops = Some((loop_launches, true)).filter(|(launches, _)| !launches.is_empty());
        let parts = parts(context, rest, &critical_of).into_iter().map(|launches| (launches, false));
        for (launches, is_loop) in loops.into_iter().chain(parts) {
            let (parent, command) = programs;
            let program = common_script(context, &launches).unwrap_or(command);
            sites.push(Site { parent, program, critical: critical_of(&launches), launches, is_loop });
        }
    }
    let least = context.share_of_wall(MIN_CRITICAL);
    sites.retain(|site| match site.is_loop {
        true => context.spent_on(&site.launches) >= context.min_saving(),
        false => site.critical >= least,
    });
    sites
}

/// Returns the program that a launch executed; for a fork whose exec failed, the missing program. `None` for other forks.
fn program_of<'a>(forest: &Forest<'a>, index: u32, launch: &Launch<'a>) -> Option<&'a [u8]> {
    if !launch.execs.is_empty() {
        return Some(launch.command.name);
    }
    let is_missing = launch.outcome == NOT_FOUND && forest.children(index as usize).is_empty();
    is_missing.then(|| forest.failed_execs(index as usize).last().map_or(&b""[..], |failed| base_name(failed.path)))
}

/// Returns the script that all of these launches execute.
fn common_script<'a>(context: &RuleContext<'_, 'a>, launches: &[u32]) -> Option<&'a [u8]> {
    let mut scripts = launches.iter().map(|index| Some(Call::of(context.launch(*index).execs.last()?)?.name));
    let first = scripts.next()??;
    scripts.all(|script| script == Some(first)).then_some(first)
}

/// Splits launches by line or subcommand where one of these may be worth an answer alone. The others stay together.
fn parts(context: &RuleContext<'_, '_>, launches: Vec<u32>, critical_of: &impl Fn(&[u32]) -> Nanos) -> Vec<Vec<u32>> {
    let mut by_place: BTreeMap<Place<'_, '_>, Vec<u32>> = BTreeMap::new();
    for index in launches {
        let line = context.callers.call_site_of(index as usize);
        let exec = context.launch(index).execs.last();
        let subcommand = exec.filter(|_| line.is_none()).and_then(subcommand_of);
        let script = exec.and_then(Call::of).map(|call| call.name);
        by_place.entry((line, subcommand.or(script))).or_default().push(index);
    }
    let least = context.share_of_wall(MIN_DEPENDENT_SHARE);
    let (mut parts, others): (Vec<_>, Vec<_>) = by_place.into_values().partition(|part| critical_of(part) >= least);
    let mut others = others.concat();
    others.sort_unstable();
    parts.push(others);
    parts.retain(|part| !part.is_empty());
    parts
}

/// Returns the launches that form a loop: each works for less time than it takes to launch it. Empty if they are few. The parent of a loop could
/// do the work itself.
fn loop_launches(context: &RuleContext<'_, '_>, (parent, program): Programs<'_>, all: &[u32]) -> Vec<u32> {
    let mut launches = all.to_vec();
    if LAUNCHERS.contains(&parent) || IRREPLACEABLE.contains(&program) {
        launches.clear();
    }
    launches.retain(|index| match is_shell(program) {
        true => is_small_line(context, *index),
        false => is_small(context, *index),
    });
    if launches.len() < MIN_LAUNCHES_OF_LOOP { Vec::new() } else { launches }
}

/// Whether a launch without descendants works for less time than it takes to launch it. About programs in an unnecessary shell, the rule
/// `needless-shell` has better advice.
fn is_small(context: &RuleContext<'_, '_>, index: u32) -> bool {
    let forest = context.forest();
    let launch = context.launch(index);
    let parent = forest.parent(index as usize);
    launch.execs.len() == 1
        && forest.children(index as usize).is_empty()
        && parent.is_none_or(|parent| needless_shell(forest, parent as u32).is_none())
        && is_mostly_tax_by_cpu_time(context, index as usize)
}

/// Whether a launch is a command line that a program other than a shell runs with `sh -c`, that needs the shell, and whose launches all work for
/// less time than it takes to launch them.
fn is_small_line(context: &RuleContext<'_, '_>, index: u32) -> bool {
    let forest = context.forest();
    let is_line = matches!(&context.launch(index).execs[..], [exec] if command_of(exec).is_some());
    let members = forest.walk(&[index as usize]).take(MAX_LAUNCHES_OF_LINE + 1);
    is_line
        && needless_shell(forest, index).is_none()
        && !matches!(Runtime::of_parent(forest, index), Runtime::Shell | Runtime::Make)
        && members
            .map(|step| is_mostly_tax_by_cpu_time(context, step.index))
            .enumerate()
            .all(|(number, is_mostly_tax)| number < MAX_LAUNCHES_OF_LINE && is_mostly_tax)
}
