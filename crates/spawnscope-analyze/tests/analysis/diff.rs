//! Comparisons of recordings: which launches are matched, which differences are noise, and that the
//! order of launches does not matter.

use proptest::prelude::*;
use spawnscope_analyze::compare::diff::{ChangeKind, Condition, Diff, Grouping, Run, compare};
use spawnscope_data::rows::FrameRow;

use crate::prelude::*;

/// A launch of a generated recording: the index of its program, the number in its argument, its
/// line, and the number of failed execs.
type GeneratedLaunch = (usize, u32, u32, u8);

const PROGRAMS: [&str; 3] = ["dirname", "mv", "sed"];

/// Builds a recording of a script that makes these launches, one after another.
fn script(wall_ns: u64, launches: &[GeneratedLaunch]) -> Recording {
    let mut builder = Builder::command("/bin/bash", &["bash", "job.sh"], wall_ns);
    for (start, (program, number, line, failed)) in (1_000_000..).step_by(2_000_000).zip(launches) {
        let name = PROGRAMS[*program];
        let (path, argument) = (format!("/usr/bin/{name}"), format!("dir/file{number}"));
        let launch = builder.launch(ROOT, start, &Spans::USUAL, Some((&path, &[name, &argument])));
        let line = builder.line(Language::Bash, "/srv/job.sh", *line, "");
        builder.set_call_chain(launch, &[line]);
        for at in 0..u64::from(*failed) {
            builder.failed_exec_at(launch, "/opt/none", libc::ENOENT, start + 150_000 + 2_000 * at);
        }
    }
    builder.recording
}

fn run(recording: &Recording) -> Run {
    Run::of(recording, &Forest::build(recording), None)
}

fn diff(before: &[&Recording], after: &[&Recording]) -> Diff {
    let [before, after] = [before, after].map(|recordings| recordings.iter().copied().map(run).collect::<Vec<_>>());
    compare(&before, &after, Grouping::Lines)
}

/// Returns the kind, the program, and the median counts before and after of each group that
/// differs.
fn changed(diff: &Diff) -> Vec<(ChangeKind, String, u64, u64)> {
    let rows = diff.rows.iter().filter(|row| row.kind != ChangeKind::Same);
    let rows = rows.map(|row| {
        let command = String::from_utf8(row.command.clone()).unwrap();
        (row.kind, command, row.count.before.median, row.count.after.median)
    });
    rows.collect()
}

fn launches_at_lines(program: usize, lines: &[u32]) -> Vec<GeneratedLaunch> {
    (0..).zip(lines).map(|(number, line)| (program, number, *line, 0)).collect()
}

#[test]
fn removed_and_added_launches_are_counted() {
    let before = [launches_at_lines(0, &[5; 10]), launches_at_lines(1, &[6; 10])].concat();
    let after = [launches_at_lines(1, &[6; 2]), launches_at_lines(2, &[9; 3])].concat();
    let found = diff(&[&script(100_000_000, &before)], &[&script(50_000_000, &after)]);
    assert_eq!(
        changed(&found),
        [
            (ChangeKind::Removed, "dirname".to_owned(), 10, 0),
            (ChangeKind::Changed, "mv".to_owned(), 10, 2),
            (ChangeKind::Added, "sed".to_owned(), 0, 3),
        ]
    );
    assert_eq!((found.launches.before.median, found.launches.after.median), (21, 6));
    assert_eq!(found.launches.difference(), -15);
    assert_eq!(found.wall.value(), Some(-50e6));
    assert_eq!(found.wall.is_change(), None, "one run each");
}

#[test]
fn a_line_that_moved_is_the_same_launch() {
    let before = [launches_at_lines(0, &[5; 4]), launches_at_lines(1, &[6; 4])].concat();
    let after = [launches_at_lines(0, &[15; 4]), launches_at_lines(1, &[16; 4])].concat();
    let found = diff(&[&script(100_000_000, &before)], &[&script(100_000_000, &after)]);
    assert_eq!(changed(&found), []);
    let moved = found.rows.iter().find(|row| row.command == b"mv").unwrap();
    let lines = [&moved.line_before, &moved.line_after].map(|script_line| script_line.as_ref().unwrap().line);
    assert_eq!(lines, [Some(6), Some(16)]);
}

#[test]
fn a_line_that_moved_onto_another_line_is_the_same_launch() {
    let [before, after] = [[5, 5, 7], [7, 7, 9]].map(|lines| script(100_000_000, &launches_at_lines(0, &lines)));
    assert_eq!(changed(&diff(&[&before], &[&after])), []);
    // Of two lines, one is left: that which has not moved.
    let [before, after] = [[5, 7], [7, 7]].map(|lines| script(100_000_000, &launches_at_lines(0, &lines)));
    let kinds = changed(&diff(&[&before], &[&after])).into_iter().map(|(kind, ..)| kind).collect::<Vec<_>>();
    assert_eq!(kinds, [ChangeKind::Removed, ChangeKind::Changed]);
}

/// Builds a recording of this script, which launches dirname at some lines and sources a library.
fn named_script(name: &str, lines: &[u32]) -> Run {
    let mut builder = Builder::command(&format!("/srv/{name}"), &["bash", name], 100_000_000);
    for (start, line) in (1_000_000..).step_by(2_000_000).zip(lines.iter().chain(&[3])) {
        let launch = builder.launch(ROOT, start, &Spans::USUAL, DIRNAME);
        let file = if *line == 3 { "/srv/lib.sh" } else { &format!("/srv/{name}") };
        let line = builder.line(Language::Bash, file, *line, "");
        builder.set_call_chain(launch, &[line]);
    }
    run(&builder.recording)
}

#[test]
fn lines_of_a_renamed_script_are_compared() {
    let [before, after] = [named_script("slow.sh", &[5, 5, 6]), named_script("fast.sh", &[9])];
    let found = compare(&[before], &[after], Grouping::Lines);
    let known = found.rows.iter().filter_map(|row| Some((row.kind, row.line()?.label())));
    let expected = [
        (ChangeKind::Changed, b"fast.sh:9".to_vec()),
        (ChangeKind::Removed, b"slow.sh:6".to_vec()),
        (ChangeKind::Same, b"lib.sh:3".to_vec()),
    ];
    assert_eq!(known.collect::<Vec<_>>(), expected, "{found:?}");
}

fn inline_script(text: &str, launches: u64) -> Recording {
    let mut builder = Builder::command("/bin/bash", &["bash", "-c", text], 100_000_000);
    for number in 0..launches {
        let program = Some(("/bin/true", ["true"].as_slice()));
        let launch = builder.launch(ROOT, 1_000_000 + 2_000_000 * number, &Spans::USUAL, program);
        let line = FrameRow { file: None, ..builder.line(Language::Bash, "", 1, "") };
        builder.set_call_chain(launch, &[line]);
    }
    builder.recording
}

#[test]
fn scripts_given_as_arguments_are_matched_although_their_texts_differ() {
    let before = inline_script("for i in 1 2 3; do true; done", 3);
    let found = diff(&[&before], &[&inline_script("true; true", 2)]);
    assert_eq!(changed(&found), [(ChangeKind::Changed, "true".to_owned(), 3, 2)]);
}

#[test]
fn failed_execs_alone_are_a_change() {
    let [before, after] = [0, 3].map(|failed| script(100_000_000, &[(0, 1, 5, failed), (1, 1, 6, 0)]));
    let found = diff(&[&before], &[&after]);
    assert_eq!(changed(&found), [(ChangeKind::Changed, "dirname".to_owned(), 1, 1)]);
    assert_eq!(found.failed_execs.difference(), 3);
}

#[test]
fn the_wall_of_several_runs_has_an_interval() {
    let recordings = [[100, 104, 98, 102], [60, 63, 58, 61], [99, 103, 101, 100]]
        .map(|walls| walls.map(|wall| script(1_000_000 * wall, &launches_at_lines(0, &[5; 3]))));
    let [slow, fast, slow_too] = recordings.each_ref().map(|recordings| recordings.each_ref().map(run));
    let found = compare(&slow, &fast, Grouping::Lines);
    let interval = found.wall.difference.unwrap();
    assert!(interval.low > -47e6 && interval.high < -34e6, "{interval:?}");
    assert_eq!(found.wall.is_change(), Some(true));
    let same = compare(&slow, &slow_too, Grouping::Lines);
    assert_eq!(same.wall.is_change(), Some(false));
}

/// Returns a run of a script whose line 12 launches basename for each of these names.
fn basename_of(names: &[&str]) -> Run {
    let mut builder = Builder::command("/bin/bash", &["bash", "lib.sh"], 100_000_000);
    for (start, name) in (1_000_000..).step_by(2_000_000).zip(names) {
        let launch = builder.launch(ROOT, start, &Spans::USUAL, Some(("/usr/bin/basename", &["basename", name])));
        let line = builder.line(Language::Bash, "/srv/lib.sh", 12, "");
        builder.set_call_chain(launch, &[line]);
    }
    run(&builder.recording)
}

#[test]
fn a_program_and_a_line_are_one_group_with_any_arguments() {
    let [before, after] = [["alpha", "beta", "gamma"].as_slice(), &["beta"]].map(basename_of);
    let [folded, unfolded] = [Grouping::Lines, Grouping::Arguments]
        .map(|grouping| compare(std::slice::from_ref(&before), std::slice::from_ref(&after), grouping));
    assert_eq!(changed(&folded), [(ChangeKind::Changed, "basename".to_owned(), 3, 1)]);
    let row = folded.rows.iter().find(|row| row.command == b"basename").unwrap();
    assert_eq!((row.variants, &row.arguments), (3, &None));
    assert_eq!(changed(&unfolded), [(); 2].map(|()| (ChangeKind::Removed, "basename".to_owned(), 1, 0)));
}

/// Compares runs on machines where a fork takes these times, in microseconds.
fn conditions(before: &[f64], after: &[f64]) -> Vec<Condition> {
    let runs = [before, after].map(|times| {
        times.iter().map(|time| {
            let [ns, low, high] = [1.0, 0.95, 1.05].map(|factor| time * factor * 1e3);
            let row = Calibration { what: Constant::ForkExit, ns, low_ns: Some(low), high_ns: Some(high) };
            Run { calibration: vec![row], ..basename_of(&["alpha"]) }
        })
    });
    let [before, after] = runs.map(Iterator::collect::<Vec<_>>);
    compare(&before, &after, Grouping::Lines).conditions
}

#[test]
fn machines_differ_only_if_all_their_runs_do() {
    assert_eq!(conditions(&[100.0], &[300.0]), [Condition::Constant(Constant::ForkExit, 100e3, 300e3)]);
    assert_eq!(
        conditions(&[100.0, 110.0, 105.0], &[300.0, 310.0]),
        [Condition::Constant(Constant::ForkExit, 105e3, 305e3)]
    );
    assert_eq!(conditions(&[100.0, 2_000.0], &[300.0, 310.0]), [], "the runs of one side differ by more");
    assert_eq!(conditions(&[100.0, 101.0], &[110.0, 111.0]), [], "less than a fifth");
}

#[test]
fn an_incomplete_recording_has_no_wall() {
    let mut cut_off = script(100_000_000, &launches_at_lines(0, &[5; 3]));
    cut_off.info.wall = None;
    let found = diff(&[&script(100_000_000, &launches_at_lines(0, &[5; 3]))], &[&cut_off]);
    assert_eq!((found.wall.after, found.wall.value()), (None, None));
    assert_eq!(found.conditions.len(), 1);
    assert_eq!(changed(&found), []);
}

fn launches() -> impl Strategy<Value = Vec<GeneratedLaunch>> {
    proptest::collection::vec((0..3usize, 0..100u32, 1..6u32, 0..3u8), 0..20)
}

proptest! {
    #[test]
    fn a_recording_does_not_differ_from_itself(made in launches()) {
        let recording = script(100_000_000, &made);
        let found = diff(&[&recording], &[&recording]);
        prop_assert_eq!(changed(&found), []);
        prop_assert_eq!(found.launches.difference(), 0);
        prop_assert_eq!(found.wall.value(), Some(0.0));
        let several = diff(&[&recording; 3], &[&recording; 2]);
        prop_assert_eq!(changed(&several), []);
        prop_assert_eq!(several.wall.is_change(), Some(false));
    }

    #[test]
    fn the_order_of_launches_does_not_matter(made in launches(), seed in any::<u64>()) {
        let mut shuffled = made.clone();
        // Sorts by pseudo-random numbers from the seed.
        let mut at = seed;
        shuffled.sort_by_cached_key(|_| {
            at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            at >> 33
        });
        let found = diff(&[&script(100_000_000, &made)], &[&script(100_000_000, &shuffled)]);
        prop_assert_eq!(changed(&found), []);
    }

    #[test]
    fn counts_of_all_groups_sum_to_the_totals(before in launches(), after in launches()) {
        let found = diff(&[&script(100_000_000, &before)], &[&script(90_000_000, &after)]);
        let counts_before = found.rows.iter().map(|row| row.count.before.median);
        let counts_after = found.rows.iter().map(|row| row.count.after.median);
        prop_assert_eq!(counts_before.sum::<u64>(), before.len() as u64 + 1);
        prop_assert_eq!(counts_after.sum::<u64>(), after.len() as u64 + 1);
        let difference: i64 = found.rows.iter().map(|row| row.count.difference()).sum();
        prop_assert_eq!(difference, found.launches.difference());
    }

    #[test]
    fn the_sides_are_symmetric(before in launches(), after in launches()) {
        let (old, new) = (script(100_000_000, &before), script(90_000_000, &after));
        let (there, back) = (diff(&[&old], &[&new]), diff(&[&new], &[&old]));
        prop_assert_eq!(there.launches.difference(), -back.launches.difference());
        for (kind, opposite) in [(ChangeKind::Added, ChangeKind::Removed), (ChangeKind::Changed, ChangeKind::Changed)] {
            let rows_there = there.rows.iter().filter(|row| row.kind == kind);
            let rows_back = back.rows.iter().filter(|row| row.kind == opposite);
            prop_assert_eq!(rows_there.count(), rows_back.count());
        }
    }
}
