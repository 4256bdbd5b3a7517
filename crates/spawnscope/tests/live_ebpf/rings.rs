//! `record --keep`: the recordings are consecutive, lose no launch at a rotation, and together stay
//! below the limit.

use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::{Signal, kill};

use crate::support::prelude::*;

const KEEP_BYTES: u64 = 16_000_000;
/// How many programs a storm launches.
const LAUNCHES: usize = 97;

/// Returns the numbers and paths of the recordings of a ring, oldest first.
fn ring(record: &Record) -> Vec<(u32, PathBuf)> {
    let entries = std::fs::read_dir(record.directory()).expect("the directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<(u32, PathBuf)> = paths.filter_map(|path| Some((recording_number(&path)?, path))).collect();
    files.sort_unstable();
    files
}

fn recording_number(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix("recording.")?.strip_suffix(".db")?.parse().ok()
}

/// Slow, because a file of a ring has at least 2 MB: only a real rotation shows which events and
/// parents belong to which file.
#[apply(live_test)]
fn a_ring_of_recordings_is_consecutive_and_stays_small() {
    let record = Record::new();
    let mine = record.directory().join("mine");
    std::fs::copy(path("tiny"), &mine).expect("a program that only this test runs");
    let record = record.flags(&["-q", "-a", "--keep", "16MB"]);
    let recorder = Running::start(&mut record.command([] as [&str; 0]));
    // That old recordings are deleted is tested with the files of a ring, in `cli::ring`.
    while ring(&record).len() < 3 {
        run(Command::new(path("storm")).arg(LAUNCHES.to_string()).arg(&mine)).expect_code(0);
        let files = ring(&record);
        let sizes = files.iter().map(|(_, file)| file.metadata().map_or(0, |metadata| metadata.len()));
        assert!(sizes.sum::<u64>() <= KEEP_BYTES, "{files:?}");
    }
    kill(recorder.pid(), Signal::SIGTERM).expect("the recorder runs");
    recorder.finish().expect_code(0);

    let files = ring(&record);
    for ((number, file), expected) in files.iter().zip(files[0].0..) {
        assert_eq!(*number, expected, "a recording is missing");
        let report = report(file);
        assert_eq!(report["lost_events"], 0, "{}", report["lost"]);
        let contradictions = &report["contradictions"];
        if let Some(first) = contradictions.as_array().and_then(|found| found.first()) {
            let launches = launches(file).0;
            let first = launches.iter().find(|launch| launch.json()["id"] == first["first"]);
            panic!("{contradictions}: {:?}", first.map(Launch::json));
        }
        row_of(&report, "mine");
    }
    let all: Vec<Launch> = files.iter().flat_map(|(_, file)| launches(file).0).collect();
    let whole = |program: &'static str| {
        let is_whole = |launch: &&Launch| launch.origin() == "launched" && launch.end_ns().is_some();
        all.iter().filter(is_whole).filter(move |launch| launch.programs() == [program])
    };
    // The first storms may have begun before the recorder did.
    for storm in whole("storm") {
        let launched = whole("mine").filter(|mine| mine.parent() == Some(storm.id())).count();
        assert_eq!(launched, LAUNCHES, "each launch is whole in one recording: {:?}", storm.json());
    }
    assert!(whole("storm").count() > 2);
}
