//! Failed execs that are folded into PATH searches.

use spawnscope_analyze::waits::failed_execs::{Attempts, Search, SearchEnd, attempts_of, failures};

use crate::prelude::*;
use crate::recordings::failing;

const USUAL_EXEC_NS: u64 = 180_000;

fn summary(searches: &[Search<'_>]) -> Vec<(String, usize, bool)> {
    let summaries = searches.iter().map(|search| {
        let program = String::from_utf8_lossy(search.program).into_owned();
        (program, search.misses.len(), search.end == SearchEnd::Found)
    });
    summaries.collect()
}

#[test]
fn misses_that_end_in_the_program_are_one_search() {
    let mut builder = Builder::command("/bin/sh", &["sh"], 1_000_000_000);
    let child = builder.launch(ROOT, 0, &Spans::USUAL, Some(("/usr/bin/gcc", &["gcc"])));
    for (step, directory) in ["/a", "/b", "/"].iter().enumerate() {
        let path = format!("{}/gcc", directory.trim_end_matches('/'));
        builder.failed_exec_at(child, &path, libc::ENOENT, 150_000 + 2_000 * step as u64);
    }
    let forest = Forest::build(&builder.recording);
    assert_eq!(summary(&attempts_of(&forest, 1).searches), [("gcc".to_owned(), 3, true)]);
    let all = failures(&forest).0;
    assert_eq!((all.searches, all.misses, all.cost), (1, 3, Nanos(3_000)));
    let names: Vec<_> = all.directories.iter().map(|fault| String::from_utf8_lossy(&fault.name)).collect();
    assert_eq!(names, ["/", "/a", "/b"]);
    assert!(all.not_found.is_empty());
}

#[test]
fn a_search_that_the_end_of_the_recording_cut_off_is_not_a_failed_one() {
    for directories in [&["/a"][..], &["/a", "/b"]] {
        let mut builder = Builder::command("/bin/sh", &["sh"], 1_000_000_000);
        let child = builder.launch(ROOT, 0, &Spans::USUAL, None);
        builder.leave_running(child);
        for (step, directory) in directories.iter().enumerate() {
            builder.failed_exec_at(child, &format!("{directory}/gcc"), libc::ENOENT, 150_000 + 2_000 * step as u64);
        }
        let forest = Forest::build(&builder.recording);
        let ends: Vec<_> = attempts_of(&forest, 1).searches.iter().map(|search| search.end).collect();
        assert_eq!(ends, [SearchEnd::Recording]);
        let (searches, single) = failures(&forest);
        assert_eq!(searches.misses, directories.len() as u64);
        assert!(searches.not_found.is_empty() && single.is_empty());
    }
}

#[test]
fn a_program_that_is_nowhere_is_not_found_even_if_another_one_runs_later() {
    let mut builder = Builder::command("/bin/sh", &["sh"], 1_000_000_000);
    let child = builder.launch(ROOT, 0, &Spans::USUAL, Some(("/usr/bin/cc", &["cc"])));
    builder.failed_exec_at(child, "/a/gcc", libc::ENOENT, 150_000);
    builder.failed_exec_at(child, "/b/gcc", libc::EACCES, 152_000);
    builder.failed_exec_at(child, "/a/cc", libc::ENOTDIR, 154_000);
    let forest = Forest::build(&builder.recording);
    let found = summary(&attempts_of(&forest, 1).searches);
    assert_eq!(found, [("gcc".to_owned(), 2, false), ("cc".to_owned(), 1, true)]);
    assert_eq!(failures(&forest).0.not_found[0].name, b"gcc");
}

#[test]
fn a_search_ends_at_a_successful_exec() {
    let mut builder = Builder::command("/bin/sh", &["sh"], 1_000_000_000);
    let child = builder.launch(ROOT, 0, &Spans::USUAL, Some(("/usr/bin/env", &["env", "tool"])));
    builder.failed_exec_at(child, "/a/env", libc::ENOENT, USUAL_EXEC_NS - 5_000);
    builder.failed_exec_at(child, "/a/tool", libc::ENOENT, USUAL_EXEC_NS + 710_000);
    let forest = Forest::build(&builder.recording);
    let found = summary(&attempts_of(&forest, 1).searches);
    assert_eq!(found, [("env".to_owned(), 1, true)]);
}

#[test]
fn an_error_other_than_a_missing_file_ends_the_search() {
    let mut builder = Builder::command("/bin/sh", &["sh"], 1_000_000_000);
    let child = builder.launch(ROOT, 0, &Spans::USUAL, None);
    builder.failed_exec_at(child, "/a/big", libc::ENOENT, 150_000);
    builder.failed_exec_at(child, "/b/big", libc::E2BIG, 152_000);
    let forest = Forest::build(&builder.recording);
    assert_eq!(summary(&attempts_of(&forest, 1).searches), [("big".to_owned(), 1, true)]);
}

#[test]
fn a_miss_after_an_exec_belongs_to_it_only_if_the_entry_of_the_exec_is_unknown() {
    let mut builder = Builder::command("/bin/sh", &["sh"], 1_000_000_000);
    let child = builder.launch(ROOT, 0, &Spans::USUAL, Some(("/usr/bin/env", &["env"])));
    builder.failed_exec_at(child, "/a/env", libc::ENOENT, USUAL_EXEC_NS + 710_000);
    assert_eq!(attempts_of(&Forest::build(&builder.recording), 1).searches.len(), 0);
    builder.recording.execs.last_mut().unwrap().enter = None;
    let forest = Forest::build(&builder.recording);
    assert_eq!(summary(&attempts_of(&forest, 1).searches), [("env".to_owned(), 1, true)]);
}

fn other_failures(attempts: &Attempts<'_>) -> Vec<(String, i32)> {
    let failures = attempts.other_failures.iter();
    failures.map(|failed| (String::from_utf8_lossy(failed.path).into_owned(), failed.errno)).collect()
}

#[test]
fn a_file_tried_in_one_directory_is_not_a_search() {
    for (path, errno) in
        [("/no/such/absolute", libc::ENOENT), ("./denied", libc::EACCES), ("./script-of-no-interpreter", libc::ENOENT)]
    {
        let recording = failing(&[(path, errno), (path, errno)]);
        let attempts = attempts_of(&Forest::build(&recording), 1);
        assert_eq!(summary(&attempts.searches), []);
        assert_eq!(other_failures(&attempts), [(path.to_owned(), errno), (path.to_owned(), errno)]);
    }
}

#[test]
fn a_failure_and_a_success_at_one_path_are_not_a_search() {
    let mut builder = Builder::command("/bin/sh", &["sh"], 1_000_000_000);
    let child = builder.launch(ROOT, 0, &Spans::USUAL, Some(("/usr/bin/gcc", &["gcc"])));
    builder.failed_exec_at(child, "/usr/bin/gcc", libc::ENOENT, 150_000);
    let attempts = attempts_of(&Forest::build(&builder.recording), 1);
    assert_eq!((attempts.searches.len(), attempts.other_failures.len()), (0, 1));
}

#[test]
fn a_search_of_very_many_directories_counts_each_once() {
    let paths: Vec<String> = (0..30_000).map(|number| format!("/d{}/x", number % 10_000)).collect();
    let failed: Vec<(&str, i32)> = paths.iter().map(|path| (path.as_str(), libc::ENOENT)).collect();
    let directories = failures(&Forest::build(&failing(&failed))).0.directories;
    assert_eq!(directories.len(), 10_000);
    assert!(directories.iter().all(|fault| (fault.searches, fault.misses) == (1, 3)));
}
