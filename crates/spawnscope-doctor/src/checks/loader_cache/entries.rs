//! Reads the library names in a cache of the dynamic loader, in each format that `ldconfig` writes (glibc's `dl-cache.h`). Numbers are in
//! native byte order, and four bytes long unless stated otherwise.
//!
//! - New format: `glibc-ld.so.cache1.1`, number of entries, 24 bytes not used here; entries of flags, key, value, kernel version, and 8
//!   bytes of processor capabilities; strings. A key is the offset of its string from the start of this format.
//! - Old format: `ld.so-1.7.0`, a byte of padding, number of entries; entries of flags, key, value; strings. A key is an offset from the
//!   start of the strings.
//! - Both formats in one file: the new format starts where the strings of the old one start, rounded up to a multiple of 8.

use std::collections::HashSet;

const NEW_MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const OLD_MAGIC: &[u8] = b"ld.so-1.7.0";
const NEW_HEADER: usize = 48;
const NEW_ENTRY: usize = 24;
const OLD_HEADER: usize = 16;
const OLD_ENTRY: usize = 12;
/// The offset of the key within an entry, in bytes, in both formats.
const KEY_OFFSET: usize = 4;

/// Returns whether a file starts with the magic of a cache.
pub(super) fn is_cache(bytes: &[u8]) -> bool {
    bytes.starts_with(NEW_MAGIC) || bytes.starts_with(OLD_MAGIC)
}

/// Returns the library names in the cache, as programs request them; `None` if the cache is truncated.
pub(super) fn names(bytes: &[u8]) -> Option<HashSet<&[u8]>> {
    if !bytes.starts_with(OLD_MAGIC) {
        return names_in_new_format(bytes);
    }
    let entries = entries(bytes, OLD_HEADER, OLD_ENTRY)?;
    let end = OLD_HEADER + entries.len();
    match bytes.get(end.next_multiple_of(8)..).and_then(names_in_new_format) {
        Some(names) => Some(names),
        None => keys(entries, OLD_ENTRY, &bytes[end..]),
    }
}

fn names_in_new_format(bytes: &[u8]) -> Option<HashSet<&[u8]>> {
    let entries = entries(bytes.strip_prefix(NEW_MAGIC).map(|_| bytes)?, NEW_HEADER, NEW_ENTRY)?;
    keys(entries, NEW_ENTRY, bytes)
}

/// Returns the bytes of all entries. Their number is at the end of the old header, or directly after the magic of the new one.
fn entries(bytes: &[u8], header: usize, entry: usize) -> Option<&[u8]> {
    let offset = if header == NEW_HEADER { NEW_MAGIC.len() } else { OLD_HEADER - 4 };
    let size = entry.checked_mul(number(bytes, offset)?)?;
    bytes.get(header..header.checked_add(size)?)
}

fn keys<'b>(entries: &[u8], size: usize, strings: &'b [u8]) -> Option<HashSet<&'b [u8]>> {
    let keys = entries.chunks_exact(size).map(|entry| {
        let string = strings.get(number(entry, KEY_OFFSET)?..)?;
        string.split(|byte| *byte == 0).next()
    });
    keys.collect()
}

fn number(bytes: &[u8], offset: usize) -> Option<usize> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes) as usize)
}
