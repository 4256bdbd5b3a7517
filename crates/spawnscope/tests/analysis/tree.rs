//! The tree of launches as text.

use spawnscope::analyze::Origin;

use crate::prelude::*;

#[test]
fn a_program_without_a_file_has_the_same_name_in_the_tree_and_in_the_report() {
    for (argv, name) in [(&[b"".as_slice(), b"x"][..], "3"), (&[b"prog", b"x"], "prog")] {
        let mut builder = Builder::command("/bin/bash", &["bash"], 100_000_000);
        let launch = builder.launch(ROOT, 1_000_000, &Spans::USUAL, None);
        builder.exec_at(launch, b"/dev/fd/3", argv, [1_100_000, 1_200_000, 1_300_000]);
        let forest = Forest::build(&builder.recording);
        let shown = forest.launches.iter().find(|shown| shown.id == launch).unwrap();
        assert_eq!(shown.command.label(), name.as_bytes());
        let written = plain(&styled_tree(&builder.recording, None));
        assert!(written.contains(&format!(" {name} x ")), "{argv:?}: {written}");
    }
}

#[test]
fn a_chain_of_100_000_launches_is_written_without_recursion() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    for id in 2..=100_000 {
        let row = blank(LaunchId(id), Some(LaunchId(id - 1)), Origin::Launched);
        builder.recording.launches.push(row);
    }
    let forest = Forest::build(&builder.recording);
    assert_eq!(forest.launches[99_999].depth, 99_999);
    for width in [Some(80), None] {
        let text = styled_tree(&builder.recording, width);
        assert_eq!(text.matches('\n').count(), 100_000);
        assert!(text.len() < 40_000_000, "{} bytes", text.len());
    }
}
