//! Determines how much disk space the files of the lab may take.

use std::path::Path;

use rustix::fs::statvfs;

/// The share of the free space that may be used.
const USABLE_SHARE: f64 = 0.7;

/// Returns the bytes that may be used in this directory; `None` if its file system does not report its free space.
pub fn usable_bytes(directory: &Path) -> Option<u64> {
    let space = statvfs(directory).ok()?;
    // A file system without blocks is not a disk.
    let free = (space.f_blocks > 0).then(|| space.f_bavail.saturating_mul(space.f_frsize))?;
    Some((USABLE_SHARE * free as f64) as u64)
}

/// Returns how many of these files, counted from the first, fit together.
pub fn count_fitting(sizes: &[u64], usable: Option<u64>) -> usize {
    let mut sum = 0u64;
    let sums = sizes.iter().map(|size| {
        sum = sum.saturating_add(*size);
        sum
    });
    sums.take_while(|sum| usable.is_none_or(|usable| *sum <= usable)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_until_one_does_not_fit() {
        assert_eq!(count_fitting(&[1, 10, 16], Some(27)), 3);
        assert_eq!(count_fitting(&[1, 10, 16], Some(26)), 2);
        assert_eq!(count_fitting(&[1, 10, 16], Some(0)), 0);
        assert_eq!(count_fitting(&[1, u64::MAX, 16], Some(26)), 1);
        assert_eq!(count_fitting(&[1, 10, u64::MAX], None), 3, "unknown is not a limit");
    }

    #[test]
    fn the_space_of_a_file_system_without_a_disk_is_unknown() {
        assert_eq!(usable_bytes(Path::new("/proc")), None);
        assert_eq!(usable_bytes(Path::new("/proc/self/no-such-directory")), None);
        assert!(usable_bytes(&std::env::temp_dir()).is_some());
    }
}
