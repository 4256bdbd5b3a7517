//! Parses the records of a ring buffer. Each record ends with the thread that wrote it, the time and the CPU (`sample_id_all`).

use perf_event_open_sys::bindings as perf;
use spawnscope_data::event::{Nanos, Pid};

/// The name of the vDSO's mapping, which is the last executable mapping that an exec makes.
pub(crate) const VDSO: &[u8] = b"[vdso]";

/// Bytes of a record's header: type, flags, size.
const HEADER_BYTES: usize = 8;
/// Bytes of a record's end: thread, time, CPU.
const TRAILER_BYTES: usize = 24;

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// When the record was written.
    pub(crate) at: Nanos,
    /// The process that wrote the record.
    pub(crate) pid: Pid,
    /// The thread that wrote the record, called the writer below.
    pub(crate) tid: Pid,
    /// What happened.
    pub(crate) kind: RecordKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// The writer created a process, or a thread of its own process.
    Forked {
        /// The new process, or the process of the new thread.
        pid: Pid,
        /// The new thread.
        tid: Pid,
    },
    /// The writer passed the point of no return of an exec.
    Executed {
        /// Base name of the file passed to `execve`, truncated to 15 bytes.
        name: Vec<u8>,
    },
    /// The writer mapped a part of a file, or changed the protection of such a part.
    Mapped {
        /// The file.
        file: File,
        /// The PROT_* bits of the mapping.
        protection: u32,
        /// The file's path, or a name in brackets such as `[vdso]`.
        name: Vec<u8>,
    },
    /// The writer got a CPU.
    GotCpu,
    /// The writer lost its CPU.
    LeftCpu {
        /// Whether the writer was runnable when it lost the CPU.
        is_preempted: bool,
    },
    /// The writer ends.
    Exited,
    /// This number of earlier records was dropped.
    Lost(u64),
}

/// Identifies a file as long as the file exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// Major and minor number of the file's device.
    pub(crate) device: (u32, u32),
    /// The file's inode number.
    pub(crate) inode: u64,
}

/// Parses consecutive records and passes them to `handle`, except anonymous mappings and records that do not concern launches. Stops at a
/// malformed record. Returns the number of malformed records, 0 or 1.
pub(crate) fn parse(mut bytes: &[u8], handle: &mut impl FnMut(Record)) -> u64 {
    while let Some(size) = number::<2>(bytes, 6).map(|size| usize::from(u16::from_ne_bytes(size))) {
        let Some((record, rest)) = bytes.split_at_checked(size).filter(|_| size >= HEADER_BYTES) else {
            return 1;
        };
        if let Some(record) = parse_one(record) {
            handle(record);
        }
        bytes = rest;
    }
    u64::from(!bytes.is_empty())
}

fn parse_one(record: &[u8]) -> Option<Record> {
    let kind = word(record, 0)?;
    let misc = u32::from(u16::from_ne_bytes(number(record, 4)?));
    let (body, trailer) = record.split_at_checked(record.len().checked_sub(TRAILER_BYTES)?)?;
    let kind = match kind {
        perf::PERF_RECORD_FORK => RecordKind::Forked { pid: pid(body, 8)?, tid: pid(body, 16)? },
        perf::PERF_RECORD_COMM if misc & perf::PERF_RECORD_MISC_COMM_EXEC != 0 => {
            RecordKind::Executed { name: until_nul(body.get(16..)?) }
        }
        perf::PERF_RECORD_MMAP2 => mapped(body)?,
        perf::PERF_RECORD_SWITCH if misc & perf::PERF_RECORD_MISC_SWITCH_OUT != 0 => {
            RecordKind::LeftCpu { is_preempted: misc & perf::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT != 0 }
        }
        perf::PERF_RECORD_SWITCH => RecordKind::GotCpu,
        perf::PERF_RECORD_EXIT => RecordKind::Exited,
        perf::PERF_RECORD_LOST => RecordKind::Lost(u64::from_ne_bytes(number(body, 16)?)),
        _ => return None,
    };
    // The thread of an exit is read from the record's body, because the kernel may already have released its ids when it writes the end.
    let from_body = matches!(kind, RecordKind::Exited);
    Some(Record {
        at: Nanos(u64::from_ne_bytes(number(trailer, 8)?)),
        pid: if from_body { pid(body, 8)? } else { pid(trailer, 0)? },
        tid: if from_body { pid(body, 16)? } else { pid(trailer, 4)? },
        kind,
    })
}

/// Parses the body of a mapping record. `None` for mappings without a file, except the vDSO.
fn mapped(body: &[u8]) -> Option<RecordKind> {
    let name = until_nul(body.get(72..)?);
    let file = File { device: (word(body, 40)?, word(body, 44)?), inode: u64::from_ne_bytes(number(body, 48)?) };
    (file.inode != 0 || name == VDSO).then_some(RecordKind::Mapped { file, protection: word(body, 64)?, name })
}

fn number<const BYTES: usize>(bytes: &[u8], at: usize) -> Option<[u8; BYTES]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    number(bytes, at).map(u32::from_ne_bytes)
}

fn pid(bytes: &[u8], at: usize) -> Option<Pid> {
    word(bytes, at).map(|number| Pid(number.cast_signed()))
}

fn until_nul(bytes: &[u8]) -> Vec<u8> {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a record written by thread 8 of process 7 at time 99.
    fn bytes(kind: u32, misc: u32, body: &[u8]) -> Vec<u8> {
        let size = (HEADER_BYTES + body.len() + TRAILER_BYTES) as u16;
        let trailer = [&7u32.to_ne_bytes()[..], &8u32.to_ne_bytes(), &99u64.to_ne_bytes(), &[0; 8]].concat();
        [&kind.to_ne_bytes()[..], &(misc as u16).to_ne_bytes(), &size.to_ne_bytes(), body, &trailer].concat()
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn kinds(bytes: &[u8]) -> (Vec<RecordKind>, u64) {
        let mut kinds = Vec::new();
        let malformed = parse(bytes, &mut |record| {
            assert_eq!((record.at, record.pid), (Nanos(99), Pid(7)));
            kinds.push(record.kind);
        });
        (kinds, malformed)
    }

    fn mapping_bytes(inode: u32, name: &[u8]) -> Vec<u8> {
        let numbers = words(&[7, 7, 0, 0, 0, 0, 0, 0, 8, 1, inode, 0, 0, 0, 5, 0]);
        bytes(perf::PERF_RECORD_MMAP2, 0, &[&numbers, name].concat())
    }

    fn mapped(inode: u64, name: &[u8]) -> RecordKind {
        RecordKind::Mapped { file: File { device: (8, 1), inode }, protection: 5, name: name.to_vec() }
    }

    #[test]
    fn consecutive_records_are_parsed() {
        let all = [
            bytes(perf::PERF_RECORD_FORK, 0, &words(&[20, 7, 21, 8, 0, 0])),
            bytes(perf::PERF_RECORD_COMM, 0, b"\x07\0\0\0\x07\0\0\0renamed\0"),
            bytes(perf::PERF_RECORD_COMM, perf::PERF_RECORD_MISC_COMM_EXEC, b"\x07\0\0\0\x07\0\0\0true\0\0\0\0"),
            mapping_bytes(44, b"/bin/true\0"),
            mapping_bytes(0, b"//anon\0\0"),
            mapping_bytes(0, b"[vdso]\0\0"),
            bytes(perf::PERF_RECORD_SWITCH, 0, &[]),
            bytes(perf::PERF_RECORD_SWITCH, perf::PERF_RECORD_MISC_SWITCH_OUT, &[]),
            bytes(perf::PERF_RECORD_LOST, 0, &[0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]),
            bytes(perf::PERF_RECORD_EXIT, 0, &words(&[7, 1, 8, 1, 0, 0])),
        ];
        let expected = [
            RecordKind::Forked { pid: Pid(20), tid: Pid(21) },
            RecordKind::Executed { name: b"true".to_vec() },
            mapped(44, b"/bin/true"),
            mapped(0, b"[vdso]"),
            RecordKind::GotCpu,
            RecordKind::LeftCpu { is_preempted: false },
            RecordKind::Lost(5),
            RecordKind::Exited,
        ];
        assert_eq!(kinds(&all.concat()), (expected.to_vec(), 0));
    }

    #[test]
    fn invalid_bytes_are_counted_as_malformed() {
        let record = bytes(perf::PERF_RECORD_FORK, 0, &words(&[20, 7, 21, 8, 0, 0]));
        for cut in 1..record.len() {
            assert_eq!(kinds(&record[..cut]), (Vec::new(), 1), "{cut} bytes");
        }
        let short = [&perf::PERF_RECORD_EXIT.to_ne_bytes()[..], &[0, 0, 8, 0]].concat();
        assert_eq!(kinds(&short), (Vec::new(), 0), "a record that is only a header");
        assert_eq!(kinds(&[0; 16]), (Vec::new(), 1), "a size of zero");
    }
}
