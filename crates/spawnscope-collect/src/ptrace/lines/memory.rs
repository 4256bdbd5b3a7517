//! Reads the memory of a stopped process page by page. The data of an interpreter is spread over few pages, and each page is read only once
//! per stop.

use spawnscope_data::event::Pid;
use spawnscope_system::memory;

/// Number of bytes read at a time. The machine's page size may be larger.
const PAGE: usize = 4096;

/// The pages read so far.
pub(super) struct Memory {
    process: Pid,
    /// Address and readable bytes of each page.
    pages: Vec<(u64, Vec<u8>)>,
}

impl Memory {
    pub(super) fn new(process: Pid) -> Memory {
        Memory { process, pages: Vec::new() }
    }

    /// Returns the readable bytes from `address` to the end of its page.
    fn rest_of_page(&mut self, address: u64) -> &[u8] {
        let within = address as usize % PAGE;
        let start = address - within as u64;
        let known = self.pages.iter().position(|(page, _)| *page == start);
        let at = known.unwrap_or_else(|| {
            self.pages.push((start, memory::read(self.process, start, PAGE)));
            self.pages.len() - 1
        });
        self.pages[at].1.get(within..).unwrap_or_default()
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

    /// Reads the string at an address with its NUL. Returns the number of bytes, which is the room if the string is truncated.
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
        Memory::new(Pid(std::process::id().cast_signed()))
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
