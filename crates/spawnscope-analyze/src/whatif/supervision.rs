//! Decides which work and sleep of a parent disappears together with a launch: short work for the launch, and sleeps between polls. A
//! parent may also do its own work or sleep while its child runs; that stays when the launch is removed.

use std::collections::HashMap;

use crate::external_wait::ExternalWait;
use crate::phases::Phase;
use crate::replay::activity::{Activity, ActivityKind};
use crate::replay::steps::Step;

/// Upper limit of the CPU time that a parent uses for a launch, in nanoseconds. A shell uses 0.1 ms, the `subprocess` module of Python 1
/// ms.
const MAX_SUPERVISING: u64 = 3_000_000;
/// A parent that sleeps this often before it reaps a child is polling.
const NAPS: u32 = 2;

/// The launches during which a thread does work of its own. These are few, even where the thread supervises a million launches.
#[derive(Debug, Default)]
pub(super) struct Supervision {
    own: HashMap<u32, Own>,
}

#[derive(Debug)]
struct Own {
    work: bool,
    sleep: bool,
}

/// Work and sleeps of a thread while it supervises a launch.
#[derive(Default)]
struct Done {
    worked: u64,
    slept: u32,
}

impl Supervision {
    /// Analyzes the program of a thread. `launch` is the launch that the thread belongs to.
    pub(super) fn of(steps: impl Iterator<Item = Step>, launch: u32) -> Supervision {
        // Steps of one launch are mostly adjacent. A map of all launches would take several times the memory.
        let mut done: Vec<(u32, Done)> = Vec::new();
        for step in steps {
            let (worked, slept, activity) = match step {
                Step::Run(span, activity) => (span.0, 0, activity),
                Step::Sleep(_, activity, ExternalWait::Timer) => (0, 1, activity),
                _ => continue,
            };
            if !is_supervising(activity, launch) {
                continue;
            }
            match done.last_mut() {
                Some((last, done)) if *last == activity.launch => done.add(&Done { worked, slept }),
                _ => done.push((activity.launch, Done { worked, slept })),
            }
        }
        done.sort_unstable_by_key(|(launch, _)| *launch);
        let by_launch = done.chunk_by(|(launch, _), (other, _)| launch == other);
        let own = by_launch.filter_map(|all| {
            let mut sum = Done::default();
            all.iter().for_each(|(_, done)| sum.add(done));
            Some((all[0].0, sum.own()?))
        });
        Supervision { own: own.collect() }
    }

    /// Whether a step is the thread's own work or sleep, although it happens while the thread supervises a launch.
    pub(super) fn is_own(&self, step: Step) -> bool {
        match step {
            Step::Run(_, activity) | Step::Record(_, activity) => self.is(activity, |own| own.work),
            Step::Sleep(_, activity, ExternalWait::Timer) => self.is(activity, |own| own.sleep),
            _ => false,
        }
    }

    fn is(&self, activity: Activity, which: impl Fn(&Own) -> bool) -> bool {
        let is_supervision = matches!(
            activity.stage.kind(),
            ActivityKind::Supervise | ActivityKind::Phase(Phase::Reap)
        );
        is_supervision && self.own.get(&activity.launch).is_some_and(which)
    }
}

impl Done {
    fn add(&mut self, more: &Done) {
        self.worked += more.worked;
        self.slept += more.slept;
    }

    /// Returns which part is the thread's own. `None` when no part is.
    fn own(&self) -> Option<Own> {
        let work = self.worked > MAX_SUPERVISING;
        let sleep = (1..NAPS).contains(&self.slept);
        (work || sleep).then_some(Own { work, sleep })
    }
}

fn is_supervising(activity: Activity, launch: u32) -> bool {
    activity.launch != launch
        && matches!(
            activity.stage.kind(),
            ActivityKind::Supervise | ActivityKind::Phase(Phase::Reap)
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::activity::Stage;
    use spawnscope_data::event::Nanos;

    const OWN: u32 = 0;
    const CHILD: u32 = 1;

    fn reaping() -> Activity {
        Activity {
            launch: CHILD,
            stage: Stage::new(Phase::Reap, 0),
        }
    }

    fn working(millis: u64) -> Step {
        Step::Run(Nanos(millis * 1_000_000), reaping())
    }

    fn sleeping() -> Step {
        Step::Sleep(Nanos(10_000_000), reaping(), ExternalWait::Timer)
    }

    #[test]
    fn much_work_beside_a_child_is_the_parents_own() {
        let is_own = |steps: &[Step]| Supervision::of(steps.iter().copied(), OWN).is_own(steps[0]);
        assert!(!is_own(&[working(1)]));
        assert!(is_own(&[working(100)]));
        assert!(is_own(&[working(2), working(2)]), "all of it together");
        assert!(
            !Supervision::of([working(100)].into_iter(), CHILD).is_own(working(100)),
            "its own activity"
        );
    }

    #[test]
    fn one_sleep_is_the_parents_own_and_several_are_a_poll() {
        let is_own = |steps: &[Step]| Supervision::of(steps.iter().copied(), OWN).is_own(steps[0]);
        assert!(is_own(&[sleeping()]));
        assert!(!is_own(&[sleeping(), sleeping()]));
    }
}
