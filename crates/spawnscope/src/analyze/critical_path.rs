//! The critical path: backwards from the command's end, whose doing was it that the next thing could not happen earlier?
//! Every nanosecond of the wall is charged once, to a phase of a launch or to something outside, so that the charges sum
//! to the wall exactly.

use super::Origin;
use super::compact::Compact;
use super::external_wait::{ExternalWait, ExternalWaitTimes, external_wait_of};
use super::phases::{Phase, Piece, pieces};
use super::timeline::{Moment, State, ThreadIndex, Timelines, last_of, last_thread, root_of};
use super::tree::Forest;
use crate::event::Nanos;
use crate::record::reader::SliceRow;

/// Steps from thread to thread without any time passing after which the path gives up on a wait.
const MOST_JUMPS: usize = 64;

/// What is charged to one launch: nanoseconds by phase, `run` without what comes last: in `run`, but waiting for a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charges(Compact<9>);

const RUN_QUEUE: usize = Phase::ALL.len();

impl Charges {
    /// What is charged to one phase.
    #[must_use]
    pub fn get(&self, phase: Phase) -> Nanos {
        self.sum(phase as usize)
    }

    /// In `run`, but waiting for a CPU.
    #[must_use]
    pub fn run_queue(&self) -> Nanos {
        self.sum(RUN_QUEUE)
    }

    pub(super) fn add(&mut self, phase: Phase, span: Nanos) {
        self.add_to(phase as usize, span);
    }

    pub(super) fn add_run_queue(&mut self, span: Nanos) {
        self.add_to(RUN_QUEUE, span);
    }

    fn sum(&self, place: usize) -> Nanos {
        Nanos(self.0.get(place))
    }

    fn add_to(&mut self, place: usize, span: Nanos) {
        self.0.set(place, self.0.get(place) + span.0);
    }

    /// Everything.
    #[must_use]
    pub fn total(&self) -> Nanos {
        Nanos((0..=RUN_QUEUE).map(|place| self.sum(place).0).sum())
    }

    /// Everything but `run` and its waiting for a CPU.
    #[must_use]
    pub fn tax(&self) -> Nanos {
        Nanos(Phase::TAX.iter().map(|phase| self.get(*phase).0).sum())
    }
}

/// Where the wall time of a command went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalPath {
    /// Charges of each launch, by its index in the forest.
    pub launches: Vec<Charges>,
    /// Time in which no recorded process could have done more.
    pub external_wait: ExternalWaitTimes,
    /// What all charges sum to.
    pub wall: Nanos,
}

impl CriticalPath {
    /// Launch tax on the path.
    #[must_use]
    pub fn tax(&self) -> Nanos {
        Nanos(self.launches.iter().map(|charges| charges.tax().0).sum())
    }

    /// The sum of all charges; it is the wall.
    #[must_use]
    pub fn sum(&self) -> Nanos {
        let launches: u64 = self.launches.iter().map(|charges| charges.total().0).sum();
        let external_wait: u64 = self.external_wait.values().map(|time| time.0).sum();
        Nanos(launches + external_wait)
    }
}

/// Follows the path; `None` without a command, whose end it could begin at.
#[must_use]
pub fn critical_path(forest: &Forest<'_>, timelines: &Timelines, wall: Nanos) -> Option<CriticalPath> {
    let root = root_of(forest)?;
    let root_at = &forest.launches[root as usize].instants;
    let start = root_at.created.get().unwrap_or_default();
    let end = Nanos(start.0 + wall.0);
    let last = last_of(forest, root, end);
    let mut walk = Walk {
        forest,
        timelines,
        path: CriticalPath {
            launches: vec![Charges::default(); forest.launches.len()],
            external_wait: ExternalWaitTimes::new(),
            wall,
        },
        thread: last_thread(timelines, last),
        start,
        at: end,
        jumps: 0,
        pieces: None,
    };
    let last_at = &forest.launches[last as usize].instants;
    if let Some(ended) = last_at.zombie.get().filter(|ended| *ended < end) {
        walk.charge_outside(ended, ExternalWait::Recorder);
    }
    while walk.at > start {
        walk.step();
    }
    Some(walk.path)
}

/// One cursor, on a thread at an instant, that moves backwards.
struct Walk<'f, 'a> {
    forest: &'f Forest<'a>,
    timelines: &'f Timelines,
    path: CriticalPath,
    thread: ThreadIndex,
    at: Nanos,
    /// Where the wall begins.
    start: Nanos,
    /// From thread to thread since time last passed.
    jumps: usize,
    /// The phases of the launch the cursor was on last.
    pieces: Option<(u32, Vec<Piece>)>,
}

impl Walk<'_, '_> {
    fn launch(&self) -> u32 {
        self.timelines.threads[self.thread as usize].launch
    }

    /// Charges a piece of the wall that ends at the cursor, and moves the cursor or changes its thread.
    fn step(&mut self) {
        let timelines = self.timelines;
        let Some(Moment { since, state }) = timelines.before(self.thread, self.at) else {
            return self.leave_through_birth(self.start, Time::Unknown);
        };
        match state {
            State::Running => self.charge_running(since),
            State::Unknown => self.charge(since, Time::Unknown),
            State::Created => self.leave_through_birth(since, Time::Queue),
            State::Runnable(None) => self.charge(since, Time::Runnable),
            State::Runnable(Some(slice)) => self.charge_woken(since, &slice),
            State::Blocked(slice) => self.leave_through_waker(since, &slice),
        }
    }

    /// The wait for a CPU after a wait for something. When that was a child's end, it is the child's reaping.
    fn charge_woken(&mut self, woken: Nanos, slice: &SliceRow) {
        let ended = self
            .timelines
            .waker(slice)
            .map(|waker| self.timelines.threads[waker as usize].launch);
        let is_reaping = |launch: &u32| {
            let zombie = self.forest.launches[*launch as usize].instants.zombie.get();
            zombie.is_some_and(|zombie| zombie.0.abs_diff(woken.0) < NEAR_NS)
        };
        match ended.filter(|launch| *launch != self.launch()).filter(is_reaping) {
            Some(child) => {
                let span = self.take(woken);
                self.path.launches[child as usize].add(Phase::Reap, span);
            }
            None => self.charge(woken, Time::Runnable),
        }
        self.leave_through_waker(slice.off, slice);
    }

    /// Blocked until the cursor: goes on with who ended that, or charges it to something outside.
    fn leave_through_waker(&mut self, since: Nanos, slice: &SliceRow) {
        let cause = self.timelines.cause(self.thread, slice);
        match cause.filter(|_| self.jumps < MOST_JUMPS) {
            Some(waker) => {
                self.jumps += 1;
                self.thread = waker;
            }
            None => self.charge_outside(since, external_wait_of(slice)),
        }
    }

    /// The thread's first wait for a CPU, or what nothing tells of it, then who made it.
    fn leave_through_birth(&mut self, since: Nanos, time: Time) {
        let thread = self.timelines.threads[self.thread as usize];
        let born = thread.created.get().unwrap_or(since).max(since).min(self.at);
        self.charge(born, time);
        match thread.creator.get().filter(|_| self.jumps < MOST_JUMPS) {
            Some(creator) => {
                self.jumps += 1;
                self.thread = creator;
            }
            None => self.charge_outside(self.start, ExternalWait::Unknown),
        }
    }

    fn charge_outside(&mut self, since: Nanos, what: ExternalWait) {
        let span = self.take(since);
        if span.0 > 0 {
            self.path.external_wait.entry(what).or_default().0 += span.0;
        }
    }

    /// Time on a CPU; within the call that made a child, it is that child's `create`.
    fn charge_running(&mut self, since: Nanos) {
        let (launch, since) = (self.launch(), since.max(self.start));
        while self.at > since {
            match self.last_creation(launch, since) {
                Some((child, create, created)) => {
                    self.charge(created.min(self.at), Time::Running);
                    let span = self.take(create.max(since));
                    self.path.launches[child].add(Phase::Create, span);
                }
                None => self.charge(since, Time::Running),
            }
        }
    }

    /// The last child whose creation lies between `since` and the cursor, at least in part.
    fn last_creation(&self, launch: u32, since: Nanos) -> Option<(usize, Nanos, Nanos)> {
        let children = self.forest.children(launch as usize);
        let create_of = |index: usize| self.forest.launches[index].instants.create.get();
        let begun = children.partition_point(|child| create_of(*child).is_none_or(|create| create < self.at));
        let child = *children[..begun].last()?;
        let at = &self.forest.launches[child].instants;
        let (create, created) = (at.create.get()?, at.created.get()?);
        (created > since && create < created).then_some((child, create, created))
    }

    /// Whether the cursor is where the command has been let go, but has not come to its exec yet.
    fn is_not_begun(&self, launch: u32) -> bool {
        let each = &self.forest.launches[launch as usize];
        let enter = each.execs.first().and_then(|exec| exec.enter.get());
        each.origin == Origin::Command && enter.is_some_and(|enter| self.at <= enter)
    }

    /// Charges the time since `since` to the launch under the cursor, each part to the phase it falls into.
    fn charge(&mut self, since: Nanos, time: Time) {
        let (launch, since) = (self.launch(), since.max(self.start));
        if self.pieces.as_ref().is_none_or(|(of, _)| *of != launch) {
            let each = &self.forest.launches[launch as usize];
            let unfinished = each.is_unfinished().then_some(self.forest.end);
            let pieces = pieces(each.origin, &each.instants, &each.execs, unfinished);
            self.pieces = Some((launch, pieces));
        }
        while self.at > since {
            if self.is_not_begun(launch) {
                return self.charge_outside(since, ExternalWait::Recorder);
            }
            let (start, phase) = self.phase_before(self.at);
            if (time, phase) == (Time::Unknown, Phase::Run) {
                self.charge_outside(start.max(since), ExternalWait::Unknown);
                continue;
            }
            let span = self.take(start.max(since));
            let charges = &mut self.path.launches[launch as usize];
            match (time, phase) {
                (Time::Queue, _) => charges.add(Phase::Queue, span),
                (Time::Runnable, Phase::Run) => charges.add_run_queue(span),
                _ => charges.add(phase, span),
            }
        }
    }

    /// The phase that holds the time just before `at`, and where it begins. Time that belongs to none (a boundary is
    /// unknown) counts as `run`: it is not known to be tax. So does what a process does for others' sake: `create` and `reap`
    /// are its parent's time.
    fn phase_before(&self, at: Nanos) -> (Nanos, Phase) {
        let pieces = self.pieces.as_ref().map_or(&[][..], |(_, pieces)| pieces);
        let begun = pieces.partition_point(|piece| piece.start < at);
        match pieces[..begun].iter().rev().find(|piece| piece.end > piece.start) {
            Some(piece) if at <= piece.end => match piece.phase {
                Phase::Create | Phase::Reap => (piece.start, Phase::Run),
                phase => (piece.start, phase),
            },
            Some(piece) => (piece.end, Phase::Run),
            None => (Nanos(0), Phase::Run),
        }
    }

    /// Moves the cursor back; gives the span.
    fn take(&mut self, since: Nanos) -> Nanos {
        let since = since.max(self.start);
        let span = self.at.since(since);
        if span.0 > 0 {
            self.jumps = 0;
            self.at = since;
        }
        span
    }
}

/// Two CPUs stamp the same event a little apart.
const NEAR_NS: u64 = 100_000;

/// How a thread spent time that is charged to its launch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    Running,
    /// Able to run, but without a CPU.
    Runnable,
    /// The same before its first run.
    Queue,
    /// No slice tells. The launch's own instants may: launching is launching, but `run` may be work or a wait.
    Unknown,
}
