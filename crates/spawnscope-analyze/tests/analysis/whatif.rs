//! Predictions that can be computed by hand: the removed time disappears from the wall, and nothing
//! else does.

use std::collections::HashMap;

use proptest::prelude::*;
use spawnscope_analyze::predict::whatif::refill::Refill;
use spawnscope_analyze::sites::select::Selector;
use spawnscope_data::event::Missing;

use crate::prelude::*;
use crate::serial::{BETWEEN, SHELL};

/// The wall time of a launch without the work of the shell before it, in nanoseconds.
pub(crate) const LAUNCH: u64 = 1_150_000;

/// Builds a recording of a shell that launches dirname `count` times.
pub(crate) fn dirnames(count: usize) -> ((Recording, Vec<SliceRow>), Vec<LaunchId>) {
    let mut serial = Serial::new();
    let launches = (0..count).map(|_| serial.launch(&Spans::USUAL, DIRNAME)).collect();
    (serial.finish(), launches)
}

pub(crate) fn saved(recorded: &(Recording, Vec<SliceRow>), changes: &[(Change, &[LaunchId])]) -> u64 {
    let prediction = predict(recorded, &Constants::default(), changes);
    assert!(prediction.low <= prediction.predicted && prediction.predicted <= prediction.high);
    prediction.wall.since(prediction.predicted).0
}

#[test]
fn a_prediction_without_changes_is_the_wall() {
    let (recorded, _) = dirnames(10);
    let prediction = predict(&recorded, &Constants::default(), &[]);
    assert_eq!(prediction.predicted, prediction.wall);
    assert_eq!(prediction.replay_error, 0.0, "a recording without noise is reproduced exactly");
}

#[test]
fn the_overhead_of_recording_is_not_part_of_predictions() {
    let mut serial = Serial::new();
    let launches: Vec<LaunchId> = (0..3).map(|_| serial.launch(&Spans::USUAL, DIRNAME)).collect();
    serial.builder.recording.calibration.push(Calibration {
        what: Constant::RecordedCall,
        ns: 200.0,
        low_ns: None,
        high_ns: None,
    });
    let (recording, mut slices) = serial.finish();
    // The last slice of the shell has 500 system calls, and that of a child has 100.
    let of_shell = slices.iter().rposition(|slice| slice.task.0 == 1).expect("a slice");
    let of_child = slices.iter().rposition(|slice| slice.task.0 == 4).expect("a slice");
    (slices[of_shell].calls, slices[of_child].calls) = (Some(500), Some(100));
    let recorded = (recording, slices);

    let unchanged = predict(&recorded, &Constants::default(), &[]);
    assert!(unchanged.wall.since(unchanged.unrecorded).0.abs_diff(600 * 200) < 10, "{unchanged:?}");
    assert_eq!((unchanged.predicted, unchanged.saving()[0]), (unchanged.unrecorded, Nanos(0)));
    let removed = predict(&recorded, &Constants::default(), &[(Change::Remove, &launches[2..])]);
    let its_calls = 100 * 200;
    assert!(removed.saving()[0].0.abs_diff(LAUNCH - its_calls) < 10, "{removed:?}");

    // A log of a tracer shows what its calls cost at least and at most.
    let (mut recording, slices) = recorded;
    (recording.calibration[0].low_ns, recording.calibration[0].high_ns) = (Some(100.0), Some(600.0));
    let effect = "a tracer slows launches".to_owned();
    recording.info.missing.push(Missing { what: Missing::UNTRACED_TIMES.to_owned(), effect });
    let traced = predict(&(recording, slices), &Constants::default(), &[(Change::Remove, &launches[2..])]);
    let [expected, low, high] = traced.saving().map(|saving| saving.0);
    assert!(expected.abs_diff(LAUNCH - its_calls) < 10, "{traced:?}");
    let margin = traced.saving_margin.0;
    assert!(low.abs_diff(LAUNCH - 100 * 600 - margin) < margin / 5, "{low} {margin} {traced:?}");
    // What remains may be quicker in proportion to what goes.
    let quicker = expected * 12 / 100;
    assert!(high.abs_diff(LAUNCH - 100 * 100 + margin + quicker) < 10, "{high} {margin} {traced:?}");
}

#[test]
fn removing_all_launches_leaves_the_shells_work() {
    let (recorded, launches) = dirnames(10);
    let prediction = predict(&recorded, &Constants::default(), &[(Change::Remove, &launches)]);
    assert_eq!(prediction.predicted, Nanos(2 * SHELL + 10 * BETWEEN));
    assert_eq!(prediction.changed, [(1..=10).collect::<Vec<u32>>()]);
}

#[test]
fn the_command_itself_cannot_be_removed() {
    let (recorded, _) = dirnames(1);
    let prediction = predict(&recorded, &Constants::default(), &[(Change::Remove, &[LaunchId(1)])]);
    assert_eq!(prediction.predicted, prediction.wall);
    assert!(prediction.changed[0].is_empty());
}

/// The assumed work of a `dirname` whose start-up was not recorded and whose runs are all alike.
const WORK: u64 = Spans::USUAL.run * 15 / 100;

#[test]
fn a_builtin_needs_no_fork_unless_its_output_is_read() {
    let (recorded, launches) = dirnames(4);
    assert_eq!(saved(&recorded, &[(Change::Builtin, &launches)]), 4 * (LAUNCH - WORK));

    let mut serial = Serial::new();
    let launch = serial.launch_waiting(&Spans::USUAL, DIRNAME, READ);
    let recorded = serial.finish();
    let spans = Spans::USUAL;
    // A fork of the shell still does the work.
    let gone = spans.exec + spans.load + spans.run - WORK;
    assert_eq!(saved(&recorded, &[(Change::Builtin, &[launch])]), gone);
}

#[test]
fn reading_the_next_launchs_output_is_not_reading_this_ones_output() {
    let mut serial = Serial::new();
    let launch = serial.launch(&Spans::USUAL, DIRNAME);
    serial.launch_waiting(&Spans::USUAL, DIRNAME, READ);
    // The shell is back on its CPU before its wait returns.
    let row = serial.builder.row(launch);
    row.reaped = row.reaped.map(|reaped| Nanos(reaped.0 + 5_000));
    assert_eq!(saved(&serial.finish(), &[(Change::Builtin, &[launch])]), LAUNCH - WORK + 5_000);
}

#[test]
fn a_launch_that_ended_before_its_output_was_read_is_like_the_others_of_its_line() {
    let saved_by_second = |lines: [u32; 3]| {
        let mut serial = Serial::new();
        let calls = [READ, WAIT4, READ];
        let launches = calls.map(|call| serial.launch_waiting(&Spans::USUAL, DIRNAME, call));
        let mut stacks = HashMap::new();
        for (launch, line) in launches.into_iter().zip(lines) {
            let frame = serial.builder.line(Language::Bash, "/srv/job.sh", line, "");
            let stack = *stacks.entry(line).or_insert_with(|| serial.builder.set_call_chain(launch, &[frame]));
            serial.builder.row(launch).script_stack = Some(stack);
        }
        saved(&serial.finish(), &[(Change::Builtin, &[launches[1]])])
    };
    let spans = Spans::USUAL;
    assert_eq!(saved_by_second([3, 3, 3]), spans.exec + spans.load + spans.run - WORK, "its fork stays");
    assert_eq!(saved_by_second([3, 4, 3]), LAUNCH - WORK);
}

#[test]
fn vfork_costs_what_was_measured_and_nothing_is_copied_or_freed() {
    let mut serial = Serial::new();
    let create = 2_000_000;
    let launch = serial.launch(&Spans { create, exec: 1_000_000, ..Spans::USUAL }, DIRNAME);
    let constants = Constants {
        fork_create: Some(100_000.0),
        vfork_create: Some(50_000.0),
        free_per_copy: Some(0.2),
        spread: 0.1,
        free_spread: 0.1,
        ..Constants::default()
    };
    let recorded = serial.finish();
    let prediction = predict(&recorded, &constants, &[(Change::Vfork, &[launch])]);
    let copied = create - 50_000;
    let expected = copied + copied / 5;
    let off = prediction.wall.since(prediction.predicted).0.abs_diff(expected);
    assert!(off < 100, "{off}");
    let huge = predict(&recorded, &constants, &[(Change::HugePages, &[launch])]);
    let tables = (create - 100_000) * 511 / 512;
    let off = huge.wall.since(huge.predicted).0.abs_diff(tables + tables / 5);
    assert!(off < 100, "{off}");
}

#[test]
fn a_fork_that_launches_others_before_its_exec_cannot_be_a_vfork() {
    let mut serial = Serial::new();
    let spans = Spans { create: 2_000_000, setup: 10_000_000, ..Spans::USUAL };
    let fork = serial.launch(&spans, DIRNAME);
    let first_run = serial.builder.row(fork).first_run.unwrap().0;
    serial.builder.launch(fork, first_run + 100_000, &Spans::USUAL, DIRNAME);
    let constants = Constants { fork_create: Some(100_000.0), vfork_create: Some(50_000.0), ..Constants::default() };
    let prediction = predict(&serial.finish(), &constants, &[(Change::Vfork, &[fork])]);
    assert!(prediction.changed[0].is_empty(), "{prediction:?}");
}

#[test]
fn a_parent_that_does_not_sleep_reaps_at_once() {
    let mut serial = Serial::new();
    let late = 50_000_000;
    let launch = serial.launch_sleeping(&Spans::USUAL, ("/bin/job", &["job"]), late);
    let recorded = serial.finish();
    let spans = Spans::USUAL;
    let until_end = spans.total() - spans.create - spans.reap;
    assert_eq!(saved(&recorded, &[(Change::ReapNow, &[launch])]), late - until_end);
}

#[test]
fn a_static_program_has_no_loader() {
    let (recorded, launches) = dirnames(3);
    assert_eq!(saved(&recorded, &[(Change::Static, &launches)]), 3 * Spans::USUAL.load);
}

#[test]
fn a_static_program_still_identifies_the_cpu() {
    let (recorded, launches) = dirnames(2);
    let [short, long] = [150_000.0, 1e9].map(|nanos| {
        let constants = Constants { identify: Some(nanos), ..Constants::default() };
        predict(&recorded, &constants, &[(Change::Static, &launches)]).saving()[0].0
    });
    assert_eq!(short, 2 * (Spans::USUAL.load - 150_000));
    assert!(long.abs_diff(2 * Spans::USUAL.load / 10) < 10, "never all of it");
}

#[test]
fn a_failed_lookup_costs_what_was_measured() {
    let mut serial = Serial::new();
    let launch = serial.launch(&Spans::USUAL, DIRNAME);
    let exec = serial.builder.recording.execs.last_mut().unwrap();
    // The loader always makes one failed lookup. 40 more are counted.
    (exec.load_opens, exec.load_failed_opens) = (Some(1), Some(41));
    let recorded = serial.finish();
    let measured = Constants { failed_lookup: Some(4_000.0), ..Constants::default() };
    let asking = Constants { identify: Some(200_000.0), ..Constants::default() };
    let slow = Constants { failed_lookup: Some(1e9), ..Constants::default() };
    let [few, rest, all, most] = [measured, asking, Constants::default(), slow].map(|constants| {
        let prediction = predict(&recorded, &constants, &[(Change::NoSearch, &[launch])]);
        prediction.wall.since(prediction.predicted).0 as f64
    });
    assert!((few - 160_000.0).abs() < 100.0, "{few}");
    assert!((rest / all - 0.5).abs() < 0.01, "half of the load is not a search: {rest} of {all}");
    assert!(most < Spans::USUAL.load as f64, "{most}");
}

#[test]
fn a_removed_launch_cannot_be_reaped_at_once() {
    let mut serial = Serial::new();
    let sleep = 10 * LAUNCH;
    let launches: Vec<LaunchId> =
        (0..3).map(|_| serial.launch_sleeping(&Spans::USUAL, DIRNAME.unwrap(), sleep)).collect();
    let recorded = serial.finish();
    let [late, gone] = [Change::ReapNow, Change::Remove].map(|change| (change, &launches[..]));
    assert_eq!(saved(&recorded, &[late, gone]), saved(&recorded, &[gone]));
    assert!(saved(&recorded, &[late]) > 0);
}

#[test]
fn a_launch_that_is_reaped_on_time_is_not_reaped_earlier() {
    let (recorded, launches) = dirnames(3);
    let prediction = predict(&recorded, &Constants::default(), &[(Change::ReapNow, &launches)]);
    assert_eq!(prediction.changed, [Vec::<u32>::new()]);
}

#[test]
fn a_parent_that_does_not_wait_keeps_its_caches() {
    let (recorded, launches) = dirnames(1);
    let measured = Refill::measured(240_000.0, 430_000.0, Nanos(3_000_000));
    let [cold, warm] = [measured, Refill::default()].map(|refill| {
        let constants = Constants { refill, ..Constants::default() };
        let prediction = predict(&recorded, &constants, &[(Change::Remove, &launches)]);
        prediction.wall.since(prediction.predicted).0
    });
    assert!(cold > warm + 20_000 && cold < warm + 300_000, "{cold} against {warm}");
}

/// Builds a recording of a launch that execs `first` before dirname. Returns the launch, and the
/// time that the additional exec costs.
fn execs_before_dirname(first: (&str, &[&str])) -> ((Recording, Vec<SliceRow>), LaunchId, u64) {
    let mut serial = Serial::new();
    let launch = serial.launch(&Spans { setup: 740_000, ..Spans::USUAL }, DIRNAME);
    let entered = serial.builder.row(launch).first_run.unwrap().0 + 40_000;
    let argv: Vec<&[u8]> = first.1.iter().map(|argument| argument.as_bytes()).collect();
    let at = [entered, entered + 200_000, entered + 500_000];
    serial.builder.exec_at(launch, first.0.as_bytes(), &argv, at);
    let execs = &mut serial.builder.recording.execs;
    let last = execs.len() - 1;
    execs.swap(last, last - 1);
    // Without the additional exec, the time from its entry to that of the second exec is saved. The
    // second exec then takes 200 us, as the first one did.
    let shorter = Spans::USUAL.exec - 200_000;
    (serial.finish(), launch, 700_000 + shorter)
}

#[test]
fn a_chain_of_execs_can_be_cut_short() {
    let (recorded, launch, chain) = execs_before_dirname(("/usr/bin/env", &["env", "dirname", "a/b"]));
    assert_eq!(saved(&recorded, &[(Change::Direct, &[launch])]), chain);
    assert_eq!(saved(&recorded, &[(Change::NoShell, &[launch])]), 0, "env is not a shell");
}

#[test]
fn chains_of_the_same_programs_are_cut_alike_though_one_helper_was_delayed() {
    let mut serial = Serial::new();
    let launches: Vec<LaunchId> = [0, 0, 5_000_000]
        .map(|delay| {
            let launch = serial.launch(&Spans { setup: 9_000_000, ..Spans::USUAL }, DIRNAME);
            let entered = serial.builder.row(launch).first_run.unwrap().0 + 40_000;
            let at = [entered, entered + 200_000, entered + 500_000];
            serial.builder.exec_at(launch, b"/bin/wrapper", &[b"wrapper"], at);
            let execs = &mut serial.builder.recording.execs;
            let last = execs.len() - 1;
            execs.swap(last, last - 1);
            let helper = Spans { run: Spans::USUAL.run + delay, ..Spans::USUAL };
            serial.builder.launch(launch, entered + 600_000, &helper, Some(("/bin/mkdir", &["mkdir"])));
            launch
        })
        .to_vec();
    let prediction = predict(&serial.finish(), &Constants::default(), &[(Change::Direct, &launches)]);
    assert_eq!(prediction.changed[0].len(), launches.len());
}

#[test]
fn a_shell_that_only_execs_a_program_can_be_removed() {
    let (recorded, launch, chain) = execs_before_dirname(("/bin/sh", &["sh", "-c", "dirname a/b"]));
    assert_eq!(saved(&recorded, &[(Change::NoShell, &[launch])]), chain);
    let given = ["dirname \"$1\"", "exec \"$0\" $@", "dirname x$1 2>/dev/null"];
    for text in ["dirname a/b 2>/dev/null", "cd x && dirname a/b", "A=b dirname HEAD~3 '*'"].into_iter().chain(given) {
        let (recorded, launch, chain) = execs_before_dirname(("/bin/sh", &["sh", "-c", text]));
        let saved = saved(&recorded, &[(Change::NoShell, &[launch])]);
        assert_eq!(saved, chain, "the caller can do that: {text}");
    }
    for text in [
        "dirname $HOME", "dirname a/*", "dirname a; true", "dirname a | cat", "dirname $1 | cat", "dirname \"$1$HOME\"",
    ] {
        let (recorded, launch, _) = execs_before_dirname(("/bin/sh", &["sh", "-c", text]));
        let saved = saved(&recorded, &[(Change::NoShell, &[launch])]);
        assert_eq!(saved, 0, "only a shell can do that: {text}");
    }
}

#[test]
fn a_program_that_got_the_command_of_its_only_child_is_a_wrapper() {
    for argv in ["timeout 9 dirname a/b", "timeout 9 nice dirname a/b", "mydirname a/b", "timeout 9"] {
        let is_wrapper = argv.starts_with("timeout 9 ");
        let mut serial = Serial::new();
        let argv: Vec<&str> = argv.split(' ').collect();
        let wrapper = serial.launch(&Spans { run: 5_000_000, ..Spans::USUAL }, Some(("/usr/bin/timeout", &argv)));
        let first_run = serial.builder.row(wrapper).first_run.unwrap().0;
        let program = serial.builder.launch(wrapper, first_run + 2_000_000, &Spans::USUAL, DIRNAME);
        if let [.., "nice", _, _] = argv[..] {
            serial.builder.recording.execs.last_mut().unwrap().argv = serial.builder.text(b"nice\0dirname\0a/b\0");
            let loaded = first_run + 4_000_000;
            serial.builder.exec_at(
                program,
                b"/usr/bin/dirname",
                &[b"dirname", b"a/b"],
                [0, 9_000, 90_000].map(|at| loaded + at),
            );
        }
        let recorded = serial.finish();
        let prediction = predict(&recorded, &Constants::default(), &[(Change::Direct, &[wrapper])]);
        assert_eq!(!prediction.changed[0].is_empty(), is_wrapper, "{argv:?}");
        assert_eq!(prediction.predicted < prediction.wall, is_wrapper, "{argv:?}");
        let without_its_wrapper = predict(&recorded, &Constants::default(), &[(Change::Direct, &[program])]);
        assert_eq!(without_its_wrapper.predicted, prediction.predicted, "{argv:?}");
    }
}

#[test]
fn a_program_given_by_its_path_is_not_searched_for() {
    let mut serial = Serial::new();
    let launch = serial.launch(&Spans { setup: 100_000, ..Spans::USUAL }, DIRNAME);
    let first_run = serial.builder.row(launch).first_run.unwrap().0;
    for directory in 0..12 {
        let path = format!("/dead/{directory}/dirname");
        serial.builder.failed_exec_at(launch, &path, libc::ENOENT, first_run + 2_000 * directory);
    }
    assert_eq!(saved(&serial.finish(), &[(Change::Absolute, &[launch])]), 12_000);
}

#[test]
fn work_of_a_parent_for_a_launch_is_removed_with_it() {
    let mut serial = Serial::new();
    let launch = serial.launch(&Spans::USUAL, DIRNAME);
    let next = serial.launch(&Spans::USUAL, DIRNAME);
    let row = serial.builder.row(launch);
    row.prepare = Some(Nanos(row.create.unwrap().0 - 40_000));
    let reaped = row.reaped.unwrap().0;
    serial.builder.row(next).parent_tidied = Some(Nanos(reaped + 70_000));
    assert_eq!(saved(&serial.finish(), &[(Change::Remove, &[launch])]), LAUNCH + 110_000);
}

#[test]
fn faults_after_a_removed_fork_are_removed_except_those_for_new_memory() {
    let mut serial = Serial::new();
    let launch = serial.launch(&Spans::USUAL, DIRNAME);
    let next = serial.launch(&Spans::USUAL, DIRNAME);
    serial.builder.row(launch).parent_rss_bytes = Some(1_000_000);
    let row = serial.builder.row(next);
    (row.parent_rss_bytes, row.parent_faults) = (Some(1_000_000 + 10 * 4096), Some(60));
    serial.builder.recording.calibration =
        vec![Calibration { what: Constant::ReuseFault, ns: 500.0, low_ns: None, high_ns: None }];
    let recorded = serial.finish();
    assert_eq!(saved(&recorded, &[(Change::Remove, &[launch])]), LAUNCH + 25_000);
    let constants = Constants { vfork_create: Some(120_000.0), ..Constants::default() };
    let vforked = predict(&recorded, &constants, &[(Change::Vfork, &[launch])]);
    assert_eq!(vforked.wall.since(vforked.predicted), Nanos(25_000));
}

#[test]
fn descriptors_can_be_closed_in_one_call() {
    let mut serial = Serial::new();
    let launch = serial.launch(&Spans { setup: 1_100_000, ..Spans::USUAL }, DIRNAME);
    let row = serial.builder.row(launch);
    (row.setup_closes, row.setup_close_span) = (Some(1_000), Some(Nanos(1_000_000)));
    let (mut recording, mut slices) = serial.finish();
    assert_eq!(saved(&(recording.clone(), slices.clone()), &[(Change::CloseRange, &[launch])]), 999_000);

    // What recording adds to these calls is part of the setup, not of the whole child.
    recording.calibration = vec![Calibration { what: Constant::RecordedCall, ns: 400.0, low_ns: None, high_ns: None }];
    let of_child = slices.iter().rposition(|slice| slice.task.0 == launch.0).expect("a slice");
    slices[of_child].calls = Some(1_000);
    let closed = predict(&(recording, slices), &Constants::default(), &[(Change::CloseRange, &[launch])]);
    let (setup, remaining) = (1_100_000 - 400_000, 101.0 / 1_100.0);
    assert!(closed.saving()[0].0.abs_diff(setup - (setup as f64 * remaining) as u64) < 10, "{closed:?}");
}

#[test]
fn other_changes_do_not_affect_a_removed_launch() {
    let (recorded, launches) = dirnames(6);
    let (all, some) = (&launches[..], &launches[..2]);
    for (changes, counts) in [
        ([(Change::Static, all), (Change::Remove, some)], [4, 2]),
        ([(Change::Remove, some), (Change::Static, all)], [2, 4]),
        ([(Change::Remove, all), (Change::Remove, some)], [6, 0]),
        ([(Change::Builtin, all), (Change::Absolute, some)], [6, 0]),
    ] {
        let changed = predict(&recorded, &Constants::default(), &changes).changed;
        assert_eq!(changed.iter().map(Vec::len).collect::<Vec<_>>(), counts);
    }
}

#[test]
fn a_selection_requires_all_of_its_terms() {
    let mut serial = Serial::new();
    serial.launch(&Spans::USUAL, DIRNAME);
    serial.launch(&Spans::USUAL, Some(("/usr/bin/git", &["git", "status", "/a/b"])));
    serial.launch(&Spans::USUAL, None);
    let (recording, _) = serial.finish();
    let forest = Forest::build(&recording);
    for (text, selected) in [
        ("dirname", &[1][..]),
        ("command=dirname", &[1]),
        ("command=dir*,parent=bash", &[1]),
        // The command, too.
        ("*", &[0, 1, 2, 3]),
        ("argv=git status*", &[2]),
        // An asterisk also matches slashes.
        ("argv=*/a/*", &[2]),
        ("parent=bash", &[1, 2, 3]),
        ("parent=ba*,git", &[2]),
        ("(bash)", &[3]),
        ("parent=zsh", &[]),
    ] {
        assert_eq!(Selector::parse(text).unwrap().select(&forest).unwrap(), selected, "{text}");
    }
    for wrong in ["", "a,,b", "a[", "user=me", "command=", "parent=", "line="] {
        assert!(Selector::parse(wrong).is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn removed_launches_are_missing_from_the_wall(
        runs in proptest::collection::vec((10_000..5_000_000u64, any::<bool>()), 1..20),
    ) {
        let mut serial = Serial::new();
        let mut removed = Vec::new();
        let mut gone = 0;
        for (run, is_removed) in &runs {
            let spans = Spans { run: *run, ..Spans::USUAL };
            let launch = serial.launch(&spans, DIRNAME);
            if *is_removed {
                removed.push(launch);
                gone += spans.total();
            }
        }
        prop_assert_eq!(saved(&serial.finish(), &[(Change::Remove, &removed)]), gone);
    }

    #[test]
    fn the_order_of_rows_does_not_matter(seed in any::<u64>()) {
        let (recorded, launches) = dirnames(6);
        let changes: &[(Change, &[LaunchId])] = &[(Change::Static, &launches[..3]), (Change::Remove, &launches[4..])];
        let expected = predict(&recorded, &Constants::default(), changes);
        let (mut recording, mut slices) = recorded;
        shuffle(&mut slices, seed);
        shuffle(&mut recording.launches, seed);
        shuffle(&mut recording.execs, seed);
        prop_assert_eq!(predict(&(recording, slices), &Constants::default(), changes), expected);
    }

    #[test]
    fn no_change_lengthens_the_wall(index in 0..6usize, count in 1..8usize) {
        let (recorded, launches) = dirnames(count);
        let changes =
            [Change::Static, Change::Vfork, Change::HugePages, Change::Absolute, Change::ReapNow, Change::Direct];
        let change = changes[index];
        let prediction = predict(&recorded, &Constants::default(), &[(change, &launches)]);
        prop_assert!(prediction.predicted <= prediction.wall, "{change:?}");
    }
}

fn shuffle<T>(rows: &mut Vec<T>, seed: u64) {
    let mut keyed: Vec<(u64, T)> = (1..).zip(rows.drain(..)).collect();
    keyed.sort_by_key(|(place, _)| place.wrapping_mul(seed | 1).rotate_left(17));
    rows.extend(keyed.into_iter().map(|(_, row)| row));
}
