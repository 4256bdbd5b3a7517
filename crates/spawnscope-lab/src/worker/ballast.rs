//! Allocates memory and descriptors, which make launches slow. Memory affects launches only if its
//! pages exist, so all of it is populated. If huge pages are requested, checks that the kernel
//! provides them.

use std::fs::File;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::protocol::{Pages, Setting};
use crate::LabError;
use spawnscope_system::launch_timing::mappings::Memory;
use spawnscope_system::procfs;

const HUGE_PAGE_BYTES: usize = 2 << 20;
/// The minimum share of the memory that must be in huge pages, if these are requested.
const MIN_HUGE_SHARE: f64 = 0.9;

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

    pub fn grow(&mut self, bytes: usize) -> Result<(), LabError> {
        self.memory.push(map_populated(bytes, Pages::Small)?);
        Ok(())
    }
}

fn open_files(count: u64) -> Result<Vec<File>, LabError> {
    (0..count).map(|_| File::open("/dev/null").map_err(LabError::doing(format!("open {count} files")))).collect()
}

fn limit_files(wanted: u64) -> Result<(), LabError> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(LabError::doing("read a limit"))?;
    setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard).map_err(LabError::doing("set a limit"))
}

fn check_huge(bytes: u64) -> Result<(), LabError> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").map_err(LabError::doing("read smaps_rollup"))?;
    match procfs::field_bytes(&rollup, "AnonHugePages") {
        Some(huge) if huge as f64 >= MIN_HUGE_SHARE * bytes as f64 => Ok(()),
        Some(huge) => Err(LabError::Unavailable(format!(
            "the kernel put only {} of {} into huge pages",
            spawnscope_data::units::bytes(huge),
            spawnscope_data::units::bytes(bytes)
        ))),
        None => Err(LabError::Unavailable("this kernel does not report memory in huge pages".to_owned())),
    }
}

fn map_populated(bytes: usize, pages: Pages) -> Result<Memory, LabError> {
    let mapped = match pages {
        // Ignore failure: a kernel without huge pages rejects the advice, but needs none.
        Pages::Small => Memory::map(bytes).inspect(|memory| _ = memory.advise(libc::MADV_NOHUGEPAGE)),
        Pages::Huge => Memory::map_aligned(bytes, HUGE_PAGE_BYTES)
            .and_then(|memory| memory.advise(libc::MADV_HUGEPAGE).map(|()| memory)),
    };
    let doing = format!("allocate {}", spawnscope_data::units::bytes(bytes as u64));
    mapped.inspect(Memory::populate).map_err(LabError::doing(doing))
}
