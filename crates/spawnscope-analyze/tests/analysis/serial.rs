//! A shell that launches one program after another and waits for each, with the matching slices.

use spawnscope_analyze::explain::advice::{Advice, AdviceList};
use spawnscope_analyze::model::timeline::Timelines;
use spawnscope_analyze::predict::replay::{Parameters, Replay};
use spawnscope_analyze::predict::whatif::changes::Change;
use spawnscope_analyze::predict::whatif::constants::Constants;
use spawnscope_analyze::predict::whatif::{AppliedChange, Prediction, Takeover, WhatIf};
use spawnscope_analyze::{Causes, Forest, SliceCollection, Slices, critical_path};
use spawnscope_data::event::{LaunchId, LeftCpu, Nanos, Pid, TaskId};
use spawnscope_data::rows::{Recording, SliceRow, ThreadRow, WakerRow};

use crate::builder::{Builder, ROOT, Spans};
use crate::slices::{created, ended, slice};

pub(crate) const READ: u16 = 0;
pub(crate) const WAIT4: u16 = 61;
pub(crate) const CLOCK_NANOSLEEP: u16 = 230;
/// How long the shell works between a launch and the next one, in nanoseconds.
pub(crate) const BETWEEN: u64 = 300_000;
/// How long the shell works before the first launch, and again after the last one, in nanoseconds.
pub(crate) const SHELL: u64 = 2_000_000;

/// A recording under construction.
pub(crate) struct Serial {
    pub(crate) builder: Builder,
    pub(crate) slices: Vec<SliceRow>,
    /// When the shell last got its CPU.
    on: u64,
    /// When the next launch begins.
    now: u64,
}

impl Serial {
    pub(crate) fn new() -> Serial {
        Serial::with_command("/bin/bash", &["bash", "script.sh"])
    }

    /// Starts a recording whose command is this program instead of bash.
    pub(crate) fn with_command(path: &str, argv: &[&str]) -> Serial {
        Serial { builder: Builder::command(path, argv, 1_000_000_000), slices: Vec::new(), on: 0, now: SHELL }
    }

    /// Adds a launch whose end the shell waits for in wait4.
    pub(crate) fn launch(&mut self, spans: &Spans, program: Option<(&str, &[&str])>) -> LaunchId {
        self.launch_waiting(spans, program, WAIT4)
    }

    /// Adds a launch that the shell waits for in another system call, such as read for its output.
    pub(crate) fn launch_waiting(&mut self, spans: &Spans, program: Option<(&str, &[&str])>, call: u16) -> LaunchId {
        let child = self.begin(spans, program);
        let (created_at, zombie) = self.life(child);
        let waker = Some(WakerRow::Task(TaskId(child.0)));
        self.slices.push(slice(1, self.on, created_at, [zombie - created_at, spans.reap], call, waker));
        self.resume_shell_at(zombie + spans.reap);
        child
    }

    /// Adds a launch whose end the shell notices only after it has slept for `sleep`.
    pub(crate) fn launch_sleeping(&mut self, spans: &Spans, program: (&str, &[&str]), sleep: u64) -> LaunchId {
        let child = self.begin(spans, Some(program));
        let (created_at, _) = self.life(child);
        self.slices.push(slice(1, self.on, created_at, [sleep, 0], CLOCK_NANOSLEEP, None));
        let reaped = created_at + sleep;
        self.builder.row(child).reaped = Some(Nanos(reaped));
        self.resume_shell_at(reaped);
        child
    }

    /// Adds a launch whose child is off its CPU for `lost` just before its end. The shell waits in
    /// read.
    pub(crate) fn launch_without_cpu(
        &mut self,
        spans: &Spans,
        program: Option<(&str, &[&str])>,
        lost: u64,
        reason: LeftCpu,
    ) -> LaunchId {
        let longer = Spans { run: spans.run + lost, ..*spans };
        let child = self.launch_waiting(&longer, program, READ);
        let exit = self.builder.row(child).exit.unwrap().0;
        let last = self
            .slices
            .iter_mut()
            .find(|slice| slice.task == TaskId(child.0) && slice.reason == LeftCpu::Ended)
            .unwrap();
        let (on, zombie) = (last.off.0 - last.on_span.unwrap().0, last.off.0);
        *last = ended(child.0, exit, zombie);
        let blocked = if reason == LeftCpu::Preempted { 0 } else { lost };
        self.slices.push(SliceRow { reason, ..slice(child.0, on, exit - lost, [blocked, lost - blocked], READ, None) });
        child
    }

    fn begin(&mut self, spans: &Spans, program: Option<(&str, &[&str])>) -> LaunchId {
        let child = self.builder.launch(ROOT, self.now, spans, program);
        self.builder.row(child).parent_task = Some(TaskId(ROOT.0));
        let (created_at, zombie) = self.life(child);
        self.slices.push(created(child.0, created_at, spans.queue));
        self.slices.push(ended(child.0, created_at + spans.queue, zombie));
        child
    }

    fn life(&mut self, child: LaunchId) -> (u64, u64) {
        let row = self.builder.row(child);
        (row.created.unwrap().0, row.zombie.unwrap().0)
    }

    /// Returns when the next launch begins.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Keeps the shell on its CPU until `at`.
    pub(crate) fn run_shell_until(&mut self, at: u64) {
        self.now = at;
    }

    /// Lets the shell work from `on` until the next launch. To be called after slices of the shell
    /// were added by hand.
    pub(crate) fn resume_shell_at(&mut self, on: u64) {
        self.on = on;
        self.now = on + BETWEEN;
    }

    /// Ends the command, and returns the recording and its slices.
    pub(crate) fn finish(mut self) -> (Recording, Vec<SliceRow>) {
        let wall = self.now + SHELL;
        self.slices.push(ended(1, self.on, wall));
        let root = self.builder.row(ROOT);
        (root.exit, root.zombie) = (Some(Nanos(wall - 50_000)), Some(Nanos(wall)));
        let info = &mut self.builder.recording.info;
        (info.wall, info.last_event) = (Some(Nanos(wall)), Nanos(wall));
        (self.builder.recording, self.slices)
    }
}

/// Returns the timelines of the threads of a recording.
pub(crate) fn timelines(forest: &Forest<'_>, slices: &[SliceRow]) -> Timelines {
    timelines_with(forest, slices, &[])
}

/// Returns a further thread of a process.
pub(crate) fn thread(task: u64, launch: LaunchId, created: u64) -> ThreadRow {
    ThreadRow {
        task: TaskId(task),
        launch,
        creator: Some(TaskId(launch.0)),
        tid: Pid(9),
        created: Nanos(created),
        ended: None,
        cpu: None,
    }
}

/// Returns the timelines of a recording in which processes have further threads.
pub(crate) fn timelines_with(forest: &Forest<'_>, slices: &[SliceRow], threads: &[ThreadRow]) -> Timelines {
    let mut all = Slices::default();
    slices.iter().for_each(|slice| all.push(*slice));
    SliceCollection::new(forest, threads).finish(all)
}

/// Returns the advice on a recording.
pub(crate) fn advices((recording, slices): &(Recording, Vec<SliceRow>)) -> AdviceList {
    let forest = Forest::build(recording);
    let timelines = timelines(&forest, slices);
    Causes::find(recording, &forest, &timelines).unwrap().advices
}

/// Returns the only advice of a rule, and panics if there is none or more than one.
pub(crate) fn only(advices: &AdviceList, rule: &str) -> Advice {
    let all: Vec<Advice> = advices.worth.iter().cloned().flat_map(Advice::separated).collect();
    let mut found = all.iter().filter(|advice| advice.finding.rule == rule);
    let advice = found.next().unwrap_or_else(|| panic!("no {rule} in {advices:?}"));
    assert!(found.next().is_none(), "more than one {rule}: {advices:?}");
    let [expected, least, most] = advice.saving;
    assert!(least <= expected && expected <= most, "{:?}", advice.saving);
    advice.clone()
}

/// Returns whether a rule has no findings that are worth fixing.
pub(crate) fn is_silent(advices: &AdviceList, rule: &str) -> bool {
    !advices.worth.iter().cloned().flat_map(Advice::separated).any(|advice| advice.finding.rule == rule)
}

/// Predicts the wall with the given changes.
pub(crate) fn predict(
    (recording, slices): &(Recording, Vec<SliceRow>),
    constants: &Constants,
    changes: &[(Change, &[LaunchId])],
) -> Prediction {
    let forest = Forest::build(recording);
    let timelines = timelines(&forest, slices);
    let replay = Replay::new(&forest, &timelines, &Parameters::of(recording).unwrap()).unwrap();
    let fixes = changes.iter().map(|(change, launches)| AppliedChange {
        change: *change,
        launches: launches.iter().map(|launch| launch.0 as u32 - 1).collect(),
    });
    let fixes: Vec<AppliedChange> = fixes.collect();
    let whatif = WhatIf { forest: &forest, timelines: &timelines, replay: &replay, constants };
    whatif.predict(&fixes)
}

/// Predicts the wall without launches, in a recording whose command has these further threads. Also
/// returns the launches' time on the critical path, and what takes over.
pub(crate) fn without(
    (recording, slices): (&Recording, &[SliceRow]),
    threads: &[u64],
    launches: &[LaunchId],
) -> (Prediction, u64, Option<Takeover>) {
    let forest = Forest::build(recording);
    let threads: Vec<ThreadRow> = threads.iter().map(|task| thread(*task, ROOT, 0)).collect();
    let timelines = timelines_with(&forest, slices, &threads);
    let parameters = Parameters::of(recording).unwrap();
    let replay = Replay::new(&forest, &timelines, &parameters).unwrap();
    let path = critical_path(&forest, &timelines, parameters.wall).unwrap();
    assert_eq!(path.sum(), parameters.wall);
    let launches: Vec<u32> = launches.iter().map(|launch| launch.0 as u32 - 1).collect();
    let critical = launches.iter().map(|launch| path.launches[*launch as usize].total().0).sum();
    let whatif = WhatIf { forest: &forest, timelines: &timelines, replay: &replay, constants: &Constants::default() };
    let removal = [AppliedChange { change: Change::Remove, launches }];
    let prediction = whatif.predict(&removal);
    let takeover = whatif.takeover(&removal, prediction.saving()[0], &path, recording);
    (prediction, critical, takeover)
}
