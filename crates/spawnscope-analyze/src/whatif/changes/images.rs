//! Changes to the time between fork and the program's first instruction: PATH search, closing descriptors, the dynamic loader.

use super::Context;
use crate::launch::Exec;
use crate::phases::Phase;
use crate::tree::Forest;
use crate::whatif::adjustments::Adjustments;
use crate::whatif::constants::Constants;
use spawnscope_data::event::Nanos;

/// Removes the loader, as for a static program. Its C library still identifies the CPU, which the loader did before.
pub(super) fn without_loader(context: Context<'_, '_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let mut affected = Vec::new();
    for &launch in launches {
        let each = &context.forest.launches[launch as usize];
        let Some(load) = each.phases.get(Phase::Load).filter(|load| load.0 > 0) else {
            continue;
        };
        let load = load.0 as f64;
        let asking = context.constants.identify.map(|one| one * each.execs.len() as f64);
        let remains = (asking.unwrap_or_default() / load).min(MAX_IDENTIFYING);
        adjustments.scale(launch, Phase::Load, remains);
        // Where it is unknown, it may be up to half of the loader.
        let about = asking.map_or(UNKNOWN_IDENTIFYING * load, |_| remains * load);
        adjustments.uncertain += about * context.constants.identify_spread;
        affected.push(launch);
    }
    affected
}

/// Upper limit of CPU identification, as a share of `load`.
const MAX_IDENTIFYING: f64 = 0.9;
/// The same where it is unknown. It was half of a small program's `load` in a guest.
const UNKNOWN_IDENTIFYING: f64 = 0.5;

/// The number of failed lookups that take as long as one library that is found, mapped and relocated, if their cost was not measured.
/// On several machines, this number was 22 to 120.
const LOOKS_PER_LIBRARY: f64 = 100.0;
/// Failed lookups that glibc always makes: `/etc/ld.so.preload`.
const USUAL_LOOKS: u32 = 1;
/// Upper limit of the search, as a share of `load`.
const MAX_SEARCHING: f64 = 0.95;

/// Returns the share of an exec's `load` that its loader spent on failed lookups. Zero when the recording lacks the counts.
#[must_use]
pub fn search_share(exec: &Exec<'_>, constants: &Constants) -> f64 {
    let (Some(found), Some(failed), Some(load)) = (exec.load_opens, exec.load_failed_opens, exec.load()) else {
        return 0.0;
    };
    let (load, looks) = (load.0.max(1) as f64, f64::from(failed.saturating_sub(USUAL_LOOKS)));
    if let Some(look) = constants.failed_look {
        return (looks * look / load).min(MAX_SEARCHING);
    }
    // Before the loader looks for anything, it identifies the CPU.
    let identifying = (constants.identify.unwrap_or_default() / load).min(MAX_IDENTIFYING);
    let libraries = looks / LOOKS_PER_LIBRARY;
    (1.0 - identifying) * libraries / (libraries + f64::from(found.max(1)))
}

/// Removes the failed lookups of the loader.
pub(super) fn without_search(context: Context<'_, '_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let Context { forest, constants, .. } = context;
    let mut affected = Vec::new();
    for &launch in launches {
        let execs = &forest.launches[launch as usize].execs;
        for (number, exec) in execs.iter().enumerate() {
            let remains = 1.0 - search_share(exec, constants);
            match execs.len() {
                1 => adjustments.scale(launch, Phase::Load, remains),
                _ => adjustments.scale_piece(launch, Phase::Load, number, remains),
            }
        }
        if execs.iter().any(|exec| search_share(exec, constants) > 0.0) {
            affected.push(launch);
        }
    }
    affected
}

/// Removes failed execs before the first successful exec, which are part of `setup`. Later ones belong to the work between two execs.
pub(super) fn absolute(forest: &Forest<'_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let mut affected = Vec::new();
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
            affected.push(launch);
        }
    }
    affected
}

/// Replaces many close calls by one: removes their time from `setup`.
pub(super) fn close_range(forest: &Forest<'_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let mut affected = Vec::new();
    for &launch in launches {
        let each = &forest.launches[launch as usize];
        let closes = each.setup_closes.filter(|closes| *closes > 1);
        let (Some(closes), Some(span)) = (closes, each.setup_close_span.get()) else {
            continue;
        };
        if let Some(setup) = each.phases.get(Phase::Setup).filter(|setup| setup.0 > 0) {
            let remains = setup.since(span).0 as f64 + span.0 as f64 / f64::from(closes);
            // What a fork closed before it launched others is not in its setup.
            adjustments.scale(launch, Phase::Setup, (remains / setup.0 as f64).min(1.0));
            affected.push(launch);
        }
    }
    affected
}
