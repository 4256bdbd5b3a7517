//! Reads the header of an SQLite file without SQLite, which would take locks and apply journals.
//! <https://sqlite.org/fileformat2.html#the_database_header>

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const HEADER_BYTES: usize = 100;

/// The offsets of the write format and the read format.
const JOURNALS: Range<usize> = 18..20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SqliteHeader {
    /// The stored page size, where 1 means 65,536 bytes.
    page_size: u16,
    /// The write format and the read format: 1 means rollback journal, 2 write-ahead log.
    pub(super) journals: [u8; 2],
    /// The file change counter. Each program that changes the file increments it.
    pub(super) counter: u32,
    /// The value of `counter` at the last change by a program that knows this field.
    pub(super) valid_for: u32,
    pub(super) application_id: i32,
    pub(super) user_version: i32,
}

impl SqliteHeader {
    pub(super) const COUNTER_OFFSET: u64 = 24;

    /// Reads the header of a file. Returns `None` if it is not an SQLite file.
    pub(super) fn read(file: &File) -> io::Result<Option<SqliteHeader>> {
        let mut bytes = [0; HEADER_BYTES];
        match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => Ok(SqliteHeader::parse(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Changes the header of a database in memory so that SQLite reads it without a write-ahead
    /// log.
    pub(super) fn clear_log(file: &mut [u8]) {
        if let Some(journals) = file.get_mut(JOURNALS) {
            journals.fill(1);
        }
    }

    fn parse(bytes: &[u8; HEADER_BYTES]) -> Option<SqliteHeader> {
        bytes.starts_with(MAGIC).then(|| SqliteHeader {
            page_size: u16::from_be_bytes([bytes[16], bytes[17]]),
            journals: [bytes[JOURNALS.start], bytes[JOURNALS.start + 1]],
            counter: word(bytes, 24),
            valid_for: word(bytes, 92),
            application_id: word(bytes, 68).cast_signed(),
            user_version: word(bytes, 60).cast_signed(),
        })
    }

    /// Whether the file must be read together with a write-ahead log.
    pub(super) fn has_log(&self) -> bool {
        self.journals[1] == 2
    }

    /// Returns the page size in bytes. It is never zero, even if a damaged header says so.
    pub(super) fn page_bytes(&self) -> u64 {
        match self.page_size {
            0 | 1 => 65_536,
            size => u64::from(size),
        }
    }
}

/// Returns the big-endian number at `at`.
pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
