//! Fuzzes the parser of selections (SEL), and applies them to a recording.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use spawnscope_analyze::Forest;
use spawnscope_analyze::sites::select::Selector;
use spawnscope_recording::RecordingFile;
use spawnscope_recording::reader::Recording;

static RECORDING: LazyLock<Recording> = LazyLock::new(|| {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/reader/two_launches");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("recording.db");
    std::fs::copy(sample, &path).expect("the sample of the reader's corpus");
    RecordingFile::open(&path).and_then(|file| file.read()).expect("a sound recording")
});

fuzz_target!(|text: &str| {
    if let Ok(selector) = Selector::parse(text) {
        let forest = Forest::build(&RECORDING);
        let _ = selector.select(&forest);
        let _ = selector.called_from(&forest);
    }
});
