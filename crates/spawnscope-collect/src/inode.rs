//! Compares open files with the identities that BPF programs report.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use nix::sys::statfs::{BTRFS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, fstatfs};

/// Converts a device number from `stat` to the kernel's encoding (`MKDEV` in
/// include/linux/kdev_t.h).
pub(super) fn kernel_device(device: u64) -> u32 {
    libc::major(device) << 20 | libc::minor(device)
}

/// Whether this is the regular file with that inode number on that device; `None` if this cannot be
/// determined.
pub(super) fn has_identity(file: &File, inode: u64, device: u32) -> Option<bool> {
    let found = file.metadata().ok()?;
    let has_number = found.is_file() && found.ino() == inode;
    Some(has_number && (kernel_device(found.dev()) == device || has_devices_of_its_own(file)?))
}

/// Whether the file is on overlayfs or btrfs, where `stat` reports another device than that of the
/// kernel's inode.
fn has_devices_of_its_own(file: &File) -> Option<bool> {
    let kind = fstatfs(file).ok()?.filesystem_type();
    Some(matches!(kind, OVERLAYFS_SUPER_MAGIC | BTRFS_SUPER_MAGIC))
}
