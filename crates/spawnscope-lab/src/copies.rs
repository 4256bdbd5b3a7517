//! Writes copies of a program that were never executed, for the first launch of a file. They must
//! be in the page cache, so that the time of a launch does not include the disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::LabError;

/// Creates `directory`, and in it `count` copies of a program that were never executed. Fails if a
/// copy does not stay in the page cache.
pub fn write_fresh_copies(program: &Path, directory: &Path, count: usize) -> Result<Vec<PathBuf>, LabError> {
    let doing = LabError::doing(format!("copy {}", program.display()));
    fs::create_dir_all(directory).map_err(&doing)?;
    let content = fs::read(program).map_err(&doing)?;
    let copies = (0..count).map(|number| {
        let copy = directory.join(format!("copy{number}"));
        match write(&copy, &content).map_err(&doing)? {
            true => Ok(copy),
            false => Err(LabError::Unavailable(
                "the temporary directory's file system does not keep written data in the page cache".to_owned(),
            )),
        }
    });
    copies.collect()
}

/// Writes a program, and returns whether all of it is in the page cache. The kernel's copy
/// functions, such as copy_file_range, would not put it there on file systems that share blocks
/// between files.
fn write(path: &Path, content: &[u8]) -> io::Result<bool> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true).mode(0o755);
    let mut file = options.open(path)?;
    file.write_all(content)?;
    Ok(pages_in_memory(&file)? == content.len().div_ceil(rustix::param::page_size()))
}

fn pages_in_memory(file: &File) -> io::Result<usize> {
    let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    if bytes == 0 {
        return Ok(0);
    }
    let mut pages = vec![0u8; bytes.div_ceil(rustix::param::page_size())];
    // SAFETY: the new mapping is never accessed, and `pages` has room for the byte that the kernel
    // writes for each of its pages.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let result = libc::mincore(start, bytes, pages.as_mut_ptr());
        let error = io::Error::last_os_error();
        libc::munmap(start, bytes);
        if result != 0 {
            return Err(error);
        }
    }
    Ok(pages.iter().filter(|page| **page & 1 == 1).count())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn fresh_copies_are_executable_and_in_the_page_cache() {
        let directory = tempfile::tempdir().unwrap();
        // The program is on the same file system, which might share blocks between files.
        let program = directory.path().join("program");
        fs::write(&program, fs::read("/bin/true").unwrap()).unwrap();
        let made = write_fresh_copies(&program, &directory.path().join("fresh"), 3).unwrap();
        assert_eq!(made.len(), 3);
        for copy in &made {
            let file = File::open(copy).unwrap();
            let pages = file.metadata().unwrap().len().div_ceil(rustix::param::page_size() as u64);
            assert_eq!(pages_in_memory(&file).unwrap() as u64, pages);
            assert_eq!(fs::read(copy).unwrap(), fs::read(&program).unwrap());
            assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o111, 0o111, "it may be executed");
        }
    }
}
