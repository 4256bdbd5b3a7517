//! The critical path: walks back from the end of the command, following the wake-up that ended each
//! wait. Every nanosecond of the wall is charged once, to a phase of a launch or to an external
//! wait, so the charges sum to the wall exactly.

use crate::model::compact::CompactNumbers;
use crate::model::external_wait::{ExternalWait, ExternalWaitTimes, external_wait_of};
use crate::model::phases::Phase;
use crate::model::pieces::Piece;
use crate::model::poll_loop::PollLoop;
use crate::model::timeline::{Moment, State, ThreadIndex, Timelines, last_launch, last_thread, root_of};
use crate::model::tree::Forest;
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::{Origin, SliceRow};

/// Maximum number of jumps between threads without progress in time. After that, time is charged to
/// an external wait, and no further thread is followed.
const MAX_JUMPS: usize = 64;

/// The charges of one launch: nanoseconds by phase, and separately the time in `run` that was spent
/// waiting for a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charges(CompactNumbers<9>);

const RUN_QUEUE: usize = Phase::ALL.len();

impl Charges {
    pub fn get(&self, phase: Phase) -> Nanos {
        self.sum(phase as usize)
    }

    pub fn run_queue(&self) -> Nanos {
        self.sum(RUN_QUEUE)
    }

    pub(crate) fn add(&mut self, phase: Phase, span: Nanos) {
        self.add_to(phase as usize, span);
    }

    pub(crate) fn add_run_queue(&mut self, span: Nanos) {
        self.add_to(RUN_QUEUE, span);
    }

    fn sum(&self, index: usize) -> Nanos {
        Nanos(self.0.get(index))
    }

    fn add_to(&mut self, index: usize, span: Nanos) {
        self.0.set(index, self.0.get(index) + span.0);
    }

    pub fn total(&self) -> Nanos {
        Nanos((0..=RUN_QUEUE).map(|index| self.sum(index).0).sum())
    }

    /// Returns the sum of all charges except `run` and the wait for a CPU in `run`.
    pub fn tax(&self) -> Nanos {
        Nanos(Phase::TAX.iter().map(|phase| self.get(*phase).0).sum())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalPath {
    /// Charges of each launch, by index in the forest.
    pub launches: Vec<Charges>,
    pub external_wait: ExternalWaitTimes,
    /// The wall, which all charges sum to.
    pub wall: Nanos,
}

impl CriticalPath {
    pub fn tax(&self) -> Nanos {
        Nanos(self.launches.iter().map(|charges| charges.tax().0).sum())
    }

    /// Returns the time that new processes waited for a CPU on the path.
    pub fn queue(&self) -> Nanos {
        Nanos(self.launches.iter().map(|charges| charges.get(Phase::Queue).0).sum())
    }

    /// Returns the nanoseconds on the path of each launch including its descendants. A launch that
    /// only waits for its children is on the path through them.
    pub(crate) fn with_descendants(&self, forest: &Forest<'_>) -> Vec<u64> {
        let mut sums: Vec<u64> = self.launches.iter().map(|charges| charges.total().0).collect();
        let parents_first: Vec<usize> = forest.walk_all().map(|step| step.index).collect();
        for index in parents_first.into_iter().rev() {
            if let Some(parent) = forest.parent(index) {
                sums[parent] += sums[index];
            }
        }
        sums
    }

    fn add(&mut self, stretch: &Stretch) {
        let span = stretch.end.since(stretch.start);
        match stretch.charge {
            Charge::Phase(launch, phase) => self.launches[launch as usize].add(phase, span),
            Charge::RunQueue(launch) => self.launches[launch as usize].add_run_queue(span),
            Charge::ExternalWait(what) => self.external_wait.entry(what).or_default().0 += span.0,
        }
    }

    pub fn sum(&self) -> Nanos {
        let launches: u64 = self.launches.iter().map(|charges| charges.total().0).sum();
        let external_wait: u64 = self.external_wait.values().map(|time| time.0).sum();
        Nanos(launches + external_wait)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// A phase of the launch at this index of the forest.
    Phase(u32, Phase),
    /// The launch at this index, which was in `run` and waited for a CPU.
    RunQueue(u32),
    ExternalWait(ExternalWait),
}

/// A contiguous part of the wall with one charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub start: Nanos,
    /// When the stretch ends, after its start.
    pub end: Nanos,
    pub charge: Charge,
}

/// Computes the critical path. `None` without a command, since the walk starts at the command's
/// end.
pub fn critical_path(forest: &Forest<'_>, timelines: &Timelines, wall: Nanos) -> Option<CriticalPath> {
    let mut path = CriticalPath {
        launches: vec![Charges::default(); forest.launches.len()],
        external_wait: ExternalWaitTimes::new(),
        wall,
    };
    walk(forest, timelines, wall, |stretch| path.add(&stretch))?;
    Some(path)
}

/// Returns the stretches of the critical path by time. They tile the wall, and neighbours have
/// different charges. `None` as for `critical_path`.
pub fn stretches(forest: &Forest<'_>, timelines: &Timelines, wall: Nanos) -> Option<Vec<Stretch>> {
    let mut stretches: Vec<Stretch> = Vec::new();
    walk(forest, timelines, wall, |stretch| match stretches.last_mut() {
        Some(later) if later.charge == stretch.charge => later.start = stretch.start,
        _ => stretches.push(stretch),
    })?;
    stretches.reverse();
    Some(stretches)
}

/// Visits the stretches of the critical path, the last first.
fn walk(forest: &Forest<'_>, timelines: &Timelines, wall: Nanos, visit: impl FnMut(Stretch)) -> Option<()> {
    let root = root_of(forest)?;
    let root_at = &forest.launches[root as usize].instants;
    let start = root_at.created.get().unwrap_or_default();
    let end = Nanos(start.0 + wall.0);
    let last = last_launch(forest, root, end);
    let mut walk =
        Walk { forest, timelines, visit, thread: last_thread(timelines, last), start, at: end, jumps: 0, pieces: None };
    let last_at = &forest.launches[last as usize].instants;
    if let Some(ended) = last_at.zombie.get().filter(|ended| *ended < end) {
        walk.charge_external_wait(ended, ExternalWait::Recorder);
    }
    while walk.at > start {
        walk.step();
    }
    Some(())
}

struct Walk<'f, 'a, V> {
    forest: &'f Forest<'a>,
    timelines: &'f Timelines,
    visit: V,
    thread: ThreadIndex,
    at: Nanos,
    start: Nanos,
    /// Jumps between threads since the last progress in time.
    jumps: usize,
    /// The launch that was charged last, and its phases.
    pieces: Option<(u32, Vec<Piece>)>,
}

impl<V: FnMut(Stretch)> Walk<'_, '_, V> {
    fn launch(&self) -> u32 {
        self.timelines.launch_of(self.thread)
    }

    /// Charges the part of the wall that ends at the cursor, and moves the cursor or switches its
    /// thread.
    fn step(&mut self) {
        let timelines = self.timelines;
        let polls = timelines.polls.of_thread(self.thread);
        let polls_before = polls.partition_point(|each| each.end < self.at);
        let polled = polls.get(polls_before).filter(|each| each.at <= self.at && each.checks[0] < self.at);
        if let Some(polled) = polled.filter(|_| self.jumps < MAX_JUMPS) {
            return self.go_to_polled(polled);
        }
        let Some(Moment { since, state }) = timelines.state_before(self.thread, self.at) else {
            return self.go_to_creator(self.start, Time::Unknown);
        };
        // A loop may end while its thread is on a CPU.
        let since = polls_before.checked_sub(1).map_or(since, |last| since.max(polls[last].end));
        match state {
            State::Running => self.charge_running(since),
            State::Unknown => self.charge(since, Time::Unknown),
            // If a further thread of a process waits for its first CPU, that wait is part of `run`.
            State::Created if self.thread != self.launch() => self.go_to_creator(since, Time::Runnable),
            State::Created => self.go_to_creator(since, Time::Queue),
            State::Runnable(None) => self.charge(since, Time::Runnable),
            State::Runnable(Some(slice)) => self.charge_woken(since, &slice),
            State::Blocked(slice) => self.go_to_waker(since, &slice),
        }
    }

    /// Handles a loop that polled until after the cursor: charges the time since the end of what
    /// the loop waited for, and continues there. If that was a child, the parent reaps it late.
    fn go_to_polled(&mut self, polled: &PollLoop) {
        let child = self.timelines.launch_of(polled.awaited);
        if self.is_child(child) && self.ended_at(child, polled.at) {
            self.charge_reaping(child, polled.at, |walk, since| walk.charge_external_wait(since, ExternalWait::Timer));
        }
        self.charge_external_wait(polled.at, ExternalWait::Timer);
        self.jumps += 1;
        self.thread = polled.awaited;
    }

    /// Charges the wait for a CPU after another wait. If the thread waited for the end of a child,
    /// the wait for a CPU counts as `reap` of the child until the child is reaped. Reading the
    /// output of another process until that process ends is not a wait for a child.
    fn charge_woken(&mut self, woken: Nanos, slice: &SliceRow) {
        let ended = self.timelines.waker(slice).map(|waker| self.timelines.launch_of(waker));
        if let Some(child) = ended.filter(|child| self.is_child(*child) && self.ended_at(*child, woken)) {
            self.charge_reaping(child, woken, |walk, since| walk.charge(since, Time::Runnable));
        }
        self.charge(woken, Time::Runnable);
        self.go_to_waker(slice.off, slice);
    }

    /// Charges the time since an instant in which a child could be reaped, and was not, as `reap`
    /// of the child, and what comes after the reaping with `charge_later`.
    fn charge_reaping(&mut self, child: u32, since: Nanos, charge_later: impl FnOnce(&mut Self, Nanos)) {
        let at = &self.forest.launches[child as usize].instants;
        if let Some((zombie, reaped)) = at.zombie.get().zip(at.reaped.get()).filter(|(zombie, reaped)| zombie < reaped)
        {
            charge_later(self, reaped.max(since));
            self.charge_back_to(zombie.max(since), Charge::Phase(child, Phase::Reap));
        }
    }

    fn is_child(&self, launch: u32) -> bool {
        self.forest.parent(launch as usize) == Some(self.launch() as usize)
    }

    fn ended_at(&self, launch: u32, at: Nanos) -> bool {
        let ended = &self.forest.launches[launch as usize].instants;
        let ended = ended.zombie.get().or(ended.exit.get());
        ended.is_some_and(|ended| ended.0.abs_diff(at.0) < MAX_CLOCK_DIFFERENCE_NS)
    }

    /// Handles a wait that ends at the cursor: continues at the thread that ended it, or charges an
    /// external wait.
    fn go_to_waker(&mut self, since: Nanos, slice: &SliceRow) {
        let cause = self.timelines.cause(self.thread, slice);
        let round = self.timelines.rounds.get(&(self.thread, slice.off)).filter(|_| self.jumps < MAX_JUMPS);
        if let Some(round) = round {
            self.charge_external_wait(round.until, ExternalWait::Timer);
            self.jumps += 1;
            self.thread = round.worker;
            return;
        }
        match cause.filter(|_| self.jumps < MAX_JUMPS) {
            Some(waker) => {
                self.jumps += 1;
                self.thread = waker;
            }
            None => self.charge_external_wait(since, external_wait_of(slice)),
        }
    }

    /// Charges the first wait of a thread for a CPU, or unknown time, then moves the cursor to the
    /// thread's creator.
    fn go_to_creator(&mut self, since: Nanos, time: Time) {
        let thread = self.timelines.threads[self.thread as usize];
        let born = thread.created.get().unwrap_or(since).max(since).min(self.at);
        self.charge(born, time);
        match thread.creator.get().filter(|_| self.jumps < MAX_JUMPS) {
            Some(creator) => {
                self.jumps += 1;
                self.thread = creator;
            }
            None => self.charge_external_wait(self.start, ExternalWait::Unknown),
        }
    }

    fn charge_external_wait(&mut self, since: Nanos, cause: ExternalWait) {
        self.charge_back_to(since, Charge::ExternalWait(cause));
    }

    /// Charges time on a CPU. Time inside the call that created a child is `create` of that child.
    fn charge_running(&mut self, since: Nanos) {
        let (launch, since) = (self.launch(), since.max(self.start));
        while self.at > since {
            match self.last_creation(launch, since) {
                Some((child, create, created)) => {
                    self.charge(created.min(self.at), Time::Running);
                    self.charge_back_to(create.max(since), Charge::Phase(child as u32, Phase::Create));
                }
                None => self.charge(since, Time::Running),
            }
        }
    }

    /// Returns the last child whose creation overlaps the time between `since` and the cursor.
    fn last_creation(&self, launch: u32, since: Nanos) -> Option<(usize, Nanos, Nanos)> {
        let children = self.forest.children(launch as usize);
        let begun = children.partition_point(|child| {
            let create = self.forest.launches[*child].instants.create.get();
            create.is_none_or(|create| create < self.at)
        });
        let child = *children[..begun].last()?;
        let at = &self.forest.launches[child].instants;
        let (create, created) = (at.create.get()?, at.created.get()?);
        (created > since && create < created).then_some((child, create, created))
    }

    /// Whether the cursor is between the release of the command and its exec.
    fn is_before_exec(&self, launch: u32) -> bool {
        let each = &self.forest.launches[launch as usize];
        let enter = each.execs.first().and_then(|exec| exec.enter.get());
        each.origin == Origin::Command && enter.is_some_and(|enter| self.at <= enter)
    }

    /// Charges the time from `since` to the cursor to the current launch, by phase.
    fn charge(&mut self, since: Nanos, time: Time) {
        let (launch, since) = (self.launch(), since.max(self.start));
        if self.pieces.as_ref().is_none_or(|(current, _)| *current != launch) {
            let each = &self.forest.launches[launch as usize];
            self.pieces = Some((launch, each.pieces(Some(self.forest.end))));
        }
        while self.at > since {
            if self.is_before_exec(launch) {
                return self.charge_external_wait(since, ExternalWait::Recorder);
            }
            let (start, phase) = self.phase_before(self.at);
            if (time, phase) == (Time::Unknown, Phase::Run) {
                self.charge_external_wait(start.max(since), ExternalWait::Unknown);
                continue;
            }
            let charge = match (time, phase) {
                (Time::Queue, Phase::Run) if self.has_run(launch) => Charge::RunQueue(launch),
                (Time::Queue, _) => Charge::Phase(launch, Phase::Queue),
                (Time::Runnable, Phase::Run) => Charge::RunQueue(launch),
                _ => Charge::Phase(launch, phase),
            };
            self.charge_back_to(start.max(since), charge);
        }
    }

    /// Whether the cursor is known to be after the first run of a launch. Always true of the
    /// command, because the recorder waited for its first run.
    fn has_run(&self, launch: u32) -> bool {
        let launch = &self.forest.launches[launch as usize];
        let first_run = launch.instants.first_run.get();
        matches!(launch.origin, Origin::Command | Origin::Existed)
            || first_run.is_some_and(|first_run| first_run < self.at)
    }

    /// Returns the phase just before `at`, and its start. Time outside of known phases (because a
    /// boundary is unknown) counts as `run`, since it is not known to be tax. `create` and `reap`
    /// are time of the parent, so they count as `run` here, too.
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

    /// Moves the cursor back, and charges the time in between.
    fn charge_back_to(&mut self, since: Nanos, charge: Charge) {
        let since = since.max(self.start);
        if since < self.at {
            (self.visit)(Stretch { start: since, end: self.at, charge });
            self.jumps = 0;
            self.at = since;
        }
    }
}

/// Clocks of two CPUs differ slightly: instants less than this many nanoseconds apart count as
/// equal.
const MAX_CLOCK_DIFFERENCE_NS: u64 = 100_000;

/// How a thread spent time that is charged to its launch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    Running,
    /// Runnable, but without a CPU.
    Runnable,
    /// Runnable before its first run.
    Queue,
    /// No slice covers this time. The launch's instants may show its phase; only in `run` is it
    /// unknown whether the thread worked or waited.
    Unknown,
}
