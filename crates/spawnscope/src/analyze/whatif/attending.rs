//! What of a thread's time goes with a launch that it waits for: the little that it does for it, and the naps between its looks at
//! it. A parent may also work, or sleep, on its own while its child runs; that stays when the child goes.

use std::collections::HashMap;

use crate::analyze::outside::Outside;
use crate::analyze::phases::Phase;
use crate::analyze::replay::place::{Doing, Place};
use crate::analyze::replay::program::Step;

/// Parents use less CPU for a launch, in nanoseconds: a shell 0.1 ms, Python's `subprocess` 1 ms.
const MOST_ATTENDING: u64 = 3_000_000;
/// Whoever sleeps more often than once before a child is reaped polls.
const NAPS: u32 = 2;

/// By launch, what a thread does while it attends to it.
#[derive(Debug, Default)]
pub(super) struct Attending {
    by_launch: HashMap<u32, Done>,
}

#[derive(Debug, Default)]
struct Done {
    worked: u64,
    slept: u32,
}

impl Attending {
    /// Of a thread's program; `launch` is its own.
    pub(super) fn of(steps: impl Iterator<Item = Step>, launch: u32) -> Attending {
        let mut by_launch: HashMap<u32, Done> = HashMap::new();
        for step in steps {
            match step {
                Step::Run(span, place) if is_attending(place, launch) => {
                    by_launch.entry(place.launch).or_default().worked += span.0;
                }
                Step::Sleep(_, place, Outside::Timer) if is_attending(place, launch) => {
                    by_launch.entry(place.launch).or_default().slept += 1;
                }
                _ => {}
            }
        }
        Attending { by_launch }
    }

    /// Whether a step is the thread's own doing, though it stands where it attends to a launch.
    pub(super) fn is_own(&self, step: Step) -> bool {
        match step {
            Step::Run(_, place) | Step::Record(_, place) => self.is(place, |done| done.worked > MOST_ATTENDING),
            Step::Sleep(_, place, Outside::Timer) => self.is(place, |done| done.slept < NAPS),
            _ => false,
        }
    }

    fn is(&self, place: Place, which: impl Fn(&Done) -> bool) -> bool {
        let is_attended = matches!(place.stage.doing(), Doing::Attend | Doing::Phase(Phase::Reap));
        is_attended && self.by_launch.get(&place.launch).is_some_and(which)
    }
}

fn is_attending(place: Place, launch: u32) -> bool {
    place.launch != launch && matches!(place.stage.doing(), Doing::Attend | Doing::Phase(Phase::Reap))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::replay::place::Stage;
    use crate::event::Nanos;

    const OWN: u32 = 0;
    const CHILD: u32 = 1;

    fn reaping() -> Place {
        Place {
            launch: CHILD,
            stage: Stage::new(Phase::Reap, 0),
        }
    }

    fn working(millis: u64) -> Step {
        Step::Run(Nanos(millis * 1_000_000), reaping())
    }

    fn sleeping() -> Step {
        Step::Sleep(Nanos(10_000_000), reaping(), Outside::Timer)
    }

    #[test]
    fn much_work_beside_a_child_is_the_parents_own() {
        let is_own = |steps: &[Step]| Attending::of(steps.iter().copied(), OWN).is_own(steps[0]);
        assert!(!is_own(&[working(1)]));
        assert!(is_own(&[working(100)]));
        assert!(is_own(&[working(2), working(2)]), "all of it together");
        assert!(
            !Attending::of([working(100)].into_iter(), CHILD).is_own(working(100)),
            "at a place of its own"
        );
    }

    #[test]
    fn one_sleep_is_the_parents_own_and_several_are_a_poll() {
        let is_own = |steps: &[Step]| Attending::of(steps.iter().copied(), OWN).is_own(steps[0]);
        assert!(is_own(&[sleeping()]));
        assert!(!is_own(&[sleeping(), sleeping()]));
    }
}
