//! How the kernel's side names a file, and whether an open file is the one that it named.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use nix::sys::statfs::{BTRFS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, fstatfs};

/// A device number as the kernel keeps it (`MKDEV` in include/linux/kdev_t.h), from one as `stat` gives it.
pub(super) fn kernel_device(device: u64) -> u32 {
    libc::major(device) << 20 | libc::minor(device)
}

/// Whether this is the regular file with that number on that device; `None`: it cannot be asked.
pub(super) fn is(file: &File, inode: u64, device: u32) -> Option<bool> {
    let found = file.metadata().ok()?;
    let is_there = || Some(kernel_device(found.dev()) == device || has_devices_of_its_own(file)?);
    Some(found.is_file() && found.ino() == inode && is_there()?)
}

/// Overlays and btrfs tell `stat` of another device than that of the inode in the kernel.
fn has_devices_of_its_own(file: &File) -> Option<bool> {
    let kind = fstatfs(file).ok()?.filesystem_type();
    Some(matches!(kind, OVERLAYFS_SUPER_MAGIC | BTRFS_SUPER_MAGIC))
}
