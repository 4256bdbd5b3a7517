//! Events that can end the wait of a parent: the end of a child, and the exec of a child that
//! shares the parent's memory.

use spawnscope_data::event::{Mechanism, Nanos};

use crate::model::grouped::GroupedItems;
use crate::model::launch::Launch;
use crate::model::tree::Forest;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildEventKind {
    Ended,
    /// A child created by vfork executed a program or ended. Its parent had to wait until then.
    Released,
    /// The child executed a program. It is unknown whether it was created by vfork.
    Executed,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ChildEvent {
    pub(super) at: Nanos,
    pub(super) child: u32,
    pub(super) kind: ChildEventKind,
}

/// The events of the children of each launch, by time.
pub(super) type ChildEvents = GroupedItems<ChildEvent>;

pub(super) fn child_events(forest: &Forest<'_>) -> ChildEvents {
    let mut events: Vec<(u32, ChildEvent)> = Vec::with_capacity(forest.launches.len());
    for (child, launch) in (0..).zip(&forest.launches) {
        let Some(parent) = forest.parent(child as usize) else { continue };
        let end = end_of(launch).map(|at| (at, ChildEventKind::Ended));
        let of_child = end.into_iter().chain(release_of(launch));
        events.extend(of_child.map(|(at, kind)| (parent as u32, ChildEvent { at, child, kind })));
    }
    events.sort_unstable_by_key(|(parent, event)| (*parent, event.at, event.child));
    GroupedItems::new(forest.launches.len(), events)
}

/// Returns when a launch could be reaped or, if that is unknown, when its exit began.
pub(super) fn end_of(launch: &Launch<'_>) -> Option<Nanos> {
    launch.instants.zombie.get().or(launch.instants.exit.get())
}

/// Returns when a launch released its parent, if it was created by vfork or if the mechanism is
/// unknown.
fn release_of(launch: &Launch<'_>) -> Option<(Nanos, ChildEventKind)> {
    let executed = launch.execs.first().and_then(|exec| exec.returned.get());
    match launch.mechanism {
        Some(Mechanism::Vfork | Mechanism::PosixSpawn) => {
            Some((executed.or(end_of(launch))?, ChildEventKind::Released))
        }
        None => Some((executed?, ChildEventKind::Executed)),
        Some(_) => None,
    }
}
