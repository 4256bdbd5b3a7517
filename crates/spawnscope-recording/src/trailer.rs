//! The last bytes of a finished recording, which contain a checksum of all bytes before them. It
//! detects flipped bits everywhere, not only in rows. SQLite ignores bytes after the last page of a
//! database.
//!
//! ```text
//! 8 bytes  "SPNSDONE"
//! 4 bytes  the file change counter of SQLite's header (offset 24) when the recording was
//!          finished, big-endian as in the header
//! 4 bytes  the same value with every bit inverted
//! 8 bytes  XXH3-64 of the file up to here, little-endian
//! ```
//!
//! A program that changes the database increments the counter in the header, where SQLite stores it
//! twice. The trailer's checksum is then no longer valid, but the checksums of the rows
//! (`checksum`) remain valid. If the recorder was killed, there is no trailer.

use std::fs::File;
use std::hash::Hasher;
use std::io;
use std::os::unix::fs::FileExt;

use twox_hash::XxHash3_64;

use super::header::SqliteHeader;

const MAGIC: &[u8; 8] = b"SPNSDONE";
const TRAILER_BYTES: u64 = 24;
/// The number of bytes of the trailer that the checksum covers: all bytes before the checksum.
const HASHED_BYTES: usize = 16;
const READ_BYTES: usize = 1 << 20;

/// Appends the trailer to a finished recording. No program may be writing to the file.
pub(super) fn append(file: &File) -> io::Result<()> {
    let length = file.metadata()?.len();
    let mut counter = [0; 4];
    file.read_exact_at(&mut counter, SqliteHeader::COUNTER_OFFSET)?;
    let mut trailer = [0; TRAILER_BYTES as usize];
    trailer[..8].copy_from_slice(MAGIC);
    trailer[8..12].copy_from_slice(&counter);
    trailer[12..16].copy_from_slice(&counter.map(|byte| !byte));
    let hash = hash_file(file, length, &trailer[..HASHED_BYTES])?;
    trailer[HASHED_BYTES..].copy_from_slice(&hash.to_le_bytes());
    file.write_all_at(&trailer, length)
        // An incomplete trailer would look like damage.
        .inspect_err(|_| drop(file.set_len(length)))
}

/// Whether a file was damaged since it was finished. Without a valid trailer, that is unknown: the
/// recorder was killed, the recording has an older version, or another program has changed it.
pub(super) fn is_broken(file: &File, header: &SqliteHeader) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let mut trailer = [0; TRAILER_BYTES as usize];
    let Some(end) = length.checked_sub(TRAILER_BYTES) else { return Ok(false) };
    file.read_exact_at(&mut trailer, end)?;
    let (hashed, hash) = trailer.split_at(HASHED_BYTES);
    if !hashed.starts_with(MAGIC) {
        // The file must consist of whole pages, because a recorder appends nothing but the trailer.
        return Ok(!length.is_multiple_of(header.page_bytes()));
    }
    let counter = header.counter.to_be_bytes();
    let inverted = counter.map(|byte| !byte);
    // A flipped bit changes only one of the two values.
    let has_other_counter = hashed[8..12] != counter && hashed[12..16] != inverted;
    if header.counter == header.valid_for && has_other_counter {
        return Ok(false);
    }
    Ok(hash_file(file, end, hashed)?.to_le_bytes() != hash)
}

/// Returns the checksum of the first `length` bytes of a file, continued with `rest`.
fn hash_file(file: &File, length: u64, rest: &[u8]) -> io::Result<u64> {
    let mut hasher = XxHash3_64::new();
    let mut buffer = vec![0; READ_BYTES];
    let mut at = 0;
    while at < length {
        let wanted = usize::try_from(length - at).map_or(READ_BYTES, |left| left.min(READ_BYTES));
        file.read_exact_at(&mut buffer[..wanted], at)?;
        hasher.write(&buffer[..wanted]);
        at += wanted as u64;
    }
    hasher.write(rest);
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn sealed() -> (tempfile::NamedTempFile, Vec<u8>) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        rusqlite::Connection::open(file.path())
            .unwrap()
            .execute_batch("CREATE TABLE x (y); INSERT INTO x VALUES (zeroblob(10000))")
            .unwrap();
        append(file.as_file()).unwrap();
        file.flush().unwrap();
        let bytes = std::fs::read(file.path()).unwrap();
        (file, bytes)
    }

    fn seems_broken(bytes: &[u8]) -> bool {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        SqliteHeader::read(&file).unwrap().is_none_or(|header| is_broken(&file, &header).unwrap())
    }

    #[test]
    fn a_truncated_file_has_no_seal_or_a_broken_one() {
        let (_file, bytes) = sealed();
        assert!(!seems_broken(&bytes[..bytes.len() - 24]));
        assert!(seems_broken(&bytes[..bytes.len() - 1]));
        assert!(seems_broken(&bytes[..bytes.len() - 30]));
    }

    #[test]
    fn sqlite_ignores_the_trailer_and_invalidates_it_by_writing() {
        let (file, bytes) = sealed();
        let connection = rusqlite::Connection::open(file.path()).unwrap();
        let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
        assert_eq!(std::fs::read(file.path()).unwrap(), bytes);
        connection.execute_batch("UPDATE x SET y = 1").unwrap();
        drop(connection);
        assert!(!seems_broken(&std::fs::read(file.path()).unwrap()));
    }
}
