//! What makes launches dear: memory, descriptors, threads. Checked, since memory that is not there costs nothing.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use super::protocol::{Pages, Setting};
use crate::lab::LabError;

const PAGE: usize = 4096;
/// Only whole and aligned ones can be huge.
const HUGE_PAGE: usize = 2 << 20;
/// Threads only sleep.
const STACK_BYTES: usize = 64 << 10;
/// Of the memory that should be in huge pages, this share has to be.
const HUGE_ENOUGH: f64 = 0.9;

/// All that was taken, as long as it lives.
pub struct Ballast {
    setting: Setting,
    memory: Vec<Memory>,
    _files: Vec<File>,
}

impl Ballast {
    /// Takes what the setting says.
    pub fn take(setting: &Setting) -> Result<Ballast, LabError> {
        setting.files_limit.map_or(Ok(()), limit_files)?;
        let files = open_files(setting.open_files)?;
        for _ in 0..setting.threads {
            thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn(|| {
                    loop {
                        thread::park();
                    }
                })
                .map_err(LabError::doing("start a thread"))?;
        }
        let mut ballast = Ballast {
            setting: *setting,
            memory: Vec::new(),
            _files: files,
        };
        ballast.renew()?;
        Ok(ballast)
    }

    /// Gives the memory back and takes other memory: a fork leaves pages that are shared, or huge pages that were split.
    pub fn renew(&mut self) -> Result<(), LabError> {
        self.memory.clear();
        let Setting {
            memory_bytes, pages, ..
        } = self.setting;
        if memory_bytes > 0 {
            self.memory.push(Memory::map(memory_bytes as usize, pages)?);
            if pages == Pages::Huge {
                check_huge(memory_bytes)?;
            }
        }
        Ok(())
    }

    /// Takes so much more memory.
    pub fn grow(&mut self, bytes: usize) -> Result<(), LabError> {
        self.memory.push(Memory::map(bytes, Pages::Small)?);
        Ok(())
    }

    /// Writes to each page.
    pub fn rewrite(&self) {
        self.memory.iter().for_each(Memory::write);
    }
}

fn open_files(count: u64) -> Result<Vec<File>, LabError> {
    let open = |_| File::open("/dev/null").map_err(LabError::doing(format!("open {count} files")));
    (0..count).map(open).collect()
}

/// Only the soft limit, and as far as the hard one allows.
fn limit_files(wanted: u64) -> Result<(), LabError> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(|errno| failed("ask for limits", errno))?;
    setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard).map_err(|errno| failed("set a limit", errno))
}

fn failed(doing: &str, errno: nix::errno::Errno) -> LabError {
    LabError::System {
        doing: doing.to_owned(),
        source: errno.into(),
    }
}

fn check_huge(bytes: u64) -> Result<(), LabError> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").map_err(LabError::doing("read smaps_rollup"))?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
    let kilobytes: Option<u64> = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    match kilobytes {
        Some(kilobytes) if (kilobytes * 1024) as f64 >= HUGE_ENOUGH * bytes as f64 => Ok(()),
        Some(kilobytes) => Err(LabError::Unavailable(format!(
            "the kernel put only {} of {} into huge pages",
            crate::units::bytes(kilobytes * 1024),
            crate::units::bytes(bytes)
        ))),
        None => Err(LabError::Unavailable(
            "this kernel does not say what is in huge pages".to_owned(),
        )),
    }
}

/// A mapping with all its pages.
struct Memory {
    start: *mut u8,
    bytes: usize,
    mapping: (*mut u8, usize),
}

impl Memory {
    fn map(bytes: usize, pages: Pages) -> Result<Memory, LabError> {
        let doing = || LabError::doing(format!("take {} of memory", crate::units::bytes(bytes as u64)));
        let memory = Memory::reserve(bytes, pages).map_err(doing())?;
        match pages {
            // A kernel that refuses has none that are huge.
            Pages::Small => drop(memory.advise(libc::MADV_NOHUGEPAGE)),
            Pages::Huge => memory.advise(libc::MADV_HUGEPAGE).map_err(doing())?,
            Pages::File => memory.read(),
        }
        if pages != Pages::File && memory.advise(libc::MADV_POPULATE_WRITE).is_err() {
            // Before Linux 5.14.
            memory.write();
        }
        Ok(memory)
    }

    /// Addresses without pages.
    fn reserve(bytes: usize, pages: Pages) -> io::Result<Memory> {
        let file = match pages {
            Pages::File => Some(file_of(bytes as u64)?),
            Pages::Small | Pages::Huge => None,
        };
        let (flags, fd) = match &file {
            Some(file) => (libc::MAP_PRIVATE, file.as_raw_fd()),
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        };
        let (bytes, spare) = match pages {
            Pages::Huge => (bytes.next_multiple_of(HUGE_PAGE), HUGE_PAGE),
            Pages::Small | Pages::File => (bytes, 0),
        };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: asks for new memory, which touches nothing that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes + spare, protection, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start: *mut u8 = start.cast();
        let beyond = if spare > 0 { start.align_offset(HUGE_PAGE) } else { 0 };
        Ok(Memory {
            start: start.wrapping_add(beyond),
            bytes,
            mapping: (start, bytes + spare),
        })
    }

    fn advise(&self, advice: i32) -> io::Result<()> {
        // SAFETY: the range is a mapping of ours, and none of the advice used here takes its content away.
        match unsafe { libc::madvise(self.start.cast(), self.bytes, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn bytes(&self) -> impl Iterator<Item = &AtomicU8> {
        // SAFETY: within the mapping, which only this process uses and which lives as long as `self`; a byte is
        // aligned as an atomic one is.
        (0..self.bytes)
            .step_by(PAGE)
            .map(|offset| unsafe { &*self.start.wrapping_add(offset).cast::<AtomicU8>() })
    }

    fn write(&self) {
        self.bytes().for_each(|byte| byte.store(1, Ordering::Relaxed));
    }

    fn read(&self) {
        for byte in self.bytes() {
            std::hint::black_box(byte.load(Ordering::Relaxed));
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody borrows it any more.
        unsafe { libc::munmap(self.mapping.0.cast(), self.mapping.1) };
    }
}

/// A file without a name, whose blocks are there: a file system that runs out of them while a mapping is read ends the reader.
fn file_of(bytes: u64) -> io::Result<File> {
    let file = tempfile::tempfile()?;
    match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        // What cannot set blocks aside has holes, or keeps nothing.
        Err(Errno::OPNOTSUPP) => file.set_len(bytes)?,
        done => done?,
    }
    Ok(file)
}
