//! The names in a cache of the dynamic loader, in each format that `ldconfig` writes (glibc's `dl-cache.h`). Numbers are in the
//! machine's byte order, and four bytes long where nothing else is said.
//!
//! - new: `glibc-ld.so.cache1.1`, how many entries, 24 bytes of no matter here; entries of flags, key, value, version of the kernel, and
//!   8 bytes for kinds of processors; strings. A key is where its string begins, counted from the beginning of all this.
//! - old: `ld.so-1.7.0`, a byte, how many entries; entries of flags, key, value; strings, which keys are counted from.
//! - both: the new one lies where the strings of the old one begin, from the next multiple of 8 on.

use std::collections::HashSet;

const NEW: &[u8] = b"glibc-ld.so.cache1.1";
const OLD: &[u8] = b"ld.so-1.7.0";
const NEW_HEADER: usize = 48;
const NEW_ENTRY: usize = 24;
const OLD_HEADER: usize = 16;
const OLD_ENTRY: usize = 12;
/// Where both have the key in an entry.
const KEY: usize = 4;

/// Whether it begins as a cache does.
pub(super) fn is_cache(bytes: &[u8]) -> bool {
    bytes.starts_with(NEW) || bytes.starts_with(OLD)
}

/// The names of libraries that the loader finds by it: those that programs ask for. `None` where it is cut off.
pub(super) fn names(bytes: &[u8]) -> Option<HashSet<&[u8]>> {
    if !bytes.starts_with(OLD) {
        return new(bytes);
    }
    let entries = entries(bytes, OLD_HEADER, OLD_ENTRY)?;
    let end = OLD_HEADER + entries.len();
    match bytes.get(end.next_multiple_of(8)..).and_then(new) {
        Some(names) => Some(names),
        None => keys(entries, OLD_ENTRY, &bytes[end..]),
    }
}

fn new(bytes: &[u8]) -> Option<HashSet<&[u8]>> {
    let entries = entries(bytes.strip_prefix(NEW).map(|_| bytes)?, NEW_HEADER, NEW_ENTRY)?;
    keys(entries, NEW_ENTRY, bytes)
}

/// All entries; how many there are stands before them, at the end of the old header, and behind the magic of the new one.
fn entries(bytes: &[u8], header: usize, entry: usize) -> Option<&[u8]> {
    let place = if header == NEW_HEADER {
        NEW.len()
    } else {
        OLD_HEADER - 4
    };
    let size = entry.checked_mul(number(bytes, place)?)?;
    bytes.get(header..header.checked_add(size)?)
}

fn keys<'b>(entries: &[u8], size: usize, strings: &'b [u8]) -> Option<HashSet<&'b [u8]>> {
    let keys = entries.chunks_exact(size).map(|entry| {
        let string = strings.get(number(entry, KEY)?..)?;
        string.split(|byte| *byte == 0).next()
    });
    keys.collect()
}

fn number(bytes: &[u8], place: usize) -> Option<usize> {
    let bytes = bytes.get(place..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes) as usize)
}
