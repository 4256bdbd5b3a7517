//! Checks the write-ahead log of a recording that is being written, or whose recorder was killed. SQLite reads frames from the log up to
//! the first damaged one and ignores the rest without an error, so a flipped bit would silently lose every later batch.
//! <https://sqlite.org/fileformat2.html#walformat>

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The lowest bit selects whether checksums treat the file as big-endian or little-endian numbers.
const MAGIC: u32 = 0x377f_0682;
/// Page sizes that SQLite supports.
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 512..=65_536;
/// Bytes to read at a time.
const PIECE: usize = 1 << 18;

/// Returns the path of a database's write-ahead log.
pub(super) fn path_of(recording: &Path) -> PathBuf {
    with_suffix(recording, "-wal")
}

/// Returns the path of a file that SQLite keeps beside a database: the suffix is appended to the whole path.
pub(super) fn with_suffix(recording: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(recording);
    name.push(suffix);
    name.into()
}

/// Describes what is wrong with a log; `None` if nothing is.
///
///
/// Damaged frames are acceptable if no batch ends after the first of them: the recorder was killed while it wrote that frame, or it rolled
/// back a batch that did not fit onto the disk, or the frames are left from an earlier round.
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
        // A last frame that is complete was not truncated.
        let may_be_torn = !is_later && number < frames;
        if let Some(first) = unsound.filter(|_| !may_be_torn && round.has_end_of_batch(&frame)) {
            return Ok(Some(format!(
                "frame {first} of {frames} in its -wal file does not match its checksum"
            )));
        }
    }
    Ok(None)
}

/// The frames since the log was last restarted. They share the same salts, and each checksum continues that of the previous frame.
struct Round {
    page_bytes: usize,
    salts: [u8; 8],
    is_big_endian: bool,
    checksum: [u32; 2],
}

impl Round {
    /// Reads the log's header. Returns `None` if it is damaged.
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

    /// Accepts the next frame if its checksum is right.
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

    /// Whether a frame claims to belong to this round and to be the last one of a transaction.
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

    /// A log of a database with three transactions.
    fn log_of_three() -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.db");
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
    fn frames_of_an_earlier_round_and_of_a_rolled_back_batch_are_not_damage() {
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
