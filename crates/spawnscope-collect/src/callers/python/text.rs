//! Converts CPython's internal strings, which are unencoded characters of one, two or four bytes
//! each.

/// Converts a string of `width`-byte characters to UTF-8. A surrogate that represents an
/// undecodable byte of a file name (PEP 383) becomes that byte again. Returns `None` if the string
/// is invalid or empty.
pub(crate) fn decode(bytes: &[u8], width: u32) -> Option<Vec<u8>> {
    const ESCAPED_BYTES: std::ops::RangeInclusive<u32> = 0xdc80..=0xdcff;
    let width = usize::try_from(width).ok().filter(|width| [1, 2, 4].contains(width))?;
    if bytes.is_empty() || !bytes.len().is_multiple_of(width) {
        return None;
    }
    let mut text = Vec::with_capacity(bytes.len());
    for character in bytes.chunks_exact(width) {
        let little_endian = character.iter().rev();
        let number = little_endian.fold(0u32, |number, byte| number << 8 | u32::from(*byte));
        if ESCAPED_BYTES.contains(&number) {
            text.push((number & 0xff) as u8);
        } else {
            let character = char::from_u32(number)?;
            text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_every_width_become_utf_8() {
        assert_eq!(decode(b"run.py", 1).as_deref(), Some(&b"run.py"[..]));
        assert_eq!(decode(b"caf\xe9", 1), Some("café".into()), "Latin-1");
        assert_eq!(decode(b"\x16\x04.\0", 2), Some("Ж.".into()));
        assert_eq!(decode(b"\x0d\xf4\x01\0a\0\0\0", 4), Some("🐍a".into()));
    }

    #[test]
    fn undecodable_bytes_of_a_file_name_are_preserved() {
        assert_eq!(decode(b"\xff\xdca\0", 2).as_deref(), Some(&b"\xffa"[..]));
    }

    #[test]
    fn an_invalid_string_is_unknown() {
        assert_eq!(decode(b"", 1), None);
        assert_eq!(decode(b"abc", 2), None, "half a character");
        assert_eq!(decode(b"abc", 3), None, "no such width");
        assert_eq!(decode(b"\0\xd8", 2), None, "half a surrogate pair");
        assert_eq!(decode(b"\xff\xff\xff\xff", 4), None);
    }
}
