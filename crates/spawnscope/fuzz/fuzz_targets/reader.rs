//! Fuzzes the reader with a file that claims to be a recording: opens it, reads it completely and
//! reports on it, as `report` does.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use spawnscope::analyze::{GroupBy, report};
use spawnscope::present::{json, summary, table};
use spawnscope::record::RecordingFile;

static FILE: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("recording.db");
    (directory, path)
});

fuzz_target!(|bytes: &[u8]| {
    let path = &FILE.1;
    std::fs::write(path, bytes).expect("a file");
    let Ok(file) = RecordingFile::open(path) else { return };
    let (_, _, _) = (file.slices(&mut |_| {}), file.samples(&mut |_| {}), file.threads());
    let Ok(recording) = file.read() else { return };
    let found = report(&recording, GroupBy::Command);
    let _ = json::render(&found);
    let _ = summary::render(&found, 80, Some(24), None);
    let _ = table::render(&found, &table::Options::default());
    let _ = table::render_table(&found, &table::Options::default());
});
