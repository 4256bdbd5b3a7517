//! Names and arguments that attack the reader's terminal or break the output format.

use anstream::adapter::strip_str;
use proptest::prelude::*;
use spawnscope::analyze::{Forest, GroupBy, WaitCollection, report};
use spawnscope::present::{json, ndjson, perfetto, table, tree};
use spawnscope::record::reader::Recording;

use crate::builder::{Builder, ROOT, Spans};

pub(crate) fn recording_with(path: &[u8], argument: &[u8]) -> Recording {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    builder.recording.info.command = vec![path.to_vec(), argument.to_vec()];
    let child = builder.launch(ROOT, 0, &Spans::USUAL, None);
    builder.exec_at(child, path, &[path, argument], [180_000, 480_000, 500_000]);
    let failed = builder.text(&[b"/dir\x1b]0;owned\x07/".as_slice(), path].concat());
    builder.failed_exec_at(child, "", libc::ENOENT, 150_000);
    builder.recording.failed_execs[0].path = failed;
    builder.recording
}

fn tree_text(recording: &Recording, width: Option<usize>) -> String {
    let mut text = Vec::new();
    tree::write(&mut text, &Forest::build(recording), width).unwrap();
    String::from_utf8(text).unwrap()
}

fn assert_fit(text: &str, width: usize, lines: Option<usize>) {
    // Stripping removes only our own colours, so a remaining control character came from the recording.
    let shown = strip_str(text).to_string();
    assert!(
        !shown
            .chars()
            .any(|character| character.is_control() && character != '\n'),
        "{shown:?}"
    );
    assert!(
        !text.contains("\x1b]") && !text.contains('\u{202e}') && !text.contains('\u{200b}'),
        "{text:?}"
    );
    for line in shown.lines() {
        assert!(spawnscope::present::text::width(line) <= width, "{line:?}");
    }
    if let Some(lines) = lines {
        assert_eq!(shown.lines().count(), lines, "{shown}");
    }
}

const HOSTILE: [&[u8]; 7] = [
    b"a\nb",
    b"\x1b[2J\x1b]0;title\x07",
    b"\xff\xfe\x80",
    "\u{202e}cod.exe\u{200b}".as_bytes(),
    "日本語のとても長い名前のプログラムです日本語のとても長い名前のプログラムです".as_bytes(),
    b"\x9b31m\r\t",
    b"",
];

#[test]
fn nothing_raw_reaches_the_terminal() {
    for name in HOSTILE {
        let recording = recording_with(name, name);
        assert_fit(&tree_text(&recording, Some(80)), 80, Some(2));
        let text = table::render(&report(&recording, GroupBy::Command), &table::Options::default());
        assert_fit(&text, 80, None);
    }
}

#[test]
fn a_megabyte_of_arguments_makes_one_line() {
    let recording = recording_with(b"/bin/echo", &vec![b'x'; 1 << 20]);
    assert_fit(&tree_text(&recording, Some(80)), 80, Some(2));
}

#[test]
fn bytes_that_are_not_utf8_are_kept_beside_their_text() {
    let recording = recording_with(b"/bin/a\xff", b"\xfe");
    let forest = Forest::build(&recording);
    let mut lines = Vec::new();
    let no_waits = WaitCollection::new(&recording, &forest, &[]).finish();
    ndjson::write(&mut lines, &forest, &no_waits).unwrap();
    let last: serde_json::Value =
        serde_json::from_str(std::str::from_utf8(&lines).unwrap().lines().last().unwrap()).unwrap();
    assert_eq!(last["execs"][0]["path"], "/bin/a\u{fffd}");
    assert_eq!(last["execs"][0]["path_hex"], "2f62696e2f61ff");
    assert_eq!(last["execs"][0]["argv_hex"][1], "fe");
    assert!(
        last["execs"][0].get("cwd_hex").is_none(),
        "only where the bytes are not UTF-8"
    );
}

#[test]
fn exports_of_many_launches_have_a_line_each() {
    let mut builder = Builder::command("/bin/bash", &["bash"], 1_000_000_000);
    for number in 0..20_000 {
        builder.launch(ROOT, number * 1_000, &Spans::USUAL, Some(("/bin/true", &["true"])));
    }
    let forest = Forest::build(&builder.recording);
    let mut lines = Vec::new();
    let no_waits = WaitCollection::new(&builder.recording, &forest, &[]).finish();
    ndjson::write(&mut lines, &forest, &no_waits).unwrap();
    assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), 20_001);
    let mut trace = Vec::new();
    let contents = perfetto::Contents {
        forest: &forest,
        report: &report(&builder.recording, GroupBy::Command),
        critical_path: &[],
        waits_of_parents: &[],
        run_queue: &[],
    };
    perfetto::write(&mut trace, &contents).unwrap();
    assert!(trace.len() > 20_000 * 20);
}

proptest! {
    #[test]
    fn every_output_stays_well_formed(
        name in proptest::collection::vec(any::<u8>().prop_filter("NUL ends it", |byte| *byte != 0), 0..30),
        width in 1usize..120,
    ) {
        let recording = recording_with(&name, &name);
        let found = report(&recording, GroupBy::Command);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&json::render(&found)).is_ok());
        assert_fit(&tree_text(&recording, Some(width)), width.max(12), Some(2));
        assert_fit(&table::render(&found, &table::Options::all(width)), width, None);
    }
}
