//! Checks the write-ahead log of a recording that is being written, or whose recorder was killed.
//! SQLite reads frames from the log up to the first damaged one and ignores the rest without an
//! error, so a flipped bit would silently lose every later batch.
//! <https://sqlite.org/fileformat2.html#walformat>

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use super::header::word;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// The first four bytes of a log, without the lowest bit, which says whether checksums are computed
/// from big-endian numbers.
const MAGIC: u32 = 0x377f_0682;
/// Page sizes that SQLite supports, in bytes.
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 512..=65_536;
const READ_BYTES: usize = 1 << 18;

pub(super) fn wal_path(recording: &Path) -> PathBuf {
    with_suffix(recording, "-wal")
}

/// Returns the path of a file that SQLite keeps beside a database: the suffix is appended to the
/// whole path.
pub(super) fn with_suffix(recording: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(recording);
    name.push(suffix);
    name.into()
}

/// Describes the damage of a log; `None` if it is not damaged.
///
/// A frame whose checksum does not match is not damage if no batch ends with that frame or later:
/// the recorder was killed while it wrote the frame, or it rolled back a batch that did not fit on
/// the disk, or the frame was written before the log was last restarted.
pub(super) fn find_damage(log: &File) -> io::Result<Option<String>> {
    let length = log.metadata()?.len();
    let mut log = BufReader::with_capacity(READ_BYTES, log);
    let mut header = [0; HEADER_BYTES];
    if length < HEADER_BYTES as u64 {
        return Ok(None);
    }
    log.read_exact(&mut header)?;
    let Some(mut round) = Round::begin(&header) else {
        return Ok(Some("the header of its -wal file does not match its checksum".to_owned()));
    };
    let mut frame = vec![0; FRAME_HEADER_BYTES + round.page_bytes];
    let frames = (length - HEADER_BYTES as u64) / frame.len() as u64;
    let mut first_damaged = None;
    for number in 1..=frames {
        log.read_exact(&mut frame)?;
        let is_later = first_damaged.is_some();
        if !is_later && !round.accept(&frame) {
            first_damaged = Some(number);
        }
        // The first damaged frame may have been written only in part, unless it is the last frame
        // of the file.
        let may_be_torn = !is_later && number < frames;
        if let Some(first) = first_damaged.filter(|_| !may_be_torn && round.has_end_of_batch(&frame)) {
            return Ok(Some(format!("frame {first} of {frames} in its -wal file does not match its checksum")));
        }
    }
    Ok(None)
}

/// The frames since the log was last restarted. All have the same salts, and the checksum of each
/// continues that of the previous frame.
struct Round {
    page_bytes: usize,
    salts: [u8; 8],
    is_big_endian: bool,
    /// The checksum of the last accepted frame.
    checksum: [u32; 2],
}

impl Round {
    /// Reads the log's header. Returns `None` if it is damaged.
    fn begin(header: &[u8; HEADER_BYTES]) -> Option<Round> {
        let magic = word(header, 0);
        let page_size = word(header, 8);
        let mut round = Round {
            page_bytes: PAGE_SIZES.contains(&page_size).then_some(page_size as usize)?,
            salts: header[16..24].try_into().ok()?,
            is_big_endian: magic & 1 == 1,
            checksum: [0; 2],
        };
        round.checksum = round.checksum_with(&header[..24]);
        let is_sound = magic & !1 == MAGIC && round.checksum == [word(header, 24), word(header, 28)];
        is_sound.then_some(round)
    }

    /// Checks the next frame, and returns whether its salts and its checksum are right.
    fn accept(&mut self, frame: &[u8]) -> bool {
        let (header, page) = frame.split_at(FRAME_HEADER_BYTES);
        let before = self.checksum;
        self.checksum = self.checksum_with(&header[..8]);
        self.checksum = self.checksum_with(page);
        let is_sound = header[8..16] == self.salts && self.checksum == [word(header, 16), word(header, 20)];
        if !is_sound {
            self.checksum = before;
        }
        is_sound
    }

    /// Whether a frame has the salts of this round and is marked as the last one of a transaction.
    fn has_end_of_batch(&self, frame: &[u8]) -> bool {
        frame[8..16] == self.salts && word(frame, 4) != 0
    }

    /// Returns the checksum, continued with these bytes.
    fn checksum_with(&self, bytes: &[u8]) -> [u32; 2] {
        let [mut a, mut b] = self.checksum;
        let (words, _) = bytes.as_chunks::<4>();
        let (pairs, _) = words.as_chunks::<2>();
        for [first, second] in pairs {
            a = a.wrapping_add(self.number(*first)).wrapping_add(b);
            b = b.wrapping_add(self.number(*second)).wrapping_add(a);
        }
        [a, b]
    }

    fn number(&self, bytes: [u8; 4]) -> u32 {
        if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use rusqlite::Connection;
    use rusqlite::config::DbConfig;

    use super::*;

    fn log_of_three_transactions() -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.db");
        let connection = Connection::open(&path).unwrap();
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
        connection
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE x (y); INSERT INTO x VALUES (zeroblob(9000)); INSERT INTO x VALUES (1)")
            .unwrap();
        fs::read(wal_path(&path)).unwrap()
    }

    fn damage_in(bytes: &[u8]) -> Option<String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        find_damage(&File::open(file.path()).unwrap()).unwrap()
    }

    #[test]
    fn a_log_that_was_truncated_anywhere_is_not_damaged() {
        let log = log_of_three_transactions();
        for kept in (0..log.len()).step_by(101).chain([log.len()]) {
            assert_eq!(damage_in(&log[..kept]), None, "{kept} of {}", log.len());
        }
    }

    #[test]
    fn frames_of_an_earlier_round_and_of_a_rolled_back_batch_are_not_damage() {
        let log = log_of_three_transactions();
        let frame = FRAME_HEADER_BYTES + 4_096;
        let mut with_old_tail = log.clone();
        let mut old = log[HEADER_BYTES..HEADER_BYTES + frame].to_vec();
        old[8..16].fill(0x55);
        with_old_tail.extend(&old);
        assert_eq!(damage_in(&with_old_tail), None);
        let mut rolled_back = log.clone();
        let mut unfinished = log[HEADER_BYTES..HEADER_BYTES + frame].to_vec();
        unfinished[4..8].fill(0);
        rolled_back.extend(&unfinished);
        assert_eq!(damage_in(&rolled_back), None);
    }
}
