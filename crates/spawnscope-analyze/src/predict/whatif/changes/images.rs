//! Changes to the time between the fork and the program's first instruction: PATH search, closing
//! descriptors, the dynamic loader.

use crate::model::launch::Exec;
use crate::model::phases::Phase;
use crate::predict::whatif::WhatIf;
use crate::predict::whatif::adjustments::Adjustments;
use crate::predict::whatif::constants::Constants;

/// Removes the loader, as for a static program. The C library in the program must still identify
/// the CPU, which the loader does otherwise.
pub(super) fn without_loader(context: WhatIf<'_, '_>, launch: u32, adjustments: &mut Adjustments) -> bool {
    let each = context.launch(launch);
    let load = each.phases.ns(Phase::Load);
    if load == 0.0 {
        return false;
    }
    let identification = context.constants.identify.map(|one| one * each.execs.len() as f64);
    let remains = (identification.unwrap_or_default() / load).min(MAX_IDENTIFY_SHARE);
    adjustments.scale(launch, Phase::Load, remains);
    // If the time for identifying the CPU is unknown, it may be up to half of `load`.
    let uncertain_part = identification.map_or(UNKNOWN_IDENTIFY_SHARE * load, |_| remains * load);
    adjustments.uncertainty_ns += uncertain_part * context.constants.identify_spread;
    true
}

/// Maximum share of `load` that is CPU identification.
const MAX_IDENTIFY_SHARE: f64 = 0.9;
/// Assumed share of `load` that may be CPU identification, if its time is unknown. It was half of a
/// small program's `load` in a virtual machine.
const UNKNOWN_IDENTIFY_SHARE: f64 = 0.5;

/// How many failed lookups take as long as finding, mapping and relocating one library, if the cost
/// of a lookup was not measured. On several machines, this number was 22 to 120.
const LOOKUPS_PER_LIBRARY: f64 = 100.0;
/// Number of failed lookups that glibc always makes: the one for `/etc/ld.so.preload`.
const USUAL_LOOKUPS: u32 = 1;
/// Maximum share of `load` that is spent on failed lookups.
const MAX_SEARCH_SHARE: f64 = 0.95;

/// Returns the share of an exec's `load` that its loader spent on failed lookups. Zero if the
/// recording lacks the counts.
pub fn search_share(exec: &Exec<'_>, constants: &Constants) -> f64 {
    let (Some(found), Some(failed), Some(load)) = (exec.load_opens.get(), exec.load_failed_opens.get(), exec.load())
    else {
        return 0.0;
    };
    let (load, lookups) = (load.0.max(1) as f64, f64::from(failed.saturating_sub(USUAL_LOOKUPS)));
    if let Some(lookup) = constants.failed_lookup {
        return (lookups * lookup / load).min(MAX_SEARCH_SHARE);
    }
    // The loader identifies the CPU before it searches libraries.
    let identifying = (constants.identify.unwrap_or_default() / load).min(MAX_IDENTIFY_SHARE);
    let libraries = lookups / LOOKUPS_PER_LIBRARY;
    (1.0 - identifying) * libraries / (libraries + f64::from(found.max(1)))
}

pub(super) fn without_search(context: WhatIf<'_, '_>, launch: u32, adjustments: &mut Adjustments) -> bool {
    let execs = &context.launch(launch).execs;
    let mut has_searched = false;
    for (number, exec) in execs.iter().enumerate() {
        let share = search_share(exec, context.constants);
        has_searched |= share > 0.0;
        match execs.len() {
            1 => adjustments.scale(launch, Phase::Load, 1.0 - share),
            _ => adjustments.scale_piece(launch, Phase::Load, number, 1.0 - share),
        }
    }
    has_searched
}

/// Removes failed execs before the first successful exec, which are part of `setup`. Later failed
/// execs belong to the work between two execs.
pub(super) fn absolute(context: WhatIf<'_, '_>, launch: u32, adjustments: &mut Adjustments) -> bool {
    let each = context.launch(launch);
    let first = each.execs.first().and_then(|exec| exec.enter.get());
    let failed = context.forest.failed_execs(launch as usize);
    let failed = failed.filter(|failed| first.is_none_or(|first| failed.enter <= first));
    let cost = failed.map(|failed| failed.cost().0).sum::<u64>() as f64;
    let setup = each.phases.ns(Phase::Setup);
    let is_affected = setup > 0.0 && cost > 0.0;
    if is_affected {
        adjustments.scale(launch, Phase::Setup, (setup - cost).max(0.0) / setup);
    }
    is_affected
}

/// Replaces many `close` calls by one call: removes the time of all others from `setup`.
pub(super) fn close_range(context: WhatIf<'_, '_>, launch: u32, adjustments: &mut Adjustments) -> bool {
    let each = context.launch(launch);
    let closes = each.counts.setup_closes.filter(|closes| *closes > 1).zip(each.counts.setup_close_span.get());
    let setup = each.phases.ns(Phase::Setup);
    let Some((closes, span)) = closes.filter(|_| setup > 0.0) else { return false };
    let span = span.0 as f64;
    let remains = (setup - span).max(0.0) + span / f64::from(closes);
    // Descriptors that a fork closed before it launched other processes are not part of its setup.
    adjustments.scale(launch, Phase::Setup, (remains / setup).min(1.0));
    true
}
