//! Names and arguments that attack the reader's terminal or break the output format.

use proptest::prelude::*;

use crate::prelude::*;
use crate::printed::launches_as_ndjson;

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

fn assert_fit(text: &str, width: usize, lines: Option<usize>) {
    // Stripping removes only our own colours, so a remaining control character came from the
    // recording.
    let shown = plain(text);
    assert!(!shown.contains(|character: char| character.is_control() && character != '\n'), "{shown:?}");
    for raw in ["\x1b]", "\u{202e}", "\u{200b}"] {
        assert!(!text.contains(raw), "{text:?}");
    }
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
        assert_fit(&styled_tree(&recording, Some(80)), 80, Some(2));
        let text = table::render(&report(&recording, GroupBy::Command), &table::Options::default());
        assert_fit(&text, 80, None);
    }
}

#[test]
fn a_megabyte_of_arguments_makes_one_line() {
    let recording = recording_with(b"/bin/echo", &vec![b'x'; 1 << 20]);
    assert_fit(&styled_tree(&recording, Some(80)), 80, Some(2));
}

#[test]
fn bytes_that_are_not_utf8_are_kept_beside_their_text() {
    let recording = recording_with(b"/bin/a\xff", b"\xfe");
    let lines = launches_as_ndjson(&recording);
    let last: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    let exec = &last["execs"][0];
    assert_eq!(exec["path"], "/bin/a\u{fffd}");
    assert_eq!(exec["path_hex"], "2f62696e2f61ff");
    assert_eq!(exec["argv_hex"][1], "fe");
    assert!(exec.get("cwd_hex").is_none(), "only where the bytes are not UTF-8");
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
        assert_fit(&styled_tree(&recording, Some(width)), width.max(12), Some(2));
        assert_fit(&table::render(&found, &table::Options { width, top: None, file: None }), width, None);
    }
}
