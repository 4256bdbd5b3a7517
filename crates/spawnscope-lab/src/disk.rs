//! How much disk space files of the lab may take.

use std::path::Path;

use rustix::fs::statvfs;

/// The maximum share of the free space.
const SHARE: f64 = 0.7;

/// The bytes that may be used in this directory; unknown if its file system does not report them.
pub fn room(directory: &Path) -> Option<u64> {
    let space = statvfs(directory).ok()?;
    // A file system without blocks is not a disk.
    let free = (space.f_blocks > 0).then(|| space.f_bavail.saturating_mul(space.f_frsize))?;
    Some((SHARE * free as f64) as u64)
}

/// How many of these files fit together, counted from the first.
pub fn fitting(sizes: &[u64], room: Option<u64>) -> usize {
    let mut sum = 0u64;
    let sums = sizes.iter().map(|size| {
        sum = sum.saturating_add(*size);
        sum
    });
    sums.take_while(|sum| room.is_none_or(|room| *sum <= room)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_take_no_more_than_a_share_of_what_is_free() {
        assert_eq!(fitting(&[1, 10, 16], Some(27)), 3);
        assert_eq!(fitting(&[1, 10, 16], Some(26)), 2);
        assert_eq!(fitting(&[1, 10, 16], Some(0)), 0);
        assert_eq!(fitting(&[1, u64::MAX, 16], Some(26)), 1);
        assert_eq!(fitting(&[1, 10, u64::MAX], None), 3, "unknown is not a limit");
    }

    #[test]
    fn a_file_system_without_a_disk_is_not_reported() {
        assert_eq!(room(Path::new("/proc")), None);
        assert_eq!(room(Path::new("/proc/self/no-such-directory")), None);
        assert!(room(&std::env::temp_dir()).is_some());
    }
}
