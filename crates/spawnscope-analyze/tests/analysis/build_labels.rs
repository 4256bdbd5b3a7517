//! Labels of launches, from the arguments and variables of the programs of a build.

use spawnscope_analyze::sites::build_labels::{BuildLabel, BuildLabels};
use spawnscope_analyze::sites::build_steps::name_by_steps;
use spawnscope_analyze::{GroupBy, report};
use spawnscope_data::rows::{BuildStep, EdgeRow};

use crate::prelude::*;

/// Builds a recording of a build. Each program is given by its parent and its command line, which
/// begins with its path.
fn build(lines: &[(LaunchId, &str)]) -> Builder {
    let mut builder = Builder::command("/usr/bin/make", &["make", "-j2"], 90_000_000);
    for (start, (parent, line)) in (1_000_000u64..).step_by(1_000_000).zip(lines) {
        let words: Vec<&str> = line.split(' ').collect();
        builder.launch(*parent, start, &Spans::USUAL, Some((words[0], &words)));
    }
    builder
}

fn labels(builder: &Builder, label: BuildLabel) -> Vec<String> {
    let forest = Forest::build(&builder.recording);
    let labels = BuildLabels::find(&forest, label);
    (0..forest.launches.len())
        .map(|index| labels.label_of(index).map_or("-".into(), |value| String::from_utf8_lossy(value).into_owned()))
        .collect()
}

#[test]
fn a_target_is_what_the_outermost_compiler_makes() {
    let builder = build(&[
        (ROOT, "/usr/bin/x86_64-linux-gnu-gcc-12 -O2 -c -o src/a.o src/a.c"),
        (LaunchId(2), "/usr/lib/gcc/cc1 -quiet a.c -o /tmp/cc1.s"),
        (LaunchId(2), "/usr/bin/as -o src/a.o /tmp/cc1.s"),
        (ROOT, "/bin/sh -c ./generate"),
        (LaunchId(5), "/usr/bin/sed s/a/b/ -o x"),
        (ROOT, "/usr/bin/ar rcs libx.a src/a.o"),
        (ROOT, "/usr/bin/cc --version"),
        (ROOT, "/usr/bin/ld.bfd -o"),
    ]);
    let expected = ["-", "src/a.o", "src/a.o", "src/a.o", "-", "-", "libx.a", "-", "-"];
    assert_eq!(labels(&builder, BuildLabel::Target), expected);
}

#[test]
fn a_target_of_make_comes_before_what_a_compiler_makes() {
    let mut builder = build(&[
        (ROOT, "/bin/sh -c cc -c a.c -o .libs/a.o"),
        (LaunchId(2), "/usr/bin/cc -c a.c -o .libs/a.o"),
        (ROOT, "/usr/bin/make -C sub"),
        (LaunchId(4), "/usr/bin/true"),
        (LaunchId(4), "/usr/bin/cc -c b.c -o b.o"),
    ]);
    for (launch, target) in [(2, "a.lo"), (4, "all-recursive"), (5, "sub.x")] {
        let frame = builder.line(Language::Make, "/src/Makefile", 7, target);
        builder.set_call_chain(LaunchId(launch), &[frame]);
    }
    let expected = ["-", "a.lo", "a.lo", "all-recursive", "sub.x", "all-recursive"];
    assert_eq!(labels(&builder, BuildLabel::Target), expected);
}

#[test]
fn a_crate_is_named_with_the_target_that_is_built() {
    let hash = "0123456789abcdef";
    let lines = [
        "/x/rustc --crate-name serde --edition=2021 src/lib.rs --crate-type lib --out-dir /t/deps".to_owned(),
        format!(
            "/x/rustc --crate-name build_script_build build.rs --crate-type bin --out-dir /t/build/zstd-sys-{hash}"
        ),
        format!("/t/debug/build/zstd-sys-{hash}/build-script-build"),
        "/usr/bin/cc -c zstd.c -o zstd.o".to_owned(),
        "/x/rustc --crate-name probe --crate-type=lib -".to_owned(),
        format!("/t/debug/deps/tidy-{hash} --nocapture"),
        "/x/rustc --crate-name tidy tests/tidy.rs --test".to_owned(),
        "/x/rustc -vV".to_owned(),
        format!("/t/deps/{hash}"),
    ];
    let parents = [1, 1, 1, 4, 4, 1, 1, 1, 1].map(LaunchId);
    let tree: Vec<(LaunchId, &str)> = parents.into_iter().zip(lines.iter().map(String::as_str)).collect();
    let script = "zstd-sys (build script)";
    let expected = ["-", "serde (lib)", script, script, script, script, "tidy (test)", "tidy (test)", "-", "-"];
    assert_eq!(labels(&build(&tree), BuildLabel::Crate), expected);
}

#[test]
fn a_make_below_make_works_in_its_own_directory() {
    let builder = build(&[
        (ROOT, "/usr/bin/cc -c a.c"),
        (ROOT, "/usr/bin/make -C lib all"),
        (LaunchId(3), "/usr/bin/cc -c b.c"),
        (LaunchId(3), "/usr/bin/gmake --directory=/srv/x -C y"),
        (ROOT, "/usr/bin/ninja -C."),
    ]);
    let expected = [".", ".", "lib", "lib", "/srv/x/y", "."];
    assert_eq!(labels(&builder, BuildLabel::Directory), expected);
}

#[test]
fn packages_and_tests_are_named_by_the_recorded_variables() {
    let mut builder = build(&[
        (ROOT, "/usr/bin/rustc --crate-name a"),
        (ROOT, "/usr/bin/git log"),
        (LaunchId(3), "/usr/bin/less"),
        (ROOT, "/usr/bin/tsc"),
        (ROOT, "/bin/true"),
        (ROOT, "/t/debug/deps/tidy-0123456789abcdef --exact tests::no_tabs --nocapture"),
        (ROOT, "/usr/bin/grep --exact x"),
    ]);
    let variables: [(usize, &[u8]); 3] = [
        (1, b"CARGO_PKG_NAME=serde\0"),
        (2, b"PYTEST_CURRENT_TEST=t/a.py::test_log[x y] (call)\0"),
        (4, b"npm_lifecycle_event=build\0npm_package_name=@me/web\0"),
    ];
    for (exec, text) in variables {
        let text = builder.text(text);
        builder.recording.execs[exec].variables = Some(text);
    }
    let expected = ["-", "serde", "-", "-", "@me/web (build)", "-", "-", "-"];
    assert_eq!(labels(&builder, BuildLabel::Package), expected);
    let test = "t/a.py::test_log[x y]";
    let expected = ["-", "-", test, test, "-", "-", "tests::no_tabs", "-"];
    assert_eq!(labels(&builder, BuildLabel::Test), expected);
}

#[test]
fn a_target_of_cmake_is_read_from_objects_and_makefiles() {
    let builder = build(&[
        (ROOT, "/usr/bin/c++ -o CMakeFiles/app.dir/src/main.cc.o -c main.cc"),
        (ROOT, "/usr/bin/gmake -s -f lib/CMakeFiles/z.dir/build.make lib/CMakeFiles/z.dir/depend"),
        (LaunchId(3), "/usr/bin/cc -o lib/z.o -c z.c"),
        (ROOT, "/usr/bin/gmake -f CMakeFiles/Makefile2 all"),
        (ROOT, "/usr/bin/cc -o CMakeFiles/.dir/a.o -c a.c"),
        (ROOT, "/usr/bin/cc -o CMakeFiles/a.dir"),
    ]);
    let expected = ["-", "app", "z", "z", "-", "-", "-"];
    assert_eq!(labels(&builder, BuildLabel::Cmake), expected);
}

/// Adds the outputs of the ninja edge that a launch is for.
fn add_edge(builder: &mut Builder, launch: u64, outputs: &[&str]) {
    for output in outputs {
        let output = builder.text(output.as_bytes());
        let launch = LaunchId(launch);
        builder.recording.edges.push(EdgeRow { launch, output });
    }
}

#[test]
fn a_target_is_the_output_of_the_edge_of_ninja() {
    let mut builder = build(&[
        (ROOT, "/bin/sh -c ./generate"),
        (LaunchId(2), "/usr/bin/sed s/a/b/"),
        (LaunchId(2), "/usr/bin/cc -o tools/x x.c"),
        (LaunchId(4), "/usr/bin/as -o /tmp/x.o"),
        (ROOT, "/bin/sh -c touch"),
        (ROOT, "/usr/bin/cc -o ./a.o -c a.c"),
    ]);
    add_edge(&mut builder, 2, &["gen/a.c", "gen/a.h"]);
    // This launch is a shell that became the compiler by exec.
    add_edge(&mut builder, 7, &["sub/a.o"]);
    add_edge(&mut builder, 99, &["of no launch"]);
    let (gen_a, x) = ("gen/a.c", "tools/x");
    let expected = ["-", gen_a, gen_a, x, x, "-", "sub/a.o"];
    assert_eq!(labels(&builder, BuildLabel::Target), expected);
}

#[test]
fn a_compiler_that_makes_an_output_of_an_edge_has_the_label_of_the_edge() {
    let mut builder = build(&[
        (ROOT, "/bin/sh -c link"),
        (LaunchId(2), "/usr/bin/cc -o libz.so.1.2 z.o"),
        (LaunchId(3), "/usr/bin/ld -o /home/user/lib/libz.so.1.2 z.o"),
        (LaunchId(2), "/usr/bin/ar rcs /home/user/lib/libz.so z.o"),
        (LaunchId(2), "/usr/bin/cc -o z.so"),
        (LaunchId(3), "/usr/bin/as -o /tmp/cc1.o"),
    ]);
    add_edge(&mut builder, 2, &["lib/libz.so", "lib/libz.so.1.2"]);
    let z = "lib/libz.so";
    assert_eq!(labels(&builder, BuildLabel::Target), ["-", z, z, z, z, "z.so", z]);
}

#[test]
fn a_ninja_below_an_edge_has_edges_of_its_own() {
    let mut builder = build(&[
        (ROOT, "/bin/sh -c ninja"),
        (LaunchId(2), "/usr/bin/ninja -C sub"),
        (LaunchId(3), "/bin/sh -c cp"),
        (LaunchId(4), "/usr/bin/cp a b"),
        (LaunchId(2), "/usr/bin/touch stamp"),
    ]);
    add_edge(&mut builder, 2, &["stamp"]);
    add_edge(&mut builder, 4, &["b"]);
    assert_eq!(labels(&builder, BuildLabel::Target), ["-", "stamp", "stamp", "b", "b", "stamp"]);
    let directories = [".", ".", "sub", "sub", "sub", "."];
    assert_eq!(labels(&builder, BuildLabel::Directory), directories);
}

#[test]
fn a_target_of_cmake_is_also_read_from_an_edge() {
    let mut builder = build(&[
        (ROOT, "/bin/sh -c x"),
        (LaunchId(2), "/usr/bin/sed x"),
        (LaunchId(2), "/usr/bin/cc -o CMakeFiles/z.dir/a.o a.c"),
        (ROOT, "/bin/sh -c link"),
    ]);
    add_edge(&mut builder, 2, &["CMakeFiles/app.dir/x.c", "x.c"]);
    add_edge(&mut builder, 5, &["app"]);
    assert_eq!(labels(&builder, BuildLabel::Cmake), ["-", "app", "app", "z", "-"]);
}

#[test]
fn launches_are_grouped_by_label_and_those_without_one_together() {
    let builder = build(&[
        (ROOT, "/usr/bin/gcc -c a.c -o a.o"),
        (LaunchId(2), "/usr/bin/as -o a.o x"),
        (ROOT, "/usr/bin/gcc -c b.c -o b.o"),
        (ROOT, "/bin/true"),
    ]);
    let report = report(&builder.recording, GroupBy::Label(BuildLabel::Target));
    let mut groups: Vec<(String, u64)> = report
        .groups
        .iter()
        .map(|group| (String::from_utf8_lossy(&group.label).into_owned(), group.sums.count))
        .collect();
    groups.sort();
    assert_eq!(groups, [("-".to_owned(), 2), ("a.o".to_owned(), 2), ("b.o".to_owned(), 1)]);
}

/// Returns steps that contain the launches with these parents, in the times of a log that begins 7
/// s earlier, 2 ms before and after them.
fn steps_around(builder: &Builder, parent: LaunchId, names: &[&str]) -> Vec<BuildStep> {
    let forest = Forest::build(&builder.recording);
    let launches = forest.launches.iter().filter(|launch| launch.parent.get() == Some(parent));
    let steps = launches.zip(names).map(|(launch, name)| BuildStep {
        from: Nanos(launch.start().unwrap().0 + 6_998_000_000),
        to: Nanos(launch.end().unwrap().0 + 7_002_000_000),
        name: name.as_bytes().to_vec(),
    });
    steps.collect()
}

#[test]
fn steps_of_a_log_name_the_launches_of_the_process_whose_children_fit() {
    let names: Vec<String> = (0..12).map(|number| format!("step {number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut lines = vec![(ROOT, "/bin/tool")];
    lines.extend([(LaunchId(2), "/bin/compile"); 12]);
    lines.extend([(ROOT, "/bin/other"); 3]);
    lines.push((LaunchId(4), "/bin/below"));
    let mut builder = build(&lines);
    let mut steps = steps_around(&builder, LaunchId(2), &names);
    steps.reverse();
    let older = vec![BuildStep { from: Nanos(0), to: Nanos(900_000_000_000), name: b"older".to_vec() }; 9];
    assert_eq!(name_by_steps(&mut builder.recording, &[older, steps]), 12);
    let mut expected = vec!["-", "-"];
    expected.extend(names);
    expected.extend(["-", "-", "-", "step 1"]);
    assert_eq!(labels(&builder, BuildLabel::Target), expected);
}

#[test]
fn steps_that_fit_no_process_name_nothing() {
    let mut builder = build(&[(ROOT, "/bin/a"); 12]);
    let mut steps = steps_around(&builder, ROOT, &["x"; 12]);
    for (number, step) in (0..).zip(&mut steps) {
        (step.from, step.to) = (Nanos(number * 1_000_000_000), Nanos(number * 1_000_000_000 + 2_000_000));
    }
    assert_eq!(name_by_steps(&mut builder.recording, &[steps]), 0);
    assert_eq!(name_by_steps(&mut builder.recording, &[]), 0);
}
