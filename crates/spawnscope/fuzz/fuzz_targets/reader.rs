//! Fuzzes the reader with a file that claims to be a recording: opens it, reads it completely and
//! analyzes it, as `report` does.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use spawnscope_analyze::{GroupBy, report};
use spawnscope_recording::RecordingFile;

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
    let _ = report(&recording, GroupBy::Command);
});
