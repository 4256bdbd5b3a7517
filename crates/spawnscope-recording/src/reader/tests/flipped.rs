//! Bits that flipped in transit. In a finished recording, each flip is detected. In one that was cut off, each flip is detected unless the
//! data that is read is the same.

use super::wal::cut_off;
use super::*;
use crate::log;

/// Flips in each kind of file. The generator is that of the C standard, so that they are the same on every machine.
const FLIPS: usize = 300;

fn places(bytes: usize, seed: u32) -> impl Iterator<Item = (usize, u8)> {
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        (state >> 16) as usize & 0x7fff
    };
    (0..FLIPS).map(move |_| (((next() << 15) | next()) % bytes, 1u8 << (next() % 8)))
}

#[test]
fn in_a_finished_recording_every_flip_is_found() {
    let (_directory, path) = recording(60);
    let whole = fs::read(&path).unwrap();
    for (at, bit) in places(whole.len(), 1) {
        let mut flipped = whole.clone();
        flipped[at] ^= bit;
        fs::write(&path, &flipped).unwrap();
        let error = RecordingFile::open(&path)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        let is_clear = ["is damaged", "is not a spawnscope recording", "update spawnscope"];
        assert!(
            is_clear.iter().any(|words| error.contains(words)),
            "byte {at}, bit {bit}: {error}"
        );
    }
}

/// Returns everything that is read, as text.
fn content(path: &Path) -> Result<String, RecordError> {
    let file = RecordingFile::open(path)?;
    let mut slices = Vec::new();
    file.slices(&mut |row| slices.push(row))?;
    Ok(format!("{:?} {slices:?}", file.read()?))
}

#[test]
fn in_a_recording_that_was_cut_off_no_flip_changes_what_is_read_unnoticed() {
    let (_directory, path) = cut_off(60);
    let log = log::path_of(&path);
    let sound = content(&path).unwrap();
    // Most pages of the file have a newer version in the log.
    for (file, seed, at_least) in [(&path, 2, FLIPS / 20), (&log, 3, FLIPS * 9 / 10)] {
        let whole = fs::read(file).unwrap();
        // Without the mark that the last frame ends a batch, that batch does not exist.
        let last_mark = whole.len() - PAGE_AND_HEADER + 4..whole.len() - PAGE_AND_HEADER + 16;
        let mut found = 0;
        for (at, bit) in places(whole.len(), seed).filter(|(at, _)| *file != log || !last_mark.contains(at)) {
            let mut flipped = whole.clone();
            flipped[at] ^= bit;
            fs::write(file, &flipped).unwrap();
            match content(&path) {
                Ok(read) => assert_eq!(read, sound, "{}: byte {at}, bit {bit}", file.display()),
                Err(_) => found += 1,
            }
        }
        fs::write(file, &whole).unwrap();
        assert!(found > at_least, "{}: {found}", file.display());
    }
}

const PAGE_AND_HEADER: usize = 4_096 + 24;

#[test]
fn a_row_that_was_changed_added_or_deleted_is_found() {
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
