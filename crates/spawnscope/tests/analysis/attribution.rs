//! Attributed waits in the report: which launches or programs were waited for, and on which object.

use spawnscope::event::{LeftCpu, ObjectKind};
use spawnscope::present::text;
use spawnscope::record::reader::WakerRow;

use crate::prelude::*;
use crate::recordings::{attribution, object, with_git, woken_by};
use crate::serial::WAIT4;
use crate::slices::slice;

const EXECVE: u16 = 59;

/// Returns the recording of an emacs that reads from 25 launches of git, one after the other, each
/// through its own pipe. A permission scanner checks each git.
fn emacs_and_25_gits() -> (Recording, Vec<SliceRow>) {
    let mut builder = Builder::command("/usr/bin/emacs", &["emacs"], 100_000_000);
    let permission = object(&mut builder, ObjectKind::Permission, None);
    let scanner = Some(WakerRow::Other(Pid(7), Some(builder.text(b"clamd"))));
    let mut slices = Vec::new();
    for number in 0..25 {
        let start = number * 3_000_000;
        let git = Some(("/usr/bin/git", &["git", "status"][..]));
        let git = builder.launch(ROOT, start, &running(1_500_000), git);
        let pipe = object(&mut builder, ObjectKind::Pipe, None);
        slices.push(SliceRow {
            object: pipe,
            ..slice(1, start, start + 150_000, [2_150_000, 60_000], READ, woken_by(git))
        });
        slices.push(SliceRow {
            object: permission,
            reason: LeftCpu::Uninterruptible,
            ..slice(git.0, start + 190_000, start + 200_000, [250_000, 0], EXECVE, scanner)
        });
    }
    (builder.recording, slices)
}

#[test]
fn the_report_lists_waits_at_every_width() {
    let (recording, slices) = emacs_and_25_gits();
    let mut found = report(&recording, GroupBy::Command);
    found.waits = attribution(&recording, &slices);
    assert_eq!(
        waits_section(&whole_table(&found, 80)),
        [
            "  emacs waited 55.2 ms in read on a pipe from 25 x git: 35.5 ms run, 18.2 ms",
            "    start-up, 1.50 ms queued for a CPU",
            "  git waited 6.25 ms in execve for the scanner clamd",
            "  after the colon: what the awaited programs did meanwhile",
            "  waits overlap: they do not add up to the wall time",
        ]
    );
    let whole = length_of_words(&waits_section(&whole_table(&found, 200)));
    for width in [40, 60] {
        let lines = waits_section(&whole_table(&found, width));
        assert!(lines.iter().all(|line| text::width(line) <= width), "{lines:#?}");
        assert!(lines.iter().all(|line| !line.contains('…')), "a line is cut at {width}");
        // No figure is separated from its unit.
        for unit in ["ms ", "us ", "s ", "x "] {
            assert!(!lines.iter().any(|line| line.trim_start().starts_with(unit)), "{lines:#?}");
        }
        let left_out = length_of_words(&lines).abs_diff(whole);
        assert!(left_out <= lines.len(), "words are left out at {width}");
    }

    let parsed: serde_json::Value = serde_json::from_str(&json::render(&found)).unwrap();
    let waits = &parsed["waits"];
    // 25 pipes have no common inode number.
    assert_eq!(waits[0]["object"], serde_json::json!({"kind": "pipe"}));
    assert_eq!(waits[0]["on"], serde_json::json!([{"command": "git", "count": 25}]));
    assert_eq!(waits[0]["total_ns"], 25 * 2_210_000);
    assert_eq!(waits[1]["on"], serde_json::json!([{"scanner": "clamd", "count": 1}]));
}

fn waits_section(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::to_owned);
    let from = lines.skip_while(|line| line != "What programs waited for").skip(1);
    from.take_while(|line| !line.is_empty()).collect()
}

fn length_of_words(lines: &[String]) -> usize {
    lines.concat().split_whitespace().collect::<Vec<_>>().join(" ").len()
}

#[test]
fn waits_below_a_millisecond_are_not_in_the_report() {
    let (builder, git) = with_git();
    let mut found = report(&builder.recording, GroupBy::Command);
    let wait = slice(1, 0, 1_130_000, [900_000, 0], WAIT4, woken_by(git));
    found.waits = attribution(&builder.recording, &[wait]);
    let text = table::render(&found, &table::Options::default());
    assert_eq!(found.waits.len(), 1);
    assert!(!text.contains("waited"), "less than a millisecond: {text}");
}

#[test]
fn a_fifo_is_shown_by_its_path_and_a_pipe_without_its_number() {
    let (mut builder, git) = with_git();
    let path = Some(b"/tmp/a\x1bfifo".as_slice());
    for (kind, path, shown) in [(ObjectKind::Pipe, None, "a pipe"), (ObjectKind::Fifo, path, "/tmp/a\\x1bfifo")] {
        let object = object(&mut builder, kind, path);
        let mut found = report(&builder.recording, GroupBy::Command);
        let wait = SliceRow { object, ..slice(1, 0, 1_130_000, [1_100_000, 0], READ, woken_by(git)) };
        found.waits = attribution(&builder.recording, &[wait]);
        let text = whole_table(&found, 120);
        assert_contains(&text, [&format!("in read on {shown} from 1 x git:")]);
    }
}
