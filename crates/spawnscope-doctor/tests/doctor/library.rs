//! Builds minimal shared libraries and loader caches, with only the parts from which names are read.

/// Returns a 64-bit library for this processor, with an optional SONAME.
pub fn library(soname: Option<&str>) -> Vec<u8> {
    let machine: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    let strings = [b"\0", soname.unwrap_or_default().as_bytes(), b"\0"].concat();
    let named: &[(u64, u64)] = if soname.is_some() { &[(14, 1)] } else { &[] };
    // The dynamic section follows the file header of 64 bytes and two program headers of 56 bytes each.
    let (entries, base) = (176_u64, 0x1000_u64);
    let size = 16 * (named.len() as u64 + 2);
    let mut dynamic = named.to_vec();
    dynamic.extend([(5, base + entries + size), (0, 0)]);
    let dynamic: Vec<u8> =
        dynamic.iter().flat_map(|(tag, value)| [tag.to_ne_bytes(), value.to_ne_bytes()].concat()).collect();
    let end = entries + size + strings.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0".to_vec();
    file.extend(machine.to_ne_bytes());
    file.extend(1_u32.to_ne_bytes());
    file.extend([0, 64, 0].map(u64::to_ne_bytes).concat());
    file.extend(0_u32.to_ne_bytes());
    file.extend([64, 56, 2, 64, 0, 0].map(u16::to_ne_bytes).concat());
    // The program headers: a loaded segment with the whole file, and the dynamic section.
    for (kind, offset, size) in [(1_u32, 0, end), (2, entries, size)] {
        file.extend([kind, 4].map(u32::to_ne_bytes).concat());
        file.extend([offset, base + offset, base + offset, size, size, 8].map(u64::to_ne_bytes).concat());
    }
    [file, dynamic, strings].concat()
}

/// The formats of the cache, see `loader_cache/entries.rs`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Format {
    New,
    Old,
    Both,
}

/// Returns a cache with libraries in `/usr/lib`.
pub fn cache(format: Format, names: &[&str]) -> Vec<u8> {
    let count = (names.len() as u32).to_ne_bytes();
    let header = [&b"glibc-ld.so.cache1.1"[..], &count, &[0; 24]].concat();
    let new = entries(header, names, 24, 48 + 24 * names.len());
    let mut old = entries([&b"ld.so-1.7.0\0"[..], &count].concat(), names, 12, 0);
    match format {
        Format::New => new,
        Format::Old => old,
        Format::Both => {
            old.truncate(16 + 12 * names.len());
            old.resize(old.len().next_multiple_of(8), 0);
            [old, new].concat()
        }
    }
}

/// Adds the entries, and then their strings. As in the caches of `ldconfig`, the key of an entry is the end of the string of its value.
fn entries(mut file: Vec<u8>, names: &[&str], size: usize, strings_at: usize) -> Vec<u8> {
    let mut strings = Vec::new();
    for name in names {
        let value = strings_at + strings.len();
        let key = value + "/usr/lib/".len();
        let mut entry = [3, key as u32, value as u32].map(u32::to_ne_bytes).concat();
        entry.resize(size, 0);
        file.extend(entry);
        strings.extend(format!("/usr/lib/{name}\0").bytes());
    }
    file.extend(strings);
    file
}
