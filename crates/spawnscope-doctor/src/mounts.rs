//! Finds out which file system a path is on. Reads the mount table, because a call to the file
//! system itself can hang. Also checks whether a file system has free space.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) point: PathBuf,
    /// The type, such as `ext4` or `fuse.sshfs`.
    pub(super) kind: String,
    pub(super) options: String,
}

impl Mount {
    pub(super) fn has_option(&self, wanted: &str) -> bool {
        self.options.split(',').any(|option| option == wanted)
    }

    /// Returns what the file system is, if accesses may have to wait for another machine or
    /// process.
    pub(super) fn remote_description(&self) -> Option<&'static str> {
        let kind = self.kind.as_str();
        match kind {
            "nfs" | "nfs4" | "cifs" | "smb3" | "afs" | "ceph" | "glusterfs" | "lustre" | "gpfs" | "beegfs" => {
                Some("a network file system")
            }
            "9p" | "drvfs" => Some("a host file system, accessed by messages"),
            "virtiofs" | "vboxsf" | "prl_fs" => Some("a host file system"),
            "autofs" => Some("a file system that is mounted on first access"),
            _ if kind == "fuse" || kind == "fuseblk" || kind.starts_with("fuse.") => {
                Some("a file system in a user process (FUSE)")
            }
            _ => None,
        }
    }
}

/// Returns all mounts of a table such as /proc/self/mountinfo, in order: later ones cover earlier
/// ones.
pub(super) fn all(table: &str) -> Vec<Mount> {
    table.lines().filter_map(parse).collect()
}

/// Returns the mount that contains an absolute path without symbolic links.
pub(super) fn containing_mount<'m>(mounts: &'m [Mount], path: &Path) -> Option<&'m Mount> {
    mounts
        .iter()
        .enumerate()
        .filter(|(_, mount)| path.starts_with(&mount.point))
        .max_by_key(|(position, mount)| (mount.point.as_os_str().len(), *position))
        .map(|(_, mount)| mount)
}

/// Parses a line such as
/// `36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn parse(line: &str) -> Option<Mount> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(4);
    let (point, mount_options) = (mount.next()?, mount.next()?);
    let mut file_system = file_system.split(' ');
    let kind = file_system.next()?.to_owned();
    let options = file_system.nth(1).unwrap_or_default();
    Some(Mount { point: unescape(point), kind, options: format!("{mount_options},{options}") })
}

/// Replaces octal escapes such as `\040`, which the kernel writes for white space and backslashes.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut parts = text.split('\\');
    bytes.extend(parts.next().unwrap_or_default().bytes());
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(part.bytes().skip(3));
            }
            None => bytes.extend(part.bytes()),
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// Returns whether a file system has room for this many bytes and files. A file system that reports
/// no total number of blocks or files counts as unlimited. Makes one system call, and does not
/// allocate memory if the path is a C string.
pub(super) fn has_room(path: impl rustix::path::Arg, bytes: u64, files: u64) -> bool {
    let Ok(room) = rustix::fs::statvfs(path) else { return true };
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    !is_short(room.f_blocks, free, bytes) && !is_short(room.f_files, room.f_favail, files)
}

fn is_short(total: u64, free: u64, wanted: u64) -> bool {
    total > 0 && free < wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mount_point_wins_or_the_later_of_two_equal_ones() {
        let mounts: Vec<Mount> = [
            "1 0 0:1 / / rw - ext4 /dev/vda rw",
            "2 1 0:2 / /mnt/a\\040b rw,noexec - tmpfs tmpfs rw,size=8m",
            "3 2 0:3 / /mnt/a\\040b rw - fuse.sshfs host:/ rw",
        ]
        .iter()
        .filter_map(|line| parse(line))
        .collect();
        let found = containing_mount(&mounts, Path::new("/mnt/a b/c")).unwrap();
        assert!(found.remote_description().is_some() && !found.has_option("noexec"), "{found:?}");
        assert_eq!(containing_mount(&mounts, Path::new("/mnt/a")).unwrap().kind, "ext4");
        assert!(mounts[1].has_option("noexec") && mounts[1].has_option("size=8m"));
    }
}
