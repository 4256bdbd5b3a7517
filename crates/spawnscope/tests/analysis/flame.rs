//! Flame graphs: widths and stacking. No name breaks their format.

use proptest::prelude::*;
use spawnscope::analyze::model::phases::Phase;
use spawnscope::analyze::path::flame::{Flame, FlameError, FlameOptions, MAX_LEVELS, Stacking, Weight, flame};
use spawnscope::analyze::{CriticalPath, critical_path};
use spawnscope::present::flame::folded;
use spawnscope::record::reader::StackId;

use crate::prelude::*;

const WALL: u64 = 100_000_000;
const TREE: FlameOptions = FlameOptions { weight: Weight::Wall, stacking: Stacking::Tree, phase: None };
const CALLER: FlameOptions = FlameOptions { stacking: Stacking::Caller, ..TREE };
const COUNT_BY_CALLER: FlameOptions = FlameOptions { weight: Weight::Count, ..CALLER };
const GIT: Option<(&str, &[&str])> = Some(("/usr/bin/git", &["git", "status"]));

fn stacked<'a>(
    recording: &'a Recording,
    forest: &Forest<'a>,
    path: Option<&CriticalPath>,
    wanted: FlameOptions,
) -> Result<Flame<'a>, FlameError> {
    flame(forest, path, |name| recording.texts.get(name), wanted)
}

fn folded_of(recording: &Recording, wanted: FlameOptions) -> String {
    let forest = Forest::build(recording);
    folded(&stacked(recording, &forest, None, wanted).unwrap())
}

/// Returns the weight of one stack, 0 if the stack is absent.
fn weight_of(folded: &str, stack: &str) -> u64 {
    folded.lines().filter_map(|line| Some(line.strip_prefix(stack)?.strip_prefix(' ')?.parse::<u64>().unwrap())).sum()
}

fn sum(folded: &str) -> u64 {
    let weights = folded.lines().map(|line| line.rsplit_once(' ').unwrap().1);
    weights.map(|weight| weight.parse::<u64>().unwrap()).sum()
}

/// Returns the recording of a make that runs sh, which runs git twice.
fn building() -> Builder {
    let mut builder = Builder::command("/usr/bin/make", &["make"], WALL);
    let shell = running(20_000_000);
    let sh = builder.launch(ROOT, 10_000_000, &shell, Some(("/bin/sh", &["sh", "-c", "x"])));
    builder.launch(sh, 15_000_000, &Spans::USUAL, GIT);
    builder.launch(sh, 20_000_000, &Spans::USUAL, GIT);
    builder
}

#[test]
fn each_moment_of_a_serial_command_is_in_one_box() {
    let folded = folded_of(&building().recording, TREE);
    assert_eq!(sum(&folded), WALL / 1000);
    assert_eq!(weight_of(&folded, "make;sh;git;load"), 800, "{folded}");
    assert_eq!(weight_of(&folded, "make;sh;git;run"), 400, "{folded}");
    let sh_alone = 20_000_000 - 2 * Spans::USUAL.total();
    assert_eq!(weight_of(&folded, "make;sh;run"), sh_alone / 1000, "{folded}");
    // Time of the recorder, before the exec of make.
    assert_eq!(weight_of(&folded, "make;(unknown phase)"), 20);
}

#[test]
fn concurrent_children_each_have_their_full_width() {
    let mut builder = Builder::command("/usr/bin/make", &["make"], WALL);
    let long = running(30_000_000);
    builder.launch(ROOT, 10_000_000, &long, GIT);
    builder.launch(ROOT, 20_000_000, &long, GIT);
    let folded = folded_of(&builder.recording, TREE);
    assert_eq!(weight_of(&folded, "make;git;run"), 60_000);
    let make: u64 = sum(&folded) - 2 * long.total() / 1000;
    assert_eq!(make, (WALL - (long.total() + 10_000_000)) / 1000, "{folded}");
}

#[test]
fn no_time_is_counted_twice_if_a_child_outlives_its_parent() {
    let mut builder = building();
    let late = running(500_000_000);
    builder.launch(ROOT, 90_000_000, &late, Some(("/usr/sbin/daemon", &["daemon"])));
    let folded = folded_of(&builder.recording, TREE);
    assert_eq!(sum(&folded), 90_000 + late.total() / 1000, "{folded}");
}

#[test]
fn tax_excludes_run_and_a_phase_excludes_all_others() {
    let recording = building().recording;
    let wanted = FlameOptions { weight: Weight::Tax, ..TREE };
    let tax = folded_of(&recording, wanted);
    assert!(!tax.contains(";run "), "{tax}");
    assert_eq!(weight_of(&tax, "make;sh;git;exec"), 600);
    let phase = Some(Phase::Load);
    let load = folded_of(&recording, FlameOptions { phase, ..TREE });
    assert!(load.lines().all(|line| line.contains(";load ")), "{load}");
    assert_eq!(sum(&load), 400 * 4);
}

#[test]
fn launches_are_counted_by_stack() {
    assert_eq!(counted(None), "make 1\nmake;sh 1\nmake;sh;git 2\n");
    // The recorder reaps the command.
    assert_eq!(counted(Some(Phase::Reap)), "make;sh 1\nmake;sh;git 2\n");
}

fn counted(phase: Option<Phase>) -> String {
    folded_of(&building().recording, FlameOptions { weight: Weight::Count, phase, ..TREE })
}

#[test]
fn the_critical_path_sums_to_the_wall() {
    let mut serial = Serial::new();
    for _ in 0..7 {
        serial.launch(&Spans::USUAL, GIT);
    }
    serial.launch_sleeping(&Spans::USUAL, ("/bin/true", &["true"]), 9_000_000);
    let (recording, slices) = serial.finish();
    let forest = Forest::build(&recording);
    let timelines = timelines(&forest, &slices);
    let wall = recording.info.wall.unwrap();
    let path = critical_path(&forest, &timelines, wall).unwrap();
    for stacking in [Stacking::Tree, Stacking::Caller] {
        let wanted = FlameOptions { weight: Weight::Critical, stacking, phase: None };
        let found = stacked(&recording, &forest, Some(&path), wanted).unwrap();
        assert_eq!(Nanos(found.total), wall);
        let folded = folded(&found);
        assert_eq!(sum(&folded), wall.0 / 1000);
        assert!(weight_of(&folded, "(waiting for a timer)") > 0, "{folded}");
    }
}

#[test]
fn callers_are_drawn_between_parent_and_child() {
    let mut builder = Builder::command("/bin/bash", &["bash", "unpack.sh"], WALL);
    let shell = running(5_000_000);
    let fork = builder.launch(ROOT, 1_000_000, &shell, None);
    let child = builder.launch(fork, 2_000_000, &Spans::USUAL, GIT);
    let inner = builder.line(Language::Bash, "/x/unpack.sh", 14, "relocate");
    let outer = builder.line(Language::Bash, "/x/unpack.sh", 30, "");
    builder.set_call_chain(fork, &[inner, outer]);
    builder.set_call_chain(child, &[inner, outer]);
    let helper = builder.launch(child, 2_500_000, &Spans::USUAL, Some(("/usr/lib/helper", &["helper"])));
    for address in [0x10, 0x20] {
        let frames = [builder.code("/usr/bin/git", "start_command", address), builder.code("/usr/bin/git", "", 0x99)];
        builder.set_call_chain(helper, &frames);
    }
    let folded = folded_of(&builder.recording, COUNT_BY_CALLER);
    let chain = "bash;unpack.sh:30;relocate unpack.sh:14;(bash)";
    // The callers of a forked copy are below the copy.
    for stack in [format!("{chain};git"), format!("{chain};git;git+0x99;start_command;helper")] {
        assert_eq!(weight_of(&folded, &stack), 1, "{stack} in {folded}");
    }
    assert_eq!(sum(&folded), 4);
}

#[test]
fn calls_of_one_function_are_one_box_and_lost_callers_are_marked() {
    let mut builder = Builder::command("/usr/bin/make", &["make"], WALL);
    for number in 0..3u64 {
        let launch = builder.launch(ROOT, number * 3_000_000, &Spans::USUAL, GIT);
        let frame = builder.code("/usr/bin/make", "child_execute_job", 0x10 + number);
        let stack = builder.set_call_chain(launch, &[frame]);
        builder.recording.stacks[stack.index() as usize].is_truncated = number == 2;
    }
    let folded = folded_of(&builder.recording, COUNT_BY_CALLER);
    assert_eq!(weight_of(&folded, "make;child_execute_job;git"), 2, "{folded}");
    let unknown = "make;(callers unknown);child_execute_job;git";
    assert_eq!(weight_of(&folded, unknown), 1, "{folded}");
}

#[test]
fn flame_graphs_without_data_are_errors() {
    let mut recording = building().recording;
    let forest = Forest::build(&recording);
    let critical = FlameOptions { weight: Weight::Critical, ..TREE };
    let refused = stacked(&recording, &forest, None, critical);
    assert_eq!(refused.unwrap_err(), FlameError::NoPath);
    let nothing = FlameOptions { weight: Weight::Tax, phase: Some(Phase::Run), ..TREE };
    let refused = stacked(&recording, &forest, None, nothing).unwrap_err();
    assert!(refused.to_string().contains("`run`"), "{refused}");
    recording.launches.clear();
    let forest = Forest::build(&recording);
    let refused = stacked(&recording, &forest, None, TREE);
    assert_eq!(refused.unwrap_err(), FlameError::NoLaunch);
}

#[test]
fn very_deep_chains_are_cut() {
    let mut builder = Builder::command("/bin/bash", &["bash"], WALL);
    let mut parent = ROOT;
    for number in 0..20_000 {
        parent = builder.launch(parent, number * 1_000, &Spans::USUAL, GIT);
    }
    let counted = FlameOptions { weight: Weight::Count, ..TREE };
    let forest = Forest::build(&builder.recording);
    let found = stacked(&builder.recording, &forest, None, counted).unwrap();
    assert_eq!((found.nodes.len() as u32, found.total), (MAX_LEVELS + 1, 20_001));
    assert_eq!(sum(&folded(&found)), 20_001);
}

#[cfg(feature = "flame")]
fn svg_of(recording: &Recording, wanted: FlameOptions) -> String {
    let forest = Forest::build(recording);
    let found = stacked(recording, &forest, None, wanted).unwrap();
    String::from_utf8(spawnscope::present::flame::svg(&found, "a title; <b>\u{1b}").unwrap()).unwrap()
}

#[cfg(feature = "flame")]
#[test]
fn the_picture_has_a_box_for_each_stack_with_its_figures() {
    let svg = svg_of(&building().recording, TREE);
    // Equal siblings are one box.
    let git = "<title>git (2.30 ms, 2.30%)</title>";
    assert_contains(&svg, [git, "<title>load (800 us, 0.80%)</title>"]);
    let whole = svg.split("<title>all (100 ms, 100%)</title>").nth(1).unwrap();
    let whole = whole.split("</text>").next().unwrap();
    // The box has its text even without scripts.
    assert!(whole.ends_with(">all"), "{whole}");
    assert!(svg.contains("a title; &lt;b&gt;\\x1b</text>"));
    assert!(svg.contains("width: wall time of processes, without"));
}

#[cfg(feature = "flame")]
#[test]
fn a_program_with_the_name_of_a_phase_has_another_colour() {
    let mut builder = Builder::command("/usr/bin/make", &["make"], WALL);
    builder.launch(ROOT, 10_000_000, &Spans::USUAL, Some(("/opt/load", &["load"])));
    let svg = svg_of(&builder.recording, TREE);
    let boxes = svg.split("<title>load (").skip(1);
    let fills: Vec<&str> = boxes.map(|rest| rest.split("fill=\"").nth(1).unwrap().split('"').next().unwrap()).collect();
    assert_eq!(fills.len(), 3, "two phases and a program");
    let of_phases = fills.iter().filter(|fill| **fill == "rgb(159,214,242)");
    assert_eq!(of_phases.count(), 2, "{fills:?}");
}

/// Returns a recording in which every name consists of these bytes.
fn recording_named(name: &[u8]) -> Recording {
    let mut builder = Builder::command("/bin/bash", &["bash"], WALL);
    let mut child = LaunchId(0);
    for start in [1_000_000, 5_000_000] {
        child = builder.launch(ROOT, start, &Spans::USUAL, None);
        let at = [180_000, 480_000, 500_000].map(|after| start + after);
        builder.exec_at(child, name, &[name], at);
    }
    let name = builder.text(name);
    let mut frame = builder.line(Language::Bash, "", 14, "x");
    (frame.file, frame.function) = (Some(name), Some(name));
    builder.set_call_chain(child, &[frame]);
    builder.recording.info.command = vec![builder.recording.texts.get(name).to_vec()];
    builder.recording
}

#[cfg(feature = "flame")]
fn assert_sound_svg(recording: &Recording, wanted: FlameOptions) {
    let svg = svg_of(recording, wanted);
    let is_xml =
        |character: char| matches!(character, '\n' | '\t' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    assert!(svg.chars().all(is_xml), "{svg:?}");
    for (open, close) in [("<g>", "</g>"), ("<title>", "</title>"), ("<text", "</text>")] {
        let boxes = svg.rsplit("<svg id=\"frames\"").next().unwrap();
        assert_eq!(boxes.matches(open).count(), boxes.matches(close).count());
    }
}

#[cfg(not(feature = "flame"))]
fn assert_sound_svg(_: &Recording, _: FlameOptions) {}

fn assert_sound(recording: &Recording) {
    for wanted in [TREE, CALLER] {
        let folded = folded_of(recording, wanted);
        if wanted.stacking == Stacking::Tree {
            assert_eq!(sum(&folded), WALL / 1000, "{folded}");
        }
        assert!(!folded.contains(|character: char| character.is_control() && character != '\n'), "{folded:?}");
        for line in folded.lines() {
            let (stack, _) = line.rsplit_once(' ').unwrap();
            let bottom = stack.split(';').next().unwrap();
            assert_eq!(bottom, "bash", "{folded:?}");
            assert!(stack.split(';').all(|name| !name.trim().is_empty()), "{folded:?}");
            let last = stack.rsplit(' ').next().unwrap();
            let has_second_weight = stack.contains(' ') && last.parse::<f64>().is_ok();
            assert!(!has_second_weight, "{line:?}");
        }
        assert_sound_svg(recording, wanted);
    }
}

#[test]
fn no_name_breaks_the_format() {
    let names: [&[u8]; 13] = [
        b"a;b",
        b"a\nb 7",
        b"\x1b[2J\x07",
        b"\xff\xfe;\x80",
        "\u{202e}cod\u{fffe}\u{ffff}".as_bytes(),
        b"",
        b" ",
        b"# 5",
        b"7",
        b"a 7.5",
        b"--",
        b"]]></script><b onload=\"x\">&amp;'",
        b"x_[k]",
    ];
    for name in names {
        assert_sound(&recording_named(name));
    }
}

proptest! {
    #[test]
    fn no_random_name_breaks_the_format(name in proptest::collection::vec(1u8.., 0..30)) {
        assert_sound(&recording_named(&name));
    }

    #[test]
    fn boxes_sum_to_at_most_the_lifetimes(
        lives in proptest::collection::vec((0usize..20, 0u64..50_000_000, 0u64..30_000_000), 0..20),
    ) {
        let mut builder = Builder::command("/bin/bash", &["bash"], WALL);
        let mut launches = vec![ROOT];
        for (parent, start, run) in lives {
            let spans = Spans { run, ..Spans::USUAL };
            let parent = launches[parent % launches.len()];
            launches.push(builder.launch(parent, start, &spans, GIT));
        }
        let recording = builder.recording;
        let forest = Forest::build(&recording);
        let found = stacked(&recording, &forest, None, TREE).unwrap();
        let lived: u64 = forest.launches.iter().map(|launch| launch.total(forest.end).unwrap().0).sum();
        prop_assert!(found.total <= lived);
        prop_assert!(found.total >= WALL, "at each moment of the wall, the command or one of its children is alive");
        let caller = stacked(&recording, &forest, None, CALLER).unwrap();
        prop_assert_eq!(caller.total, found.total);
    }
}

#[test]
fn a_reference_to_a_missing_stack_adds_no_callers() {
    let mut builder = Builder::command("/bin/bash", &["bash"], WALL);
    let child = builder.launch(ROOT, 0, &Spans::USUAL, GIT);
    builder.row(child).script_stack = Some(StackId::from_index(77));
    assert_eq!(folded_of(&builder.recording, COUNT_BY_CALLER), "bash 1\nbash;git 1\n");
}
