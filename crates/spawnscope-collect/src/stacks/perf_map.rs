//! Finds the names of code that a process generates at run time, in the file that it writes for profilers: /tmp/perf-PID.map.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use super::CopiedStack;
use super::bounded::MAX_BYTES;
use super::mappings::ImageId;
use super::recent::RecentMap;
use spawnscope_data::event::Pid;
use spawnscope_system::files::{Links, open_regular};
use spawnscope_system::procfs::innermost_id;

/// Number of processes whose files are remembered.
const PROCESSES: usize = 16;
/// Maximum length of a line. A longer text without a newline is not a line being written.
const MAX_LINE_BYTES: usize = 64 << 10;

/// A named piece of code.
struct Symbol {
    bytes: u64,
    name: Vec<u8>,
}

/// Pieces of code by start address.
type Symbols = BTreeMap<u64, Symbol>;

/// The file of one process, with its content when it was last read.
struct PerfMap {
    file: File,
    /// The file's size when it was last read. A file larger than `MAX_BYTES` is not read.
    bytes: u64,
    /// The file offset up to which lines have been read.
    read_up_to: u64,
    symbols: Symbols,
}

/// The result of looking up a process's file.
enum Lookup {
    Found(PerfMap),
    /// The file could not be opened so far, in this number of lookups.
    Missing(u64),
}

/// The owner of a file: a reported image or, if the image was not reported, a process (its pid and `start_stack`).
type Owner = Result<ImageId, (Pid, u64)>;

/// The files of the processes that were looked up recently.
pub(super) struct PerfMaps {
    files: RecentMap<Owner, Lookup>,
}

impl Default for PerfMaps {
    fn default() -> PerfMaps {
        PerfMaps { files: RecentMap::new(PROCESSES) }
    }
}

/// Opens the file of a process that still exists, in the /tmp that the process sees.
pub(super) fn open(pid: Pid) -> Option<File> {
    let root = PathBuf::from(format!("/proc/{}/root", pid.0));
    let path = root.join(format!("tmp/perf-{}.map", innermost_id(pid)?.0));
    // Any user can predict the file's name, so do not follow a link, which may lead to another file.
    open_regular(&path, Links::Refused).ok()
}

impl PerfMaps {
    /// Stores the file of a process whose mappings are reported as `image`.
    pub(super) fn add(&mut self, image: ImageId, file: File) {
        self.files.insert(Ok(image), Lookup::Found(PerfMap::new(file)));
    }

    /// Returns the name of the code at an address in the process of a stack.
    pub(super) fn name(&mut self, stack: &CopiedStack, address: u64) -> Option<Vec<u8>> {
        let owner = stack.image.ok_or((stack.pid, stack.start_stack));
        self.name_of(owner, address, || open(stack.pid))
    }

    /// Returns the name of the code at an address. A missing file is looked up with decreasing frequency: a process may create it late, and
    /// most never do.
    fn name_of(&mut self, owner: Owner, address: u64, open: impl FnOnce() -> Option<File>) -> Option<Vec<u8>> {
        let lookups = match self.files.get(&owner) {
            Some(Lookup::Found(map)) => return map.name(address),
            Some(Lookup::Missing(lookups)) => {
                *lookups += 1;
                *lookups
            }
            None => 1,
        };
        if !lookups.is_power_of_two() {
            return None;
        }
        let found = open().map(PerfMap::new);
        self.files.insert(owner, found.map_or(Lookup::Missing(lookups), Lookup::Found));
        match self.files.get(&owner)? {
            Lookup::Found(map) => map.name(address),
            Lookup::Missing(_) => None,
        }
    }
}

impl PerfMap {
    fn new(file: File) -> PerfMap {
        PerfMap { file, bytes: 0, read_up_to: 0, symbols: Symbols::new() }
    }

    /// Returns the name of the code at an address. If it is unknown and the file has grown, reads the rest of the file.
    fn name(&mut self, address: u64) -> Option<Vec<u8>> {
        if let Some(name) = find(&self.symbols, address) {
            return Some(name);
        }
        let bytes = self.file.metadata().ok()?.size();
        if bytes == self.bytes || bytes > MAX_BYTES {
            return None;
        }
        if bytes < self.bytes {
            // The process has begun the file again.
            (self.read_up_to, self.symbols) = (0, Symbols::new());
        }
        self.bytes = bytes;
        let mut text = vec![0; usize::try_from(bytes.checked_sub(self.read_up_to)?).ok()?];
        self.file.read_exact_at(&mut text, self.read_up_to).ok()?;
        let complete = complete_lines(&text);
        self.read_up_to += complete.len() as u64;
        add(&mut self.symbols, complete);
        find(&self.symbols, address)
    }
}

/// Returns the text without its last line, if that line is still being written.
fn complete_lines(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    if text.len() - end > MAX_LINE_BYTES {
        return text;
    }
    &text[..end]
}

/// Adds the lines of a text. If two pieces of code have the same address, the later one replaces the earlier one.
fn add(symbols: &mut Symbols, text: &[u8]) {
    symbols.extend(text.split(|&byte| byte == b'\n').filter_map(symbol));
}

fn find(symbols: &Symbols, address: u64) -> Option<Vec<u8>> {
    let (start, symbol) = symbols.range(..=address).next_back()?;
    (address - start < symbol.bytes).then(|| symbol.name.clone())
}

/// Parses a line: `START SIZE NAME`, with the numbers in hexadecimal.
fn symbol(line: &[u8]) -> Option<(u64, Symbol)> {
    let mut fields = line.splitn(3, |&byte| byte == b' ');
    let (start, bytes) = (parse_hexadecimal(fields.next()?)?, parse_hexadecimal(fields.next()?)?);
    let name = fields.next()?.trim_ascii().to_vec();
    (!name.is_empty()).then_some((start, Symbol { bytes, name }))
}

fn parse_hexadecimal(digits: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok()?;
    u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const IMAGE: ImageId = ImageId(1);

    /// Looks up a name in a file that is already open.
    fn name(maps: &mut PerfMaps, address: u64) -> Option<String> {
        let name = maps.name_of(Ok(IMAGE), address, || panic!("it is already open"));
        name.map(|name| String::from_utf8(name).unwrap())
    }

    fn maps_of(file: &File) -> PerfMaps {
        let mut maps = PerfMaps::default();
        maps.add(IMAGE, file.try_clone().unwrap());
        maps
    }

    #[test]
    fn an_address_has_the_name_of_the_piece_of_code_that_contains_it() {
        let mut symbols = Symbols::new();
        add(&mut symbols, b"2000 10 later\n1000 20 first of two\n1000 20 second of two\nbroken\n3000 8\n");
        for (address, name) in
            [(0xfff, None), (0x101f, Some("second of two")), (0x1020, None), (0x2000, Some("later")), (0x3000, None)]
        {
            assert_eq!(find(&symbols, address).as_deref(), name.map(str::as_bytes), "{address:#x}");
        }
    }

    #[test]
    fn only_the_new_lines_of_a_growing_file_are_read() {
        let mut file = tempfile::tempfile().unwrap();
        let mut maps = maps_of(&file);
        file.write_all(b"1000 20 first\n2000 20 sec").unwrap();
        assert_eq!(name(&mut maps, 0x1000).as_deref(), Some("first"));
        assert_eq!(name(&mut maps, 0x2000), None, "its line is incomplete");
        file.write_all_at(b"4000", 0).unwrap();
        file.write_all(b"ond\n").unwrap();
        assert_eq!(name(&mut maps, 0x2000).as_deref(), Some("second"));
        assert_eq!(name(&mut maps, 0x4000), None, "text is read only once");
        assert_eq!(name(&mut maps, 0x1000).as_deref(), Some("first"));
    }

    #[test]
    fn a_file_that_is_begun_again_is_read_from_its_start() {
        let file = tempfile::tempfile().unwrap();
        let mut maps = maps_of(&file);
        file.write_all_at(b"1000 20 first\n", 0).unwrap();
        assert_eq!(name(&mut maps, 0x1000).as_deref(), Some("first"));
        file.set_len(0).unwrap();
        file.write_all_at(b"2000 9 new\n", 0).unwrap();
        assert_eq!(name(&mut maps, 0x2000).as_deref(), Some("new"));
        assert_eq!(name(&mut maps, 0x1000), None);
    }

    #[test]
    fn a_missing_file_is_looked_up_with_decreasing_frequency() {
        let mut maps = PerfMaps::default();
        let mut lookups = 0;
        for _ in 0..1000 {
            let name = maps.name_of(Ok(IMAGE), 0x1000, || {
                lookups += 1;
                None
            });
            assert_eq!(name, None);
        }
        assert_eq!(lookups, 10);
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"1000 20 late\n", 0).unwrap();
        let found = (0..1000).find_map(|_| maps.name_of(Ok(IMAGE), 0x1000, || file.try_clone().ok()));
        assert_eq!(found.as_deref(), Some(b"late".as_slice()));
    }
}
