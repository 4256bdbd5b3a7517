//! Similar siblings become one row if there are too many launches, and no launch is lost.

use spawnscope_analyze::sites::alike::{Rows, rows};
use spawnscope_analyze::sites::callers::{Callers, Detail};

use crate::prelude::*;

/// Builds a recording of a shell that alternately runs `sh -c gcc`, which runs `gcc`, and
/// `dirname`.
fn loop_of(rounds: u64) -> Recording {
    let mut builder = Builder::command("/bin/bash", &["bash", "build.sh"], 1 + rounds * 10_000_000);
    for round in 0..rounds {
        let start = round * 10_000_000;
        let shell = builder.launch(ROOT, start, &Spans::USUAL, Some(("/bin/sh", &["sh", "-c", "gcc"])));
        builder.launch(shell, start + 700_000, &Spans::USUAL, Some(("/usr/bin/gcc", &["gcc"])));
        builder.launch(ROOT, start + 5_000_000, &Spans::USUAL, Some(("/usr/bin/dirname", &["dirname"])));
    }
    builder.recording
}

/// Returns the rows, with the program and the number of launches of each. Checks that each launch
/// is in one row, and that the launches of a row have one program and one row of parents.
fn rows_of(recording: &Recording, limit: usize) -> (Rows, Vec<(String, usize)>) {
    let forest = Forest::build(recording);
    let rows = rows(&forest, &Callers::find(&forest, Detail::Line), limit);
    let mut all: Vec<u32> = (0..rows.len()).flat_map(|row| rows.members(row).to_vec()).collect();
    all.sort_unstable();
    assert_eq!(all, (0..forest.launches.len() as u32).collect::<Vec<_>>(), "each launch is in one row");
    for row in 0..rows.len() {
        let name = &forest.launches[rows.members(row)[0] as usize].command;
        for member in rows.members(row) {
            assert_eq!(&forest.launches[*member as usize].command, name);
            let parent = forest.parent(*member as usize).map(|parent| parent as u32);
            assert_eq!(parent.is_some(), rows.parent(row).is_some());
            assert!(parent.is_none_or(|parent| rows.members(rows.parent(row).unwrap()).contains(&parent)));
        }
    }
    let names = (0..rows.len()).map(|row| {
        let members = rows.members(row);
        let name = forest.launches[members[0] as usize].command.label();
        (String::from_utf8(name).unwrap(), members.len())
    });
    let names = names.collect();
    (rows, names)
}

#[test]
fn few_launches_have_a_row_each() {
    let recording = loop_of(10);
    let (rows, names) = rows_of(&recording, 31);
    assert_eq!(rows.len(), 31);
    assert!(names.iter().all(|(_, launches)| *launches == 1));
}

#[test]
fn similar_siblings_are_merged_with_what_they_launched() {
    let recording = loop_of(8);
    let (_, names) = rows_of(&recording, 7);
    let expected = [("bash", 1), ("sh", 4), ("dirname", 4), ("sh", 4), ("dirname", 4), ("gcc", 4), ("gcc", 4)];
    assert_eq!(names, expected.map(|(name, launches)| (name.to_owned(), launches)));
}

#[test]
fn different_launches_are_never_merged() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    for number in 0..20u64 {
        let path = format!("/bin/program{number}");
        builder.launch(ROOT, number * 10_000_000, &Spans::USUAL, Some((&path, &["it"])));
    }
    assert_eq!(rows_of(&builder.recording, 5).0.len(), 21);
}
