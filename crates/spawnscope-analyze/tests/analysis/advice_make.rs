//! Advice about recursive make, and about what make evaluates.

use spawnscope_analyze::explain::advice::{AdviceList, Edit};
use spawnscope_data::event::{Language, LaunchId, Nanos, TaskId};
use spawnscope_data::rows::WakerRow;

use crate::builder::{ROOT, Spans};
use crate::recordings::fix_of;
use crate::serial::{READ, Serial, WAIT4, advices, is_silent, only};
use crate::slices::{created, ended, slice};

const COUNT: u64 = 30;
const MAKE: &[&str] = &["/usr/bin/make", "make", "-C", "part@"];

/// Returns the advice on a make that starts a program for each directory. `program` is its path,
/// followed by its command line.
fn advice_on_makes(top: &[&str], program: &[&str], wait: u16) -> AdviceList {
    let mut serial = Serial::with_command(top[0], top);
    for directory in 0..COUNT {
        let words: Vec<String> = program.iter().map(|word| word.replace('@', &directory.to_string())).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        serial.launch_waiting(&Spans::USUAL, Some((words[0], &words[1..])), wait);
    }
    advices(&serial.finish())
}

const TOP: &[&str] = &["/usr/bin/make", "all"];

#[test]
fn one_make_builds_all_directories() {
    let advice = only(&advice_on_makes(TOP, MAKE, WAIT4), "make-recursive");
    assert_eq!(advice.finding.title, "make starts make 30 times, each time for a part of the build");
    assert_eq!(advice.finding.whatif, "--in-process=make,parent=make");
    let fix = fix_of(&advice);
    assert!(fix.contains("include a/module.mk") && fix.contains("+$(MAKE) -C $@"), "{fix}");
    // None of these makes launches anything.
    assert!(fix.contains("up to date"), "{fix}");
    assert!(advice.finding.evidence[1].starts_with("30 of them launch nothing"), "{advice:?}");
    let launching = COUNT * (Spans::USUAL.total() - Spans::USUAL.run);
    assert!(advice.saving[0] >= Nanos(launching), "{advice:?} of {launching}");
}

/// Returns the advice on a make that starts another make for each directory, which starts a
/// compiler that works for `run`.
fn advice_on_compilers(run: u64) -> AdviceList {
    const BEFORE: u64 = 1_000_000;
    let compiler = Spans { run, ..Spans::USUAL };
    let spans = Spans { run: 2 * BEFORE + compiler.total(), ..Spans::USUAL };
    let mut serial = Serial::with_command(TOP[0], TOP);
    for directory in 0..COUNT {
        let argument = format!("part{directory}");
        let make = serial.launch(&spans, Some(("/usr/bin/make", &["make", "-C", &argument])));
        let at = serial.builder.recording.execs.last().unwrap().load_end.unwrap().0 + BEFORE;
        add_launches(&mut serial, make, &[(at, compiler, &["/usr/bin/cc", "cc", "-c", "x.c"])]);
    }
    advices(&serial.finish())
}

#[test]
fn directories_with_work_are_built_in_parallel() {
    let advice = only(&advice_on_compilers(20_000_000), "parallel");
    assert!(fix_of(&advice).contains("$(DIRS): ; +$(MAKE) -C $@"), "{advice:?}");
    // If launching takes longer than the work, one make for all directories is better than parallel
    // ones.
    let small = advice_on_compilers(500_000);
    assert!(is_silent(&small, "parallel"), "{small:?}");
    assert!(!is_silent(&small, "make-recursive"), "{small:?}");
}

/// A make with several jobs reads an answer while a recipe runs: the recipe does not write it.
#[test]
fn what_make_runs_while_it_reads_is_one_site() {
    let mut serial = Serial::with_command(TOP[0], TOP);
    for round in 0..COUNT {
        // Every second one begins shortly before a function does.
        let mkdir = match round % 2 {
            0 => serial.launch(&Spans::USUAL, Some(("/usr/bin/mkdir", &["mkdir", "-p", "out"]))),
            _ => {
                let begins = serial.now() - 100_000;
                let builder = &mut serial.builder;
                let mkdir =
                    builder.launch(ROOT, begins, &Spans::USUAL, Some(("/usr/bin/mkdir", &["mkdir", "-p", "out"])));
                builder.row(mkdir).parent_task = Some(TaskId(ROOT.0));
                let [born, ends] = [builder.row(mkdir).created, builder.row(mkdir).zombie].map(|at| at.unwrap().0);
                let queue = Spans::USUAL.queue;
                serial.slices.extend([created(mkdir.0, born, queue), ended(mkdir.0, born + queue, ends)]);
                mkdir
            }
        };
        let git = serial.launch_waiting(&Spans::USUAL, Some(("/usr/bin/git", &["git", "describe"])), READ);
        for (launch, line) in [(mkdir, 5), (git, 1)] {
            let line = serial.builder.line(Language::Make, "Makefile", line, "");
            serial.builder.set_call_chain(launch, &[line]);
        }
    }
    let found = advices(&serial.finish());
    let count = |program: &[u8]| {
        let mut all =
            found.worth.iter().filter(|advice| advice.finding.example.first().is_some_and(|word| word == program));
        all.next().map(|advice| advice.finding.launches.len() as u64)
    };
    assert_eq!([count(b"mkdir"), count(b"git")], [Some(COUNT); 2], "{found:?}");
}

#[test]
fn advice_on_generated_makefiles_names_a_better_generator() {
    let cmake: &[&str] = &["/usr/bin/gmake", "gmake", "-f", "CMakeFiles/x@.dir/build.make", "x@"];
    let advice = only(&advice_on_makes(&["/usr/bin/gmake", "all"], cmake, WAIT4), "make-recursive");
    assert!(fix_of(&advice).contains("cmake -G Ninja"), "{advice:?}");
    assert!(!fix_of(&advice).contains("module.mk"), "{advice:?}");
    let automake: &[&str] = &["/usr/bin/make", "make", "all-am"];
    let advice = only(&advice_on_makes(TOP, automake, WAIT4), "make-recursive");
    assert!(fix_of(&advice).contains("subdir-objects"), "{advice:?}");
}

#[test]
fn other_programs_and_makes_of_scripts_are_not_recursive() {
    let compilers = advice_on_makes(TOP, &["/usr/bin/cc", "cc", "-c", "f@.c"], WAIT4);
    assert!(is_silent(&compilers, "make-recursive"), "{compilers:?}");
    let makeinfo = advice_on_makes(TOP, &["/usr/bin/makeinfo", "makeinfo", "f@.texi"], WAIT4);
    assert!(is_silent(&makeinfo, "make-recursive"), "{makeinfo:?}");
    let script = advice_on_makes(&["/bin/bash", "all.sh"], MAKE, WAIT4);
    assert!(is_silent(&script, "make-recursive"), "no make above: {script:?}");
    let question = advice_on_makes(TOP, MAKE, READ);
    assert!(is_silent(&question, "make-recursive"), "$(shell make ...): {question:?}");
}

#[test]
fn a_shell_that_loops_over_directories_does_not_hide_the_recursive_make() {
    const BEFORE: u64 = 1_000_000;
    let each = Spans::USUAL.total() + BEFORE;
    let spans = Spans { run: COUNT * each + BEFORE, ..Spans::USUAL };
    let mut serial = Serial::with_command(TOP[0], TOP);
    let text = "for d in $(DIRS); do make -C $d; done";
    let shell = serial.launch(&spans, Some(("/bin/sh", &["/bin/sh", "-c", text])));
    let mut at = serial.builder.recording.execs.last().unwrap().load_end.unwrap().0 + BEFORE;
    let mut makes = Vec::new();
    for _ in 0..COUNT {
        makes.push((at, Spans::USUAL, &["/usr/bin/make", "make", "-C", "part"][..]));
        at += each;
    }
    add_launches(&mut serial, shell, &makes);
    let advice = only(&advices(&serial.finish()), "make-recursive");
    assert_eq!(advice.finding.whatif, "--in-process=make,parent=sh");
    assert!(fix_of(&advice).contains("instead of a loop in a recipe"), "{advice:?}");
}

/// Adds launches by `parent`, which waits for each of them.
fn add_launches(serial: &mut Serial, parent: LaunchId, launches: &[(u64, Spans, &[&str])]) {
    // Replaces the only slice of the parent by one slice before each launch, and one after the last
    // launch.
    let last = serial.slices.iter().rposition(|slice| slice.task.0 == parent.0).unwrap();
    let end = serial.slices.remove(last).off.0;
    let mut on = serial.builder.row(parent).first_run.unwrap().0;
    for (at, spans, program) in launches {
        let child = serial.builder.launch(parent, *at, spans, Some((program[0], &program[1..])));
        let row = serial.builder.row(child);
        row.parent_task = Some(TaskId(parent.0));
        let (begun, zombie) = (row.created.unwrap().0, row.zombie.unwrap().0);
        serial.slices.push(created(child.0, begun, spans.queue));
        serial.slices.push(ended(child.0, begun + spans.queue, zombie));
        let waker = Some(WakerRow::Task(TaskId(child.0)));
        serial.slices.push(slice(parent.0, on, begun, [zombie - begun, spans.reap], WAIT4, waker));
        on = zombie + spans.reap;
    }
    serial.slices.push(ended(parent.0, on, end));
}

#[test]
fn what_make_evaluates_again_is_one_finding() {
    let titles = |calls: &[&[&str]]| {
        let mut serial = Serial::with_command("/usr/bin/make", &["make"]);
        for call in (0..COUNT).flat_map(|_| calls) {
            serial.launch_waiting(&Spans::USUAL, Some((&format!("/usr/bin/{}", call[0]), call)), READ);
        }
        let found = advices(&serial.finish());
        let titles = found.worth.into_iter().map(|advice| advice.finding.title);
        titles.filter(|title| title.contains("command line") || title.contains("same arguments")).collect::<Vec<_>>()
    };
    let one = titles(&[&["cat", "VERSION"], &["sha256sum", "a"]]);
    assert!(matches!(&one[..], [one] if one.starts_with("make launches $(shell) 60 times")), "{one:?}");
    // The value of only one of these may be kept.
    assert_eq!(titles(&[&["cat", "VERSION"], &["date", "+%s"]]).len(), 2);
}

/// `make -C part` includes files by names that start from `part`, not from where make started.
#[test]
fn included_makefiles_are_found_after_a_change_of_directory() {
    let mut serial = Serial::with_command("/usr/bin/make", &["make", "-C", "part"]);
    for _ in 0..COUNT {
        let git = serial.launch_waiting(&Spans::USUAL, Some(("/usr/bin/git", &["git", "describe"])), READ);
        let line = serial.builder.line(Language::Make, "/home/user/part/Makefile", 1, "");
        serial.builder.set_call_chain(git, &[line]);
        let part = serial.builder.text(b"/home/user/part");
        serial.builder.recording.execs.last_mut().unwrap().cwd = Some(part);
    }
    let mut found = advices(&serial.finish());
    let text = |edit: &Edit| match &edit.file[..] {
        b"../config.mk" => Some(b"REV = $(shell git describe)\n".to_vec()),
        _ => Some(b"include ../config.mk\nall: ; echo $(REV)\n".to_vec()),
    };
    found.worth.iter_mut().for_each(|advice| advice.object(&mut |edit| text(edit)));
    let advice = only(&found, "once");
    let edit = advice.finding.edits.iter().find(|edit| edit.file == b"../config.mk").expect("an edit");
    assert_eq!(edit.directory.as_deref(), Some(&b"/home/user/part"[..]), "{advice:?}");
}
