//! The replay: without changes it reproduces the wall, with fewer CPUs it takes longer, and no
//! damaged recording makes it hang or panic.

use proptest::prelude::*;
use spawnscope_analyze::Replay;
use spawnscope_analyze::model::external_wait::{ExternalWait, ExternalWaitTimes};
use spawnscope_analyze::predict::replay::machine::Machine;
use spawnscope_analyze::predict::replay::{Parameters, critical_path_of};

use crate::prelude::*;
use crate::slices::any_slice;

fn replay(recording: &Recording, slices: &[SliceRow], wall: u64, cpus: u32) -> Replay {
    let forest = Forest::build(recording);
    let parameters = Parameters {
        cpus,
        has_cpus: true,
        wall: Nanos(wall),
        fault_ns: 0.0,
        call_ns: 0.0,
        launch_ns: 0.0,
        exec_ns: 0.0,
        remains: None,
    };
    Replay::new(&forest, &timelines(&forest, slices), &parameters).expect("a command")
}

/// Builds a command that creates children one after the other, which run in parallel on a CPU each,
/// and waits for each in turn. Returns the slices and the wall as well.
fn parallel(work: &[u64]) -> (Builder, Vec<SliceRow>, u64) {
    const MAKE: u64 = 200_000;
    const LATENCY: u64 = 20_000;
    let begins: Vec<u64> = (0..work.len() as u64).map(|number| (number + 1) * MAKE).collect();
    let ends: Vec<u64> = begins.iter().zip(work).map(|(begin, work)| begin + LATENCY + work).collect();
    let mut slices = Vec::new();
    let (mut on, mut now) = (0, begins.last().copied().unwrap_or_default());
    for (number, end) in (0..).zip(&ends) {
        let child = number + 2;
        slices.push(created(child, begins[number as usize], LATENCY));
        slices.push(ended(child, begins[number as usize] + LATENCY, end + 1_000));
        if *end > now {
            let waker = Some(WakerRow::Task(TaskId(child)));
            slices.push(slice(1, on, now, [end - now, LATENCY], WAIT4, waker));
            on = end + LATENCY;
            now = on;
        }
    }
    let wall = now + 50_000;
    slices.push(ended(1, on, wall));
    let mut builder = Builder::command("/bin/sh", &["sh"], wall.max(1_000_000));
    for begin in begins {
        let child = builder.launch(ROOT, begin - 100_000, &Spans::USUAL, None);
        let row = &mut builder.recording.launches[child.0 as usize - 1];
        row.parent_task = Some(TaskId(ROOT.0));
        row.created = Some(Nanos(begin));
    }
    (builder, slices, wall)
}

#[test]
fn a_sleep_of_one_second_is_replayed_as_one_second() {
    let builder = Builder::command("/bin/sleep", &["sleep"], 1_003_000_000);
    let slices = [slice(1, 0, 2_000_000, [1_000_000_000, 0], 35, None), ended(1, 1_002_000_000, 1_003_000_000)];
    let replay = replay(&builder.recording, &slices, 1_003_000_000, 2);
    assert_eq!(replay.unchanged, Nanos(1_003_000_000));
    assert_eq!(replay.with_cpus(64), Nanos(1_003_000_000), "more CPUs do not shorten a sleep");
}

#[test]
fn a_thread_whose_last_slice_was_lost_runs_until_its_process_ended() {
    const WALL: u64 = 100_000_000;
    let mut builder = Builder::command("/bin/sh", &["sh"], WALL);
    let child = builder.launch(ROOT, 900_000, &Spans::USUAL, None);
    builder.row(child).parent_task = Some(TaskId(ROOT.0));
    let created_at = builder.row(child).created.unwrap().0;
    let slices = [created(child.0, created_at, Spans::USUAL.queue), ended(1, 0, WALL)];
    let replay = replay(&builder.recording, &slices, WALL, 1);
    // On one CPU, the command waits for what the child runs.
    let work = replay.unchanged.since(Nanos(WALL)).0;
    assert!((1..=Spans::USUAL.total()).contains(&work), "{work} of {}", Spans::USUAL.total());
}

#[test]
fn work_that_was_parallel_takes_the_sum_on_one_cpu() {
    let (builder, slices, wall) = parallel(&[40_000_000, 40_000_000]);
    let replay = replay(&builder.recording, &slices, wall, 4);
    let alone = replay.with_cpus(1).0;
    assert!((80_000_000..82_000_000).contains(&alone), "{alone}");
}

#[test]
fn a_command_that_was_allowed_one_cpu_is_replayed_on_one() {
    // Two children work 40 ms each, one after the other on one of two CPUs.
    const EACH: u64 = 40_000_000;
    let (mut builder, _, _) = parallel(&[EACH, EACH]);
    let wall = 2 * EACH + 500_000;
    let waker = Some(WakerRow::Task(TaskId(3)));
    let slices = [
        slice(1, 0, 400_000, [2 * EACH, 0], WAIT4, waker),
        ended(1, wall - 100_000, wall),
        created(2, 200_000, 200_000),
        ended(2, 400_000, 400_000 + EACH),
        created(3, 400_000, EACH),
        ended(3, 400_000 + EACH, 400_000 + 2 * EACH),
    ];
    let info = &mut builder.recording.info;
    (info.cpus, info.allowed_cpus, info.wall) = (2, Some(1.0), Some(Nanos(wall)));
    let parameters = Parameters::of(&builder.recording).unwrap();
    assert_eq!(parameters.cpus, 1);
    let replay = replay(&builder.recording, &slices, wall, parameters.cpus);
    assert!(replay.error().abs() < 0.01, "{}", replay.error());
    let doubled = replay.with_cpus(2).0;
    assert!(doubled.abs_diff(EACH) < 2_000_000, "{doubled}");
}

#[test]
fn a_cpu_taken_by_other_processes_is_lost_once_for_all_waiters() {
    // Another process uses one of the two CPUs, so that two threads share the other one.
    let preempted = SliceRow {
        off_span: Some(Nanos(5_000_000)),
        wake_span: None,
        reason: LeftCpu::Preempted,
        ..slice(1, 0, 5_000_000, [0, 0], 0, None)
    };
    let mut builder = Builder::command("/bin/sh", &["sh"], 20_000_000);
    builder.launch(ROOT, 0, &Spans::USUAL, None);
    let row = &mut builder.recording.launches[1];
    (row.parent_task, row.created) = (Some(TaskId(1)), Some(Nanos(0)));
    let slices =
        [preempted, ended(1, 10_000_000, 20_000_000), created(2, 0, 5_000_000), ended(2, 5_000_000, 10_000_000)];
    let replay = replay(&builder.recording, &slices, 20_000_000, 2);
    assert!(replay.error().abs() < 0.3, "{}", replay.error());
}

proptest! {
    #[test]
    fn an_unchanged_replay_reproduces_the_wall(work in proptest::collection::vec(1_000..50_000_000u64, 1..12)) {
        let (builder, slices, wall) = parallel(&work);
        let cpus = work.len() as u32 + 1;
        let replay = replay(&builder.recording, &slices, wall, cpus);
        // If the wall is short, the time to start a thread is a notable error.
        let off = replay.error().abs() * wall as f64;
        prop_assert!(off < 0.01 * wall as f64 + 30e3, "{off} ns of {wall}");
    }

    #[test]
    fn more_cpus_are_never_slower_than_one(work in proptest::collection::vec(1_000..50_000_000u64, 1..12)) {
        let (builder, slices, wall) = parallel(&work);
        let replay = replay(&builder.recording, &slices, wall, work.len() as u32 + 1);
        let walls: Vec<u64> = [1, 2, 4, 16].map(|cpus| replay.with_cpus(cpus).0).to_vec();
        // With another number of CPUs, time slices of 3 ms end at other instants. The thread that
        // ends last may then wait for two more time slices of other threads.
        let margin = 6_000_000;
        prop_assert!(walls.windows(2).all(|pair| pair[1] <= pair[0] + margin), "{walls:?}");
    }

    #[test]
    fn every_replay_ends(slices in proptest::collection::vec(any_slice(10_000_000), 0..60), cpus in 1..4u32) {
        let (builder, _, _) = parallel(&[1_000_000, 2_000_000, 3_000_000]);
        let replay = replay(&builder.recording, &slices, 10_000_000, cpus);
        prop_assert_eq!(replay.with_cpus(cpus), replay.unchanged, "the same every time");
        let launches = builder.recording.launches.len();
        let followed = critical_path_of(&replay.programs, &Machine::with_cpus(cpus), launches).wall;
        // Delayed threads share the time of unused CPUs, which is rounded at each step.
        let off = followed.0.abs_diff(replay.unchanged.0);
        prop_assert!(off < 1_000, "step by step, it ends {off} ns earlier or later");
    }
}

#[test]
fn the_replayed_path_names_external_waits_as_the_measured_path_does() {
    let mut serial = Serial::new();
    for reason in [LeftCpu::Uninterruptible, LeftCpu::Stopped, LeftCpu::Interruptible] {
        serial.launch_without_cpu(&Spans::USUAL, None, 5_000_000, reason);
    }
    let (recording, slices) = serial.finish();
    let forest = Forest::build(&recording);
    let timelines = timelines(&forest, &slices);
    let replay = Replay::new(&forest, &timelines, &Parameters::of(&recording).unwrap()).unwrap();
    let replayed = critical_path_of(&replay.programs, &Machine::with_cpus(replay.cpus), forest.launches.len());
    let mut measured = critical_path(&forest, &timelines, replay.measured).unwrap();
    measured.external_wait.remove(&ExternalWait::Recorder);
    let expected = [ExternalWait::Disk, ExternalWait::Stopped, ExternalWait::Unknown]
        .map(|external_wait| (external_wait, Nanos(5_000_000)));
    assert_eq!(replayed.external_wait, ExternalWaitTimes::from(expected));
    assert_eq!(replayed.external_wait, measured.external_wait);
}

/// The wall of 3 children on 2 CPUs, each of which works for this long.
fn three_on_two_cpus(work: u64) -> u64 {
    let (builder, slices, wall) = parallel(&[work; 3]);
    replay(&builder.recording, &slices, wall, 3).with_cpus(2).0
}

#[test]
fn many_turns_at_once_take_as_long_as_each_by_itself() {
    const SLICE: u64 = 3_000_000;
    let walls: Vec<u64> = (2..30).map(|rounds| three_on_two_cpus(rounds * 2 * SLICE + 1_234_567)).collect();
    assert!(walls.windows(2).all(|pair| pair[1] - pair[0] == 3 * SLICE), "{walls:?}");
}

#[test]
fn the_work_of_a_replay_does_not_depend_on_durations() {
    // 104 days of work, or 3,000,000,000 time slices on each CPU.
    const LONG: u64 = 9_000_000_000_000_000;
    let wall = three_on_two_cpus(LONG);
    assert!(wall.abs_diff(LONG / 2 * 3) < 10_000_000, "{wall}");
    let (builder, slices, wall) = parallel(&[LONG; 3]);
    let alone = replay(&builder.recording, &slices, wall, u32::MAX);
    assert_eq!(alone.unchanged, Nanos(wall), "idle CPUs cost nothing either");
}
