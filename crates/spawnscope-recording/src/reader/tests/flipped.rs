//! Tests of recordings with a flipped bit. In a finished recording, every flip is detected. If the
//! recorder was killed, a flip is detected unless the data that is read is the same.

use super::wal::cut_off;
use super::*;
use crate::log;

const FLIPS: usize = 300;

/// Returns the byte and the bit of each flip. The random number generator is that of the C
/// standard, so that every run tests the same flips.
fn flips(bytes: usize, seed: u32) -> impl Iterator<Item = (usize, u8)> {
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        (state >> 16) as usize & 0x7fff
    };
    (0..FLIPS).map(move |_| (((next() << 15) | next()) % bytes, 1u8 << (next() % 8)))
}

#[test]
fn every_flip_in_a_finished_recording_is_detected() {
    let (_directory, path) = recording(60);
    let intact = fs::read(&path).unwrap();
    for (at, bit) in flips(intact.len(), 1) {
        let mut flipped = intact.clone();
        flipped[at] ^= bit;
        fs::write(&path, &flipped).unwrap();
        let error = RecordingFile::open(&path).err().map(|error| error.to_string()).unwrap_or_default();
        let expected = ["is damaged", "is not a spawnscope recording", "update spawnscope"];
        assert!(expected.iter().any(|words| error.contains(words)), "byte {at}, bit {bit}: {error}");
    }
}

fn content(path: &Path) -> Result<String, RecordError> {
    let file = RecordingFile::open(path)?;
    let mut slices = Vec::new();
    file.slices(&mut |row| slices.push(row))?;
    Ok(format!("{:?} {slices:?}", file.read()?))
}

#[test]
fn no_undetected_flip_changes_what_is_read_after_a_recorder_was_killed() {
    let (_directory, path) = cut_off(60);
    let log = log::wal_path(&path);
    let sound = content(&path).unwrap();
    // Few flips in the file itself are detected, because the log contains newer versions of most of
    // its pages.
    for (file, seed, at_least) in [(&path, 2, FLIPS / 20), (&log, 3, FLIPS * 9 / 10)] {
        let intact = fs::read(file).unwrap();
        // A flip in the mark that the last frame ends a batch is not detected: it looks as if the
        // recorder had been killed earlier.
        let last_mark = intact.len() - PAGE_AND_HEADER + 4..intact.len() - PAGE_AND_HEADER + 16;
        let mut found = 0;
        for (at, bit) in flips(intact.len(), seed).filter(|(at, _)| *file != log || !last_mark.contains(at)) {
            let mut flipped = intact.clone();
            flipped[at] ^= bit;
            fs::write(file, &flipped).unwrap();
            match content(&path) {
                Ok(read) => assert_eq!(read, sound, "{}: byte {at}, bit {bit}", file.display()),
                Err(_) => found += 1,
            }
        }
        fs::write(file, &intact).unwrap();
        assert!(found > at_least, "{}: {found}", file.display());
    }
}

const PAGE_AND_HEADER: usize = 4_096 + 24;

#[test]
fn a_row_that_was_changed_added_or_deleted_is_detected() {
    for sql in [
        "UPDATE slice SET off_ns = off_ns + 1 WHERE rowid = 3",
        "DELETE FROM launch WHERE id = 3",
        "INSERT INTO lost VALUES ('slice', 5)",
        "UPDATE recording SET hostname = 'there'",
        "UPDATE exec SET rowid = rowid + 100 WHERE rowid = 2",
        "UPDATE text SET bytes = CAST(bytes AS TEXT) WHERE id = 1",
        "UPDATE checksum SET sum = sum + 1 WHERE name = 'thread'",
        "DELETE FROM checksum WHERE name = 'stack'",
        "DELETE FROM calibration",
        "INSERT INTO sample VALUES (1, 5, 5, 0, 1)",
    ] {
        let (_directory, path) = recording(3);
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let error = read_all(&path).unwrap_err();
        assert!(matches!(error, RecordError::Corrupt { .. }), "{sql}: {error}");
        assert!(error.to_string().contains("checksum"), "{sql}: {error}");
    }
}
