//! Checks the output of `record` that documents show. The test `docs` compares reports, on a stored
//! recording.

use crate::support::prelude::*;

#[path = "../docs/shape.rs"]
mod shape;

const README: &str = include_str!("../../../../README.md");

#[apply(live_test)]
fn record_ends_with_the_line_that_the_readme_shows() {
    let shown: Vec<&str> =
        README.lines().filter(|line| line.trim_start().starts_with("spawnscope: recorded ")).collect();
    assert_eq!(shown.len(), 1, "the README shows one recording");
    let finished = Record::new().run(["bash", "-c", "true & wait"]).expect_code(0);
    let errors = finished.errors();
    let printed = errors.lines().last().expect("a line");
    assert!(shape::matches(shown[0], printed), "{} is shown, {printed} printed", shown[0]);
}
