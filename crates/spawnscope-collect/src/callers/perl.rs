//! Finds where a Perl with threads stores the statement being executed. The offsets come from the
//! headers of each version. `ebpf/perl.h` reads the memory of Perl, and documents what is read.

use super::elf::{Elf, Symbol};
use crate::wire::WirePerl;

/// The variable with the pthread key under which each thread stores its interpreter. Only a Perl
/// with threads has this variable.
const KEY: &str = "PL_thr_key";
/// The variables with the version, one byte each.
const REVISION: &str = "PL_revision";
const VERSION: &str = "PL_version";

/// The C library whose thread structure is known.
const GLIBC: &[u8] = b"libc.so.6";
/// Offset, from the thread pointer, of the values of the thread's keys (`specific_1stblock` in
/// glibc's `struct pthread`). It is known only for x86-64: on other processors the thread pointer
/// points to the end of that structure, whose size differs between versions. It is the same in
/// glibc 2.31, 2.36, 2.41 and 2.43, as the code of `pthread_getspecific` shows.
const VALUES: u32 = 0x310;

/// Returns the layout of a Perl; `None` if the program is another one or another version, or a Perl
/// without threads.
pub(super) fn layout(program: &Elf<'_>) -> Option<WirePerl> {
    let symbols = program.exports(&[KEY, REVISION, VERSION]);
    let key = symbols.get(KEY)?.address;
    let [revision, version] = [REVISION, VERSION].map(|name| {
        let symbol = Symbol { bytes: 1, ..*symbols.get(name)? };
        program.bytes(symbol)?.first().copied()
    });
    let [statement, stack] = offsets(revision?, version?)?;
    let is_known = cfg!(target_arch = "x86_64") && program.libraries().contains(&GLIBC);
    is_known.then_some(WirePerl {
        code_start: program.code_start()?,
        key,
        values: VALUES,
        statement,
        stack,
        reserved: 0,
    })
}

/// Returns the offsets of `Icurcop` and `Icurstackinfo` in the interpreter (`intrpvar.h`), as
/// compiled from Debian's headers. Patch releases do not change them. All other offsets are the
/// same in these versions (`wire/perl.rs`).
fn offsets(revision: u8, version: u8) -> Option<[u32; 2]> {
    match (revision, version) {
        (5, 32) => Some([224, 240]),
        (5, 36 | 40 | 42) => Some([208, 224]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use object::ReadCache;

    use super::*;

    #[test]
    fn unknown_versions_are_refused() {
        assert!(offsets(5, 36).is_some());
        for (revision, version) in [(5, 30), (5, 37), (5, 44), (6, 36), (7, 0)] {
            assert_eq!(offsets(revision, version), None, "{revision}.{version}");
        }
    }

    #[test]
    fn another_program_is_not_a_perl() {
        let file = File::open("/bin/true").unwrap();
        let cache = ReadCache::new(&file);
        assert_eq!(layout(&Elf::parse(&cache).unwrap()), None);
    }
}
