//! Fresh copies of a program, which nobody has executed, and files that are out of the page cache.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use super::LabError;

/// So many copies in a folder of their own.
///
/// # Errors
/// When they cannot be written.
pub fn fresh(program: &Path, folder: &Path, count: usize) -> Result<Vec<PathBuf>, LabError> {
    let doing = || LabError::doing(format!("copy {}", program.display()));
    fs::create_dir_all(folder).map_err(doing())?;
    let copy = |number| {
        let copy = folder.join(format!("copy{number}"));
        fs::copy(program, &copy).map_err(doing())?;
        Ok(copy)
    };
    (0..count).map(copy).collect()
}

/// Puts a file's content out of the page cache, which its owner may; its metadata stays.
///
/// # Errors
/// When it cannot be written back or given up.
pub fn forget(path: &Path) -> Result<(), LabError> {
    let doing = || LabError::doing(format!("put {} out of the cache", path.display()));
    let file = File::open(path).map_err(doing())?;
    file.sync_all().map_err(doing())?;
    posix_fadvise(file.as_fd(), 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).map_err(|errno| doing()(errno.into()))
}
