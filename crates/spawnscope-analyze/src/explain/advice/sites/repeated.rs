//! What the launches of a site repeat. `dh build` and `dh binary` are two steps of one work: a
//! single launch in their place would still launch what each of them does. Only what several of
//! them do can go.

use std::collections::BTreeMap;

use crate::explain::advice::context::RuleContext;
use spawnscope_data::event::Nanos;

/// Returns the time on the critical path of launches, and of those of their descendants that one
/// line launches for more than one of them. Without lines, the program decides.
pub(super) fn of(context: &RuleContext<'_, '_>, launches: &[u32]) -> Nanos {
    let mut own = 0;
    let mut below: BTreeMap<_, Work> = BTreeMap::new();
    for &top in launches {
        for step in context.walk(&[top]) {
            let critical = context.path.launches[step.index].total().0;
            if step.depth == 0 {
                own += critical;
                continue;
            }
            let program = context.forest().launches[step.index].command.name;
            let work = below.entry((program, context.sites.number_of(step.index)));
            let work = work.or_insert(Work { top, is_repeated: false, critical: 0 });
            work.is_repeated |= work.top != top;
            work.critical += critical;
        }
    }
    let repeated = below.into_values().filter(|work| work.is_repeated);
    Nanos(own + repeated.map(|work| work.critical).sum::<u64>())
}

/// The launches of one program from one line.
struct Work {
    /// The launch of the site below which the first of them is.
    top: u32,
    is_repeated: bool,
    critical: u64,
}
