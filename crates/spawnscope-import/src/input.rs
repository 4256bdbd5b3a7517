//! Opens logs: standard input, compressed files, and files that are no logs, of which some can be
//! named.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

use super::error::ImportError;

/// Length of the longest line that is read whole, in bytes. The rest of a longer one is skipped.
const MAX_LINE: usize = 1 << 20;
const BUFFER: usize = 1 << 18;

/// How other files begin, and what to do with them.
const OTHERS: [(&[u8], &str); 9] = [
    (b"SQLite format 3\0", "a recording: `spawnscope report FILE` reads it"),
    (b"\xfd7zXZ\0", "a file compressed by xz: unpack it with `xz -dc FILE | spawnscope import -`"),
    (b"BZh", "a file compressed by bzip2: unpack it with `bzip2 -dc FILE | spawnscope import -`"),
    (b"PERFILE2", "data of perf, which contains no system calls: record the command with `spawnscope record`"),
    (b"% time ", "a summary of `strace -c`, which has no processes: record with `strace -f -ttt -T -o LOG`"),
    (b"# ninja log ", "ninja's log: `spawnscope record -- ninja` reads it itself"),
    (b"\x7fELF", "a program: record it with `spawnscope record -- FILE`"),
    (b"{\"traceEvents\"", "a Chrome trace, which says nothing of processes: name a log of `strace -f`"),
    (b"{", "JSON: name a log of `strace -f -ttt -T -o LOG COMMAND`"),
];

/// A log that is read line by line.
pub struct Lines {
    pub path: PathBuf,
    reader: Box<dyn BufRead>,
    /// The number of the last line.
    pub number: u64,
}

impl Lines {
    /// Opens a log.
    pub fn open(path: &Path) -> Result<Lines, ImportError> {
        let failed = |source| ImportError::Read { path: path.to_owned(), source };
        let file: Box<dyn Read> = match path.as_os_str() == "-" {
            true => Box::new(io::stdin()),
            false => Box::new(File::open(path).map_err(failed)?),
        };
        let mut reader = BufReader::with_capacity(BUFFER, file);
        let start = reader.fill_buf().map_err(failed)?;
        if let Some((_, what)) = OTHERS.iter().find(|(begins, _)| start.trim_ascii_start().starts_with(begins)) {
            return Err(ImportError::Other { path: path.to_owned(), what });
        }
        let reader: Box<dyn BufRead> = match start {
            [0x1f, 0x8b, ..] => Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(reader))),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                let decoder = StreamingDecoder::new(reader).map_err(|error| failed(io::Error::other(error)))?;
                Box::new(BufReader::with_capacity(BUFFER, decoder))
            }
            _ => Box::new(reader),
        };
        Ok(Lines { path: path.to_owned(), reader, number: 0 })
    }

    #[cfg(any(test, fuzzing))]
    pub fn of_text(text: &[u8]) -> Lines {
        Lines { path: "log".into(), reader: Box::new(io::Cursor::new(text.to_vec())), number: 0 }
    }

    /// Reads the next line without its newline. Returns false at the end.
    pub fn next(&mut self, line: &mut Vec<u8>) -> Result<bool, ImportError> {
        line.clear();
        let mut is_empty = true;
        loop {
            let failed = |source| ImportError::Read { path: self.path.clone(), source };
            let buffer = self.reader.fill_buf().map_err(failed)?;
            if buffer.is_empty() {
                break;
            }
            is_empty = false;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            let room = MAX_LINE - line.len();
            line.extend_from_slice(&part[..part.len().min(room)]);
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        self.number += u64::from(!is_empty);
        Ok(!is_empty)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<usize>, ImportError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        std::fs::write(&path, bytes).unwrap();
        let (mut lines, mut line, mut lengths) = (Lines::open(&path)?, Vec::new(), Vec::new());
        while lines.next(&mut line)? {
            lengths.push(line.len());
        }
        Ok(lengths)
    }

    #[test]
    fn lines_are_read_from_plain_and_packed_files() {
        let text = b"ab\n\nabc";
        assert_eq!(read(text).unwrap(), [2, 0, 3]);
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text).unwrap();
        assert_eq!(read(&packed.finish().unwrap()).unwrap(), [2, 0, 3]);
        let packed = ruzstd::encoding::compress_to_vec(&text[..], ruzstd::encoding::CompressionLevel::Fastest);
        assert_eq!(read(&packed).unwrap(), [2, 0, 3]);
    }

    #[test]
    fn the_rest_of_a_huge_line_is_skipped() {
        let mut text = vec![b'x'; 3 * MAX_LINE];
        text.extend(b"\nab\n");
        assert_eq!(read(&text).unwrap(), [MAX_LINE, 2]);
    }

    #[test]
    fn other_files_are_named() {
        for (bytes, what) in [(&b"SQLite format 3\0..."[..], "a recording"), (b"\x7fELF", "a program")] {
            let message = read(bytes).unwrap_err().to_string();
            assert!(message.contains(what), "{message}");
        }
        assert!(matches!(read(b"\x1f\x8bnot gzip"), Err(ImportError::Read { .. })));
    }
}
