//! Failed execs folded into searches of PATH.

use spawnscope::analyze::path_search::{path_searches, searches_of};
use spawnscope::analyze::{Forest, path_search::Search};
use spawnscope::event::Nanos;

use crate::builder::{Builder, ROOT, Spans};

const USUAL_EXEC_NS: u64 = 180_000;

fn summary(searches: &[Search<'_>]) -> Vec<(String, usize, bool)> {
    let text = |search: &Search<'_>| String::from_utf8_lossy(search.program).into_owned();
    searches
        .iter()
        .map(|search| (text(search), search.misses.len(), search.found))
        .collect()
}

#[test]
fn misses_that_end_in_the_program_are_one_search() {
    let mut builder = Builder::command("/bin/sh", &["sh"], 1_000_000_000);
    let child = builder.launch(ROOT, 0, &Spans::USUAL, Some(("/usr/bin/gcc", &["gcc"])));
    for (step, directory) in ["/a", "/b", "/"].iter().enumerate() {
        let path = format!("{}/gcc", directory.trim_end_matches('/'));
        builder.failed_exec_at(child, &path, libc::ENOENT, 150_000 + 2_000 * step as u64);
    }
    let forest = Forest::grow(&builder.recording);
    assert_eq!(
        summary(&searches_of(&forest.launches[1])),
        [("gcc".to_owned(), 3, true)]
    );
    let all = path_searches(&forest);
    assert_eq!((all.searches, all.misses, all.cost), (1, 3, Nanos(3_000)));
    let names: Vec<_> = all
        .directories
        .iter()
        .map(|fault| String::from_utf8_lossy(&fault.name))
        .collect();
    assert_eq!(names, ["/", "/a", "/b"]);
    assert!(all.not_found.is_empty());
}

#[test]
fn a_program_that_is_nowhere_is_not_found_even_if_another_one_runs_later() {
    let mut builder = Builder::command("/bin/sh", &["sh"], 1_000_000_000);
    let child = builder.launch(ROOT, 0, &Spans::USUAL, Some(("/usr/bin/cc", &["cc"])));
    builder.failed_exec_at(child, "/a/gcc", libc::ENOENT, 150_000);
    builder.failed_exec_at(child, "/b/gcc", libc::EACCES, 152_000);
    builder.failed_exec_at(child, "/a/cc", libc::ENOTDIR, 154_000);
    let forest = Forest::grow(&builder.recording);
    let found = summary(&searches_of(&forest.launches[1]));
    assert_eq!(found, [("gcc".to_owned(), 2, false), ("cc".to_owned(), 1, true)]);
    assert_eq!(path_searches(&forest).not_found[0].name, b"gcc");
}

#[test]
fn a_search_does_not_reach_over_a_successful_exec() {
    let mut builder = Builder::command("/bin/sh", &["sh"], 1_000_000_000);
    let child = builder.launch(ROOT, 0, &Spans::USUAL, Some(("/usr/bin/env", &["env", "tool"])));
    builder.failed_exec_at(child, "/a/env", libc::ENOENT, USUAL_EXEC_NS - 5_000);
    builder.failed_exec_at(child, "/a/tool", libc::ENOENT, USUAL_EXEC_NS + 710_000);
    let forest = Forest::grow(&builder.recording);
    let found = summary(&searches_of(&forest.launches[1]));
    assert_eq!(found, [("env".to_owned(), 1, true), ("tool".to_owned(), 1, false)]);
}

#[test]
fn an_error_that_is_no_miss_means_the_file_was_there() {
    let mut builder = Builder::command("/bin/sh", &["sh"], 1_000_000_000);
    let child = builder.launch(ROOT, 0, &Spans::USUAL, None);
    builder.failed_exec_at(child, "/a/big", libc::ENOENT, 150_000);
    builder.failed_exec_at(child, "/b/big", libc::E2BIG, 152_000);
    let forest = Forest::grow(&builder.recording);
    assert_eq!(
        summary(&searches_of(&forest.launches[1])),
        [("big".to_owned(), 1, true)]
    );
}

#[test]
fn an_answer_of_unknown_entry_counts_and_one_from_before_does_not() {
    let mut builder = Builder::command("/bin/sh", &["sh"], 1_000_000_000);
    let child = builder.launch(ROOT, 0, &Spans::USUAL, Some(("/usr/bin/env", &["env"])));
    builder.failed_exec_at(child, "/a/env", libc::ENOENT, USUAL_EXEC_NS + 710_000);
    let is_found = |recording: &_| searches_of(&Forest::grow(recording).launches[1])[0].found;
    assert!(!is_found(&builder.recording));
    builder.recording.execs.last_mut().unwrap().enter = None;
    assert!(is_found(&builder.recording));
}
