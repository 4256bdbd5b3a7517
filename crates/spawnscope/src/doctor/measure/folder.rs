//! A folder for programs of ours, where programs may be executed. It is gone when it is dropped.

use std::fs;
use std::path::{Path, PathBuf};

use crate::doctor::machine::Machine;
use crate::doctor::mounts::{self, Mount};

pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// In the directory for temporary files, or else where execution is allowed.
    pub(super) fn make(machine: &Machine, mounts: &[Mount]) -> Option<Folder> {
        let elsewhere = ["/var/tmp", "/dev/shm"].map(PathBuf::from);
        let places = std::iter::once(machine.temporary_directory()).chain(elsewhere);
        places
            .filter_map(|place| machine.path(place).canonicalize().ok())
            .filter(|place| !mounts::of(mounts, place).is_some_and(|mount| mount.has_option("noexec")))
            .find_map(|place| nix::unistd::mkdtemp(&place.join("spawnscope-XXXXXX")).ok())
            .map(|path| Folder { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nobody can be told; what is left is a few kilobytes for temporary files.
        let _ = fs::remove_dir_all(&self.path);
    }
}
