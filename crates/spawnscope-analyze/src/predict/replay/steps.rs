//! Steps of a thread: run for a while, wake a thread, wait for another thread. Most steps have an
//! activity, the launch and phase that they belong to, by which adjustments select them. Sequences
//! of steps are packed into a quarter of the memory, because a recording has about twenty steps per
//! launch, which stay in memory while changes are tried.

use std::ops::Range;

use super::activity::{Activity, Stage};
use crate::model::external_wait::ExternalWait;
use crate::model::timeline::ThreadIndex;
use spawnscope_data::event::Nanos;

/// Identifies one recorded wait that another recorded thread ended.
pub type Token = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Uses a CPU for the first duration, and then for the second one, which is overhead of
    /// recording.
    Run(Nanos, Nanos, Activity),
    /// Is runnable until this much time has passed on CPUs that recorded threads do not use.
    Lose(Nanos, Activity),
    /// Waits until another thread signals this token. The duration is that of the recorded wait.
    Wait(Token, Activity, Nanos),
    Sleep(Nanos, Activity, ExternalWait),
    /// Waits until another thread signals this token, or until this duration has passed.
    TimedWait(Token, Activity, Nanos),
    /// Waits until this thread, which polls, begins its next round.
    Round(ThreadIndex, Activity),
    /// If this token has been signalled, skips the steps up to the wait for it: a polling loop
    /// would not have had these iterations.
    Check(Token),
    Wake(Token),
    Spawn(ThreadIndex),
    /// Kills a thread of the same process, which goes on after its step `Killed`.
    Kill(ThreadIndex),
    /// Waits until another thread kills this one.
    Killed,
}

impl Step {
    /// Returns the activity that the step belongs to, if it has one.
    pub(crate) fn activity(self) -> Option<Activity> {
        match self {
            Step::Run(_, _, activity)
            | Step::Lose(_, activity)
            | Step::Wait(_, activity, _)
            | Step::Sleep(_, activity, _)
            | Step::TimedWait(_, activity, _)
            | Step::Round(_, activity) => Some(activity),
            Step::Check(_) | Step::Wake(_) | Step::Spawn(_) | Step::Kill(_) | Step::Killed => None,
        }
    }
}

/// A sequence of steps. Steps that do not fit into a `PackedStep` are stored unpacked.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    packed: Vec<PackedStep>,
    unpacked: Vec<Step>,
    /// For each token, the duration of the recorded wait. Only one step waits for a token.
    waits: Vec<u32>,
    /// For each sleep, its duration and the index of its external wait.
    sleeps: Vec<(u32, u8)>,
    /// The distinct external waits, of which there are few.
    external_waits: Vec<ExternalWait>,
}

#[derive(Clone, Copy, Debug)]
struct PackedStep {
    /// A duration, a token, a thread, or the index of the sleep or of the unpacked step.
    number: u32,
    /// From the lowest bit: the kind, the stage, and by how much the index of the activity's
    /// launch exceeds that of the thread's own.
    rest: u32,
}

const KIND_BITS: u32 = 4;
const DISTANCE_BIT: u32 = KIND_BITS + Stage::PACKED_BITS;

#[derive(Clone, Copy, Debug)]
enum StepKind {
    /// A run without overhead.
    Run,
    /// Overhead only.
    Record,
    /// A short run with its overhead in the upper bits of the number.
    ShortRun,
    Lose,
    Wait,
    Sleep,
    Check,
    Wake,
    Spawn,
    Kill,
    Killed,
    Unpacked,
}

/// Number of bits of a short run: a quarter of a millisecond. The rest are for its overhead.
const SHORT_RUN_BITS: u32 = 18;

const KINDS: [StepKind; 12] = [
    StepKind::Run,
    StepKind::Record,
    StepKind::ShortRun,
    StepKind::Lose,
    StepKind::Wait,
    StepKind::Sleep,
    StepKind::Check,
    StepKind::Wake,
    StepKind::Spawn,
    StepKind::Kill,
    StepKind::Killed,
    StepKind::Unpacked,
];

impl Steps {
    pub(super) fn len(&self) -> usize {
        self.packed.len()
    }

    pub(super) fn reserve(&mut self, count: usize) {
        self.packed.reserve(count);
    }

    /// Adds a step of a thread of this launch. A run that is not short and its overhead become two
    /// steps.
    pub(super) fn push(&mut self, step: Step, launch: u32) {
        if let Step::Run(span, overhead, activity) = step
            && span.0.min(overhead.0) > 0
            && short_run(span, overhead).is_none()
        {
            self.push(Step::Run(span, Nanos(0), activity), launch);
            return self.push(Step::Run(Nanos(0), overhead, activity), launch);
        }
        let packed = self.pack(step, launch).unwrap_or_else(|| {
            self.unpacked.push(step);
            PackedStep::number(StepKind::Unpacked, self.unpacked.len() as u32 - 1)
        });
        self.packed.push(packed);
    }

    /// Returns a step of a thread of this launch.
    #[inline]
    pub(super) fn get(&self, index: usize, launch: u32) -> Step {
        let packed = self.packed[index];
        let (span, activity) = (Nanos(u64::from(packed.number)), packed.activity(launch));
        match packed.kind() {
            StepKind::Run => Step::Run(span, Nanos(0), activity),
            StepKind::Record => Step::Run(Nanos(0), span, activity),
            StepKind::ShortRun => {
                let [span, overhead] = packed.parts_of_short_run();
                Step::Run(span, overhead, activity)
            }
            StepKind::Lose => Step::Lose(span, activity),
            StepKind::Wait => {
                let span = self.waits[packed.number as usize];
                Step::Wait(packed.number, activity, Nanos(u64::from(span)))
            }
            StepKind::Sleep => {
                let (span, external_wait) = self.sleeps[packed.number as usize];
                Step::Sleep(Nanos(u64::from(span)), activity, self.external_waits[usize::from(external_wait)])
            }
            StepKind::Check => Step::Check(packed.number),
            StepKind::Wake => Step::Wake(packed.number),
            StepKind::Spawn => Step::Spawn(packed.number),
            StepKind::Kill => Step::Kill(packed.number),
            StepKind::Killed => Step::Killed,
            StepKind::Unpacked => self.unpacked[packed.number as usize],
        }
    }

    /// Returns the CPU time of the first steps in a range, as long as they use nothing but a CPU
    /// and take at most `limit` together, and the number of these steps. Overhead of recording
    /// takes this share of its time.
    pub(super) fn cpu_in(&self, range: Range<usize>, limit: Nanos, recording: f64) -> (Nanos, usize) {
        let (mut sum, mut count) = (0, 0);
        for packed in &self.packed[range] {
            let span = match packed.kind() {
                StepKind::Run => u64::from(packed.number),
                StepKind::Record => (f64::from(packed.number) * recording) as u64,
                StepKind::ShortRun => {
                    let [span, overhead] = packed.parts_of_short_run();
                    span.0 + (overhead.0 as f64 * recording) as u64
                }
                _ => break,
            };
            if sum + span > limit.0 {
                break;
            }
            (sum, count) = (sum + span, count + 1);
        }
        (Nanos(sum), count)
    }

    fn pack(&mut self, step: Step, own: u32) -> Option<PackedStep> {
        match step {
            Step::Run(span, Nanos(0), activity) => PackedStep::span(StepKind::Run, span, activity, own),
            Step::Run(Nanos(0), overhead, activity) => PackedStep::span(StepKind::Record, overhead, activity, own),
            Step::Run(span, overhead, activity) => {
                PackedStep::with_activity(StepKind::ShortRun, short_run(span, overhead)?, activity, own)
            }
            Step::Lose(span, activity) => PackedStep::span(StepKind::Lose, span, activity, own),
            Step::Wait(token, activity, span) => {
                let span = u32::try_from(span.0).ok()?;
                let packed = PackedStep::with_activity(StepKind::Wait, token, activity, own)?;
                if self.waits.len() <= token as usize {
                    self.waits.resize(token as usize + 1, 0);
                }
                self.waits[token as usize] = span;
                Some(packed)
            }
            Step::Sleep(span, activity, external_wait) => {
                let span = u32::try_from(span.0).ok()?;
                let packed = PackedStep::with_activity(StepKind::Sleep, self.sleeps.len() as u32, activity, own)?;
                let external_wait = self.number_of(external_wait)?;
                self.sleeps.push((span, external_wait));
                Some(packed)
            }
            Step::Check(token) => Some(PackedStep::number(StepKind::Check, token)),
            Step::Wake(token) => Some(PackedStep::number(StepKind::Wake, token)),
            Step::Spawn(thread) => Some(PackedStep::number(StepKind::Spawn, thread)),
            Step::Kill(thread) => Some(PackedStep::number(StepKind::Kill, thread)),
            Step::Killed => Some(PackedStep::number(StepKind::Killed, 0)),
            // The duration of a packed wait belongs to its token, which has another wait.
            Step::TimedWait(..) | Step::Round(..) => None,
        }
    }

    fn number_of(&mut self, external_wait: ExternalWait) -> Option<u8> {
        let index = self.external_waits.iter().position(|known| *known == external_wait);
        let number = u8::try_from(index.unwrap_or(self.external_waits.len())).ok()?;
        if index.is_none() {
            self.external_waits.push(external_wait);
        }
        Some(number)
    }
}

/// Returns the number of a short run. `None` if it does not fit.
fn short_run(span: Nanos, overhead: Nanos) -> Option<u32> {
    let is_short = span.0 >> SHORT_RUN_BITS == 0 && overhead.0 >> (u32::BITS - SHORT_RUN_BITS) == 0;
    is_short.then_some(span.0 as u32 | (overhead.0 as u32) << SHORT_RUN_BITS)
}

impl PackedStep {
    fn parts_of_short_run(self) -> [Nanos; 2] {
        let (span, overhead) = (self.number & ((1 << SHORT_RUN_BITS) - 1), self.number >> SHORT_RUN_BITS);
        [Nanos(span.into()), Nanos(overhead.into())]
    }

    /// Packs a step with a duration. `None` when it does not fit.
    fn span(kind: StepKind, span: Nanos, activity: Activity, own: u32) -> Option<PackedStep> {
        PackedStep::with_activity(kind, u32::try_from(span.0).ok()?, activity, own)
    }

    fn with_activity(kind: StepKind, number: u32, activity: Activity, own: u32) -> Option<PackedStep> {
        let distance =
            activity.launch.checked_sub(own).filter(|distance| *distance >> (u32::BITS - DISTANCE_BIT) == 0)?;
        let rest = distance << DISTANCE_BIT | activity.stage.packed()? << KIND_BITS | kind as u32;
        Some(PackedStep { number, rest })
    }

    fn number(kind: StepKind, number: u32) -> PackedStep {
        PackedStep { number, rest: kind as u32 }
    }

    #[inline]
    fn kind(self) -> StepKind {
        KINDS[(self.rest & ((1 << KIND_BITS) - 1)) as usize]
    }

    #[inline]
    fn activity(self, own: u32) -> Activity {
        let stage = Stage::of_packed(self.rest >> KIND_BITS & ((1 << Stage::PACKED_BITS) - 1));
        Activity { launch: own.wrapping_add(self.rest >> DISTANCE_BIT), stage }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::phases::Phase;
    use spawnscope_data::rows::TextId;

    /// The steps of a thread of launch 7.
    fn packed(all: &[Step]) -> Steps {
        let mut steps = Steps::default();
        all.iter().for_each(|step| steps.push(*step, 7));
        assert_eq!((0..steps.len()).map(|index| steps.get(index, 7)).collect::<Vec<_>>(), all);
        steps
    }

    #[test]
    fn packing_steps_does_not_change_them() {
        let activity = Activity { launch: 7, stage: Stage::new(Phase::Load, 3) };
        let child = |distance: u32| Activity { launch: 7 + distance, ..activity };
        let (short, long) = (Nanos(5), Nanos(1 << 40));
        let all = [
            Step::Run(short, Nanos(0), activity),
            Step::Run(long, Nanos(0), activity),
            Step::Run(short, short, child((1 << 21) - 1)),
            Step::Run(short, short, child(1 << 21)),
            Step::Run(short, Nanos(0), Activity { launch: 6, ..activity }),
            Step::Run(Nanos((1 << 18) - 1), Nanos((1 << 14) - 1), activity),
            Step::Run(Nanos(0), short, activity),
            Step::Run(Nanos(0), long, activity),
            Step::Lose(Nanos(u64::from(u32::MAX)), activity),
            Step::Wait(9, activity, short),
            Step::Wait(2, activity, long),
            Step::Sleep(short, activity, ExternalWait::Process(Some(TextId(2)))),
            Step::Sleep(short, activity, ExternalWait::Scanner(None)),
            Step::Sleep(long, activity, ExternalWait::Disk),
            Step::TimedWait(9, activity, long),
            Step::Round(4, activity),
            Step::Check(2),
            Step::Wake(3),
            Step::Spawn(4),
            Step::Kill(5),
            Step::Killed,
        ];
        let steps = packed(&all);
        assert_eq!((size_of::<PackedStep>(), steps.unpacked.len()), (8, 8));
        let stages = [0, 6, 7, 100, usize::MAX].map(|exec| Stage::new(Phase::Run, exec));
        packed(&stages.map(|stage| Step::Run(short, Nanos(0), Activity { launch: 7, stage })));
    }

    #[test]
    fn a_long_run_and_its_overhead_are_two_steps() {
        let activity = Activity { launch: 7, stage: Stage::new(Phase::Run, 0) };
        for (span, overhead) in [(1 << 18, 1), (1, 1 << 14)].map(|(span, overhead)| (Nanos(span), Nanos(overhead))) {
            let mut steps = Steps::default();
            steps.push(Step::Run(span, overhead, activity), 7);
            let parts = [Step::Run(span, Nanos(0), activity), Step::Run(Nanos(0), overhead, activity)];
            assert_eq!([0, 1].map(|index| steps.get(index, 7)), parts);
        }
    }

    #[test]
    fn sleeps_are_unpacked_if_there_are_too_many_external_waits() {
        let (launch, stage) = (7, Stage::new(Phase::Run, 0));
        let waits = (0..300).map(|name| ExternalWait::Process(Some(TextId(name))));
        let all: Vec<Step> = waits.map(|wait| Step::Sleep(Nanos(1), Activity { launch, stage }, wait)).collect();
        let steps = packed(&all);
        assert_eq!((steps.external_waits.len(), steps.unpacked.len()), (256, 44));
    }
}
