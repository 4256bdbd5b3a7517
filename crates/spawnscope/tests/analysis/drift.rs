//! Drifts in the report: launches become slower in the course of the recording.

use anstream::adapter::strip_str;
use spawnscope::analyze::{GroupBy, report};
use spawnscope::present::table;
use spawnscope::record::reader::Recording;

use crate::builder::Spans;
use crate::recordings::storm;

fn shown(recording: &Recording) -> String {
    let text = table::render(&report(recording, GroupBy::Command), &table::Options::default());
    strip_str(&text).to_string()
}

#[test]
fn a_drift_without_memory_names_the_phase_that_rose_most() {
    let slower_queue = |number: u64| {
        let queue = 20_000 + number * 10_000;
        (Spans { queue, ..Spans::USUAL }, 10_000_000)
    };
    let mut recording = storm(100, slower_queue);
    let text = shown(&recording);
    assert!(
        text.contains("    most of the rise is in queue: too few CPUs\n"),
        "{text}"
    );
    for row in &mut recording.launches {
        row.parent_rss_bytes = None;
    }
    assert!(shown(&recording).contains("too few CPUs; the parent's memory is unknown"));
}
