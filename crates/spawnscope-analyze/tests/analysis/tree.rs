//! Launches as a forest: orphans, cycles, depth.

use proptest::prelude::*;
use spawnscope_analyze::Origin;
use spawnscope_analyze::model::tree_view::{Line, TreeOptions, TreeView, with_ancestors};
use spawnscope_analyze::sites::select::Selector;

use crate::builder::blank;
use crate::prelude::*;

/// Returns the launches in the order of the tree with their depths, and the number of orphans.
fn walked(recording: &Recording) -> (Vec<(LaunchId, usize)>, usize) {
    let forest = Forest::build(recording);
    let steps = forest.walk(&forest.roots).map(|step| (forest.launches[step.index].id, step.depth));
    (steps.collect(), forest.orphans.len())
}

proptest! {
    #[test]
    fn the_order_of_rows_is_irrelevant(parents in proptest::collection::vec(0u64..30, 1..30), seed in any::<u64>()) {
        let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
        for (position, parent) in parents.iter().enumerate() {
            let parent = LaunchId(1 + parent % (position as u64 + 1));
            builder.launch(parent, 7_000 * (position as u64 / 3), &Spans::USUAL, None);
        }
        let ordered = walked(&builder.recording);
        let launches = &mut builder.recording.launches;
        launches.sort_by_key(|row| (row.id.0 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        prop_assert_eq!(ordered.0.len(), parents.len() + 1);
        prop_assert_eq!(walked(&builder.recording), ordered);
    }

    #[test]
    fn children_live_within_the_lifetime_of_their_parent(
        starts in proptest::collection::vec(0u64..900_000_000, 1..20),
    ) {
        let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
        for start in &starts {
            builder.launch(ROOT, *start, &Spans::USUAL, Some(("/bin/true", &["true"])));
        }
        let forest = Forest::build(&builder.recording);
        for child in forest.children(0).iter().map(|index| &forest.launches[*index]) {
            prop_assert!(child.start() >= forest.launches[0].start() && child.end() <= Some(Nanos(1_000_000_000)));
        }
        let births: Vec<_> = forest.children(0).iter().map(|index| forest.launches[*index].start()).collect();
        prop_assert!(births.is_sorted());
    }
}

fn label(forest: &Forest<'_>, id: LaunchId) -> String {
    let launch = forest.launches.iter().find(|launch| launch.id == id).unwrap();
    String::from_utf8(launch.command.label()).unwrap()
}

#[test]
fn a_command_is_named_by_the_file_of_its_last_exec() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    let script = builder.launch(ROOT, 0, &Spans::USUAL, Some(("/usr/bin/env", &["env", "tool.py"])));
    builder.exec_at(script, b"/opt/tool.py", &[b"python3", b"/opt/tool.py"], [900_000, 950_000, 960_000]);
    assert_eq!(label(&Forest::build(&builder.recording), script), "tool.py");
}

/// An exec: the file, the interpreter of its `#!` line or an empty string, and the arguments.
type Chain<'c> = &'c [(&'c str, &'c str, &'c [&'c str])];

fn label_after(chain: Chain<'_>) -> String {
    let mut builder = Builder::command("/usr/bin/runc", &["runc"], 1_000_000_000);
    let launch = builder.launch(ROOT, 0, &Spans::USUAL, None);
    for (at, (path, interpreter, argv)) in (1_000_000..).step_by(1_000).zip(chain) {
        let argv: Vec<&[u8]> = argv.iter().map(|argument| argument.as_bytes()).collect();
        builder.exec_at(launch, path.as_bytes(), &argv, [at, at + 100, at + 200]);
        let interpreter = (!interpreter.is_empty()).then(|| builder.text(interpreter.as_bytes()));
        builder.recording.execs.last_mut().unwrap().interpreter = interpreter;
    }
    label(&Forest::build(&builder.recording), launch)
}

#[test]
fn a_script_has_its_own_name_with_any_interpreter_line() {
    let (env, node) = ("/usr/bin/env", "/usr/bin/node");
    let tsc = ("/p/tsc", env, ["env", "node", "/p/tsc", "a.ts"].as_slice());
    assert_eq!(label_after(&[("/p/tsc", node, &["node", "/p/tsc", "a.ts"])]), "tsc");
    assert_eq!(label_after(&[tsc, (node, "", &["node", "/p/tsc", "a.ts"])]), "tsc");
    assert_eq!(label_after(&[tsc, (node, "", &["node", "--flag", "/p/tsc", "a.ts"])]), "tsc", "env -S");
    // A script that executes another program, or an interpreter that was asked for by name.
    assert_eq!(label_after(&[tsc, (node, "", &["node", "/p/tsc"]), ("/bin/make", "", &["make"])]), "make");
    assert_eq!(label_after(&[("/p/w", env, &["env", "sh", "/p/w"]), (node, "", &["node", "x.js"])]), "node");
    assert_eq!(label_after(&[(node, "", &["node", "/p/tsc"])]), "node");
}

#[test]
fn a_program_without_a_path_is_named_by_its_first_argument() {
    assert_eq!(label_after(&[("/dev/fd/5", "", &["/opt/helper", "x"])]), "helper");
    assert_eq!(label_after(&[("/proc/self/fd/5", "", &["helper"])]), "helper");
    assert_eq!(label_after(&[("/proc/self/exe", "", &["init-helper"])]), "init-helper");
    assert_eq!(label_after(&[("/proc/self/exe", "", &["/proc/self/exe", "init"])]), "runc", "it executes itself");
    assert_eq!(label_after(&[("/bin/a", "", &["a"]), ("/proc/7/exe", "", &[""])]), "a");
    assert_eq!(label_after(&[("/dev/fd/5", "", &[""])]), "5", "nothing else is known");
    assert_eq!(label_after(&[("/srv/proc/fd/tool", "", &["other"])]), "tool", "a file with a name");
}

#[test]
fn a_fork_is_named_after_the_program_that_its_parent_ran_at_that_time() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    let early = builder.launch(ROOT, 1_000_000, &Spans::USUAL, None);
    builder.exec_at(ROOT, b"/usr/bin/make", &[b"make"], [50_000_000, 50_500_000, 51_000_000]);
    let late = builder.launch(ROOT, 60_000_000, &Spans::USUAL, None);
    let nested = builder.launch(early, 1_200_000, &Spans::USUAL, None);
    let forest = Forest::build(&builder.recording);
    assert_eq!([early, late, nested].map(|id| label(&forest, id)), ["(bash)", "(make)", "(bash)"]);
}

#[test]
fn forks_between_execs_are_named_after_the_program_of_their_time() {
    let mut builder = Builder::command("/bin/p0", &["p0"], 1_000_000_000);
    for number in 1..200u64 {
        let at_ns = number * 1_000_000;
        let path = format!("/bin/p{number}");
        builder.exec_at(ROOT, path.as_bytes(), &[b"p"], [at_ns, at_ns + 1_000, at_ns + 2_000]);
        builder.launch(ROOT, at_ns + 10_000, &Spans::USUAL, None);
    }
    let forest = Forest::build(&builder.recording);
    let labels: Vec<String> = (1..200).map(|index| label(&forest, forest.launches[index].id)).collect();
    let expected: Vec<String> = (1..200).map(|number| format!("(p{number})")).collect();
    assert_eq!(labels, expected);
}

#[test]
fn processes_older_than_the_recording_keep_their_name_and_pass_it_to_forks() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    let shell = LaunchId(2);
    let name = Some(builder.text(b"zsh"));
    builder.recording.launches.push(spawnscope_data::rows::LaunchRow { name, ..blank(shell, None, Origin::Existed) });
    let fork = builder.launch(shell, 1_000_000, &Spans::USUAL, None);
    let forest = Forest::build(&builder.recording);
    assert_eq!([shell, fork].map(|id| label(&forest, id)), ["zsh", "(zsh)"]);
    assert_eq!(forest.roots.len(), 2);
}

#[test]
fn launches_whose_parent_was_lost_are_shown_separately() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    let lost = builder.launch(LaunchId(99), 0, &Spans::USUAL, Some(("/bin/a", &["a"])));
    let child = builder.launch(lost, 500_000, &Spans::USUAL, Some(("/bin/b", &["b"])));
    let forest = Forest::build(&builder.recording);
    assert_eq!((forest.roots.as_slice(), forest.orphans.as_slice()), ([0].as_slice(), [1].as_slice()));
    assert_eq!(forest.children(1), [2]);
    assert_eq!(forest.launches[2].id, child);
}

#[test]
fn a_cycle_of_parents_is_broken_and_every_process_is_shown_once() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    for id in 2..=4 {
        builder.recording.launches.push(blank(
            LaunchId(id),
            Some(LaunchId(if id == 4 { 2 } else { id + 1 })),
            Origin::Launched,
        ));
    }
    builder.recording.launches.push(blank(LaunchId(5), Some(LaunchId(5)), Origin::Launched));
    let forest = Forest::build(&builder.recording);
    let tops = [forest.roots.as_slice(), &forest.orphans].concat();
    let mut seen: Vec<usize> = forest.walk(&tops).map(|step| step.index).collect();
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3, 4]);
}

/// Builds a recording of a shell with series of alike children, some of which have a child of their
/// own.
fn family() -> Builder {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    launch_next(&mut builder, ROOT, "/usr/bin/sed");
    for _ in 0..5 {
        launch_next(&mut builder, ROOT, "/usr/bin/sed");
        let make = launch_next(&mut builder, ROOT, "/usr/bin/make");
        launch_next(&mut builder, make, "/usr/bin/cc");
    }
    let failing = launch_next(&mut builder, ROOT, "/usr/bin/make");
    builder.row(failing).wait_status = Some(256);
    for _ in 0..3 {
        launch_next(&mut builder, ROOT, "/usr/bin/awk");
    }
    builder
}

fn launch_next(builder: &mut Builder, parent: LaunchId, path: &str) -> LaunchId {
    let start = 1_000_000 + 2_000_000 * builder.recording.launches.len() as u64;
    builder.launch(parent, start, &Spans::USUAL, Some((path, &[path])))
}

fn shown(forest: &Forest<'_>, options: TreeOptions<'_>) -> Vec<String> {
    let view = TreeView::new(forest, options);
    let texts = view.lines(&forest.roots).map(|line| match line {
        Line::Launch(step) => String::from_utf8(forest.launches[step.index].command.label()).unwrap(),
        Line::Folded { count, total, .. } => format!("{count} more, {} each", total.0 / count),
        Line::Below { count, .. } => format!("{count} below"),
    });
    texts.collect()
}

#[test]
fn alike_siblings_are_folded_with_what_they_launched() {
    let builder = family();
    let forest = Forest::build(&builder.recording);
    let folded = TreeOptions { fold: true, ..TreeOptions::default() };
    let each = Spans::USUAL.total();
    let expected = [
        "bash".to_owned(),
        "sed".to_owned(),
        format!("5 more, {each} each"),
        "make".to_owned(),
        "cc".to_owned(),
        format!("4 more, {each} each"),
        "make".to_owned(),
        "awk".to_owned(),
        "awk".to_owned(),
        "awk".to_owned(),
    ];
    assert_eq!(shown(&forest, folded), expected, "the last make failed; three are not many");
    assert_eq!(shown(&forest, TreeOptions::default()).len(), forest.launches.len());
}

#[test]
fn a_tree_shows_only_what_led_to_a_selection() {
    let builder = family();
    let forest = Forest::build(&builder.recording);
    let selected = Selector::parse("cc").unwrap().select(&forest).unwrap();
    let chosen = with_ancestors(&forest, selected);
    let options = TreeOptions { shown: Some(&chosen), ..TreeOptions::default() };
    let lines = shown(&forest, options);
    assert_eq!(lines.len(), 1 + 2 * 5, "{lines:?}");
    assert!(!lines.contains(&"sed".to_owned()) && !lines.contains(&"awk".to_owned()));
    // The last line of each level closes its branch.
    let view = TreeView::new(&forest, options);
    let last = view.lines(&forest.roots).filter(|line| line.position() == (1, true)).count();
    assert_eq!(last, 1);
}

#[test]
fn a_tree_can_be_limited_in_depth() {
    let builder = family();
    let forest = Forest::build(&builder.recording);
    let [one, two, three] =
        [1, 2, 3].map(|depth| shown(&forest, TreeOptions { depth: Some(depth), ..TreeOptions::default() }));
    assert_eq!(one, ["bash", "20 below"]);
    assert_eq!(two.iter().filter(|line| *line == "1 below").count(), 5);
    assert_eq!(three.len(), forest.launches.len());
}
