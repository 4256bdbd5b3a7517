//! Recordings without wakers. From a recording whose causes are known, the tests derive those that
//! ptrace would have made. The causes are reconstructed, and the interval of each prediction must
//! contain the prediction from the full recording.

use spawnscope_analyze::model::timeline::Timelines;
use spawnscope_analyze::path::critical_path::critical_path;
use spawnscope_analyze::predict::replay::{Parameters, Replay};
use spawnscope_analyze::predict::whatif::{AppliedChange, Prediction, WhatIf};
use spawnscope_analyze::waits::reconstruct::reconstruct;
use spawnscope_data::event::Missing;
use spawnscope_data::rows::{StopRow, ThreadRow};

use crate::prelude::*;
use crate::recordings::woken_by;
use crate::serial::{BETWEEN, SHELL};

/// How long the shell works alone.
const WORK_OF_SHELL: u64 = 220_000_000;

type Recorded = (Recording, Vec<SliceRow>);

/// Sets the CPU counters of the shell, as for a process that works whenever it does not wait.
fn with_cpu_of_shell((mut recording, slices): Recorded) -> Recorded {
    let worked: u64 =
        slices.iter().filter(|slice| slice.task.0 == ROOT.0).filter_map(|slice| Some(slice.on_span?.0)).sum();
    let exec = recording.execs.iter_mut().find(|exec| exec.launch == ROOT).unwrap();
    exec.enter_cpu = Some(Nanos(20_000));
    exec.return_cpu = Some(Nanos(320_000));
    exec.load_cpu = Some(Nanos(720_000));
    let root = recording.launches.iter_mut().find(|row| row.id == ROOT).unwrap();
    root.exit_cpu = Some(Nanos(worked - 50_000));
    root.cpu = Some(Nanos(worked));
    (recording, slices)
}

/// Returns what ptrace would have recorded. Only `with_waits` does it contain waits: those of the
/// shell for its children.
fn as_ptrace((recording, slices): &Recorded, with_waits: bool) -> Recorded {
    let mut recording = recording.clone();
    recording.info.collector = "ptrace".to_owned();
    recording.info.missing.push(Missing { what: Missing::SCHEDULER.to_owned(), effect: String::new() });
    for row in &mut recording.launches {
        (row.create, row.reaped) = (None, row.reaped.filter(|_| with_waits));
    }
    let seen = slices
        .iter()
        .filter(|slice| with_waits && slice.syscall == Some(WAIT4) && slice.task.0 == ROOT.0)
        .map(|slice| SliceRow { wake_span: None, waker: None, ..*slice });
    (recording, seen.collect())
}

fn reconstructed(forest: &Forest<'_>, recorded: &Recorded) -> Timelines {
    reconstructed_with(forest, recorded, &[])
}

fn reconstructed_with(forest: &Forest<'_>, (recording, slices): &Recorded, threads: &[ThreadRow]) -> Timelines {
    reconstruct(recording, forest, threads, timelines_with(forest, slices, threads))
}

fn predict_partial(recorded: &Recorded, change: Change, launches: &[LaunchId]) -> Prediction {
    predict_with(recorded, &[], change, launches)
}

fn predict_with(recorded: &Recorded, threads: &[ThreadRow], change: Change, launches: &[LaunchId]) -> Prediction {
    let (recording, _) = recorded;
    let forest = Forest::build(recording);
    let timelines = reconstructed_with(&forest, recorded, threads);
    let replay = Replay::new(&forest, &timelines, &Parameters::of(recording).unwrap()).unwrap();
    let constants = &Constants::of(recording, &forest);
    let whatif = WhatIf { forest: &forest, timelines: &timelines, replay: &replay, constants };
    whatif.predict(&[AppliedChange { change, launches: launches.iter().map(|launch| launch.0 as u32 - 1).collect() }])
}

/// Builds a recording of a shell that launches this many programs, one after the other.
fn serial(count: usize) -> (Recorded, Vec<LaunchId>) {
    let mut serial = Serial::new();
    let launches = (0..count).map(|_| serial.launch(&Spans::USUAL, DIRNAME)).collect();
    (with_cpu_of_shell(serial.finish()), launches)
}

/// Builds a recording of a shell that sleeps before its last launch, while it has no child.
fn with_a_sleep() -> (Recorded, Vec<LaunchId>) {
    let mut serial = Serial::new();
    let mut launches: Vec<LaunchId> = (0..4).map(|_| serial.launch(&Spans::USUAL, DIRNAME)).collect();
    let (slept, woken) = (serial.now(), serial.now() + 5_000_000);
    let on = slept - BETWEEN;
    serial.slices.push(slice(ROOT.0, on, slept, [5_000_000, 0], 230, None));
    serial.resume_shell_at(woken);
    launches.push(serial.launch(&Spans::USUAL, DIRNAME));
    (with_cpu_of_shell(serial.finish()), launches)
}

fn assert_contains(partial: &Prediction, whole: &Prediction) {
    let [expected, ..] = whole.saving();
    let [_, least, most] = partial.saving();
    assert!(least <= expected && expected <= most, "{expected:?} in {partial:?}");
    assert!(partial.low <= whole.predicted && whole.predicted <= partial.high, "{:?} in {partial:?}", whole.predicted);
}

#[test]
fn a_loop_is_predicted_as_with_wakers() {
    // If the shell is idle as long as each of many children, it waits for them, though no wait was
    // recorded.
    for (count, with_waits, is_certain) in [(20, true, true), (20, false, true), (4, false, false)] {
        let (whole, launches) = serial(count);
        let with_wakers = predict(&whole, &Constants::default(), &[(Change::Remove, &launches)]);
        let partial = as_ptrace(&whole, with_waits);
        let name = partial.0.info.collector.clone();
        let prediction = predict_partial(&partial, Change::Remove, &launches);
        assert!(prediction.replay_error.abs() < 0.01, "{name}: {prediction:?}");
        assert_contains(&prediction, &with_wakers);
        let [expected, least, _] = prediction.saving();
        let ratio = expected.0 as f64 / with_wakers.saving()[0].0 as f64;
        assert!((0.85..1.1).contains(&ratio), "{name}: {ratio}");
        assert_eq!(least.0 > expected.0 / 2, is_certain, "{name}: {prediction:?}");
    }
}

/// Bash blocks SIGCHLD while it waits, so that the recorder does not see which child it reaps. What
/// it does between a fork and its wait goes with the child all the same.
#[test]
fn a_child_is_reaped_when_the_wait_for_it_is_over() {
    const WORK: u64 = 100_000;
    let (mut whole, launches) = serial(20);
    for wait in whole.1.iter_mut().filter(|slice| slice.syscall == Some(WAIT4)) {
        wait.off.0 += WORK;
        wait.on_span = wait.on_span.map(|on| Nanos(on.0 + WORK));
        wait.off_span = wait.off_span.map(|off| Nanos(off.0 - WORK));
        wait.wake_span = wait.wake_span.map(|wake| Nanos(wake.0 - WORK));
    }
    let mut partial = as_ptrace(&with_cpu_of_shell(whole), true);
    let seen = predict_partial(&partial, Change::Remove, &launches).predicted;
    partial.0.launches.iter_mut().for_each(|row| row.reaped = None);
    let assumed = predict_partial(&partial, Change::Remove, &launches).predicted;
    assert!(assumed.0.abs_diff(seen.0) < 20 * WORK / 4, "{assumed:?}, {seen:?}");
}

#[test]
fn stops_by_the_collector_are_no_time_of_the_command() {
    const STOP: u64 = 100_000;
    let mut serial = Serial::new();
    let spans = Spans { run: Spans::USUAL.run + STOP, ..Spans::USUAL };
    let launches: Vec<LaunchId> = (0..20).map(|_| serial.launch(&spans, DIRNAME)).collect();
    for launch in &launches {
        let row = serial.builder.row(*launch);
        for cpu in [&mut row.exit_cpu, &mut row.cpu] {
            *cpu = cpu.map(|cpu| cpu.since(Nanos(STOP)));
        }
        let exit = row.exit.unwrap().0;
        serial.builder.stops(*launch, &[[exit - STOP, exit]]);
    }
    let partial = as_ptrace(&with_cpu_of_shell(serial.finish()), true);
    let prediction = predict_partial(&partial, Change::Remove, &[]);
    assert!(prediction.replay_error.abs() < 0.01, "{prediction:?}");
    let stopped = prediction.wall.since(prediction.unrecorded);
    assert!(stopped.0.abs_diff(20 * STOP) < STOP, "{stopped:?}");
    let forest = Forest::build(&partial.0);
    let path = critical_path(&forest, &reconstructed(&forest, &partial), prediction.wall).unwrap();
    assert!(path.external_wait[&ExternalWait::Recorder].0 >= 20 * STOP, "{:?}", path.external_wait);
}

#[test]
fn a_recording_with_wakers_stays_as_it_is() {
    let (whole, _) = serial(3);
    let forest = Forest::build(&whole.0);
    let same = reconstructed(&forest, &whole);
    assert!(!same.is_reconstructed());
    assert!(same.slices(0).iter().eq(timelines(&forest, &whole.1).slices(0).iter()));
}

#[test]
fn the_charges_sum_to_the_wall_and_the_loop_is_on_the_path() {
    let (whole, launches) = serial(10);
    for partial in [as_ptrace(&whole, true), as_ptrace(&whole, false)] {
        let forest = Forest::build(&partial.0);
        let timelines = reconstructed(&forest, &partial);
        let wall = partial.0.info.wall.unwrap();
        let path = critical_path(&forest, &timelines, wall).unwrap();
        assert_eq!(path.sum(), wall);
        for launch in &launches {
            let charged = path.launches[launch.0 as usize - 1].total();
            assert!(charged.0 > 900_000, "{}: {charged:?}", partial.0.info.collector);
        }
    }
}

/// The recording does not show why the shell slept. At the end of the sleep, none of the removed
/// launches was alive, so the sleep was for none of them, and remains.
#[test]
fn a_wait_that_ends_while_no_child_is_alive_is_for_no_child() {
    let (whole, launches) = with_a_sleep();
    let with_wakers = predict(&whole, &Constants::default(), &[(Change::Remove, &launches)]);
    let partial = as_ptrace(&whole, true);
    let prediction = predict_partial(&partial, Change::Remove, &launches);
    assert_contains(&prediction, &with_wakers);
    let [_, least, most] = prediction.saving();
    assert!(least.0 > 2_000_000 && most.0 < 9_000_000, "{prediction:?}");
}

/// The shell sleeps while its child runs. The recording does not show whether it waits for the
/// child.
#[test]
fn a_sleep_during_a_childs_life_widens_the_interval() {
    let mut serial = Serial::new();
    let long = Spans { run: 6_000_000, ..Spans::USUAL };
    let child = serial.launch_sleeping(&long, ("/bin/work", &["work"]), 20_000_000);
    let whole = with_cpu_of_shell(serial.finish());
    let with_wakers = predict(&whole, &Constants::default(), &[(Change::Remove, &[child])]);
    let partial = as_ptrace(&whole, false);
    let prediction = predict_partial(&partial, Change::Remove, &[child]);
    assert_contains(&prediction, &with_wakers);
    assert!(prediction.unknown.unwrap() != [Nanos(0); 2], "{prediction:?}");
}

/// A pool of threads: the first thread only waits for another one, which launches.
#[test]
fn the_first_thread_waits_for_a_thread_that_launches() {
    let (whole, launches) = serial(6);
    let with_wakers = predict(&whole, &Constants::default(), &[(Change::Remove, &launches)]);
    let (mut recording, mut slices) = as_ptrace(&whole, true);
    let launched = recording.launches.iter_mut().filter(|row| launches.contains(&row.id));
    launched.for_each(|row| row.parent_task = Some(TaskId(90)));
    slices.iter_mut().filter(|slice| slice.task.0 == ROOT.0).for_each(|slice| slice.task = TaskId(90));
    let begun = recording.execs.iter().find(|exec| exec.launch == ROOT).and_then(|exec| exec.load_end).unwrap();
    let root = recording.launches.iter_mut().find(|row| row.id == ROOT).unwrap();
    root.exit_cpu = Some(Nanos(2_000_000));
    let ended = Nanos(root.exit.unwrap().0 - 100_000);
    let pool = ThreadRow { ended: Some(ended), cpu: root.cpu, ..thread(90, ROOT, begun.0 + 10_000) };
    let prediction = predict_with(&(recording, slices), &[pool], Change::Remove, &launches);
    assert_contains(&prediction, &with_wakers);
    let ratio = prediction.saving()[0].0 as f64 / with_wakers.saving()[0].0 as f64;
    assert!((0.8..1.1).contains(&ratio), "{ratio}: {prediction:?}");
}

#[test]
fn a_wait_for_a_cpu_is_no_sleep() {
    let mut serial = Serial::new();
    let child = serial.launch(&Spans { run: 9_000_000, ..Spans::USUAL }, DIRNAME);
    let mut partial = as_ptrace(&with_cpu_of_shell(serial.finish()), true);
    let load_cpu = partial.0.execs.iter().find(|exec| exec.launch == child).and_then(|exec| exec.load_cpu).unwrap();
    let row = partial.0.launches.iter_mut().find(|row| row.id == child).unwrap();
    row.exit_cpu = Some(Nanos(load_cpu.0 + 2_000_000));
    let exit = row.exit.unwrap().0;
    let waited = slice(child.0, exit - 6_000_000, exit - 6_000_000, [6_000_000, 0], READ, None);
    let preempted = SliceRow { reason: LeftCpu::Preempted, wake_span: None, syscall: None, ..waited };
    partial.1.push(preempted);
    let forest = Forest::build(&partial.0);
    let slices = reconstructed(&forest, &partial);
    let off = |reason| {
        let slices = slices.slices(child.0 as u32 - 1).iter().filter(move |slice| slice.reason == reason);
        slices.filter_map(|slice| Some(slice.off_span?.0)).sum::<u64>()
    };
    assert_eq!([off(LeftCpu::Preempted), off(LeftCpu::Interruptible)], [6_000_000, 1_000_000]);
}

/// One child feeds the other through a pipe, and the shell waits for both.
#[test]
fn a_pipeline_contains_the_prediction_with_wakers() {
    let mut serial = Serial::new();
    let start = serial.now();
    let long = Spans { run: 8_000_000, ..Spans::USUAL };
    let builder = &mut serial.builder;
    let writer = builder.launch(ROOT, start, &long, Some(("/usr/bin/seq", &["seq", "9"])));
    let reader = builder.launch(ROOT, start + 200_000, &long, Some(("/usr/bin/sort", &["sort"])));
    for child in [writer, reader] {
        builder.row(child).parent_task = Some(TaskId(ROOT.0));
    }
    let [[w_created, w_run, w_zombie], [r_created, r_run, _]] = [writer, reader].map(|child| {
        let row = builder.row(child);
        [row.created, row.first_run, row.zombie].map(|at| at.unwrap().0)
    });
    // The reader works for 0.8 ms after its input has ended.
    let (read_from, r_zombie) = (r_run + 1_000_000, w_zombie + 860_000);
    let row = builder.row(reader);
    row.exit = Some(Nanos(r_zombie - 60_000));
    row.zombie = Some(Nanos(r_zombie));
    row.reaped = Some(Nanos(r_zombie + 10_000));
    row.exit_cpu = Some(Nanos(1_800_000));
    row.cpu = Some(Nanos(1_860_000));

    serial.slices.extend([
        created(writer.0, w_created, w_run - w_created),
        ended(writer.0, w_run, w_zombie),
        created(reader.0, r_created, r_run - r_created),
        slice(reader.0, r_run, read_from, [w_zombie - read_from, 0], READ, woken_by(writer)),
        ended(reader.0, w_zombie, r_zombie),
        slice(ROOT.0, 0, r_created, [r_zombie - r_created, 10_000], WAIT4, woken_by(reader)),
    ]);
    serial.resume_shell_at(r_zombie + 10_000);
    let whole = with_cpu_of_shell(serial.finish());
    for removed in [writer, reader] {
        let with_wakers = predict(&whole, &Constants::default(), &[(Change::Remove, &[removed])]);
        let partial = as_ptrace(&whole, false);
        assert_contains(&predict_partial(&partial, Change::Remove, &[removed]), &with_wakers);
    }
}

/// A collector that stops the parent sees only the end of a creation. What it takes was measured on
/// the machine.
#[test]
fn creations_that_were_not_seen_go_with_their_launches() {
    const STOP: Nanos = Nanos(20_000);
    let (whole, launches) = serial(20);
    let saved = predict(&whole, &Constants::default(), &[(Change::Remove, &launches)]).saving()[0].0;
    let mut partial = as_ptrace(&whole, true);
    let saved_if_both = |create: f64, exit: f64, partial: &mut Recorded| {
        let both = [(Constant::ForkCreate, create), (Constant::ForkExit, exit)];
        partial.0.calibration = both.map(|(what, ns)| Calibration { what, ns, low_ns: None, high_ns: None }).to_vec();
        predict_partial(partial, Change::Remove, &launches).saving().map(|time| time.0)
    };
    let saved_if_measured = |create, partial: &mut Recorded| saved_if_both(create, 0.0, partial);
    let [expected, _, high] = saved_if_measured(Spans::USUAL.create as f64, &mut partial);
    assert!(expected.abs_diff(saved) < saved / 100, "{expected} of {saved}");
    let [nothing, _, high_of_nothing] = saved_if_measured(0.0, &mut partial);
    assert!(nothing + 20 * Spans::USUAL.create <= expected + 1_000, "{nothing} and {expected}");
    assert!(high >= saved && high_of_nothing >= saved, "{high} and {high_of_nothing}");
    // After the end of the launch before, the parent also reaps it.
    let both = Spans::USUAL.create as f64;
    let [with_reaping, ..] = saved_if_both(both, both + 20_000.0, &mut partial);
    let more = with_reaping.saturating_sub(expected);
    let [less, _] = predict_partial(&partial, Change::Remove, &launches).unknown.unwrap();
    assert!(less.0 >= 19 * 20_000, "that is not certain: {less:?}");
    assert!(more.abs_diff(19 * 20_000) < 10_000, "{more} more than {expected}");
    // A stop of the parent meanwhile is no part of what the creation is assumed to take.
    let remaining = |partial: &Recorded| predict_partial(partial, Change::Remove, &launches).predicted.0;
    saved_if_measured(both, &mut partial);
    let before = remaining(&partial);
    let created = partial.0.launches.iter().filter(|row| row.id != ROOT).map(|row| row.created.unwrap().0);
    let stops = created.map(|at| StopRow { launch: ROOT, task: TaskId(ROOT.0), at: Nanos(at - 30_000), span: STOP });
    partial.0.stops = stops.collect();
    let less = before.saturating_sub(remaining(&partial));
    assert!(less.abs_diff(20 * STOP.0) < 40_000, "{less} less than {before}");
    // With vfork, what they take longer than a vfork goes, and the time for freeing the copies.
    partial.0.calibration.push(Calibration { what: Constant::VforkCreate, ns: 0.0, low_ns: None, high_ns: None });
    let [by_vfork, ..] = predict_partial(&partial, Change::Vfork, &launches).saving().map(|time| time.0);
    let copied = 20 * Spans::USUAL.create;
    assert!((copied..2 * copied).contains(&by_vfork), "{by_vfork} of {copied}");
}

/// A parent reads until the exec of its child closes a pipe, and then waits for the end of the
/// child. If only the read was recorded, the CPU time tells of the other wait.
#[test]
fn a_parent_that_waited_for_the_exec_of_a_child_may_wait_for_its_end_too() {
    let (whole, launches) = serial(10);
    let mut partial = as_ptrace(&whole, false);
    let saved = predict_partial(&partial, Change::Remove, &launches).saving()[0].0;
    let born: Vec<u64> =
        partial.0.launches.iter().filter(|row| row.id != ROOT).filter_map(|row| Some(row.first_run?.0)).collect();
    partial.1.extend(born.iter().map(|at| slice(ROOT.0, *at, at + 10_000, [100_000, 0], READ, None)));
    let expected = predict_partial(&partial, Change::Remove, &launches).saving()[0].0;
    assert!((0.8..1.05).contains(&(expected as f64 / saved as f64)), "{expected} of {saved}");
}

/// A script of `#!/usr/bin/env bash`: the tracer sees only the end of an exec in place of another
/// program. The CPU time since then tells how long the shell has waited for children whose output
/// it read.
#[test]
fn a_shell_in_place_of_another_program_waits_for_the_output_of_its_children() {
    let mut serial = Serial::new();
    let mut read = Vec::new();
    for _ in 0..10 {
        serial.launch(&Spans::USUAL, DIRNAME);
        read.push(serial.launch_waiting(&Spans::USUAL, DIRNAME, READ));
    }
    let whole = with_cpu_of_shell(serial.finish());
    let mut partial = as_ptrace(&whole, true);
    partial.0.launches.iter_mut().for_each(|row| row.reaped = None);
    let at = partial.0.execs.iter().position(|exec| exec.launch == ROOT).unwrap();
    let mut env = partial.0.execs[at].clone();
    let entered = env.enter.unwrap().0;
    (env.returned, env.load_end) = (Some(Nanos(entered + 100_000)), Some(Nanos(entered + 200_000)));
    (env.return_cpu, env.load_cpu) = (Some(Nanos(60_000)), Some(Nanos(100_000)));
    let shell = &mut partial.0.execs[at];
    (shell.enter, shell.enter_cpu) = (None, None);
    partial.0.execs.insert(at, env);
    let with_wakers = predict(&whole, &Constants::default(), &[(Change::Remove, &read)]);
    let prediction = predict_partial(&partial, Change::Remove, &read);
    assert_contains(&prediction, &with_wakers);
    let ratio = prediction.saving()[0].0 as f64 / with_wakers.saving()[0].0 as f64;
    assert!((0.8..1.1).contains(&ratio), "{ratio}: {prediction:?}");
}

/// After a vfork, the parent cannot run until the child's exec. That wait is certain although
/// nothing records it.
#[test]
fn the_wait_of_a_vfork_is_for_the_exec() {
    let (mut whole, launches) = serial(5);
    for row in &mut whole.0.launches {
        row.mechanism = row.mechanism.map(|_| Mechanism::Vfork);
    }
    let partial = as_ptrace(&whole, false);
    let forest = Forest::build(&partial.0);
    let timelines = reconstructed(&forest, &partial);
    for launch in launches {
        let exec = partial.0.execs.iter().find(|exec| exec.launch == launch).unwrap();
        let by = woken_by(launch);
        let mut waits = timelines.slices(0).iter().filter(|slice| slice.waker == by);
        let first = waits.next().unwrap();
        assert_eq!(Some(Nanos(first.off.0 + first.wake_span.unwrap().0)), exec.returned);
        assert!(waits.next().is_some(), "and then for its end");
    }
}

/// The tracer records an exec only when it handles the stop. By then, the parent may already wait
/// for the end of its child.
#[test]
fn the_wait_of_a_vfork_stays_if_the_next_one_seems_to_begin_before_its_end() {
    const EARLY: u64 = 30_000;
    let (mut whole, launches) = serial(5);
    for row in &mut whole.0.launches {
        row.mechanism = row.mechanism.map(|_| Mechanism::PosixSpawn);
    }
    let mut partial = as_ptrace(&whole, true);
    for (slice, launch) in partial.1.iter_mut().zip(&launches) {
        let exec = partial.0.execs.iter().find(|exec| exec.launch == *launch).unwrap();
        let returned = exec.returned.unwrap().0;
        let end = slice.off.0 + slice.off_span.unwrap().0;
        slice.off = Nanos(returned - EARLY);
        slice.off_span = Some(Nanos(end - slice.off.0));
        slice.on_span = Some(Nanos(1_000));
    }
    let with_wakers = predict(&whole, &Constants::default(), &[(Change::Remove, &launches)]);
    let prediction = predict_partial(&partial, Change::Remove, &launches);
    assert_contains(&prediction, &with_wakers);
    let ratio = prediction.saving()[0].0 as f64 / with_wakers.saving()[0].0 as f64;
    assert!((0.85..1.1).contains(&ratio), "{ratio}");
}

#[test]
fn advice_and_dependences_are_found_without_wakers() {
    let (whole, _) = serial(60);
    assert!(whole.0.info.wall.unwrap().0 > 20 * SHELL);
    let partial = as_ptrace(&whole, true);
    let forest = Forest::build(&partial.0);
    let timelines = reconstructed(&forest, &partial);
    let causes = Causes::find(&partial.0, &forest, &timelines).unwrap();
    let dependence = causes.dependence.first().unwrap();
    assert_eq!(dependence.label, b"dirname");
    assert!(dependence.saving[1].0 > dependence.saving[0].0 / 2, "{dependence:?}");
    assert!(!causes.advices.worth.is_empty(), "{}", partial.0.info.collector);
}

/// A tenth of the wall depends on all launches of the line, but not on those that the shell can
/// replace. Whoever found them, the exact fix comes first.
#[test]
fn an_exact_fix_comes_before_a_general_one_though_its_saving_is_uncertain() {
    let mut serial = Serial::new();
    let heavy = Spans { run: 20_000_000, ..Spans::USUAL };
    let light = Spans { run: 100_000, ..Spans::USUAL };
    for number in 0..24 {
        serial.launch_waiting(if number % 6 == 5 { &heavy } else { &light }, DIRNAME, READ);
    }
    serial.run_shell_until(serial.now() + WORK_OF_SHELL);
    let partial = as_ptrace(&serial.finish(), false);
    let forest = Forest::build(&partial.0);
    let timelines = reconstructed(&forest, &partial);
    let found = Causes::find(&partial.0, &forest, &timelines).unwrap().advices;
    let rules: Vec<&str> = found.worth.iter().map(|advice| advice.finding.rule).collect();
    let wall = found.unrecorded.0 as f64;
    let shares: Vec<_> = found.worth.iter().map(|advice| advice.saving.map(|time| time.0 as f64 / wall)).collect();
    assert_eq!(rules, ["builtin"], "{shares:?}");
    assert!(found.worth[0].saving[1] == Nanos(0) && shares[0][0] < 0.1, "{shares:?}");
}

/// The shell waited for one child, and then reaped another that had ended during the wait. Without
/// the first, it would have waited for the second.
#[test]
fn a_child_that_ended_a_little_later_is_awaited_without_the_first() {
    let mut serial = Serial::new();
    let start = serial.now();
    let [long, longer] = [40_000_000, 40_300_000].map(|run| Spans { run, ..Spans::USUAL });
    let builder = &mut serial.builder;
    let second = builder.launch(ROOT, start, &longer, Some(("/bin/ls", &["ls"])));
    let first = builder.launch(ROOT, start + 200_000, &long, Some(("/usr/bin/wc", &["wc"])));
    for child in [first, second] {
        builder.row(child).parent_task = Some(TaskId(ROOT.0));
    }
    let ends = [first, second].map(|child| builder.row(child).zombie.unwrap().0);
    let from = builder.row(first).created.unwrap().0 + 40_000;
    let back = ends[0] + 500_000;
    assert!(ends[1] > ends[0] && ends[1] < back);
    for (child, at) in [(first, back), (second, back + 40_000)] {
        builder.row(child).reaped = Some(Nanos(at));
    }
    serial.slices.push(slice(ROOT.0, 0, from, [back - from, 0], WAIT4, None));
    serial.resume_shell_at(back + 40_000);
    let recorded = with_cpu_of_shell(serial.finish());
    let mut partial = as_ptrace(&recorded, true);
    // After the second child's end, the shell also waited for something else.
    let exit_cpu = &mut partial.0.launches[0].exit_cpu;
    *exit_cpu = exit_cpu.map(|cpu| Nanos(cpu.0 - 600_000));
    let prediction = predict_partial(&partial, Change::Remove, &[first]);
    assert!(prediction.predicted.0 > 40_000_000, "{prediction:?}");
}
