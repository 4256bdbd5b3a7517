//! Predictions of batches: the start-up of a program is saved, its work is not.

use crate::prelude::*;
use crate::whatif::{LAUNCH, saved};

#[test]
fn a_batch_pays_the_fixed_part_once_and_all_of_the_work() {
    let mut serial = Serial::new();
    let works = [0, 100_000, 150_000, 0, 700_000];
    let launches: Vec<LaunchId> = works
        .iter()
        .map(|work| {
            let run = Spans::USUAL.run + work;
            serial.launch(&Spans { run, ..Spans::USUAL }, DIRNAME)
        })
        .collect();
    // Four of the five launches are merged, and one stays alone.
    let saved = saved(&serial.finish(), &[(Change::Batch(4), &launches)]);
    assert_eq!(saved, 3 * LAUNCH);
}

#[test]
fn batches_of_launches_that_ran_at_the_same_time_do_so_too() {
    let mut serial = Serial::with_command("/usr/bin/xargs", &["xargs", "-P", "2", "-n", "1", "dirname"]);
    let spans = Spans { run: 20_000_000, ..Spans::USUAL };
    let shorter = Spans { run: spans.run - 500_000, ..spans };
    let add_pair = |_| {
        let awaited = serial.launch(&spans, DIRNAME);
        let begin = serial.builder.row(awaited).created.unwrap().0;
        let other = serial.builder.launch(ROOT, begin, &shorter, DIRNAME);
        let row = serial.builder.row(other);
        let (born, gone) = (row.created.unwrap().0, row.zombie.unwrap().0);
        serial.slices.extend([created(other.0, born, spans.queue), ended(other.0, born + spans.queue, gone)]);
        [awaited, other]
    };
    let launches: Vec<LaunchId> = (0..4).flat_map(add_pair).collect();
    let prediction = predict(&serial.finish(), &Constants::default(), &[(Change::Batch(4), &launches)]);
    // At least a quarter of the run is work, in two processes at a time.
    let saved = prediction.saving()[0].0;
    assert!(saved > 3 * spans.total() - 4 * spans.run / 4, "{saved}: {prediction:?}");
}

#[test]
fn the_first_launch_of_a_batch_does_not_widen_the_interval() {
    let mut serial = Serial::new();
    let run = 500_000;
    let launches: Vec<LaunchId> = (0..6).map(|_| serial.launch(&Spans { run, ..Spans::USUAL }, DIRNAME)).collect();
    let recorded = serial.finish();
    for size in [2, 6] {
        let prediction = predict(&recorded, &Constants::default(), &[(Change::Batch(size), &launches)]);
        let [expected, least, _] = prediction.saving();
        assert!(least.0 > expected.0 / 2, "{:?}", prediction.saving());
    }
}

/// Returns how much of each `run` a batch of four launches saves.
fn saved_of_run(run: u64, program: (&str, &[&str])) -> f64 {
    let mut serial = Serial::new();
    let spans = Spans { run, ..Spans::USUAL };
    let launches: Vec<LaunchId> = (0..4).map(|_| serial.launch(&spans, Some(program))).collect();
    let saved = saved(&serial.finish(), &[(Change::Batch(4), &launches)]);
    saved as f64 / 3.0 - (LAUNCH - Spans::USUAL.run) as f64
}

#[test]
fn without_recorded_start_ups_most_of_the_shortest_run_is_start_up() {
    // The second run is longer than its exec and load.
    for (run, share) in [(200_000, 0.85), (10_000_000, 0.92)] {
        let off = (saved_of_run(run, ("/usr/bin/jq", &["jq", ".name", "file"])) - share * run as f64).abs();
        assert!(off < 100.0, "{off} of {run}");
    }
}

#[test]
fn a_recorded_start_up_is_what_a_batch_saves() {
    let start_up = 900_000;
    let mut serial = Serial::new();
    let spans = Spans { run: 1_000_000, ..Spans::USUAL };
    let launches: Vec<LaunchId> = (0..8).map(|_| serial.launch(&spans, DIRNAME)).collect();
    for launch in &launches {
        serial.builder.row(*launch).work_cpu = Some(Nanos(spans.setup + spans.exec + spans.load + start_up));
    }
    let prediction = predict(&serial.finish(), &Constants::default(), &[(Change::Batch(8), &launches)]);
    let [expected, least, most] = prediction.saving();
    let later = (spans.exec + spans.load) * 70 / 1000 + start_up * 35 / 1000;
    // Most of the rest of such a run may be start-up, too.
    let fixed = ((start_up + later).min(spans.run) + 3 * spans.run) / 4;
    let off = expected.0.abs_diff(7 * (LAUNCH - Spans::USUAL.run + fixed));
    assert!(off < 100, "{off}: a part of the start-up comes after the first use of an argument");
    assert!(most.0 - least.0 < expected.0 / 3, "{:?}", prediction.saving());
}

#[test]
fn what_is_unknown_about_start_up_does_not_make_the_wall_longer() {
    let mut serial = Serial::new();
    let spans = Spans { run: 50_000_000, ..Spans::USUAL };
    let launches: Vec<LaunchId> = (0..4).map(|_| serial.launch(&spans, Some(("/usr/bin/javac", &["javac"])))).collect();
    // The recorder recognizes the beginning of work, and javac uses neither an argument nor its
    // input.
    launches.iter().for_each(|launch| serial.builder.row(*launch).exit_rss_bytes = Some(1 << 20));
    let recorded = serial.finish();
    let prediction = predict(&recorded, &Constants::default(), &[(Change::Batch(4), &launches)]);
    let wall = prediction.unrecorded.0 as f64;
    assert!((0.9 * wall..1.1 * wall).contains(&(prediction.high.0 as f64)), "{prediction:?}");
    assert!((prediction.low.0 as f64) < 0.4 * wall, "{prediction:?}");
}

#[test]
fn the_libraries_that_a_linker_reads_are_its_work() {
    let (run, work_begins) = (3_000_000, 2_900_000);
    let nm: (&str, &[&str]) = ("/usr/bin/nm", &["nm", "a.o"]);
    let ld: (&str, &[&str]) = ("/usr/bin/ld", &["ld", "a.o", "/usr/lib/crt1.o"]);
    let [nm, ld] = [nm, ld].map(|program| {
        let mut serial = Serial::new();
        let spans = Spans { run, ..Spans::USUAL };
        let launches: Vec<LaunchId> = (0..8).map(|_| serial.launch(&spans, Some(program))).collect();
        for launch in &launches {
            serial.builder.row(*launch).work_cpu = Some(Nanos(spans.setup + spans.exec + spans.load + work_begins));
        }
        predict(&serial.finish(), &Constants::default(), &[(Change::InProcess, &launches)]).saving()[0]
    });
    assert!(nm.0 > 8 * work_begins, "{nm:?}");
    assert!(ld.0 < 8 * (LAUNCH - Spans::USUAL.run + work_begins * 96 / 100), "{ld:?}");
}

#[test]
fn work_that_stays_does_not_make_a_batch_uncertain() {
    // Most of each run is work. Since all launches are in one batch, its saving is well known.
    let mut serial = Serial::new();
    let (run, start_up) = (10_000_000, 350_000);
    let spans = Spans { run, ..Spans::USUAL };
    let launches: Vec<LaunchId> = (0..8).map(|_| serial.launch(&spans, DIRNAME)).collect();
    for launch in &launches {
        serial.builder.row(*launch).work_cpu = Some(Nanos(spans.setup + spans.exec + spans.load + start_up));
    }
    let prediction = predict(&serial.finish(), &Constants::default(), &[(Change::Batch(8), &launches)]);
    let [expected, least, _] = prediction.saving();
    let later = (spans.exec + spans.load) * 70 / 1000 + start_up * 35 / 1000;
    let off = expected.0.abs_diff(7 * (LAUNCH - Spans::USUAL.run + start_up + later));
    assert!(off < 100, "{off}");
    assert!(least.0 > expected.0 / 3, "{:?}", prediction.saving());
    let half = prediction.high.since(prediction.low).0 / 2;
    assert!(half < prediction.predicted.0 / 10, "{prediction:?}");
}

/// Adds a shell that launches one `dirname` of `path` and waits for it. Returns the shell and the
/// `dirname`.
fn launch_in_shell(serial: &mut Serial, path: &str) -> [LaunchId; 2] {
    /// How long the shell works before its launch, and again after it, in nanoseconds.
    const SHELL_WORK: u64 = 200_000;
    let spans = Spans { run: Spans::USUAL.total() + 2 * SHELL_WORK, ..Spans::USUAL };
    let shell = serial.launch(&spans, Some(("/bin/sh", &["sh", "-c", "cd lib; dirname path"])));
    let row = serial.builder.row(shell);
    let (exit, zombie) = (row.exit.unwrap().0, row.zombie.unwrap().0);
    let runs = row.first_run.unwrap().0;
    let child = serial.builder.launch(
        shell,
        exit - spans.run + SHELL_WORK,
        &Spans::USUAL,
        Some(("/bin/dirname", &["dirname", path])),
    );
    let row = serial.builder.row(child);
    row.parent_task = Some(TaskId(shell.0));
    let (made, ends, reaped) = (row.created.unwrap().0, row.zombie.unwrap().0, row.reaped.unwrap().0);
    let of_shell = serial.slices.iter().position(|slice| *slice == ended(shell.0, runs, zombie));
    let waker = Some(WakerRow::Task(TaskId(child.0)));
    serial.slices[of_shell.unwrap()] = slice(shell.0, runs, made, [ends - made, reaped - ends], WAIT4, waker);
    serial.slices.extend([
        ended(shell.0, reaped, zombie),
        created(child.0, made, Spans::USUAL.queue),
        ended(child.0, made + Spans::USUAL.queue, ends),
    ]);
    [shell, child]
}

#[test]
fn one_launch_for_all_still_launches_what_differed() {
    let saved_with = |paths: [&str; 4]| {
        let mut serial = Serial::new();
        let shells = paths.map(|path| launch_in_shell(&mut serial, path)[0]);
        saved(&serial.finish(), &[(Change::Batch(4), &shells)])
    };
    let (same, different) = (saved_with(["a/b"; 4]), saved_with(["a/b", "a/c", "a/d", "a/e"]));
    // In both cases, the start-ups of three shells are saved.
    let children = 3 * LAUNCH;
    let off = (same - different).abs_diff(children);
    assert!(off < 3 * 200_000, "{same} {different}");
    assert!(different > 3 * (LAUNCH - Spans::USUAL.run), "{different}");
}

#[test]
fn only_children_are_merged_across_their_parents() {
    let mut serial = Serial::new();
    let launches: Vec<LaunchId> = (0..4).map(|_| launch_in_shell(&mut serial, "a/b")[1]).collect();
    let recorded = serial.finish();
    // The shells remain, but all except the first have nothing to wait for. Three tenths of each
    // run of `dirname` count as work, since the runs are alike.
    let each = LAUNCH - Spans::USUAL.run * 15 / 100;
    assert_eq!(saved(&recorded, &[(Change::Batch(4), &launches)]), 3 * each);
    assert_eq!(saved(&recorded, &[(Change::Batch(2), &launches)]), 2 * each);
}
