//! Reads the memory of a stopped process page by page. The data of an interpreter is spread over
//! few pages, and each page is read only once per stop. Most launches of a process need the pages
//! of the launch before, so these are read first.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use spawnscope_data::event::Pid;
use spawnscope_system::memory;

/// Number of bytes read at a time. The machine's page size may be larger.
const PAGE: usize = 4096;
/// The recorder has few open files if a new one gets a descriptor below this.
const FEW_FILES: RawFd = 256;
/// No program has memory below this address, or at one with a higher bit.
const LOWEST: u64 = 1 << 16;
const ADDRESS_BITS: u32 = 56;
/// Maximum number of pages that are read in advance.
const MAX_PAGES: usize = 64;

/// What is kept between the launches of a process. Its children begin with a copy.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownMemory {
    /// The process that has launched, and from its second launch on its /proc/PID/mem. After a
    /// fork, process_vm_readv copies each page that it reads, because it pins pages
    /// (`FAULT_FLAG_UNSHARE` in mm/gup.c). The file does not.
    file: Option<(Pid, Option<Arc<File>>)>,
    /// The addresses of the pages that were read, in order.
    pages: Vec<u64>,
}

/// The pages read so far.
pub(super) struct Memory {
    process: Pid,
    file: Option<Arc<File>>,
    pages: Vec<Page>,
    /// What was read, one page after the other.
    bytes: Vec<u8>,
}

struct Page {
    address: u64,
    /// Where it is in `bytes`, and how many bytes of it are readable.
    at: usize,
    length: usize,
    is_used: bool,
}

impl Memory {
    pub(super) fn new(process: Pid, known: &KnownMemory) -> Memory {
        let file = known.file.as_ref().filter(|(launcher, _)| *launcher == process).map(|(_, file)| {
            file.clone().or_else(|| File::open(format!("/proc/{}/mem", process.0)).ok().map(Arc::new))
        });
        let mut rest = &known.pages[..known.pages.len().min(MAX_PAGES)];
        let bytes = Vec::with_capacity((rest.len() + 1) * PAGE);
        let mut memory = Memory { process, file: file.flatten(), pages: Vec::new(), bytes };
        while let [first, ..] = rest {
            let adjacent = |(index, address): &(usize, &u64)| **address == first + (index * PAGE) as u64;
            let count = rest.iter().enumerate().take_while(adjacent).count();
            memory.add(*first, count, false);
            rest = &rest[count..];
        }
        memory
    }

    /// Reads adjacent pages.
    fn add(&mut self, address: u64, count: usize, is_used: bool) {
        let start = self.bytes.len();
        match &self.file {
            Some(file) => {
                self.bytes.resize(start + count * PAGE, 0);
                let length = file.read_at(&mut self.bytes[start..], address).unwrap_or(0);
                self.bytes.truncate(start + length);
            }
            None => self.bytes.extend(memory::read(self.process, address, count * PAGE)),
        }
        for (index, page) in self.bytes[start..].chunks(PAGE).enumerate() {
            let offset = index * PAGE;
            self.pages.push(Page { address: address + offset as u64, at: start + offset, length: page.len(), is_used });
        }
    }

    /// Returns what the next launch needs.
    pub(super) fn known(&self) -> KnownMemory {
        let mut pages: Vec<u64> = self.pages.iter().filter(|page| page.is_used).map(|page| page.address).collect();
        pages.sort_unstable();
        // Other files may be needed more.
        let file = self.file.clone().filter(|file| file.as_raw_fd() < FEW_FILES);
        KnownMemory { file: Some((self.process, file)), pages }
    }

    /// Returns the readable bytes from `address` to the end of its page.
    fn rest_of_page(&mut self, address: u64) -> &[u8] {
        let within = address as usize % PAGE;
        let address = address - within as u64;
        let position = |memory: &Memory| memory.pages.iter().position(|page| page.address == address);
        let index = position(self).or_else(|| {
            if address < LOWEST || address >> ADDRESS_BITS != 0 {
                return None;
            }
            self.add(address, 1, true);
            position(self)
        });
        let index = index.unwrap_or_else(|| {
            // A reader that takes each word of a stack for an address tries some of them often.
            self.pages.push(Page { address, at: self.bytes.len(), length: 0, is_used: false });
            self.pages.len() - 1
        });
        let page = &mut self.pages[index];
        page.is_used = page.length > 0;
        self.bytes[page.at..][..page.length].get(within..).unwrap_or_default()
    }

    /// Reads the bytes at an address; returns `None` if they cannot all be read.
    pub(super) fn fill(&mut self, mut bytes: &mut [u8], mut address: u64) -> Option<()> {
        while !bytes.is_empty() {
            let part = self.rest_of_page(address);
            let length = part.len().min(bytes.len());
            if length == 0 {
                return None;
            }
            bytes[..length].copy_from_slice(&part[..length]);
            bytes = &mut bytes[length..];
            address = address.checked_add(length as u64)?;
        }
        Some(())
    }

    /// Reads the string at an address with its NUL. Returns the number of bytes, which is the room
    /// if the string is truncated.
    pub(super) fn fill_text(&mut self, room: &mut [u8], address: u64) -> Option<usize> {
        let mut used = 0;
        while used < room.len() {
            let part = self.rest_of_page(address.checked_add(used as u64)?);
            let part = &part[..part.len().min(room.len() - used)];
            let end = part.iter().position(|byte| *byte == 0);
            let length = end.map_or(part.len(), |end| end + 1);
            if length == 0 {
                return None;
            }
            room[used..used + length].copy_from_slice(&part[..length]);
            used += length;
            if end.is_some() {
                return Some(used);
            }
        }
        room.last_mut().into_iter().for_each(|last| *last = 0);
        Some(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Memory {
        Memory::new(Pid(std::process::id().cast_signed()), &KnownMemory::default())
    }

    #[test]
    fn the_pages_of_the_launch_before_are_read_in_advance() {
        let bytes: Vec<u8> = (0..4 * PAGE).map(|at| (at % 251) as u8).collect();
        let first = (bytes.as_ptr() as u64).next_multiple_of(PAGE as u64);
        let [second, third] = [1, 2].map(|page| first + page * PAGE as u64);
        let known = KnownMemory { file: None, pages: vec![0, first, second] };
        let mut memory = Memory::new(own().process, &known);
        assert_eq!(memory.pages.len(), 2, "without the page that is not mapped");
        let mut read = [0; 4];
        for address in [first, third] {
            memory.fill(&mut read, address).unwrap();
            assert_eq!(read, bytes[(address - bytes.as_ptr() as u64) as usize..][..4]);
        }
        let known = memory.known();
        assert_eq!(known.pages, [first, third]);
        let mut again = Memory::new(own().process, &known);
        assert!(again.file.is_some() && again.pages.len() == 2);
        again.fill(&mut read, second).unwrap();
        assert_eq!(read, bytes[(second - bytes.as_ptr() as u64) as usize..][..4]);
        assert!(Memory::new(Pid(1), &known).file.is_none(), "the file of another process");
    }

    #[test]
    fn values_are_read_across_pages() {
        let bytes: Vec<u8> = (0..3 * PAGE).map(|at| (at % 251) as u8 + 1).collect();
        let start = bytes.as_ptr() as u64;
        let boundary = start.next_multiple_of(PAGE as u64);
        let at = (boundary - start) as usize;
        let mut memory = own();
        let mut read = vec![0; PAGE + 6];
        memory.fill(&mut read, boundary - 3).unwrap();
        assert_eq!(read, bytes[at - 3..][..PAGE + 6]);
        assert_eq!(memory.fill(&mut read[..4], 8), None, "not mapped");
    }

    #[test]
    fn a_string_is_read_with_its_end_or_fills_its_room() {
        let text = b"abcd\0";
        let read = |room: usize, address: u64| {
            let mut read = vec![b'-'; room];
            own().fill_text(&mut read, address).map(|length| read[..length].to_vec())
        };
        let at = text.as_ptr() as u64;
        assert_eq!(read(6, at), Some(b"abcd\0".to_vec()));
        assert_eq!(read(3, at), Some(b"ab\0".to_vec()));
        assert_eq!(read(5, 8), None, "not mapped");
    }
}
