//! Finds out from a program's file why the preload library must be left out of its environment:
//! - The dynamic loader of another architecture prints an error, and that of musl ends the program.
//! - In a static program, no hook runs. It would pass the library on to all of its children, even
//!   to those that must not load it.
//! - The runtime of a sanitizer ends a program that loads another library before it.
//! - In a program that launches nothing, such as `mv`, loading the library takes 50 us and saves
//!   nothing.
//!
//! `accel` looks at the command. The library looks at every file that is about to be executed, also
//! in children of vfork: `crates/vspawn-preload` includes this file. So this file uses only `core`
//! and `libc`, and neither allocates nor locks.

use core::ffi::CStr;
use core::mem::size_of;

use libc::{Elf64_Ehdr as Header, Elf64_Phdr as Segment, c_int};

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = libc::EM_X86_64;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = libc::EM_AARCH64;
/// The file name of glibc's dynamic loader.
#[cfg(target_arch = "x86_64")]
const LOADER: &[u8] = b"/ld-linux-x86-64.so.2";
#[cfg(target_arch = "aarch64")]
const LOADER: &[u8] = b"/ld-linux-aarch64.so.1";
/// Tags of the dynamic section (elf(5)).
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;
/// Maximum numbers of segments and of dynamic entries that are read. Real programs have about 13
/// and 30. The buffers are small because, in a forked child, the first write to a page of the stack
/// costs a fault.
const SEGMENTS_MAX: usize = 24;
const ENTRIES_MAX: usize = 64;
/// Maximum size of a table of strings that is searched. That of `mv` has 1,844 bytes. A program
/// with a larger table is assumed to launch others.
const STRINGS_MAX: usize = 2048;
/// Parts of the names of functions by which a program launches another, or loads a library that may
/// do so. They may be anywhere in a string: linkers store `execv` as the end of `fexecv`. `exec`
/// alone would also find `regexec`.
const LAUNCHING: [&[u8]; 8] =
    [b"execv", b"execl", b"posix_spawn", b"system", b"popen", b"dlopen", b"dlmopen", b"wordexp"];
/// The names, up to the first dot, of libraries that launch nothing unless the program asks for it.
/// The last two are dynamic loaders.
const LIBRARIES: [&[u8]; 15] = [
    b"libc", b"libm", b"libgcc_s", b"libstdc++", b"libselinux", b"libacl", b"libattr", b"libcap", b"libcrypto",
    b"libgmp", b"libpcre2-8", b"libtinfo", b"libz", b"ld-linux-x86-64", b"ld-linux-aarch64",
];
/// How many bytes of a script's first line the kernel reads, and how many scripts it follows.
const LINE_BYTES: usize = 256;
const SCRIPTS_MAX: usize = 5;

/// Why the library is left out of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The program has no dynamic loader.
    Static,
    /// The program is for another architecture or another C library.
    Foreign,
    /// The program needs the runtime of a sanitizer, which must be loaded first.
    Sanitizer,
    LaunchesNothing,
}

/// Returns the obstacle of a program or of a script's interpreter. `None` also if the file cannot
/// be read.
pub fn obstacle(path: &CStr) -> Option<Obstacle> {
    obstacle_behind(path, SCRIPTS_MAX)
}

fn obstacle_behind(path: &CStr, scripts_left: usize) -> Option<Obstacle> {
    let file = File::open(path)?;
    let head: Head = file.read(0)?;
    // SAFETY: `Head` is larger than the line, and consists of integers without padding.
    let line: &[u8; LINE_BYTES] = unsafe { &*(&raw const head).cast() };
    if line.starts_with(b"\x7fELF") {
        return elf_obstacle(&file, &head);
    }
    drop(file);
    let mut interpreter = [0; LINE_BYTES];
    let name = line.strip_prefix(b"#!")?.split(|byte| matches!(byte, b'\n' | 0)).next()?.trim_ascii();
    let name = name.split(|byte| matches!(byte, b' ' | b'\t')).next()?;
    interpreter.get_mut(..name.len())?.copy_from_slice(name);
    obstacle_behind(CStr::from_bytes_until_nul(&interpreter).ok()?, scripts_left.checked_sub(1)?)
}

/// The beginning of an ELF file, or of a script. Linkers put the table of segments after the
/// header.
#[repr(C)]
#[derive(Clone, Copy)]
struct Head {
    header: Header,
    segments: [Segment; SEGMENTS_MAX],
}

fn elf_obstacle(file: &File, Head { header, segments }: &Head) -> Option<Obstacle> {
    if header.e_ident.get(4..6) != Some(&[libc::ELFCLASS64, libc::ELFDATA2LSB]) || header.e_machine != MACHINE {
        return Some(Obstacle::Foreign);
    }
    let moved: [Segment; SEGMENTS_MAX];
    let segments = if header.e_phoff == size_of::<Header>() as u64 {
        segments
    } else {
        // patchelf moves the table.
        moved = file.read(header.e_phoff)?;
        &moved
    };
    let segments = segments.get(..usize::from(header.e_phnum))?;
    let segment = |kind| segments.iter().find(|segment| segment.p_type == kind);
    let Some(loader) = segment(libc::PT_INTERP) else { return Some(Obstacle::Static) };
    let name: [u8; LINE_BYTES] = file.read(loader.p_offset)?;
    if !name.split(|byte| *byte == 0).next()?.ends_with(LOADER) {
        return Some(Obstacle::Foreign);
    }
    dynamic_obstacle(file, segments, segment(libc::PT_DYNAMIC)?)
}

fn dynamic_obstacle(file: &File, segments: &[Segment], dynamic: &Segment) -> Option<Obstacle> {
    let count = usize::try_from(dynamic.p_filesz).ok()? / size_of::<[u64; 2]>();
    if count > ENTRIES_MAX {
        return obstacle_of_many(file, segments, dynamic, count);
    }
    let entries: [[u64; 2]; ENTRIES_MAX] = file.read(dynamic.p_offset)?;
    let entries = entries.get(..count)?;
    let strings = strings_offset(segments, entries)?;
    let length = usize::try_from(values(entries, DT_STRSZ).next()?).ok()?;
    if length > STRINGS_MAX {
        return needs_sanitizer(file, entries, strings).then_some(Obstacle::Sanitizer);
    }
    let names: [u8; STRINGS_MAX] = file.read(strings)?;
    let names = names.get(..length)?;
    let needed = || values(entries, DT_NEEDED).filter_map(|name| names.get(usize::try_from(name).ok()?..));
    if needed().any(is_sanitizer) {
        return Some(Obstacle::Sanitizer);
    }
    let may_launch = needed().any(|name| !LIBRARIES.contains(&without_version(name)))
        || LAUNCHING.iter().any(|part| contains(names, part));
    (!may_launch).then_some(Obstacle::LaunchesNothing)
}

/// Checks a program with many dynamic entries for a sanitizer only. Not inlined, so that the large
/// buffer is on the stack only for such programs.
#[inline(never)]
fn obstacle_of_many(file: &File, segments: &[Segment], dynamic: &Segment, count: usize) -> Option<Obstacle> {
    const MANY: usize = 512;
    let entries: [[u64; 2]; MANY] = file.read(dynamic.p_offset)?;
    let entries = entries.get(..count)?;
    let strings = strings_offset(segments, entries)?;
    needs_sanitizer(file, entries, strings).then_some(Obstacle::Sanitizer)
}

fn needs_sanitizer(file: &File, entries: &[[u64; 2]], strings: u64) -> bool {
    let mut names = values(entries, DT_NEEDED).filter_map(|name| file.read::<[u8; 32]>(strings.wrapping_add(name)));
    names.any(|name| is_sanitizer(&name))
}

/// Returns where the table of strings is in the file.
fn strings_offset(segments: &[Segment], entries: &[[u64; 2]]) -> Option<u64> {
    let strings = values(entries, DT_STRTAB).next()?;
    let segment = segments.iter().find(|segment| {
        segment.p_type == libc::PT_LOAD && strings.checked_sub(segment.p_vaddr).is_some_and(|at| at < segment.p_filesz)
    })?;
    Some(segment.p_offset.wrapping_add(strings - segment.p_vaddr))
}

fn values(entries: &[[u64; 2]], wanted: u64) -> impl Iterator<Item = u64> {
    entries.iter().filter_map(move |[tag, value]| (*tag == wanted).then_some(*value))
}

/// Returns the name of a library up to the first dot.
fn without_version(name: &[u8]) -> &[u8] {
    name.split(|byte| matches!(byte, b'.' | 0)).next().unwrap_or(name)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    // SAFETY: both have these lengths.
    unsafe { !libc::memmem(text.as_ptr().cast(), text.len(), part.as_ptr().cast(), part.len()).is_null() }
}

/// Whether a library is the runtime of a sanitizer of gcc (`libasan.so.8`) or clang
/// (`libclang_rt.asan-x86_64.so`).
pub fn is_sanitizer(name: &[u8]) -> bool {
    let name = without_version(name);
    name == b"libclang_rt" || (name.starts_with(b"lib") && name.ends_with(b"san"))
}

struct File(c_int);

impl File {
    fn open(path: &CStr) -> Option<File> {
        // Nothing waits at a FIFO, which cannot be executed.
        let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
        // SAFETY: the path ends with NUL.
        let descriptor = unsafe { libc::open(path.as_ptr(), flags) };
        (descriptor >= 0).then_some(File(descriptor))
    }

    /// Reads a value that consists of integers. What is beyond the end of the file is zero.
    fn read<T: Copy>(&self, offset: u64) -> Option<T> {
        let offset = i64::try_from(offset).ok()?;
        // SAFETY: all callers read integers, for which every value is valid; the buffer has that
        // size.
        unsafe {
            let mut value: T = core::mem::zeroed();
            (libc::pread64(self.0, (&raw mut value).cast(), size_of::<T>(), offset) > 0).then_some(value)
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own.
        unsafe { libc::close(self.0) };
    }
}
