//! Processes with a polling thread: waits of the other threads are not attributed to its polling
//! rounds.

use proptest::prelude::*;
use spawnscope_analyze::model::timeline::Timelines;
use spawnscope_analyze::path::critical_path::critical_path;
use spawnscope_analyze::predict::whatif::Prediction;

use crate::prelude::*;
use crate::serial::{BETWEEN, without};
use crate::whatif::LAUNCH;

const FUTEX: u16 = 202;
const POLLING: u64 = 50;
const WORKING: u64 = 60;
const LAUNCHES: usize = 12;
/// How long the shell waits for a lock before each launch except the first, in nanoseconds.
const LOCK: u64 = 500_000;

/// Whether the polling thread wakes up before or after the beginning of the shell's wait.
#[derive(Clone, Copy)]
enum Round {
    Before,
    After,
}

type Recorded = (Recording, Vec<SliceRow>, Vec<LaunchId>);

/// Builds a recording of a shell that launches one program after another. Before each it waits for
/// a lock that a polling thread releases.
fn polled_recording(round: Round) -> Recorded {
    let mut serial = Serial::new();
    let mut launches = vec![serial.launch(&Spans::USUAL, DIRNAME)];
    // When the polling thread last got and left its CPU.
    let mut polled = [0, 10_000];
    serial.slices.push(created(POLLING, 0, 0));
    while launches.len() < LAUNCHES {
        let (from, woken) = (serial.now(), serial.now() + LOCK);
        let waker = Some(WakerRow::Task(TaskId(POLLING)));
        let wait = slice(1, from - BETWEEN, from, [LOCK, 0], FUTEX, waker);
        serial.slices.push(wait);
        let begins = match round {
            Round::Before => from - 100_000,
            Round::After => woken - 100_000,
        };
        let [on, off] = polled;
        let nap = slice(POLLING, on, off, [begins - off, 0], CLOCK_NANOSLEEP, None);
        serial.slices.push(nap);
        polled = [begins, woken + 10_000];
        serial.resume_shell_at(woken);
        launches.push(serial.launch(&Spans::USUAL, DIRNAME));
    }
    serial.slices.push(ended(POLLING, polled[0], polled[1]));
    let (recording, slices) = serial.finish();
    (recording, slices, launches)
}

const THREADS: [u64; 2] = [POLLING, WORKING];

fn timelines(forest: &Forest<'_>, slices: &[SliceRow]) -> Timelines {
    timelines_with(forest, slices, &THREADS.map(|task| thread(task, ROOT, 0)))
}

fn without_launches((recording, slices, launches): &Recorded) -> (Prediction, u64) {
    let (prediction, critical, _) = without((recording, slices), &THREADS, launches);
    (prediction, critical)
}

#[test]
fn the_critical_path_and_removal_agree_when_another_thread_polls() {
    for round in [Round::Before, Round::After] {
        let (prediction, critical) = without_launches(&polled_recording(round));
        let [saved, ..] = prediction.saving();
        let all = LAUNCHES as u64 * LAUNCH;
        assert!(prediction.replay_error.abs() < 0.01, "{prediction:?}");
        assert!(saved.0.abs_diff(all) < all / 20, "{} of {all}", saved.0);
        assert!(critical.abs_diff(saved.0) < all / 20, "critical {critical}, saved {}", saved.0);
    }
}

/// The exit of the shell kills a thread that sleeps 1 ms at a time. After each launch, the shell
/// waits for it once.
#[test]
fn the_sleeps_of_a_thread_that_is_killed_go_with_the_launches() {
    let mut serial = Serial::new();
    let (mut launches, mut on) = (Vec::new(), 0);
    let long = Spans { run: 10_000_000, ..Spans::USUAL };
    serial.slices.push(created(POLLING, 0, 0));
    while launches.len() < LAUNCHES {
        launches.push(serial.launch(&long, DIRNAME));
        let (from, woken) = (serial.now(), serial.now() + LOCK);
        let waker = Some(WakerRow::Task(TaskId(POLLING)));
        serial.slices.push(slice(1, from - BETWEEN, from, [LOCK, 0], FUTEX, waker));
        while on + 1_010_000 < woken {
            serial.slices.push(slice(POLLING, on, on + 10_000, [1_000_000, 0], CLOCK_NANOSLEEP, None));
            on += 1_010_000;
        }
        serial.slices.push(slice(POLLING, on, woken + 10_000, [10_000, 0], CLOCK_NANOSLEEP, None));
        on = woken + 20_000;
        serial.resume_shell_at(woken);
    }
    let (recording, mut slices) = serial.finish();
    let killed = recording.info.wall.unwrap().0 - 20_000;
    slices.push(slice(POLLING, on, on + 10_000, [killed - on - 10_000, 0], CLOCK_NANOSLEEP, None));
    slices.push(ended(POLLING, killed, killed + 20_000));
    let (prediction, _) = without_launches(&(recording, slices, launches));
    let all = LAUNCHES as u64 * (LAUNCH + long.run - Spans::USUAL.run);
    assert!(prediction.saving()[0].0.abs_diff(all) < all / 10, "{prediction:?} of {all}");
}

#[test]
fn polling_rounds_that_coincide_with_launches_make_a_prediction_uncertain() {
    let mut recorded = polled_recording(Round::Before);
    let with = without_launches(&recorded).0.saving_margin.0;
    // Lets a thread that is not recorded end the same waits.
    for slice in recorded.1.iter_mut().filter(|slice| slice.syscall == Some(FUTEX)) {
        slice.waker = None;
    }
    let without = without_launches(&recorded).0.saving_margin.0;
    let rounds = ((LAUNCHES - 1) as f64).sqrt() * LOCK as f64;
    assert!(with > without && with as f64 >= rounds, "{with}, {without}, {rounds}");
}

/// How long the polling thread sleeps and works in a round of `passed_on`, in nanoseconds.
const ROUND: u64 = 10_000_000;
const CHECK: u64 = 30_000;

/// Builds a recording of a process whose first thread requests launches from a second one. A third
/// one looks every 10 ms whether the last launch has ended, and wakes the first thread. Nothing
/// waits for a CPU.
fn passed_on(spans: &Spans) -> Recorded {
    const REQUEST: u64 = 50_000;
    let mut builder = Builder::command("/usr/bin/raku", &["raku"], (LAUNCHES as u64 + 2) * ROUND);
    let [by_first, by_polling] = [1, POLLING].map(|task| Some(WakerRow::Task(TaskId(task))));
    let mut slices = vec![created(POLLING, 0, 0), created(WORKING, 0, 0)];
    let (mut launches, mut working_on) = (Vec::new(), 0);
    let mut main_on = 0;
    for number in 0..LAUNCHES as u64 {
        let round = number * ROUND;
        slices.push(slice(POLLING, round, round + CHECK, [ROUND - CHECK, 0], CLOCK_NANOSLEEP, None));
        let requested = main_on + REQUEST;
        let next = round + ROUND + CHECK / 2;
        slices.push(slice(1, main_on, requested, [next - requested, 0], FUTEX, by_polling));
        main_on = next;
        let idle_from = working_on + CHECK;
        slices.push(slice(WORKING, working_on, idle_from, [requested.saturating_sub(idle_from), 0], FUTEX, by_first));
        let launch = builder.launch(ROOT, requested.max(idle_from) + 10_000, spans, DIRNAME);
        let row = builder.row(launch);
        row.parent_task = Some(TaskId(WORKING));
        let (born, zombie, reaped) = (row.created.unwrap().0, row.zombie.unwrap().0, row.reaped.unwrap().0);
        slices.push(created(launch.0, born, spans.queue));
        slices.push(ended(launch.0, born + spans.queue, zombie));
        let by_child = Some(WakerRow::Task(TaskId(launch.0)));
        slices.push(slice(
            WORKING,
            requested.max(idle_from),
            born + 1_000,
            [zombie - born - 1_000, 0],
            WAIT4,
            by_child,
        ));
        working_on = zombie.max(reaped - spans.reap);
        launches.push(launch);
    }
    let wall = main_on + 2_000_000;
    let last = LAUNCHES as u64 * ROUND;
    slices.push(slice(POLLING, last, last + CHECK, [wall - last - CHECK, 0], CLOCK_NANOSLEEP, None));
    slices.extend([ended(POLLING, wall, wall), ended(WORKING, working_on, wall.min(working_on + CHECK))]);
    slices.push(ended(1, main_on, wall));
    let root = builder.row(ROOT);
    (root.exit, root.zombie) = (Some(Nanos(wall - 50_000)), Some(Nanos(wall)));
    (builder.recording.info.wall, builder.recording.info.last_event) = (Some(Nanos(wall)), Nanos(wall));
    (builder.recording, slices, launches)
}

#[test]
fn a_round_that_passes_on_what_another_thread_did_is_a_wait_for_a_timer() {
    let (recording, slices, _) = passed_on(&Spans::USUAL);
    let forest = Forest::build(&recording);
    let timelines = timelines(&forest, &slices);
    let path = critical_path(&forest, &timelines, recording.info.wall.unwrap()).unwrap();
    let queued: u64 = path.launches.iter().map(|charges| charges.run_queue().0).sum();
    assert!(queued < ROUND / 2, "{queued} in the run queue");
    let late = LAUNCHES as u64 * (ROUND - LAUNCH);
    let timer = path.external_wait[&ExternalWait::Timer].0;
    assert!(timer.abs_diff(late) < late / 10, "{timer} of {late}");
}

proptest! {
    /// Without the launches, the next round still comes when it comes: they save nothing if they
    /// are shorter than a round.
    #[test]
    fn launches_that_end_before_the_next_round_save_nothing(run in 100_000..7_000_000u64) {
        let recorded = passed_on(&Spans { run, ..Spans::USUAL });
        let (prediction, _) = without_launches(&recorded);
        prop_assert!(prediction.replay_error.abs() < 0.01, "{prediction:?}");
        let saved = prediction.saving()[0].0;
        prop_assert!(saved < ROUND / 2, "saves {saved}");
    }
}

#[test]
fn a_loop_of_timed_waits_for_each_child_ends_with_the_child() {
    const PSELECT6: u16 = 270;
    let (half, late) = (1_500_000, 400_000);
    let spans = Spans { run: 2_000_000, ..Spans::USUAL };
    let mut serial = Serial::new();
    let mut launches = Vec::new();
    while launches.len() < LAUNCHES {
        let life = spans.queue + spans.setup + spans.exec + spans.load + spans.run + spans.teardown;
        launches.push(serial.launch_sleeping(&spans, DIRNAME.unwrap(), life + late));
        let of_shell = serial.slices.iter().rposition(|slice| slice.task.0 == 1).unwrap();
        let sleep = serial.slices.remove(of_shell);
        let [on, off] = [sleep.off.0 - sleep.on_span.unwrap().0, sleep.off.0 + 5_000];
        serial.slices.push(slice(1, on, off, [half, 0], PSELECT6, None));
        let rest = life + late - half - 15_000;
        serial.slices.push(slice(1, off + half, off + half + 10_000, [rest, 0], PSELECT6, None));
    }
    // The last wait of this kind is ended by a child, but none of the others was for that child.
    serial.launch_waiting(&spans, DIRNAME, PSELECT6);
    let last = serial.slices.iter().rposition(|slice| slice.task.0 == 1).unwrap();
    let wait = &mut serial.slices[last];
    wait.off.0 += 5_000;
    wait.on_span = wait.on_span.map(|span| Nanos(span.0 + 5_000));
    [wait.off_span, wait.wake_span] = [wait.off_span, wait.wake_span].map(|span| Some(span?.since(Nanos(5_000))));
    let (recording, slices) = serial.finish();
    let prediction = predict(&(recording, slices), &Constants::default(), &[(Change::ReapNow, &launches)]);
    let saved = prediction.wall.since(prediction.predicted).0;
    assert!(saved.abs_diff(LAUNCHES as u64 * late) < 100_000, "{saved}: {prediction:?}");
}

fn has_attributed_sleep(serial: Serial, naps: &[SliceRow]) -> bool {
    let (recording, mut slices) = serial.finish();
    slices.extend_from_slice(naps);
    let forest = Forest::build(&recording);
    let waits = attributed_waits(&recording, &forest, &timelines(&forest, &slices));
    waits.iter().any(|waits| waits.syscall == Some(CLOCK_NANOSLEEP))
}

#[test]
fn a_timer_of_another_thread_is_not_a_wait_for_a_launch() {
    let long = Spans { run: 10_000_000, ..Spans::USUAL };
    let mut serial = Serial::new();
    (0..LAUNCHES).for_each(|_| {
        serial.launch(&long, DIRNAME);
    });
    // The polling thread is the supervisor of a thread pool, which sleeps 1 ms at a time.
    let mut naps = vec![created(POLLING, 0, 0)];
    for on in (0..serial.now() - 2_000_000).step_by(1_000_000) {
        naps.push(slice(POLLING, on, on + 10_000, [990_000, 0], CLOCK_NANOSLEEP, None));
    }
    assert!(!has_attributed_sleep(serial, &naps));
    let mut polling = Serial::new();
    let dirname = DIRNAME.unwrap();
    polling.launch_sleeping(&Spans::USUAL, dirname, 5 * Spans::USUAL.total());
    assert!(has_attributed_sleep(polling, &[]), "the thread that launched it sleeps until it looks again");
}

const EPOLL_WAIT: u16 = 232;
/// How long the event loop sleeps until its timer expires, and how long it then works, in
/// nanoseconds.
const TIMER: [u64; 2] = [1_000_000, 20_000];

/// Builds a recording of a program that launches one program after another, and whose event loop
/// also runs a timer.
fn event_loop() -> Recorded {
    let mut serial = Serial::new();
    let spans = Spans { run: 10_000_000, ..Spans::USUAL };
    let mut launches = Vec::new();
    while launches.len() < LAUNCHES {
        let launch = serial.launch(&spans, DIRNAME);
        let wait = serial.slices.iter().rposition(|slice| slice.task.0 == 1 && slice.syscall == Some(WAIT4));
        let wait = serial.slices.remove(wait.unwrap());
        let mut on = wait.off.0 - wait.on_span.unwrap().0;
        let mut off = wait.off.0;
        let zombie = serial.builder.row(launch).zombie.unwrap().0;
        // The program only looks for ended children when its timer expires, so that no wait ends
        // with a child.
        while off + TIMER[0] < zombie {
            serial.slices.push(slice(1, on, off, [TIMER[0], 0], EPOLL_WAIT, None));
            on = off + TIMER[0];
            off = on + TIMER[1];
        }
        launches.push(launch);
    }
    let (recording, slices) = serial.finish();
    (recording, slices, launches)
}

#[test]
fn an_event_loop_with_a_timer_waits_for_its_child() {
    let recorded = event_loop();
    let (prediction, critical) = without_launches(&recorded);
    let all = LAUNCHES as u64 * (LAUNCH - Spans::USUAL.run + 10_000_000);
    assert!(critical > all * 8 / 10, "{critical} of {all} is critical");
    let saved = prediction.saving()[0].0;
    assert!(saved > all * 8 / 10, "saves {saved} of {all}");
}

/// A thread waits 10 ms at a time, and in the end wakes the shell. If the shell has woken it
/// before, nothing depended on its timers.
#[test]
fn timers_that_nothing_depends_on_do_not_make_a_prediction_uncertain() {
    let margin = |is_woken: bool| {
        let (mut serial, mut launches) = (Serial::new(), Vec::new());
        serial.slices.push(created(POLLING, 0, 0));
        let long = Spans { run: 10_000_000, ..Spans::USUAL };
        launches.extend((0..LAUNCHES).map(|_| serial.launch(&long, DIRNAME)));
        let (from, mut on) = (serial.now(), 0);
        while on + 20_010_000 < from {
            serial.slices.push(slice(POLLING, on, on + 10_000, [10_000_000, 0], FUTEX, None));
            on += 10_010_000;
        }
        let shell = Some(WakerRow::Task(TaskId(ROOT.0))).filter(|_| is_woken);
        serial.slices.push(slice(POLLING, on, on + 10_000, [from - on - 11_000, 0], FUTEX, shell));
        serial.slices.push(ended(POLLING, from - 1_000, from + 100_000));
        let polling = Some(WakerRow::Task(TaskId(POLLING)));
        serial.slices.push(slice(ROOT.0, from - BETWEEN, from, [100_000, 0], FUTEX, polling));
        serial.resume_shell_at(from + 100_000);
        let (recording, slices) = serial.finish();
        without_launches(&(recording, slices, launches)).0.saving_margin.0
    };
    let [alone, woken] = [false, true].map(margin);
    assert!(woken < alone && alone > 30_000_000, "{woken}, {alone}");
}

/// A thread waits 12 ms at a time until the shell ends its loop, just after the last launch. Then
/// the shell waits for it.
#[test]
fn a_wait_that_was_repeated_since_an_earlier_launch_is_not_for_the_last_one() {
    let mut serial = Serial::new();
    let long = Spans { run: 10_000_000, ..Spans::USUAL };
    let launches: Vec<LaunchId> = (0..5).map(|_| serial.launch(&long, DIRNAME)).collect();
    serial.slices.push(created(POLLING, 0, 0));
    let (from, mut on) = (serial.now(), 0);
    while on + 12_010_000 < from {
        serial.slices.push(slice(POLLING, on, on + 10_000, [12_000_000, 0], FUTEX, None));
        on += 12_010_000;
    }
    let shell = Some(WakerRow::Task(TaskId(1)));
    serial.slices.push(slice(POLLING, on, on + 10_000, [from - on - 11_000, 0], FUTEX, shell));
    serial.slices.push(ended(POLLING, from - 1_000, from + 100_000));
    let polling = Some(WakerRow::Task(TaskId(POLLING)));
    serial.slices.push(slice(1, from - BETWEEN, from, [100_000, 0], FUTEX, polling));
    serial.resume_shell_at(from + 100_000);
    let (recording, slices) = serial.finish();
    let (prediction, _) = without_launches(&(recording, slices, launches));
    let all = 5 * (LAUNCH + long.run - Spans::USUAL.run);
    assert!(prediction.saving()[0].0.abs_diff(all) < all / 20, "{prediction:?} of {all}");
}
