//! Finds where GNU make stores the position that it reads, and (`makefiles`, `recipe`) the lines of
//! its recipes in makefiles. The offsets in its structures come from the sources of 4.3 and 4.4
//! (`wire/make.rs`). `ebpf/make.h` reads the memory of make, and documents what is read.

pub(crate) mod makefiles;
mod recipe;

use super::contains;
use super::elf::Elf;
use crate::wire::WireMake;

/// The variable that points to the position that make reads or expands. Make exports its symbols
/// for objects that a makefile loads.
const READING: &str = "reading_file";
/// The function by which make must start jobs: only then is the pointer to a job's environment on
/// the stack.
const SPAWNS: &str = "posix_spawn";
/// The version message, which every GNU make contains.
const PROGRAM: &[u8] = b"GNU Make %s\n";
/// The versions whose structures are known.
const VERSIONS: [&[u8]; 3] = [b"\x004.3\0", b"\x004.4\0", b"\x004.4.1\0"];

/// Upper limit for the size of make's read-only data, in bytes. Its real size is about a tenth of
/// this.
const MAX_CONSTANT_BYTES: u64 = 1 << 20;

/// Returns the layout of GNU make 4.3 to 4.4.1; `None` if the program is another one or another
/// version, or exports no symbols.
pub(super) fn layout(program: &Elf<'_>) -> Option<WireMake> {
    let reading = program.exports(&[READING]).get(READING)?.address;
    let is_known = program.imports(SPAWNS) && is_known_version(program.read_only_data(MAX_CONSTANT_BYTES)?);
    is_known.then_some(WireMake { code_start: program.code_start()?, reading })
}

/// Searches for a line of a recipe, for `fuzz/`.
#[cfg(fuzzing)]
pub(crate) fn fuzz_recipe(makefile: &[u8], first_line: u32, index: u32, text: &[u8]) -> Option<u32> {
    let is_truncated = text.len() + 1 >= crate::wire::MAKE_TEXT_BYTES as usize;
    let wanted = recipe::RecipeLine { first_line, index, text, is_truncated };
    recipe::find_line(makefile, &wanted)
}

fn is_known_version(constants: &[u8]) -> bool {
    contains(constants, PROGRAM) && VERSIONS.iter().any(|version| contains(constants, version))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use object::ReadCache;

    use super::*;

    fn constants(version: &[u8]) -> Vec<u8> {
        [b"\0", version, b"\0GNU Make %s\n\0"].concat()
    }

    #[test]
    fn unknown_versions_are_refused() {
        assert!(is_known_version(&constants(b"4.3")));
        assert!(is_known_version(&constants(b"4.4.1")));
        for version in [&b"4.2.1"[..], b"4.3.90", b"4.5", b"14.3"] {
            assert!(!is_known_version(&constants(version)), "{version:?}");
        }
        assert!(!is_known_version(b"\x004.3\0"));
    }

    #[test]
    fn another_program_is_not_a_make() {
        let file = File::open("/bin/true").unwrap();
        let cache = ReadCache::new(&file);
        assert_eq!(layout(&Elf::parse(&cache).unwrap()), None);
    }
}
