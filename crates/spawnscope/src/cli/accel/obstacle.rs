//! Why the preload library must be left out of a program's environment, by the program's file. The dynamic loader prints an error if it cannot
//! load the library (other architectures), and musl's ends the program. A static program passes the library on to programs that it must not
//! be loaded into, since no hook runs in it. The runtimes of sanitizers end a program that loads another library before them.
//!
//! `accel` looks at the command, and the library looks at every file that is about to be executed, in children of vfork, too:
//! `crates/vspawn-preload` includes this file. So it uses `core` and `libc` only, and has no allocation and no lock.

use core::ffi::CStr;
use core::mem::size_of;

use libc::{Elf64_Ehdr as Header, Elf64_Phdr as Segment, c_int, c_void};

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
/// The largest numbers of segments and of dynamic entries that are read. Real programs have about 13 and 30.
const SEGMENTS_MAX: usize = 32;
const ENTRIES_MAX: usize = 128;
/// The kernel reads as many bytes of a script's first line, and follows as many scripts.
const LINE_BYTES: usize = 256;
const SCRIPTS_MAX: usize = 5;

/// Why the library cannot help a program, and may harm it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The program has no dynamic loader.
    Static,
    /// The program is for another architecture or another C library.
    Foreign,
    /// The program needs the runtime of a sanitizer, which must be loaded first.
    Sanitizer,
}

/// Returns the obstacle of a program or of a script's interpreter. `None` also if the file cannot be read.
pub fn obstacle(path: &CStr) -> Option<Obstacle> {
    obstacle_behind(path, SCRIPTS_MAX)
}

fn obstacle_behind(path: &CStr, scripts_left: usize) -> Option<Obstacle> {
    let file = File::open(path)?;
    let line: [u8; LINE_BYTES] = file.read(0)?;
    if line.starts_with(b"\x7fELF") {
        return elf_obstacle(&file, &line);
    }
    let mut interpreter = [0; LINE_BYTES];
    let name = line.strip_prefix(b"#!")?.split(|byte| matches!(byte, b'\n' | 0)).next()?.trim_ascii();
    let name = name.split(|byte| matches!(byte, b' ' | b'\t')).next()?;
    interpreter.get_mut(..name.len())?.copy_from_slice(name);
    obstacle_behind(CStr::from_bytes_until_nul(&interpreter).ok()?, scripts_left.checked_sub(1)?)
}

fn elf_obstacle(file: &File, identification: &[u8]) -> Option<Obstacle> {
    if identification.get(4..6) != Some(&[libc::ELFCLASS64, libc::ELFDATA2LSB]) {
        return Some(Obstacle::Foreign);
    }
    let [header]: [Header; 1] = file.read(0)?;
    if header.e_machine != MACHINE {
        return Some(Obstacle::Foreign);
    }
    let segments: [Segment; SEGMENTS_MAX] = file.read(header.e_phoff)?;
    let segments = segments.get(..usize::from(header.e_phnum))?;
    let segment = |kind| segments.iter().find(|segment| segment.p_type == kind);
    let Some(loader) = segment(libc::PT_INTERP) else {
        return Some(Obstacle::Static);
    };
    let name: [u8; LINE_BYTES] = file.read(loader.p_offset)?;
    if !name.split(|byte| *byte == 0).next()?.ends_with(LOADER) {
        return Some(Obstacle::Foreign);
    }
    needs_sanitizer(file, segments, segment(libc::PT_DYNAMIC)?)?.then_some(Obstacle::Sanitizer)
}

fn needs_sanitizer(file: &File, segments: &[Segment], dynamic: &Segment) -> Option<bool> {
    let entries: [[u64; 2]; ENTRIES_MAX] = file.read(dynamic.p_offset)?;
    let count = usize::try_from(dynamic.p_filesz).ok()? / size_of::<[u64; 2]>();
    let values = |wanted| entries.iter().take(count).filter_map(move |[tag, value]| (*tag == wanted).then_some(*value));
    let strings = values(DT_STRTAB).next()?;
    let segment = segments.iter().find(|segment| {
        segment.p_type == libc::PT_LOAD && strings.checked_sub(segment.p_vaddr).is_some_and(|at| at < segment.p_filesz)
    })?;
    let strings = segment.p_offset.wrapping_add(strings - segment.p_vaddr);
    Some(values(DT_NEEDED).any(|name| {
        let text: Option<[u8; 32]> = file.read(strings.wrapping_add(name));
        text.is_some_and(|text| is_sanitizer(&text))
    }))
}

/// Whether a library is the runtime of a sanitizer of gcc (`libasan.so.8`) or clang (`libclang_rt.asan-x86_64.so`).
pub fn is_sanitizer(name: &[u8]) -> bool {
    let name = name.split(|byte| matches!(byte, b'.' | 0)).next().unwrap_or(name);
    name == b"libclang_rt" || (name.starts_with(b"lib") && name.ends_with(b"san"))
}

/// A file that is open for reading.
struct File(c_int);

impl File {
    /// Opens a regular file. Opening other files might wait or have an effect.
    fn open(path: &CStr) -> Option<File> {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
        // SAFETY: the path ends with NUL, and the buffer is a stat, for which all zeroes is valid.
        unsafe {
            let mut status: libc::stat = core::mem::zeroed();
            if libc::stat(path.as_ptr(), &raw mut status) != 0 || status.st_mode & libc::S_IFMT != libc::S_IFREG {
                return None;
            }
            let descriptor = libc::open(path.as_ptr(), flags);
            (descriptor >= 0).then_some(File(descriptor))
        }
    }

    /// Reads values that consist of integers. Values beyond the end of the file are zero.
    fn read<T: Copy, const COUNT: usize>(&self, offset: u64) -> Option<[T; COUNT]> {
        let offset = i64::try_from(offset).ok()?;
        // SAFETY: all callers read integers, for which every value is valid; the buffer has that size.
        unsafe {
            let mut values: [T; COUNT] = core::mem::zeroed();
            let buffer: *mut c_void = (&raw mut values).cast();
            (libc::pread64(self.0, buffer, size_of::<[T; COUNT]>(), offset) > 0).then_some(values)
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own.
        unsafe { libc::close(self.0) };
    }
}
