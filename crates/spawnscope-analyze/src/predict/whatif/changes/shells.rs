//! Changes to programs that only launch another program: shells between a parent and a program, and
//! wrappers (shims) that exec or launch the real program.

use std::ops::Range;

use crate::model::grouped::grouped;
use crate::model::launch::{Exec, base_name};
use crate::model::phases::Phase;
use crate::model::timeline::Timelines;
use crate::model::tree::Forest;
use crate::patterns::chains;
use crate::patterns::package_scripts::ScriptCall;
use crate::patterns::shell_syntax::{Need, need_of};
use crate::patterns::shells::{StartByShell, command_of, is_shell, needless_shell, wrapped_child};
use crate::predict::replay::activity::shared_pages;
use crate::predict::whatif::WhatIf;
use crate::predict::whatif::adjustments::Adjustments;
use foldhash::HashSet;
use spawnscope_data::rows::Origin;

/// Removes the shell between a parent and a program, if it is unnecessary.
pub(super) fn no_shell(context: WhatIf<'_, '_>, launch: u32, adjustments: &mut Adjustments) -> bool {
    let start = needless_shell(context.forest, launch);
    match start.or_else(|| start_of_given(context.forest, launch)) {
        Some(StartByShell::Exec(exec)) => {
            let execs = &context.launch(launch).execs;
            remove_execs(launch, execs, exec..exec + 1, adjustments);
            if exec == 0 {
                move_exec(launch, execs, [0, 1], adjustments);
            }
            true
        }
        Some(StartByShell::Launch(child)) => {
            remove_launcher(context.forest, launch, child, adjustments);
            true
        }
        None => false,
    }
}

/// Returns how a shell started a program to which it only passed its own arguments on, as in `sh -c
/// 'cksum "$0"' FILE`: whoever launched the shell knows them. `None` if it did anything else.
fn start_of_given(forest: &Forest<'_>, launch: u32) -> Option<StartByShell> {
    let execs = &forest.launches[launch as usize].execs;
    let (shell, command) = execs.iter().enumerate().find_map(|(at, exec)| Some((at, command_of(exec)?)))?;
    let given = with_arguments(command);
    if given == command || need_of(&given) == Need::Shell {
        return None;
    }
    let is_replaced = shell + 1 < execs.len();
    if is_replaced { Some(StartByShell::Exec(shell)) } else { wrapped_child(forest, launch).map(StartByShell::Launch) }
}

/// Returns a command with a word in place of each use of the shell's arguments.
fn with_arguments(command: &[u8]) -> Vec<u8> {
    let mut given = Vec::with_capacity(command.len());
    let mut rest = command;
    while let [first, after @ ..] = rest {
        rest = match (first, after) {
            (b'\\', [escaped, after @ ..]) => {
                given.extend([b'\\', *escaped]);
                after
            }
            (b'$', [b'0'..=b'9' | b'@' | b'*', after @ ..]) => {
                given.push(b'x');
                after
            }
            _ => {
                given.push(*first);
                after
            }
        };
    }
    given
}

/// Removes the execs that only lead to the last exec, and all launches between them. Completely
/// removes a wrapper that launches the program. If a launch is not a wrapper, removes the wrappers
/// above it.
pub(super) fn direct(context: WhatIf<'_, '_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let WhatIf { forest, timelines, .. } = context;
    let (mut affected, mut removed) = (Vec::new(), HashSet::default());
    for (&launch, start) in launches.iter().zip(chain_starts(forest, timelines, launches)) {
        let each = &forest.launches[launch as usize];
        let last = each.execs.len().saturating_sub(1);
        let is_chain = start < last;
        if let Some(call) = ScriptCall::of(forest, launch) {
            remove_launcher(forest, launch, call.child, adjustments);
            affected.push(launch);
            continue;
        }
        if is_chain {
            remove_execs(launch, &each.execs, start..last, adjustments);
            move_exec(launch, &each.execs, [start, last], adjustments);
            adjustments.remove_within(forest, &chains::launched_between(forest, launch, start, last));
        }
        let is_wrapper = !is_chain && remove_wrapper(forest, launch, &mut removed, adjustments).is_some();
        let above = std::iter::successors(forest.parent(launch as usize), |wrapper| forest.parent(*wrapper));
        let above = above.take_while(|wrapper| !is_wrapper && forest.launches[*wrapper].origin != Origin::Command);
        let above = above.map_while(|it| remove_wrapper(forest, it as u32, &mut removed, adjustments)).count();
        if is_chain || is_wrapper || above > 0 {
            affected.push(launch);
        }
    }
    affected
}

/// Removes a launch that is a wrapper, unless that has been done. `None` if it is no wrapper.
fn remove_wrapper(
    forest: &Forest<'_>,
    launch: u32,
    removed: &mut HashSet<u32>,
    adjustments: &mut Adjustments,
) -> Option<()> {
    let child = wrapped_child(forest, launch).filter(|child| is_wrapper(forest, launch, *child))?;
    if removed.insert(launch) {
        remove_launcher(forest, launch, child, adjustments);
        // The wrapper may do work of its own that must still be done.
        adjustments.uncertainty_ns += forest.launches[launch as usize].cpu_phases.ns(Phase::Run) / 2.0;
    }
    Some(())
}

/// Returns the exec at which the chain of each launch starts. Launches that executed the same
/// programs are judged as most of them are, because a busy machine delays single helpers.
fn chain_starts(forest: &Forest<'_>, timelines: &Timelines, launches: &[u32]) -> Vec<usize> {
    let programs = |launch: u32| forest.launches[launch as usize].execs.iter().map(Exec::path).collect::<Vec<_>>();
    let start = |launch: &u32| (programs(*launch), chains::chain_start(forest, timelines, *launch));
    let mut starts = grouped(launches.iter().map(start));
    starts.values_mut().for_each(|starts| starts.sort_unstable());
    let median = |launch: &u32| starts.get(&programs(*launch)).map_or(0, |starts| starts[(starts.len() - 1) / 2]);
    launches.iter().map(median).collect()
}

/// Whether a launch is there for its only child: it is a script, or got the child's command as its
/// last arguments, as `timeout 20 program argument` does.
fn is_wrapper(forest: &Forest<'_>, launch: u32, child: u32) -> bool {
    let [only] = &forest.launches[launch as usize].execs[..] else { return false };
    let command = forest.launches[child as usize].execs.first().map(|exec| exec.argv());
    let is_given = |command: &[u8]| {
        let before = only.argv().strip_suffix(command).filter(|_| !command.is_empty());
        before.is_some_and(|before| before.ends_with(b"\0"))
    };
    only.interpreter().is_some() || is_shell(base_name(only.path())) || command.is_some_and(is_given)
}

/// Removes consecutive execs that another one follows, with the work of their programs.
fn remove_execs(launch: u32, execs: &[Exec<'_>], removed: Range<usize>, adjustments: &mut Adjustments) {
    // If the entry of the exec that follows is unknown, it is a part of the run before it. The
    // first exec then stands for it.
    let is_known = execs.get(removed.end).is_some_and(|exec| exec.enter.get().is_some());
    for exec in removed.clone() {
        if is_known || exec > removed.start {
            adjustments.scale_piece(launch, Phase::Exec, exec, 0.0);
        }
        [Phase::Load, Phase::Run].into_iter().for_each(|phase| adjustments.scale_piece(launch, phase, exec, 0.0));
    }
}

/// Moves a later exec to the position of an earlier one. It then frees the memory that the earlier
/// exec freed (for the first exec, the memory shared with the parent) instead of that of a program
/// in between, and takes no longer than the earlier exec did.
fn move_exec(launch: u32, execs: &[Exec<'_>], [earlier, later]: [usize; 2], adjustments: &mut Adjustments) {
    let later_span = execs.get(later).and_then(span);
    if let (Some(earlier_span), Some(later_span)) =
        (execs.get(earlier).and_then(span), later_span.filter(|span| *span > 0.0))
    {
        adjustments.scale_piece(launch, Phase::Exec, later, (earlier_span / later_span).min(1.0));
    }
}

/// Removes a launcher that only launches one child: the child's work remains, in the launcher's
/// process. The parent creates and sets up the child as it did the launcher. The child's exec takes
/// at least as long as the launcher's, because it frees the memory shared with the parent; the
/// launcher may be smaller than the parent, and may use vfork. If only the launcher shared memory
/// with the child, it takes no longer.
fn remove_launcher(forest: &Forest<'_>, launch: u32, child: u32, adjustments: &mut Adjustments) {
    for phase in [Phase::Exec, Phase::Load, Phase::Run, Phase::Teardown] {
        adjustments.scale(launch, phase, 0.0);
    }
    for phase in [Phase::Create, Phase::Queue, Phase::Setup, Phase::Reap] {
        adjustments.scale(child, phase, 0.0);
    }
    let [launcher, own] = [launch, child].map(|launch| forest.launches[launch as usize].execs.first().and_then(span));
    if let Some((launcher, own)) = launcher.zip(own.filter(|own| *own > 0.0)) {
        let [by_parent, by_launcher] = [launch, child].map(|launch| shared_pages(&forest.launches[launch as usize]));
        let at_least = if by_launcher && !by_parent { 0.0 } else { 1.0 };
        adjustments.scale_piece(child, Phase::Exec, 0, (launcher / own).max(at_least));
    }
    adjustments.drop_supervision(child);
}

fn span(exec: &Exec<'_>) -> Option<f64> {
    Some(exec.returned.get()?.since(exec.enter.get()?).0 as f64)
}
