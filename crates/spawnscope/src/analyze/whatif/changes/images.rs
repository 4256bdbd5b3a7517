//! What comes between fork and the program's first instruction: searching PATH, closing descriptors, the dynamic loader.

use super::Context;
use crate::analyze::launch::Exec;
use crate::analyze::phases::Phase;
use crate::analyze::tree::Forest;
use crate::analyze::whatif::adjustments::Adjustments;
use crate::event::Nanos;

/// A static program has no loader; its C library still asks the CPU what it is, which the loader did for it.
pub(super) fn without_loader(context: Context<'_, '_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let mut held = Vec::new();
    for &launch in launches {
        let each = &context.forest.launches[launch as usize];
        let Some(load) = each.phases.get(Phase::Load).filter(|load| load.0 > 0) else {
            continue;
        };
        let asking = context.constants.identify.unwrap_or_default() * each.execs.len() as f64;
        let remains = (asking / load.0 as f64).min(MOST_IDENTIFYING);
        adjustments.scale(launch, Phase::Load, remains);
        adjustments.uncertain += remains * load.0 as f64 * IDENTIFY_SPREAD;
        held.push(launch);
    }
    held
}

/// Asking the CPU is never more of `load` than this.
const MOST_IDENTIFYING: f64 = 0.9;
/// How much the number of questions differs between C libraries and CPUs, as a share of it.
const IDENTIFY_SPREAD: f64 = 0.3;

/// Looks for a file that is not there which take as long as one library that is found, mapped and relocated: 90 to 120 of them
/// where directories are cached.
const LOOKS_PER_LIBRARY: f64 = 100.0;
/// Looks that glibc makes in any case: for `/etc/ld.so.preload`.
const USUAL_LOOKS: u32 = 1;

/// The share of an exec's `load` that its loader spent on looking in vain; nothing when the recording does not say.
#[must_use]
pub fn search_share(exec: &Exec<'_>) -> f64 {
    let (Some(found), Some(failed)) = (exec.load_opens, exec.load_failed_opens) else {
        return 0.0;
    };
    let looks = f64::from(failed.saturating_sub(USUAL_LOOKS)) / LOOKS_PER_LIBRARY;
    looks / (looks + f64::from(found.max(1)))
}

/// What the loader spent on looking in vain goes.
pub(super) fn without_search(forest: &Forest<'_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let mut held = Vec::new();
    for &launch in launches {
        let execs = &forest.launches[launch as usize].execs;
        for (number, exec) in execs.iter().enumerate() {
            let remains = 1.0 - search_share(exec);
            match execs.len() {
                1 => adjustments.scale(launch, Phase::Load, remains),
                _ => adjustments.scale_piece(launch, Phase::Load, number, remains),
            }
        }
        if execs.iter().any(|exec| search_share(exec) > 0.0) {
            held.push(launch);
        }
    }
    held
}

/// Without the execs that failed: those before the first exec were made in `setup`, later ones in the work between two.
pub(super) fn absolute(forest: &Forest<'_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let mut held = Vec::new();
    for &launch in launches {
        let each = &forest.launches[launch as usize];
        let first = each.execs.first().and_then(|exec| exec.enter.get());
        let before = |enter: Nanos| first.is_none_or(|first| enter <= first);
        let failed = forest
            .failed_execs(launch as usize)
            .filter(|failed| before(failed.enter));
        let cost: u64 = failed.map(|failed| failed.cost().0).sum();
        if let Some(setup) = each.phases.get(Phase::Setup).filter(|setup| setup.0 > 0 && cost > 0) {
            adjustments.scale(launch, Phase::Setup, setup.since(Nanos(cost)).0 as f64 / setup.0 as f64);
            held.push(launch);
        }
    }
    held
}

/// One system call in the place of many: what closing took in `setup` goes.
pub(super) fn close_range(forest: &Forest<'_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let mut held = Vec::new();
    for &launch in launches {
        let each = &forest.launches[launch as usize];
        let closes = each.setup_closes.filter(|closes| *closes > 1);
        let (Some(closes), Some(span)) = (closes, each.setup_close_span.get()) else {
            continue;
        };
        if let Some(setup) = each.phases.get(Phase::Setup).filter(|setup| setup.0 > 0) {
            let remains = setup.since(span).0 as f64 + span.0 as f64 / f64::from(closes);
            adjustments.scale(launch, Phase::Setup, remains / setup.0 as f64);
            held.push(launch);
        }
    }
    held
}
