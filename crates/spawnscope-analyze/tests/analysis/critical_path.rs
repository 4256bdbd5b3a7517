//! The critical path: what its parts are charged to, external waits, and that the charges sum to
//! the wall for any slices.

use proptest::prelude::*;
use spawnscope_analyze::CriticalPath;
use spawnscope_analyze::path::critical_path::{Charge, stretches};

use crate::prelude::*;
use crate::recordings::woken_by;
use crate::slices::any_slice;

const WALL: u64 = 10_000_000;
/// The time from the release of the command to its exec, as in the builder.
const RELEASE: u64 = 20_000;
const NANOSLEEP: u16 = 35;

fn path_of(recording: &Recording, slices: &[SliceRow]) -> CriticalPath {
    let forest = Forest::build(recording);
    critical_path(&forest, &timelines(&forest, slices), Nanos(WALL)).expect("a command")
}

/// Builds a recording of a command that launches a child at 1 ms. Also returns the id of the child,
/// which is also the id of its thread.
fn one_child() -> (Builder, LaunchId) {
    let mut builder = Builder::command("/bin/sh", &["sh"], WALL);
    let child = builder.launch(ROOT, 1_000_000, &Spans::USUAL, Some(("/bin/true", &["true"])));
    builder.recording.launches[1].parent_task = Some(TaskId(ROOT.0));
    (builder, child)
}

/// Returns the slices of a child that its parent waits for.
fn slices_of_wait_for(child: LaunchId) -> [SliceRow; 4] {
    let spans = Spans::USUAL;
    let created_at = 1_000_000 + spans.create;
    let first_run = created_at + spans.queue;
    let zombie = 1_000_000 + spans.total() - spans.reap;
    [
        slice(1, 0, created_at + 5_000, [zombie - created_at - 5_000, spans.reap], WAIT4, woken_by(child)),
        ended(1, zombie + spans.reap, WALL),
        created(child.0, created_at, spans.queue),
        ended(child.0, first_run, zombie + 1_000),
    ]
}

#[test]
fn a_parent_that_waits_charges_the_child_and_its_reaping() {
    let (builder, child) = one_child();
    let spans = Spans::USUAL;
    let path = path_of(&builder.recording, &slices_of_wait_for(child));
    let charges = &path.launches[1];
    let expected =
        [spans.create, spans.queue, spans.setup, spans.exec, spans.load, spans.run, spans.teardown, spans.reap];
    let charged: Vec<u64> = Phase::ALL.iter().map(|phase| charges.get(*phase).0).collect();
    assert_eq!(charged, expected);
    assert_eq!(path.launches[0].total().0, WALL - RELEASE - spans.total(), "the rest belongs to the shell");
    let external_wait: Vec<_> = path.external_wait.iter().collect();
    assert_eq!(external_wait, [(&ExternalWait::Recorder, &Nanos(RELEASE))], "until the command's exec");
    assert_eq!(path.sum(), Nanos(WALL));
}

#[test]
fn a_child_of_a_busy_parent_is_not_on_the_path() {
    let (builder, child) = one_child();
    let created_at = 1_000_000 + Spans::USUAL.create;
    let path = path_of(
        &builder.recording,
        &[ended(1, 0, WALL), created(child.0, created_at, 20_000), ended(child.0, created_at + 20_000, 3_000_000)],
    );
    let charges = &path.launches[1];
    assert_eq!(charges.total().0, Spans::USUAL.create, "only its creation delayed the parent");
    assert_eq!(path.sum(), Nanos(WALL));
}

#[test]
fn a_sleep_whose_timer_interrupted_a_recorded_thread_is_still_an_external_wait() {
    let (builder, child) = one_child();
    let path = path_of(
        &builder.recording,
        &[
            slice(1, 0, 2_000_000, [3_000_000, 0], NANOSLEEP, woken_by(child)),
            ended(1, 5_000_000, WALL),
            created(child.0, 1_120_000, 20_000),
            ended(child.0, 1_140_000, 9_000_000),
        ],
    );
    assert_eq!(path.external_wait.get(&ExternalWait::Timer), Some(&Nanos(3_000_000)));
    assert_eq!(path.sum(), Nanos(WALL));
}

#[test]
fn a_process_that_is_not_recorded_is_named() {
    let (mut builder, _) = one_child();
    let name = builder.recording.texts.push(b"dbus-daemon");
    let waker = Some(WakerRow::Other(Pid(7), Some(name)));
    let slices = [slice(1, 0, 2_000_000, [3_000_000, 50_000], READ, waker), ended(1, 5_050_000, WALL)];
    let path = path_of(&builder.recording, &slices);
    assert_eq!(path.external_wait.get(&ExternalWait::Process(Some(name))), Some(&Nanos(3_000_000)));
    assert_eq!(path.launches[0].run_queue(), Nanos(50_000));
    assert_eq!(path.sum(), Nanos(WALL));
}

#[test]
fn the_first_wait_of_a_further_thread_for_a_cpu_is_not_a_phase_of_its_process() {
    let builder = Builder::command("/bin/sh", &["sh"], WALL);
    let woken_by_thread = Some(WakerRow::Task(TaskId(50)));
    let slices = [
        slice(1, 0, 2_000_000, [5_000_000, 0], READ, woken_by_thread),
        ended(1, 7_000_000, WALL),
        created(50, 2_000_000, 3_000_000),
        ended(50, 5_000_000, 7_000_000),
    ];
    let forest = Forest::build(&builder.recording);
    let timelines = timelines_with(&forest, &slices, &[thread(50, ROOT, 2_000_000)]);
    let path = critical_path(&forest, &timelines, Nanos(WALL)).expect("a command");
    assert_eq!(path.launches[0].get(Phase::Queue), Nanos(0), "{path:?}");
    assert_eq!(path.launches[0].run_queue(), Nanos(3_000_000), "{path:?}");
    assert_eq!(path.sum(), Nanos(WALL));
}

#[test]
fn a_reader_that_waits_for_a_cpu_after_the_writer_ended_reaps_nothing() {
    let (mut builder, writer) = one_child();
    let reader = builder.launch(ROOT, 1_200_000, &Spans::USUAL, Some(("/usr/bin/wc", &["wc"])));
    builder.recording.launches[2].parent_task = Some(TaskId(ROOT.0));
    let written = builder.recording.launches[1].zombie.expect("it ends").0;
    let ends = 8_000_000;
    let runs = written + 3_000_000;
    builder.recording.launches[2].exit = Some(Nanos(ends - 20_000));
    builder.recording.launches[2].zombie = Some(Nanos(ends));
    builder.recording.launches[2].reaped = Some(Nanos(ends + 10_000));

    let path = path_of(
        &builder.recording,
        &[
            slice(1, 0, 1_400_000, [ends - 1_400_000, 10_000], WAIT4, woken_by(reader)),
            ended(1, ends + 10_000, WALL),
            ended(writer.0, 1_140_000, written),
            slice(reader.0, 1_340_000, 1_800_000, [written - 1_800_000, runs - written], READ, woken_by(writer)),
            ended(reader.0, runs, ends),
        ],
    );
    assert_eq!(path.launches[2].run_queue(), Nanos(runs - written), "{path:?}");
    assert_eq!(path.launches[1].get(Phase::Reap), Nanos(0), "the shell reaped it long before");
}

proptest! {
    /// The sum stays the wall despite lost events, clock differences and impossible wakers.
    #[test]
    fn charges_sum_to_the_wall_whatever_the_slices_say(slices in proptest::collection::vec(any_slice(WALL), 0..60)) {
        let mut builder = Builder::command("/bin/sh", &["sh"], WALL);
        let spans = &Spans::USUAL;
        let child = builder.launch(ROOT, 1_000_000, spans, Some(("/bin/true", &["true"])));
        builder.launch(child, 1_500_000, spans, None);
        builder.launch(ROOT, 4_000_000, spans, Some(("/bin/true", &["true"])));
        for launch in &mut builder.recording.launches[1..] {
            launch.parent_task = launch.parent.map(|parent| TaskId(parent.0));
        }
        let path = path_of(&builder.recording, &slices);
        prop_assert_eq!(path.sum(), Nanos(WALL));

        let forest = Forest::build(&builder.recording);
        let stretches = stretches(&forest, &timelines(&forest, &slices), Nanos(WALL)).expect("a command");
        prop_assert_eq!(stretches[0].start, Nanos(0));
        prop_assert_eq!(stretches[stretches.len() - 1].end, Nanos(WALL));
        prop_assert!(stretches.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].charge != pair[1].charge));
        for (launch, charges) in (0..).zip(&path.launches) {
            let is_of = |charge| matches!(charge, Charge::Phase(id, _) | Charge::RunQueue(id) if id == launch);
            let of_launch = stretches.iter().filter(|stretch| is_of(stretch.charge));
            let sum: u64 = of_launch.map(|stretch| stretch.end.since(stretch.start).0).sum();
            prop_assert_eq!(sum, charges.total().0);
            // The launch tax on the path is at most that of the launch.
            let launch = &forest.launches[launch as usize];
            let tax = launch.tax().unwrap_or_default();
            prop_assert!(charges.tax() <= tax, "{charges:?} of {:?}", launch.phases);
        }
    }
}
