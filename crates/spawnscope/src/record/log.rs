//! The write-ahead log beside a recording that is being written, or whose recorder was killed: whether it is sound. SQLite takes
//! from it what is sound up to the first frame that is not and says nothing of the rest, so that a flipped bit would
//! silently cost every later batch. <https://sqlite.org/fileformat2.html#walformat>

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// Its lowest bit tells whether checksums take the file as big-endian or as little-endian numbers.
const MAGIC: u32 = 0x377f_0682;
/// Sizes of pages that SQLite knows.
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 512..=65_536;
/// Bytes read at a time.
const PIECE: usize = 1 << 18;

/// The name that SQLite gives to the log of a database.
pub(super) fn path_of(recording: &Path) -> PathBuf {
    beside(recording, "-wal")
}

/// The name of a file that SQLite keeps beside a database: it appends to the whole path.
pub(super) fn beside(recording: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(recording);
    name.push(suffix);
    name.into()
}

/// What is wrong with a log, in words; `None` when nothing is.
///
/// Frames that are not sound are no damage when no batch ends behind the first of them: a recorder was killed while it wrote
/// that one, or took a batch back that did not fit onto the disk, or they are left of an earlier round.
pub(super) fn damage(log: &File) -> io::Result<Option<String>> {
    let length = log.metadata()?.len();
    let mut log = BufReader::with_capacity(PIECE, log);
    let mut header = [0; HEADER];
    if length < HEADER as u64 {
        return Ok(None);
    }
    log.read_exact(&mut header)?;
    let Some(mut round) = Round::begin(&header) else {
        return Ok(Some(
            "the header of its -wal file does not match its checksum".to_owned(),
        ));
    };
    let mut frame = vec![0; FRAME_HEADER + round.page_bytes];
    let frames = (length - HEADER as u64) / frame.len() as u64;
    let mut unsound = None;
    for number in 1..=frames {
        log.read_exact(&mut frame)?;
        let is_later = unsound.is_some();
        if !is_later && !round.goes_on_with(&frame) {
            unsound = Some(number);
        }
        // What is whole and ends the file was not cut short.
        let may_be_torn = !is_later && number < frames;
        if let Some(first) = unsound.filter(|_| !may_be_torn && round.has_end_of_batch(&frame)) {
            return Ok(Some(format!(
                "frame {first} of {frames} in its -wal file does not match its checksum"
            )));
        }
    }
    Ok(None)
}

/// The frames since the log was begun anew: they hold the same salts, and each one's checksum continues that of the one before.
struct Round {
    page_bytes: usize,
    salts: [u8; 8],
    is_big_endian: bool,
    checksum: [u32; 2],
}

impl Round {
    /// Reads the log's header; `None` when it is not sound.
    fn begin(header: &[u8; HEADER]) -> Option<Round> {
        let magic = word(header, 0);
        let page_size = word(header, 8);
        let mut round = Round {
            page_bytes: PAGE_SIZES.contains(&page_size).then_some(page_size as usize)?,
            salts: header[16..24].try_into().ok()?,
            is_big_endian: magic & 1 == 1,
            checksum: [0; 2],
        };
        round.checksum = round.continued(&header[..24]);
        let is_sound = magic & !1 == MAGIC && round.checksum == [word(header, 24), word(header, 28)];
        is_sound.then_some(round)
    }

    /// Takes the next frame, if it is sound.
    fn goes_on_with(&mut self, frame: &[u8]) -> bool {
        let (header, page) = frame.split_at(FRAME_HEADER);
        let before = self.checksum;
        self.checksum = self.continued(&header[..8]);
        self.checksum = self.continued(page);
        let is_sound = header[8..16] == self.salts && self.checksum == [word(header, 16), word(header, 20)];
        if !is_sound {
            self.checksum = before;
        }
        is_sound
    }

    /// Whether a frame claims to be of this round, and to be the last one of a transaction.
    fn has_end_of_batch(&self, frame: &[u8]) -> bool {
        frame[8..16] == self.salts && word(frame, 4) != 0
    }

    fn continued(&self, bytes: &[u8]) -> [u32; 2] {
        let [mut a, mut b] = self.checksum;
        for pair in bytes.chunks_exact(8) {
            let number = |at: usize| {
                let bytes = [pair[at], pair[at + 1], pair[at + 2], pair[at + 3]];
                if self.is_big_endian {
                    u32::from_be_bytes(bytes)
                } else {
                    u32::from_le_bytes(bytes)
                }
            };
            a = a.wrapping_add(number(0)).wrapping_add(b);
            b = b.wrapping_add(number(4)).wrapping_add(a);
        }
        [a, b]
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use rusqlite::Connection;
    use rusqlite::config::DbConfig;

    use super::*;

    /// The log of a database with three transactions.
    fn log_of_three() -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let connection = Connection::open(&path).unwrap();
        connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .unwrap();
        connection
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE x (y); INSERT INTO x VALUES (zeroblob(9000)); INSERT INTO x VALUES (1)")
            .unwrap();
        fs::read(path_of(&path)).unwrap()
    }

    fn damage_in(bytes: &[u8]) -> Option<String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        damage(&File::open(file.path()).unwrap()).unwrap()
    }

    #[test]
    fn a_sound_log_is_sound_wherever_it_was_cut_short() {
        let whole = log_of_three();
        for kept in (0..whole.len()).step_by(101).chain([whole.len()]) {
            assert_eq!(damage_in(&whole[..kept]), None, "{kept} of {}", whole.len());
        }
    }

    #[test]
    fn a_flipped_bit_is_found_anywhere() {
        let whole = log_of_three();
        let last_frame = whole.len() - FRAME_HEADER - 4_096;
        let last_commit = last_frame + 4..last_frame + 16;
        for at in (0..whole.len()).step_by(11).filter(|at| !last_commit.contains(at)) {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            assert!(damage_in(&flipped).is_some(), "byte {at}");
        }
    }

    #[test]
    fn frames_of_an_earlier_round_and_of_a_batch_taken_back_are_no_damage() {
        let whole = log_of_three();
        let frame = FRAME_HEADER + 4_096;
        let mut with_old_tail = whole.clone();
        let mut old = whole[HEADER..HEADER + frame].to_vec();
        old[8..16].fill(0x55);
        with_old_tail.extend(&old);
        assert_eq!(damage_in(&with_old_tail), None);
        let mut taken_back = whole.clone();
        let mut unfinished = whole[HEADER..HEADER + frame].to_vec();
        unfinished[4..8].fill(0);
        taken_back.extend(&unfinished);
        assert_eq!(damage_in(&taken_back), None);
    }
}
