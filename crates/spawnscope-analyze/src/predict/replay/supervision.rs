//! Decides which work and sleeps of a parent are removed together with a launch: short work for the
//! launch, and sleeps between polls. A parent may also do work of its own or sleep for other
//! reasons while its child runs; such work and sleeps remain when the launch is removed.

use super::activity::{Activity, ActivityKind};
use super::steps::Step;
use crate::model::external_wait::ExternalWait;
use crate::model::phases::Phase;
use foldhash::HashMap;

/// Maximum CPU time that a parent uses for a launch, in nanoseconds. A shell uses 0.1 ms, the
/// `subprocess` module of Python 1 ms.
const MAX_SUPERVISION_NS: u64 = 3_000_000;
/// Maximum CPU time that a parent uses for its first launch, if it uses less for each of at least
/// `MIN_AFTER_WARM_UP` others: it loads the code that launches. Java needs 7 to 12 ms.
const MAX_WARM_UP_NS: u64 = 30_000_000;
const MIN_AFTER_WARM_UP: u32 = 8;
/// If a parent sleeps at least this often before it reaps a child, it is polling.
const MIN_POLLING_SLEEPS: u32 = 2;

/// The launches during which a thread does work of its own. There are few, even if the thread
/// supervises a million launches.
#[derive(Clone, Debug, Default)]
pub(in crate::predict) struct Supervision {
    own: HashMap<u32, Effort>,
}

/// The work and the sleeps of a thread while it supervises a launch.
#[derive(Clone, Debug, Default)]
struct Effort {
    /// Nanoseconds of CPU time.
    worked: u64,
    slept: u32,
}

impl Supervision {
    /// Analyzes the program of a thread. `launch` is the launch that the thread belongs to. If the
    /// thread is killed (`is_mortal`), its sleeps are ignored: no work waits for their ends.
    pub(super) fn of(steps: impl Iterator<Item = Step>, launch: u32, is_mortal: bool) -> Supervision {
        // Most steps for one launch are adjacent. A map with all launches would take several times
        // the memory.
        let mut efforts: Vec<(u32, Effort)> = Vec::new();
        for step in steps {
            let (worked, slept, activity) = match step {
                Step::Run(span, _, activity) => (span.0, 0, activity),
                Step::Sleep(_, activity, ExternalWait::Timer) => (0, u32::from(!is_mortal), activity),
                _ => continue,
            };
            if activity.launch == launch || !is_supervision(activity) {
                continue;
            }
            match efforts.last_mut() {
                Some((last, effort)) if *last == activity.launch => effort.add(&Effort { worked, slept }),
                _ => efforts.push((activity.launch, Effort { worked, slept })),
            }
        }
        efforts.sort_unstable_by_key(|(launch, _)| *launch);
        let by_launch = efforts.chunk_by(|(launch, _), (other, _)| launch == other);
        Supervision::of_sums(by_launch.map(|all| {
            let mut sum = Effort::default();
            all.iter().for_each(|(_, effort)| sum.add(effort));
            (all[0].0, sum)
        }))
    }

    fn of_sums(mut sums: impl Iterator<Item = (u32, Effort)>) -> Supervision {
        let first = sums.next();
        let (mut own, mut later) = (HashMap::default(), 0);
        for (launch, sum) in sums {
            later += 1;
            if sum.has_own_work() || sum.has_own_sleep() {
                own.insert(launch, sum);
            }
        }
        let warms_up = |sum: &Effort| later >= MIN_AFTER_WARM_UP && own.is_empty() && sum.worked <= MAX_WARM_UP_NS;
        let of_first = first.filter(|(_, sum)| sum.has_own_work() && !warms_up(sum) || sum.has_own_sleep());
        own.extend(of_first);
        Supervision { own }
    }

    /// Whether the thread does no work of its own while it supervises launches.
    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Whether a step is the thread's own work or sleep, although it happens while the thread
    /// supervises a launch.
    pub(in crate::predict) fn is_own(&self, step: Step) -> bool {
        match step {
            Step::Run(_, _, activity) => self.has_own(activity, Effort::has_own_work),
            Step::Sleep(_, activity, ExternalWait::Timer) => self.has_own(activity, Effort::has_own_sleep),
            _ => false,
        }
    }

    fn has_own(&self, activity: Activity, is_own: impl Fn(&Effort) -> bool) -> bool {
        is_supervision(activity) && self.own.get(&activity.launch).is_some_and(is_own)
    }
}

impl Effort {
    fn add(&mut self, more: &Effort) {
        self.worked += more.worked;
        self.slept += more.slept;
    }

    fn has_own_work(&self) -> bool {
        self.worked > MAX_SUPERVISION_NS
    }

    fn has_own_sleep(&self) -> bool {
        (1..MIN_POLLING_SLEEPS).contains(&self.slept)
    }
}

fn is_supervision(activity: Activity) -> bool {
    matches!(activity.stage.kind(), ActivityKind::Supervise | ActivityKind::Phase(Phase::Reap))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::replay::activity::Stage;
    use spawnscope_data::event::Nanos;

    const OWN: u32 = 0;
    const CHILD: u32 = 1;

    fn reaping() -> Activity {
        Activity { launch: CHILD, stage: Stage::new(Phase::Reap, 0) }
    }

    fn working(millis: u64) -> Step {
        Step::Run(Nanos(millis * 1_000_000), Nanos(0), reaping())
    }

    fn sleeping() -> Step {
        Step::Sleep(Nanos(10_000_000), reaping(), ExternalWait::Timer)
    }

    fn is_own(steps: &[Step]) -> bool {
        Supervision::of(steps.iter().copied(), OWN, false).is_own(steps[0])
    }

    #[test]
    fn much_work_while_a_child_runs_is_the_parents_own() {
        assert!(!is_own(&[working(1)]));
        assert!(is_own(&[working(100)]));
        assert!(is_own(&[working(2), working(2)]), "the sum counts");
        assert!(
            !Supervision::of([working(100)].into_iter(), CHILD, false).is_own(working(100)),
            "an activity of its own launch"
        );
    }

    #[test]
    fn one_sleep_is_the_parents_own_and_several_are_polling() {
        assert!(is_own(&[sleeping()]));
        assert!(!is_own(&[sleeping(), sleeping()]));
        let of_killed = Supervision::of([sleeping()].into_iter(), OWN, true);
        assert!(!of_killed.is_own(sleeping()), "nothing waits for the sleep of a thread that is killed");
    }
}
