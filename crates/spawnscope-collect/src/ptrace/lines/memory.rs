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

    /// Reads `length` bytes from `address`; returns `None` if they cannot all be read.
    pub(super) fn bytes(&mut self, address: u64, length: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let left = length - bytes.len();
            let part = self.rest_of_page(address.checked_add(bytes.len() as u64)?);
            if part.is_empty() {
                return None;
            }
            bytes.extend_from_slice(&part[..part.len().min(left)]);
        }
        Some(bytes)
    }

    fn array<const LENGTH: usize>(&mut self, address: u64) -> Option<[u8; LENGTH]> {
        if let Some(bytes) = self.rest_of_page(address).first_chunk() {
            return Some(*bytes);
        }
        self.bytes(address, LENGTH)?.first_chunk().copied()
    }

    pub(super) fn byte(&mut self, address: u64) -> Option<u8> {
        self.array(address).map(|[byte]| byte)
    }

    pub(super) fn number(&mut self, address: u64) -> Option<u32> {
        self.array(address).map(u32::from_ne_bytes)
    }

    pub(super) fn pointer(&mut self, address: u64) -> Option<u64> {
        self.array(address).map(u64::from_ne_bytes)
    }

    /// Reads the string at `address`, without its NUL. Returns an empty string, which means unknown, if the string and its NUL take `room`
    /// bytes or more.
    pub(super) fn text(&mut self, address: u64, room: usize) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        while text.len() < room {
            let left = room - text.len();
            let part = self.rest_of_page(address.checked_add(text.len() as u64)?);
            let part = &part[..part.len().min(left)];
            if part.is_empty() {
                return None;
            }
            if let Some(end) = part.iter().position(|byte| *byte == 0) {
                text.extend_from_slice(&part[..end]);
                // The BPF programs treat a string that fills its room as truncated, so do the same.
                return Some(if text.len() + 1 == room { Vec::new() } else { text });
            }
            text.extend_from_slice(part);
        }
        Some(Vec::new())
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
        assert_eq!(memory.bytes(boundary - 3, PAGE + 6).unwrap(), bytes[at - 3..][..PAGE + 6]);
        let expected = u64::from_ne_bytes(*bytes[at - 3..].first_chunk().unwrap());
        assert_eq!(memory.pointer(boundary - 3), Some(expected));
        assert_eq!(memory.byte(boundary), Some(bytes[at]));
    }

    #[test]
    fn a_string_that_fills_its_room_is_unknown() {
        let text = b"abcd\0";
        let at = text.as_ptr() as u64;
        assert_eq!(own().text(at, 6), Some(b"abcd".to_vec()));
        assert_eq!(own().text(at, 5), Some(Vec::new()));
        assert_eq!(own().text(at, 3), Some(Vec::new()));
        assert_eq!(own().text(8, 5), None, "not mapped");
        assert_eq!(own().bytes(8, 1), None);
    }
}
