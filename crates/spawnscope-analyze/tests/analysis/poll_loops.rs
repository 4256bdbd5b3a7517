//! Loops that poll end with what they waited for: the critical path leads there, and without it the
//! loop does not sleep.

use proptest::prelude::*;
use spawnscope_analyze::path::critical_path::critical_path;
use spawnscope_analyze::path::spent::Spent;
use spawnscope_analyze::predict::replay::{Parameters, Replay};
use spawnscope_analyze::predict::whatif::{AppliedChange, Prediction, WhatIf};

use crate::prelude::*;
use crate::serial::{SHELL, without};

const FUTEX: u16 = 202;
const POLLING: u64 = 50;
/// How long a thread works between two sleeps, in nanoseconds.
const CHECK: u64 = 10_000;
const SLEEP: Option<(&str, &[&str])> = Some(("/bin/sleep", &["sleep", "0.01"]));

fn without_launches(recording: &Recording, slices: &[SliceRow], launches: &[LaunchId]) -> (Prediction, u64) {
    let (prediction, critical, takeover) = without((recording, slices), &[POLLING], launches);
    assert_eq!(takeover, None, "what sleeps until the launches have ended does not take over");
    (prediction, critical)
}

/// How a thread waits for the first thread of its process.
#[derive(Clone, Copy, Debug)]
enum Waiting {
    /// It sleeps until it sees that the first thread is done.
    Sleeps,
    /// It waits with a timeout until the first thread wakes it.
    TimesOut,
    /// It does not wait, but sleeps until the first thread ends the process.
    UntilKilled,
}

/// Builds a recording of a process whose first thread launches programs one after the other, while
/// another thread waits in calls of `nap` nanoseconds. Returns the launches, too.
fn waiting_thread(waiting: Waiting, nap: u64, runs: &[u64]) -> (Recording, Vec<SliceRow>, Vec<LaunchId>) {
    let mut serial = Serial::new();
    let spans = runs.iter().map(|run| Spans { run: *run, ..Spans::USUAL });
    let launches: Vec<LaunchId> = spans.map(|spans| serial.launch(&spans, DIRNAME)).collect();
    // The first thread works on for longer than a runtime takes to pass on the end of a child.
    let set = serial.now() + SHELL * 3 / 4;
    let (recording, mut slices) = serial.finish();
    let wall = recording.info.wall.unwrap().0;
    let exit = wall - 50_000;
    let (call, until) = match waiting {
        Waiting::Sleeps => (CLOCK_NANOSLEEP, set + CHECK + nap),
        Waiting::TimesOut => (FUTEX, set - CHECK),
        Waiting::UntilKilled => (CLOCK_NANOSLEEP, exit - CHECK),
    };
    slices.push(created(POLLING, 0, 0));
    let mut on = 0;
    while on + CHECK + nap < until {
        slices.push(slice(POLLING, on, on + CHECK, [nap, 0], call, None));
        on += CHECK + nap;
    }
    let by_first = Some(WakerRow::Task(TaskId(1)));
    let first_ends = |slices: &mut Vec<SliceRow>| {
        let last = slices.iter_mut().find(|slice| slice.task.0 == 1 && slice.reason == LeftCpu::Ended).unwrap();
        *last = ended(1, last.off.0 - last.on_span.unwrap().0, set);
    };
    match waiting {
        Waiting::Sleeps => {
            first_ends(&mut slices);
            slices.push(ended(POLLING, on, wall.max(on + SHELL)));
        }
        Waiting::TimesOut => {
            first_ends(&mut slices);
            slices.push(slice(POLLING, on, on + CHECK, [set - on - CHECK, 0], call, by_first));
            slices.push(ended(POLLING, set, wall));
        }
        Waiting::UntilKilled => {
            slices.push(slice(POLLING, on, on + CHECK, [wall - on - CHECK, 0], call, by_first));
            slices.push(ended(POLLING, wall, wall + 1));
        }
    }
    (recording, slices, launches)
}

proptest! {
    #[test]
    fn the_path_and_removal_agree_when_a_thread_polls(
        nap in 200_000..3_000_000u64,
        runs in proptest::collection::vec(200_000..8_000_000u64, 4..20),
        waiting in prop_oneof![Just(Waiting::Sleeps), Just(Waiting::TimesOut), Just(Waiting::UntilKilled)],
    ) {
        let spans = runs.iter().map(|run| Spans { run: *run, ..Spans::USUAL }.total());
        let all: u64 = spans.sum();
        prop_assume!(all > 10 * nap);
        let (mut recording, slices, launches) = waiting_thread(waiting, nap, &runs);
        let end = slices.iter().map(|slice| slice.off).max().unwrap();
        if matches!(waiting, Waiting::Sleeps) {
            recording.info.wall = Some(end);
            recording.launches[0].exit = Some(Nanos(end.0 - 50_000));
            recording.launches[0].zombie = Some(end);
        }
        let (prediction, critical) = without_launches(&recording, &slices, &launches);
        let [saved, ..] = prediction.saving();
        let margin = all / 20 + 2 * nap;
        prop_assert!(prediction.replay_error.abs() < 0.01, "{prediction:?}");
        prop_assert!(saved.0.abs_diff(all) < margin, "saves {} of {all}", saved.0);
        prop_assert!(critical.abs_diff(all) < margin, "{critical} of {all} is critical");
    }
}

/// Builds a recording of a shell that starts a program in the background, executes `sleep` until
/// the program has ended, and works on.
fn sleeping_shell(run: u64) -> (Recording, Vec<SliceRow>, LaunchId, Vec<LaunchId>) {
    const NAP: u64 = 10_000_000;
    let mut serial = Serial::new();
    let program = serial.builder.launch(ROOT, serial.now(), &Spans { run, ..Spans::USUAL }, DIRNAME);
    let row = serial.builder.row(program);
    row.parent_task = Some(TaskId(ROOT.0));
    let (born, zombie) = (row.created.unwrap().0, row.zombie.unwrap().0);
    serial.slices.push(created(program.0, born, Spans::USUAL.queue));
    serial.slices.push(ended(program.0, born + Spans::USUAL.queue, zombie));
    serial.run_shell_until(born + 100_000);
    let mut sleeps = Vec::new();
    while serial.now() < zombie {
        let sleep = serial.launch_without_cpu(&Spans::USUAL, SLEEP, NAP, LeftCpu::Interruptible);
        let nap = serial.slices.iter_mut().find(|slice| slice.task.0 == sleep.0 && slice.wake_span == Some(Nanos(NAP)));
        nap.unwrap().syscall = Some(CLOCK_NANOSLEEP);
        sleeps.push(sleep);
    }
    serial.builder.row(program).reaped = Some(Nanos(serial.now() - 100_000));
    let (recording, slices) = serial.finish();
    (recording, slices, program, sleeps)
}

#[test]
fn a_shell_that_executes_sleep_until_a_program_has_ended_waits_for_the_program() {
    const RUN: u64 = 95_000_000;
    let (recording, slices, program, sleeps) = sleeping_shell(RUN);
    let (prediction, critical) = without_launches(&recording, &slices, &[program]);
    let saved = prediction.saving()[0].0;
    assert!(saved.abs_diff(RUN) < RUN / 5, "{prediction:?}");
    assert!(critical.abs_diff(RUN) < RUN / 5, "{critical} is critical");
    assert!(prediction.predicted.0 > 2 * SHELL, "the shell works on: {prediction:?}");
    let (without_sleeps, _) = without_launches(&recording, &slices, &sleeps);
    let late = recording.info.wall.unwrap().0 - 2 * SHELL - RUN;
    assert!(without_sleeps.saving()[0].0 < late, "the shell still waits for the program: {without_sleeps:?}");
}

proptest! {
    /// A shell reaps a program in the background when it reaps the next `sleep`, or at once.
    #[test]
    fn a_launch_has_no_more_tax_on_the_path_than_in_all_when_its_parent_polls(
        run in 15_000_000..95_000_000u64,
        reaped_after in 0.0..=1.0f64,
    ) {
        let (mut recording, slices, program, sleeps) = sleeping_shell(run);
        let last = recording.launches[sleeps.last().unwrap().0 as usize - 1].reaped.unwrap();
        let row = &mut recording.launches[program.0 as usize - 1];
        let zombie = row.zombie.unwrap();
        row.reaped = Some(Nanos(zombie.0 + (last.since(zombie).0 as f64 * reaped_after) as u64));
        let forest = Forest::build(&recording);
        let wall = recording.info.wall.unwrap();
        let path = critical_path(&forest, &timelines(&forest, &slices), wall).unwrap();
        prop_assert_eq!(path.sum(), wall);
        for (launch, charges) in forest.launches.iter().zip(&path.launches) {
            prop_assert!(charges.tax() <= launch.tax().unwrap(), "{charges:?} of {:?}", launch.phases);
        }
    }
}

#[test]
fn work_beside_the_launches_takes_over() {
    // The shell starts a program in the background, runs other programs for as long, and waits for
    // the first.
    let mut serial = Serial::new();
    let beside = serial.builder.launch(ROOT, serial.now(), &Spans { run: 40_000_000, ..Spans::USUAL }, DIRNAME);
    let row = serial.builder.row(beside);
    row.parent_task = Some(TaskId(ROOT.0));
    let (born, zombie) = (row.created.unwrap().0, row.zombie.unwrap().0);
    serial
        .slices
        .extend([created(beside.0, born, Spans::USUAL.queue), ended(beside.0, born + Spans::USUAL.queue, zombie)]);
    serial.run_shell_until(born + 100_000);
    let long = Spans { run: 10_000_000, ..Spans::USUAL };
    let launches: Vec<LaunchId> = (0..4).map(|_| serial.launch(&long, SLEEP)).collect();
    assert!(serial.now() > zombie);
    serial.builder.row(beside).reaped = Some(Nanos(serial.now() - 100_000));
    let (recording, slices) = serial.finish();
    let forest = Forest::build(&recording);
    let timelines = timelines(&forest, &slices);
    let parameters = Parameters::of(&recording).unwrap();
    let replay = Replay::new(&forest, &timelines, &parameters).unwrap();
    let path = critical_path(&forest, &timelines, parameters.wall).unwrap();
    let whatif = WhatIf { forest: &forest, timelines: &timelines, replay: &replay, constants: &Constants::default() };
    let launches = launches.iter().map(|launch| launch.0 as u32 - 1).collect();
    let removal = [AppliedChange { change: Change::Remove, launches }];
    let saved = whatif.predict(&removal).saving()[0];
    let takeover = whatif.takeover(&removal, saved, &path, &recording).expect("half of the path goes for nothing");
    assert!(takeover.by == Spent::Run && takeover.removed.0 > 4 * 10_000_000, "{takeover:?} {saved:?}");
    assert!(takeover.sentence(saved).ends_with("more would go into running programs"), "{takeover:?}");
}

#[test]
fn a_single_sleep_beside_a_program_is_not_a_loop() {
    let (recording, slices, program, sleeps) = sleeping_shell(5_000_000);
    assert_eq!(sleeps.len(), 1);
    let (prediction, _) = without_launches(&recording, &slices, &[program]);
    assert!(prediction.saving()[0].0 < 1_000_000, "{prediction:?}");
}
