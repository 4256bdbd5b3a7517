//! Changes to programs that only launch another one: shells between a parent and a program, and wrappers (shims) that exec or launch the
//! real program.

use super::Context;
use crate::launch::{Exec, Launch, base_name};
use crate::patterns::chains;
use crate::patterns::shells::{Shell, is_shell, needless_shell, wrapped_child};
use crate::phases::Phase;
use crate::tree::Forest;
use crate::whatif::adjustments::Adjustments;

pub(super) fn no_shell(forest: &Forest<'_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let mut affected = Vec::new();
    for &launch in launches {
        match needless_shell(forest, launch) {
            Some(Shell::Became(exec)) => {
                leave_out(launch, exec, adjustments);
                if exec == 0 {
                    begin_with(launch, &forest.launches[launch as usize].execs, [0, 1], adjustments);
                }
            }
            Some(Shell::Launched(child)) => leave_out_launcher(forest, launch, child, adjustments),
            None => continue,
        }
        affected.push(launch);
    }
    affected
}

/// Removes the execs that only lead to the last one, with all launches between them. A wrapper that launches the program is removed
/// completely.
pub(super) fn direct(context: Context<'_, '_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let Context { forest, timelines, .. } = context;
    let mut affected = Vec::new();
    for &launch in launches {
        let each = &forest.launches[launch as usize];
        let last = each.execs.len().saturating_sub(1);
        let begin = chains::chain_start(forest, timelines, launch);
        if begin < last {
            (begin..last).for_each(|exec| leave_out(launch, exec, adjustments));
            begin_with(launch, &each.execs, [begin, last], adjustments);
            adjustments.remove_within(forest, &chains::launched_between(forest, launch, begin, last));
        } else if let Some(child) = wrapped_child(forest, launch).filter(|_| is_script(each)) {
            leave_out_launcher(forest, launch, child, adjustments);
        } else {
            continue;
        }
        affected.push(launch);
    }
    affected
}

/// Whether a process only ran one script.
fn is_script(launch: &Launch<'_>) -> bool {
    let of = |exec: &Exec<'_>| exec.interpreter().is_some() || is_shell(base_name(exec.path()));
    matches!(&launch.execs[..], [only] if of(only))
}

/// Removes one of several execs, with the work of its program.
fn leave_out(launch: u32, exec: usize, adjustments: &mut Adjustments) {
    for phase in [Phase::Exec, Phase::Load, Phase::Run] {
        adjustments.scale_piece(launch, phase, exec, 0.0);
    }
}

/// Moves a later exec to the position of an earlier one. It then frees the memory from before (for the first exec: the memory shared with
/// the parent) instead of that of the previous program, and takes no longer than the earlier exec did.
fn begin_with(launch: u32, execs: &[Exec<'_>], [earlier, later]: [usize; 2], adjustments: &mut Adjustments) {
    let own = execs.get(later).and_then(span);
    if let (Some(first), Some(own)) = (execs.get(earlier).and_then(span), own.filter(|own| *own > 0.0)) {
        adjustments.scale_piece(launch, Phase::Exec, later, (first / own).min(1.0));
    }
}

/// Merges a launch that only launches another one with that launch: the work of the child remains, in the process of the launcher. What
/// the parent did to create and set up the launcher it does for the child, whose exec frees the memory shared with that parent: the
/// launcher may be smaller, and may use vfork.
fn leave_out_launcher(forest: &Forest<'_>, launch: u32, child: u32, adjustments: &mut Adjustments) {
    for phase in [Phase::Exec, Phase::Load, Phase::Run, Phase::Teardown] {
        adjustments.scale(launch, phase, 0.0);
    }
    for phase in [Phase::Create, Phase::Queue, Phase::Setup, Phase::Reap] {
        adjustments.scale(child, phase, 0.0);
    }
    let execs = |launch: u32| forest.launches[launch as usize].execs.first();
    let own = execs(child).and_then(span).filter(|own| *own > 0.0);
    if let Some((first, own)) = execs(launch).and_then(span).zip(own) {
        adjustments.scale_piece(child, Phase::Exec, 0, (first / own).max(1.0));
    }
    adjustments.drop_supervision(child);
}

/// Returns the duration of an exec.
fn span(exec: &Exec<'_>) -> Option<f64> {
    Some(exec.returned.get()?.since(exec.enter.get()?).0 as f64)
}
