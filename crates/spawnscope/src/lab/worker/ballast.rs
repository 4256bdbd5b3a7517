//! What makes launches dear: memory, descriptors, threads. Checked, since memory that is not there costs nothing.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::protocol::{Pages, Setting};
use crate::lab::LabError;

const PAGE: usize = 4096;
/// Threads only sleep.
const STACK_BYTES: usize = 64 << 10;
/// Of the memory that should be in huge pages, this share has to be.
const HUGE_ENOUGH: f64 = 0.9;

/// All that was taken, as long as it lives.
pub struct Ballast {
    memory: Vec<Memory>,
    _files: Vec<File>,
}

impl Ballast {
    /// Takes what the setting says.
    pub fn take(setting: &Setting) -> Result<Ballast, LabError> {
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
        let mut memory = Vec::new();
        if setting.memory_bytes > 0 {
            let block = Memory::map(setting.memory_bytes as usize, setting.pages)?;
            if setting.pages == Pages::Huge {
                check_huge(setting.memory_bytes)?;
            }
            memory.push(block);
        }
        Ok(Ballast { memory, _files: files })
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
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(|errno| failed("ask for limits", errno))?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map_err(|errno| failed("raise a limit", errno))?;
    }
    let open = |_| File::open("/dev/null").map_err(LabError::doing(format!("open {count} files (limit {hard})")));
    (0..count).map(open).collect()
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
    is_file: bool,
}

impl Memory {
    fn map(bytes: usize, pages: Pages) -> Result<Memory, LabError> {
        let doing = || LabError::doing(format!("take {} of memory", crate::units::bytes(bytes as u64)));
        let file = match pages {
            Pages::File => Some(sparse_file(bytes as u64).map_err(doing())?),
            Pages::Small | Pages::Huge => None,
        };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (flags, fd) = match &file {
            Some(file) => (libc::MAP_PRIVATE, file.as_raw_fd()),
            None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        };
        // SAFETY: asks for new memory, which touches nothing that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(doing()(io::Error::last_os_error()));
        }
        let memory = Memory {
            start: start.cast(),
            bytes,
            is_file: file.is_some(),
        };
        match pages {
            Pages::Small => memory.advise(libc::MADV_NOHUGEPAGE).map_err(doing())?,
            Pages::Huge => memory.advise(libc::MADV_HUGEPAGE).map_err(doing())?,
            Pages::File => memory.read(),
        }
        if !memory.is_file && memory.advise(libc::MADV_POPULATE_WRITE).is_err() {
            // Before Linux 5.14.
            memory.write();
        }
        Ok(memory)
    }

    fn advise(&self, advice: i32) -> io::Result<()> {
        // SAFETY: the range is a mapping of ours, and none of the advice used here takes its content away.
        match unsafe { libc::madvise(self.start.cast(), self.bytes, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn bytes(&self) -> impl Iterator<Item = &AtomicU8> {
        // SAFETY: within the mapping, which only this process uses and which lives as long as the process; a byte is
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

/// A file without a name or content.
fn sparse_file(bytes: u64) -> io::Result<File> {
    let file = tempfile::tempfile()?;
    file.set_len(bytes)?;
    Ok(file)
}
