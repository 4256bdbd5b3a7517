//! The tree of launches as text.

use spawnscope::analyze::{Forest, Origin};
use spawnscope::event::LaunchId;
use spawnscope::present::tree;

use crate::builder::{Builder, ROOT, Spans, blank};

#[test]
fn a_program_without_a_file_has_the_same_name_in_the_tree_and_in_the_report() {
    for argv in [&[b"".as_slice(), b"x"][..], &[b"prog", b"x"]] {
        let mut builder = Builder::command("/bin/bash", &["bash"], 100_000_000);
        let launch = builder.launch(ROOT, 1_000_000, &Spans::USUAL, None);
        builder.exec_at(launch, b"/dev/fd/3", argv, [1_100_000, 1_200_000, 1_300_000]);
        let forest = Forest::build(&builder.recording);
        let shown = forest.launches.iter().find(|shown| shown.id == launch).unwrap();
        assert_eq!(shown.command.label(), b"3");
        let mut written = Vec::new();
        spawnscope::present::tree::write(&mut written, &forest, None).unwrap();
        let written = anstream::adapter::strip_str(&String::from_utf8(written).unwrap()).to_string();
        assert!(written.contains(" 3 x "), "{argv:?}: {written}");
    }
}

#[test]
fn a_chain_of_100_000_launches_is_written_without_recursion() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    for id in 2..=100_000 {
        builder
            .recording
            .launches
            .push(blank(LaunchId(id), Some(LaunchId(id - 1)), Origin::Launched));
    }
    let forest = Forest::build(&builder.recording);
    assert_eq!(forest.launches[99_999].depth, 99_999);
    for width in [Some(80), None] {
        let mut text = Vec::new();
        tree::write(&mut text, &forest, width).unwrap();
        let lines = text.split(|byte| *byte == b'\n').count() - 1;
        assert_eq!(lines, 100_000);
        assert!(text.len() < 40_000_000, "{} bytes", text.len());
    }
}
