//! Drifts in the report: launches become slower in the course of the recording.

use crate::prelude::*;
use crate::recordings::storm;

#[test]
fn a_drift_names_the_phase_that_rose_most() {
    let mut recording = storm(100, |number| {
        let queue = 20_000 + number * 10_000;
        (Spans { queue, ..Spans::USUAL }, 10_000_000)
    });
    let text = table_of(&by_command(&recording));
    assert_contains(&text, ["    most of the rise is in queue: too few CPUs\n"]);
    for row in &mut recording.launches {
        row.parent_rss_bytes = None;
    }
    let text = table_of(&by_command(&recording));
    assert_contains(&text, ["too few CPUs; the parent's memory is unknown"]);
}
