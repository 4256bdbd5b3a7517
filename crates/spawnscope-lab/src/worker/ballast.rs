//! Allocates memory and descriptors, which make launches slow. Memory affects launches only if its
//! pages exist, so all of it is populated. If huge pages are requested, checks that the kernel
//! provides them.

use std::fs::File;
use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::protocol::{Pages, Setting};
use crate::LabError;
use spawnscope_system::launch_timing::memory::Memory;

/// The size of a huge page in bytes, and its alignment.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// The minimum share of the memory that must be in huge pages, if these are requested.
const MIN_HUGE_SHARE: f64 = 0.9;

/// The allocated resources. Dropping them releases the memory and the files.
pub struct Ballast {
    memory: Vec<Memory>,
    _files: Vec<File>,
}

impl Ballast {
    pub fn allocate(setting: &Setting) -> Result<Ballast, LabError> {
        setting.files_limit.map_or(Ok(()), limit_files)?;
        let files = open_files(setting.open_files)?;
        let mut memory = Vec::new();
        if setting.memory_bytes > 0 {
            memory.push(map_populated(setting.memory_bytes as usize, setting.pages)?);
            if setting.pages == Pages::Huge {
                check_huge(setting.memory_bytes)?;
            }
        }
        Ok(Ballast { memory, _files: files })
    }

    /// Allocates additional memory.
    pub fn grow(&mut self, bytes: usize) -> Result<(), LabError> {
        self.memory.push(map_populated(bytes, Pages::Small)?);
        Ok(())
    }
}

fn open_files(count: u64) -> Result<Vec<File>, LabError> {
    (0..count).map(|_| File::open("/dev/null").map_err(LabError::doing(format!("open {count} files")))).collect()
}

/// Sets the soft limit on open files, at most to the hard limit.
fn limit_files(wanted: u64) -> Result<(), LabError> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(|errno| system_error("read a limit", errno))?;
    setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard).map_err(|errno| system_error("set a limit", errno))
}

fn system_error(doing: &str, errno: nix::errno::Errno) -> LabError {
    LabError::System { doing: doing.to_owned(), source: errno.into() }
}

fn check_huge(bytes: u64) -> Result<(), LabError> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").map_err(LabError::doing("read smaps_rollup"))?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
    let kilobytes: Option<u64> = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    match kilobytes {
        Some(kilobytes) if (kilobytes * 1024) as f64 >= MIN_HUGE_SHARE * bytes as f64 => Ok(()),
        Some(kilobytes) => Err(LabError::Unavailable(format!(
            "the kernel put only {} of {} into huge pages",
            spawnscope_data::units::bytes(kilobytes * 1024),
            spawnscope_data::units::bytes(bytes)
        ))),
        None => Err(LabError::Unavailable("this kernel does not report memory in huge pages".to_owned())),
    }
}

fn map_populated(bytes: usize, pages: Pages) -> Result<Memory, LabError> {
    let doing = format!("allocate {}", spawnscope_data::units::bytes(bytes as u64));
    try_map_populated(bytes, pages).map_err(LabError::doing(doing))
}

fn try_map_populated(bytes: usize, pages: Pages) -> io::Result<Memory> {
    match pages {
        Pages::Small => {
            let memory = Memory::map(bytes)?;
            // Ignore failure: a kernel without huge pages rejects the advice, but needs none.
            let _ = memory.advise(libc::MADV_NOHUGEPAGE);
            memory.populate();
            Ok(memory)
        }
        Pages::Huge => {
            let memory = Memory::map_aligned(bytes, HUGE_PAGE_BYTES)?;
            memory.advise(libc::MADV_HUGEPAGE)?;
            memory.populate();
            Ok(memory)
        }
    }
}
