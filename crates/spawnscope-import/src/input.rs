//! Opens logs: standard input, compressed files, and files that are no logs, of which some can be
//! named. Counts lines, and those that cannot be read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::error::ImportError;
use super::text::find;

/// Length of the longest line that is read whole, in bytes. The rest of a longer one is skipped.
const MAX_LINE: usize = 1 << 20;
const BUFFER: usize = 1 << 18;

/// Size of the beginning, in bytes, that decides on the format and on the command.
const MAX_BEGINNING: u64 = 4 << 20;
/// Number of lines at the beginning that decide on the format.
const MAX_LINES_FOR_FORMAT: usize = 1_000;
/// Maximum length of the refused line that is shown.
const MAX_SHOWN: usize = 100;

/// Maximum memory for unpacking xz, in KiB: `xz -9` needs 65 MB.
const MAX_XZ_KIB: u32 = 128 << 10;

/// How other files begin, and what to do with them.
const OTHERS: [(&[u8], &str); 17] = [
    (b"SQLite format 3\0", "a recording: `spawnscope report FILE` reads it"),
    (b"BZh", "a file compressed by bzip2: unpack it with `bzip2 -dc FILE | spawnscope import -`"),
    (b"PK\x03\x04", "a zip file: unpack it with `unzip -p FILE | spawnscope import -`"),
    (
        b"PERFILE2",
        "data of perf: `perf script -F comm,pid,tid,cpu,time,event,trace --show-task-events | spawnscope import -`",
    ),
    (b"\x17\x08Dtracing", "data of trace-cmd: `trace-cmd report FILE | spawnscope import -`"),
    (b"% time ", SUMMARY),
    (b"Attaching ", BPFTRACE),
    (b"Attached ", BPFTRACE),
    (
        b"PCOMM ",
        "the output of execsnoop, which has no ends of processes: record with `strace -f -ttt -T -s 4096 -o LOG`",
    ),
    (b"# ninja log ", "ninja's log, which has no processes: `spawnscope report --labels FILE` names launches by it"),
    (b"\x7fELF", "a program: record it with `spawnscope record -- FILE`"),
    (b"\xff\xfe", UTF_16),
    (b"\xfe\xff", UTF_16),
    (b"<!DOCTYPE", WEB_PAGE),
    (b"<!doctype", WEB_PAGE),
    (b"<html", WEB_PAGE),
    (b"<HTML", WEB_PAGE),
];

const SUMMARY: &str =
    "a summary of `strace -c`, which has no processes: record without `-c`, with `strace -f -ttt -T -s 4096 -o LOG`";
const BPFTRACE: &str = "the output of a bpftrace program, which prints what its author chose: record with \
                        `strace -f -ttt -T -s 4096 -o LOG`, or as root with `perf record`, as docs/guide/import.md shows";
const LTRACE: &str = "a log of ltrace, which has calls of libraries: record with `strace -f -ttt -T -s 4096 -o LOG`";
const UTF_16: &str = "text in UTF-16: `iconv -f UTF-16 -t UTF-8 FILE | spawnscope import -`";
const WEB_PAGE: &str = "a web page: save the log itself, not the page that shows it";
const CHROME_TRACE: &str = "a Chrome trace, which has times of work but no processes: record the command, or import a log \
                            of `strace -f`. If a build tool wrote it, `spawnscope report --labels FILE` names launches by it";
const JSON: &str = "JSON, but not messages of eslogger: docs/guide/import.md shows which logs are read";

/// What some programs write in front of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The formats of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// What strace writes.
    Strace,
    /// Events of the scheduler, as `perf script`, `trace-cmd report` and ftrace write them.
    Perf,
    /// Messages of macOS's eslogger.
    Eslogger,
}

/// What only a line of the scheduler's events contains.
const OF_PERF: [&[u8]; 4] = [b"sched_switch: ", b"sched_process_", b"PERF_RECORD_", b"# tracer: "];

/// What only a line of other tools contains, outside of parentheses.
const OF_OTHERS: [(&[u8], &str); 10] = [
    (b"__libc_start_main(", LTRACE),
    (b"malloc(", LTRACE),
    (b"strlen(", LTRACE),
    (b"strcmp(", LTRACE),
    (b"strrchr(", LTRACE),
    (b"getenv(", LTRACE),
    (b"SYS_brk(", LTRACE),
    (b"+++ exited (status ", LTRACE),
    (b"SYSCALL(args)", "a log of dtruss, which does not say who launched whom: use `sudo eslogger exec fork exit`"),
    (
        b" CALL  ",
        "a dump of ktrace: on macOS, use `sudo eslogger exec fork exit`, and on Linux, `strace -f -ttt -T -o LOG`",
    ),
];

/// Lines that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// How many.
    pub count: u64,
    /// The file of the first one.
    pub path: PathBuf,
    /// The number of the first one.
    pub number: u64,
    /// The beginning of the first one.
    pub text: Vec<u8>,
}

/// Counts the lines of all files.
#[derive(Clone, Debug, Default)]
pub struct Count {
    pub lines: u64,
    pub refused: Option<Refused>,
}

impl Count {
    pub fn refuse(&mut self, path: &Path, number: u64, line: &[u8]) {
        let refused = self.refused.get_or_insert_with(|| Refused {
            count: 0,
            path: path.to_owned(),
            number,
            text: line[..line.len().min(MAX_SHOWN)].to_vec(),
        });
        refused.count += 1;
    }
}

/// Opens a file, or standard input, and unpacks it if its first bytes say that it is packed.
pub fn open_unpacked(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let file: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path)?),
    };
    let mut file = BufReader::with_capacity(BUFFER, file);
    Ok(match file.fill_buf()? {
        [0x1f, 0x8b, ..] => until_damage(MultiGzDecoder::new(file)),
        // pzstd begins with a frame that says how long the next one is.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            until_damage(ZstdFrames { file, frame: FrameDecoder::new() })
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => until_damage(XzReader::new_mem_limit(file, true, MAX_XZ_KIB)),
        _ => Box::new(file),
    })
}

fn until_damage(unpacked: impl Read + 'static) -> Box<dyn BufRead> {
    let reader = UntilDamage { unpacked, has_data: false, message: None };
    Box::new(BufReader::with_capacity(BUFFER, reader))
}

/// What can be unpacked of a file that was cut off: its last line is then a message, which is
/// counted and shown as a refused line.
struct UntilDamage<R> {
    unpacked: R,
    has_data: bool,
    message: Option<io::Cursor<Vec<u8>>>,
}

impl<R: Read> Read for UntilDamage<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(message) = &mut self.message {
            return message.read(buffer);
        }
        match self.unpacked.read(buffer) {
            Err(error) if self.has_data => {
                let message = format!("\nthe packed file is damaged, or was cut off: {error}\n");
                self.message.insert(io::Cursor::new(message.into_bytes())).read(buffer)
            }
            result => {
                self.has_data |= result.as_ref().is_ok_and(|length| *length > 0);
                result
            }
        }
    }
}

/// Unpacks all frames of a file, as `zstd -dc` does.
struct ZstdFrames<R> {
    file: R,
    frame: FrameDecoder,
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.frame.can_collect() == 0 {
            if !self.frame.is_finished() {
                self.frame
                    .decode_blocks(&mut self.file, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(io::Error::other)?;
            } else if self.file.fill_buf()?.is_empty() {
                return Ok(0);
            } else if let Err(error) = self.frame.init(&mut self.file) {
                let FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. }) = error
                else {
                    return Err(io::Error::other(error));
                };
                io::copy(&mut (&mut self.file).take(u64::from(length)), &mut io::sink())?;
            }
        }
        self.frame.read(buffer)
    }
}

/// A log that is read line by line.
pub struct Lines {
    pub path: PathBuf,
    reader: Box<dyn BufRead>,
    /// The number of the last line.
    pub number: u64,
    /// The beginning of the first line that is not empty.
    first: Vec<u8>,
    /// The beginning, if it was looked at.
    beginning: Vec<u8>,
}

impl Lines {
    /// Opens a log.
    pub fn open(path: &Path) -> Result<Lines, ImportError> {
        let failed = |source| ImportError::Read { path: path.to_owned(), source };
        let mut reader = open_unpacked(path).map_err(failed)?;
        let start = reader.fill_buf().map_err(failed)?;
        let known = OTHERS.iter().find(|(begins, _)| start.trim_ascii_start().starts_with(begins));
        let is_utf_16 = start.first_chunk::<4>().is_some_and(|text| {
            matches!(text.map(|byte| byte == 0), [false, true, false, true] | [true, false, true, false])
        });
        if let Some(what) = known.map(|(_, what)| *what).or(is_utf_16.then_some(UTF_16)) {
            return Err(ImportError::Other { path: path.to_owned(), what });
        }
        let mark = if start.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        reader.consume(mark);
        Ok(Lines { path: path.to_owned(), reader, number: 0, first: Vec::new(), beginning: Vec::new() })
    }

    /// The beginning of the log.
    pub fn beginning(&mut self) -> Result<&[u8], ImportError> {
        if self.beginning.is_empty() {
            let failed = |source| ImportError::Read { path: self.path.clone(), source };
            (&mut self.reader).take(MAX_BEGINNING).read_to_end(&mut self.beginning).map_err(failed)?;
            let rest = std::mem::replace(&mut self.reader, Box::new(io::empty()));
            self.reader = Box::new(io::Cursor::new(self.beginning.clone()).chain(rest));
        }
        Ok(&self.beginning)
    }

    /// Finds out the format. A log of strace contains words of other formats only inside of calls.
    pub fn format(&mut self) -> Result<Format, ImportError> {
        let path = self.path.clone();
        let beginning = self.beginning()?;
        let start = beginning.trim_ascii_start();
        // What sudo asked may come before the first message.
        let mut lines = beginning.split(|byte| *byte == b'\n').take(MAX_LINES_FOR_FORMAT);
        if lines.any(|line| line.starts_with(b"{") && find(line, b"\"audit_token\"").is_some()) {
            return Ok(Format::Eslogger);
        }
        // Lines may begin with `[pid 7]`, or with a time in brackets.
        let inside = start.strip_prefix(b"[").unwrap_or(start).trim_ascii_start();
        if inside.starts_with(b"{") {
            let has = |key| find(beginning, key).is_some();
            let is_trace = has(b"\"traceEvents\"") || has(b"\"ph\"");
            return Err(ImportError::Other { path, what: if is_trace { CHROME_TRACE } else { JSON } });
        }
        let mut lines = beginning.split(|byte| *byte == b'\n').take(MAX_LINES_FOR_FORMAT);
        let has = |line: &[u8], word| find(line, word).is_some_and(|at| !line[..at].contains(&b'('));
        if lines.clone().any(|line| OF_PERF.iter().any(|word| has(line, word))) {
            return Ok(Format::Perf);
        }
        // `strace -C` writes the summary, too, but after the calls.
        let is_summary =
            lines.clone().take_while(|line| !line.contains(&b'(')).any(|line| line.starts_with(b"% time "));
        let other = lines.find_map(|line| OF_OTHERS.iter().find(|(word, _)| has(line, word)));
        match is_summary.then_some(SUMMARY).or(other.map(|(_, what)| *what)) {
            Some(what) => Err(ImportError::Other { path, what }),
            None => Ok(Format::Strace),
        }
    }

    /// Returns the error that no line is of a tool, after lines were read.
    pub fn not_of(&self, tool: &'static str) -> ImportError {
        ImportError::NoLines { path: self.path.clone(), tool, first: self.first.clone() }
    }

    #[cfg(any(test, fuzzing))]
    pub fn of_text(text: &[u8]) -> Lines {
        Lines {
            path: "log".into(),
            reader: Box::new(io::Cursor::new(text.to_vec())),
            number: 0,
            first: Vec::new(),
            beginning: Vec::new(),
        }
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
        if self.first.is_empty() {
            self.first.extend_from_slice(&line[..line.len().min(MAX_SHOWN)]);
        }
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
        let skipped = b"\x50\x2a\x4d\x18\x02\0\0\0ab";
        assert_eq!(read(&[skipped, &packed[..], skipped, &packed].concat()).unwrap(), [2, 0, 5, 0, 3]);
    }

    #[test]
    fn what_is_left_of_a_packed_file_is_read_and_its_damage_is_the_last_line() {
        let text: Vec<u8> = (0..100_000_u32)
            .flat_map(|number| format!("{:x}\n", number.wrapping_mul(1 << 15 | 7)).into_bytes())
            .collect();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&text).unwrap();
        let gzip = packed.finish().unwrap();
        let zstd = ruzstd::encoding::compress_to_vec(&text[..], ruzstd::encoding::CompressionLevel::Fastest);
        for packed in [gzip, zstd] {
            let lengths = read(&packed[..packed.len() * 3 / 4]).unwrap();
            assert!((1_000..100_000).contains(&lengths.len()), "{}", lengths.len());
            assert!(lengths[lengths.len() - 1] > 45, "{:?}", &lengths[lengths.len() - 3..]);
        }
    }

    #[test]
    fn the_format_is_found_although_other_lines_come_first() {
        let format = |text: &[u8]| Lines::of_text(text).format();
        assert_eq!(format(b"Password:\n{\"process\":{\"audit_token\":[1]}}\n").unwrap(), Format::Eslogger);
        assert_eq!(format(b"[2026-11-29T12:00:01Z] close(3) = 0\n").unwrap(), Format::Strace);
        assert!(matches!(format(b"[\n{\"ph\":\"X\"}]"), Err(ImportError::Other { what: CHROME_TRACE, .. })));
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
