//! Names of code that a process makes at run time, from the file that it keeps for profilers: /tmp/perf-PID.map.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use super::CopiedStack;
use super::files::pid_in_its_namespace;
use super::mappings::ImageId;
use super::recent::Recent;
use crate::event::Pid;

/// A larger file is left alone.
const MOST_BYTES: u64 = 256 << 20;
const PROCESSES: usize = 16;

/// A piece of code with a name.
struct Symbol {
    start: u64,
    bytes: u64,
    name: Vec<u8>,
}

/// One process's file, and what was in it when it was read last.
struct PerfMap {
    file: File,
    bytes: u64,
    /// Ascending.
    symbols: Vec<Symbol>,
}

/// Whose: an image's, as it was told, or else a process's.
type Owner = Result<ImageId, (Pid, u64)>;

/// The files of the processes that were asked about lately.
pub(super) struct PerfMaps {
    known: Recent<Owner, PerfMap>,
}

impl Default for PerfMaps {
    fn default() -> PerfMaps {
        PerfMaps {
            known: Recent::new(PROCESSES),
        }
    }
}

/// The file of a process that is still there, through its own view of /tmp.
pub(super) fn open(pid: Pid) -> Option<File> {
    let root = PathBuf::from(format!("/proc/{}/root", pid.0));
    let path = root.join(format!("tmp/perf-{}.map", pid_in_its_namespace(pid)?));
    // Its name is known to everybody: a pipe must not hold us up, nor a link lead elsewhere.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
        .open(path)
        .ok()?;
    file.metadata().is_ok_and(|found| found.is_file()).then_some(file)
}

impl PerfMaps {
    /// Keeps the file of a process whose mappings are told as `image`.
    pub(super) fn add(&mut self, image: ImageId, file: File) {
        self.known.insert(Ok(image), PerfMap::new(file));
    }

    /// The name of the code at an address of the process that a stack is of.
    pub(super) fn name(&mut self, stack: &CopiedStack, address: u64) -> Option<Vec<u8>> {
        let owner = stack.image.ok_or((stack.pid, stack.start_stack));
        if self.known.get(&owner).is_none() {
            self.known.insert(owner, PerfMap::new(open(stack.pid)?));
        }
        self.known.get(&owner)?.name(address)
    }
}

impl PerfMap {
    fn new(file: File) -> PerfMap {
        PerfMap {
            file,
            bytes: 0,
            symbols: Vec::new(),
        }
    }

    /// Reads the file again when it has grown and the name is not known yet.
    fn name(&mut self, address: u64) -> Option<Vec<u8>> {
        if let Some(name) = find(&self.symbols, address) {
            return Some(name);
        }
        let bytes = self.file.metadata().ok()?.size();
        if bytes == self.bytes || bytes > MOST_BYTES {
            return None;
        }
        let mut text = vec![0; usize::try_from(bytes).ok()?];
        self.file.read_exact_at(&mut text, 0).ok()?;
        (self.bytes, self.symbols) = (bytes, parse(&text));
        find(&self.symbols, address)
    }
}

fn parse(text: &[u8]) -> Vec<Symbol> {
    let lines = text.split(|&byte| byte == b'\n');
    let mut symbols: Vec<_> = lines.filter_map(symbol).collect();
    // Of two at one address the later one is valid: sorting keeps their order.
    symbols.sort_by_key(|symbol| symbol.start);
    symbols
}

fn find(symbols: &[Symbol], address: u64) -> Option<Vec<u8>> {
    let behind = symbols.partition_point(|symbol| symbol.start <= address);
    let symbol = symbols.get(behind.checked_sub(1)?)?;
    (address - symbol.start < symbol.bytes).then(|| symbol.name.clone())
}

/// `START SIZE NAME`, both in hexadecimal.
fn symbol(line: &[u8]) -> Option<Symbol> {
    let mut fields = line.splitn(3, |&byte| byte == b' ');
    let mut number = || {
        let digits = std::str::from_utf8(fields.next()?).ok()?;
        u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok()
    };
    let (start, bytes) = (number()?, number()?);
    let name = fields.next()?.trim_ascii();
    (!name.is_empty()).then(|| Symbol {
        start,
        bytes,
        name: name.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_name_of_the_piece_that_holds_it() {
        let symbols = parse(b"2000 10 later\n1000 20 first of two\n1000 20 second of two\nbroken\n3000 8\n");
        let name = |address| find(&symbols, address);
        assert_eq!(name(0xfff), None);
        assert_eq!(name(0x101f).as_deref(), Some(b"second of two".as_slice()));
        assert_eq!(name(0x1020), None);
        assert_eq!(name(0x2000).as_deref(), Some(b"later".as_slice()));
        assert_eq!(name(0x3000), None);
    }
}
