//! What depends on a command, the principal cause, and whose code requests the launches of advice.

use proptest::prelude::*;
use spawnscope_analyze::explain::advice::Owner;
use spawnscope_analyze::explain::report::{is_consistent, waits_fit};
use spawnscope_analyze::predict::dependence::{Dependence, culprit};
use spawnscope_analyze::{GroupBy, report_on};
use spawnscope_data::rows::FrameRow;

use crate::advice_chains::nested_scripts;
use crate::prelude::*;
use crate::recordings::causes;
use crate::serial::{advices, is_silent, only};

/// How long each `git` sleeps.
const SLEEP: u64 = 80_000_000;

/// Builds a recording of a script that launches a `git` that sleeps, and ten times as often a
/// program that ends quickly.
fn sleeping_git() -> (Recording, Vec<SliceRow>) {
    let mut serial = Serial::new();
    for _ in 0..41 {
        let git = ("/opt/bin/git", ["git", "status"].as_slice());
        let child = serial.launch_without_cpu(&Spans::USUAL, Some(git), SLEEP, LeftCpu::Interruptible);
        let slept = serial.slices.iter_mut().find(|slice| slice.task.0 == child.0 && slice.syscall == Some(READ));
        slept.unwrap().syscall = Some(CLOCK_NANOSLEEP);
        for _ in 0..10 {
            serial.launch(&Spans::USUAL, Some(("/usr/bin/true", &["true"])));
        }
    }
    serial.finish()
}

fn dependence(label: &str, saving_ms: u64, is_wrapper: bool) -> Dependence {
    Dependence {
        label: label.as_bytes().to_vec(),
        count: 41,
        saving: [saving_ms, saving_ms.saturating_sub(5), saving_ms + 5].map(|ms| Nanos(ms * 1_000_000)),
        is_wrapper,
        launched_through: None,
    }
}

#[test]
fn the_wall_depends_on_a_program_that_only_sleeps() {
    let recorded = sleeping_git();
    let causes = causes(&recorded.0, &recorded.1);
    let first = &causes.dependence[0];
    assert_eq!((first.label.as_slice(), first.count), (b"git".as_slice(), 41));
    let slept = 41 * SLEEP;
    let launched = 41 * Spans::USUAL.total();
    assert!((slept..=slept + 2 * launched).contains(&first.saving[0].0), "{first:?} of {slept} slept");
    assert_eq!(culprit(&causes.dependence, causes.advices.unrecorded), Some(first));
    // The launches of `true`, ten times as many, have more launch tax but come second.
    let forest = Forest::build(&recorded.0);
    let found = Causes::find(&recorded.0, &forest, &timelines(&forest, &recorded.1));
    let report = report_on(&recorded.0, &forest, found.as_ref(), GroupBy::Command);
    let labels: Vec<&[u8]> = report.groups.iter().map(|group| group.label.as_slice()).collect();
    assert_eq!(labels, [b"git".as_slice(), b"true", b"bash"]);
    assert_eq!(report.groups[0].depends, Some(first.saving[0]));
    assert!(report.groups[0].sums.tax < report.groups[1].sums.tax);
    assert_eq!(report.groups[2].depends, None, "the command itself cannot be removed");
}

#[test]
fn a_command_is_launched_through_the_wrapper_above_it() {
    let nested = nested_scripts(&[("/usr/bin/xargs", &["xargs", "git"]), ("/usr/bin/git", &["git"])], 2);
    let found = causes(&nested.0, &nested.1);
    let [xargs, git] = found.dependence.as_slice() else { panic!("{:?}", found.dependence) };
    assert!(xargs.is_wrapper && xargs.saving[0] > git.saving[0], "{xargs:?} {git:?}");
    assert_eq!(git.launched_through.as_deref(), Some(b"xargs".as_slice()));
    let alone = sleeping_git();
    let found = causes(&alone.0, &alone.1);
    assert!(found.dependence.iter().all(|each| each.launched_through.is_none()));
}

#[test]
fn the_culprit_is_not_a_wrapper_and_has_a_large_share() {
    let wall = Nanos(100_000_000);
    let all = [dependence("sh", 95, true), dependence("git", 83, false), dependence("as", 3, false)];
    assert_eq!(culprit(&all, wall).unwrap().label, b"git");
    assert_eq!(culprit(&all[2..], wall), None, "three percent is not a cause");
    let twelve_percent = [dependence("git", 12, false)];
    assert!(culprit(&twelve_percent, wall).is_some());
    let once = twelve_percent.map(|each| Dependence { count: 1, ..each });
    assert_eq!(culprit(&once, wall), None, "a program that does its work");
    assert_eq!(culprit(&[dependence("git", 4, false)], Nanos(5_000_000)), None, "it may be nothing");
}

/// Builds a recording of a script with needless launches: 40 of `dirname` from the file `often`,
/// and 20 of `basename` from `less_often`.
fn from_files(often: &str, less_often: &str) -> (Recording, Vec<SliceRow>) {
    let mut serial = Serial::new();
    for number in 0..60 {
        let (file, program) = if number % 3 == 0 { (less_often, "basename") } else { (often, "dirname") };
        let path = format!("/usr/bin/{program}");
        let argv = [program, "/a/b"];
        let child = serial.launch_waiting(&Spans::USUAL, Some((&path, &argv)), READ);
        let line = serial.builder.line(Language::Bash, file, 7, "");
        serial.builder.set_call_chain(child, &[line]);
    }
    serial.finish()
}

/// Builds a recording of needless launches by a makefile. `template` is the file that the makefile
/// was generated from, if any.
fn from_makefile(template: Option<&str>) -> (Recording, Vec<SliceRow>) {
    let mut serial = Serial::new();
    for _ in 0..60 {
        let child = serial.launch_waiting(&Spans::USUAL, Some(("/usr/bin/dirname", &["dirname", "/a/b"])), READ);
        let module = template.map(|template| serial.builder.text(template.as_bytes()));
        let line = FrameRow { module, ..serial.builder.line(Language::Make, "/src/Makefile", 7, "all") };
        serial.builder.set_call_chain(child, &[line]);
    }
    serial.finish()
}

#[test]
fn a_makefile_marked_as_generated_is_generated_code() {
    for (template, expected) in [(None, None), (Some("Makefile.in"), Some(Owner::Generated))] {
        let found = advices(&from_makefile(template));
        let mut owners = found.worth.iter().map(|advice| advice.foreign.as_ref().map(|foreign| foreign.owner));
        assert!(!found.worth.is_empty() && owners.all(|owner| owner == expected), "{found:?}");
    }
}

#[test]
fn code_without_a_file_belongs_to_the_script_that_runs_it() {
    let script = "/usr/lib/git-core/git-filter-branch";
    let mut serial = Serial::with_command(script, &["git-filter-branch"]);
    let shebang = serial.builder.text(b"/bin/sh");
    serial.builder.recording.execs[0].interpreter = Some(shebang);
    for _ in 0..60 {
        let child = serial.launch_waiting(&Spans::USUAL, Some(("/usr/bin/dirname", &["dirname", "/a/b"])), READ);
        let of_eval = FrameRow { file: None, ..serial.builder.line(Language::Dash, "", 12, "map") };
        serial.builder.set_call_chain(child, &[of_eval]);
    }
    let foreign = only(&advices(&serial.finish()), "builtin").foreign.unwrap();
    assert_eq!((foreign.owner, &foreign.file[..]), (Owner::ThirdParty, script.as_bytes()));
}

fn owners_and_titles(often: &str, less_often: &str) -> Vec<(Option<Owner>, String)> {
    let found = advices(&from_files(often, less_often));
    assert!(!is_silent(&found, "builtin"), "{found:?}");
    let advices = found.worth.into_iter();
    advices.map(|advice| (advice.foreign.map(|foreign| foreign.owner), advice.finding.title)).collect()
}

#[test]
fn advice_about_generated_code_ranks_below_the_users_own() {
    let [(first, own), (second, generated)] = &owners_and_titles("./configure", "build.sh")[..] else {
        panic!("not two findings");
    };
    assert_eq!((*first, *second), (None, Some(Owner::Generated)));
    assert!(own.contains("basename 20 times") && !own.contains("generated"), "{own}");
    assert!(generated.ends_with("(requested by generated code: configure)"), "{generated}");
    let [(first, own), (second, packaged)] = &owners_and_titles("/usr/share/tool/lib.sh", "build.sh")[..] else {
        panic!("not two findings");
    };
    assert_eq!((*first, *second), (None, Some(Owner::ThirdParty)));
    assert!(own.contains("basename"), "{own}");
    assert!(packaged.ends_with("(requested by third-party code: lib.sh)"), "{packaged}");
    // If both are the user's own files, the larger saving comes first.
    let [(None, larger), (None, _)] = &owners_and_titles("lib.sh", "build.sh")[..] else {
        panic!("not two findings of the user");
    };
    assert!(larger.contains("dirname 40 times"), "{larger}");
}

/// Generates recordings of a shell with random launches, one after the other. Some sleep or lose
/// their CPU.
fn random_launches() -> impl Strategy<Value = (Recording, Vec<SliceRow>)> {
    let phase = 1_000u64..3_000_000;
    let launch = (proptest::array::uniform8(phase), 0u8..3);
    proptest::collection::vec(launch, 1..12).prop_map(|launches| {
        let mut serial = Serial::new();
        for ([create, queue, setup, exec, load, run, teardown, reap], kind) in launches {
            let spans = Spans { create, queue, setup, exec, load, run: run.max(400_000), teardown, reap };
            let program = Some(("/usr/bin/work", ["work"].as_slice()));
            match kind {
                0 => serial.launch(&spans, program),
                1 => serial.launch_without_cpu(&spans, program, run / 2, LeftCpu::Preempted),
                _ => serial.launch_without_cpu(&spans, program, run / 2, LeftCpu::Interruptible),
            };
        }
        serial.finish()
    })
}

proptest! {
    #[test]
    fn no_part_is_larger_than_the_total(recorded in random_launches()) {
        let (recording, slices) = &recorded;
        let forest = Forest::build(recording);
        let timelines = timelines(&forest, slices);
        let causes = Causes::find(recording, &forest, &timelines).unwrap();
        let report = report_on(recording, &forest, Some(&causes), GroupBy::Command);
        prop_assert!(is_consistent(&report.all), "{:?} of {:?}", report.all.critical_tax, report.all.tax);
        let waits = attributed_waits(recording, &forest, &timelines);
        prop_assert!(waits_fit(&waits, report.wall, timelines.threads.len()));
        for each in &causes.dependence {
            prop_assert!(each.saving[0] <= causes.advices.unrecorded, "{each:?} of {:?}", report.wall);
        }
        // At least as much time depends on the launches as is charged to them on the critical path.
        let work = &report.groups.iter().find(|group| group.label == b"work").unwrap();
        let depending = work.depends.unwrap_or_default().0;
        let critical = work.sums.critical.unwrap().0;
        prop_assert!(depending + report.wall.0 / 50 >= critical, "{depending} depends on it, {critical} is critical");
    }
}
