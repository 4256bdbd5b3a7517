//! Names of code that a process makes at run time, from the file that it keeps for profilers: /tmp/perf-PID.map.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::files::pid_in_its_namespace;
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

/// One process's file as it was read last.
struct PerfMap {
    file_bytes: u64,
    /// Ascending.
    symbols: Vec<Symbol>,
}

/// The files of the processes that were asked about lately.
pub(super) struct PerfMaps {
    known: Recent<(Pid, u64), PerfMap>,
}

impl Default for PerfMaps {
    fn default() -> PerfMaps {
        PerfMaps {
            known: Recent::new(PROCESSES),
        }
    }
}

impl PerfMaps {
    /// The name of the code at `address` of a process, which `start_stack` tells from a later one with its pid. The process
    /// must still be there: the file is read through its own view of /tmp.
    pub(super) fn name(&mut self, pid: Pid, start_stack: u64, address: u64) -> Option<Vec<u8>> {
        let key = (pid, start_stack);
        if let Some(name) = self.known.get(&key).and_then(|map| map.name(address)) {
            return Some(name);
        }
        let root = PathBuf::from(format!("/proc/{}/root", pid.0));
        let path = root.join(format!("tmp/perf-{}.map", pid_in_its_namespace(pid)?));
        let found = fs::metadata(&path).ok().filter(|found| found.is_file())?;
        let is_old = self.known.get(&key).is_some_and(|map| map.file_bytes == found.size());
        if is_old || found.size() > MOST_BYTES {
            return None;
        }
        let map = PerfMap::parse(&fs::read(&path).ok()?);
        let name = map.name(address);
        self.known.insert(key, map);
        name
    }
}

impl PerfMap {
    fn parse(text: &[u8]) -> PerfMap {
        let lines = text.split(|&byte| byte == b'\n');
        let mut symbols: Vec<_> = lines.filter_map(symbol).collect();
        // Of two at one address the later one is valid: sorting keeps their order.
        symbols.sort_by_key(|symbol| symbol.start);
        PerfMap {
            file_bytes: text.len() as u64,
            symbols,
        }
    }

    fn name(&self, address: u64) -> Option<Vec<u8>> {
        let behind = self.symbols.partition_point(|symbol| symbol.start <= address);
        let symbol = self.symbols.get(behind.checked_sub(1)?)?;
        (address - symbol.start < symbol.bytes).then(|| symbol.name.clone())
    }
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
        let map = PerfMap::parse(b"2000 10 later\n1000 20 first of two\n1000 20 second of two\nbroken\n3000 8\n");
        let name = |address| map.name(address);
        assert_eq!(name(0xfff), None);
        assert_eq!(name(0x101f).as_deref(), Some(b"second of two".as_slice()));
        assert_eq!(name(0x1020), None);
        assert_eq!(name(0x2000).as_deref(), Some(b"later".as_slice()));
        assert_eq!(name(0x3000), None);
    }
}
