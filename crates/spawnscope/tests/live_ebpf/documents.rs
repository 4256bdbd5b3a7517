//! What documents show of `record` itself. The test `docs` compares reports, on a stored recording.

use crate::support::LiveTest;
use crate::support::needs::Need;
use crate::support::run::Record;

#[path = "../docs/shape.rs"]
mod shape;

pub fn tests() -> Vec<LiveTest> {
    vec![LiveTest {
        name: "record_ends_with_the_line_that_the_readme_shows",
        needs: &[Need::Ebpf],
        run: last_line,
    }]
}

const README: &str = include_str!("../../../../README.md");

fn last_line() {
    let is_message = |line: &&str| line.trim_start().starts_with("spawnscope: recorded ");
    let shown: Vec<&str> = README.lines().filter(is_message).collect();
    assert_eq!(shown.len(), 1, "the README shows one recording");
    let finished = Record::new().run(["bash", "-c", "true & wait"]).expect_code(0);
    let errors = finished.errors();
    let printed = errors.lines().last().expect("a line");
    assert!(
        shape::matches(shown[0], printed),
        "{} is shown, {printed} printed",
        shown[0]
    );
}
