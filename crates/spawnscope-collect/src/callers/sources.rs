//! Reads source files, in order to find lines and functions in them, and caches them.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::chains::join_components;
use crate::wire::*;
use spawnscope_data::event::Pid;
use spawnscope_system::files::{Links, open_regular};
use spawnscope_system::procfs;

/// Maximum size in bytes of a file that is read.
const MAX_BYTES: u64 = 16 << 20;
/// Maximum number of bytes in the cache, with `BYTES_OF_FILE` for each file beside its text.
const MAX_CACHED_BYTES: usize = 64 << 20;
const BYTES_OF_FILE: usize = 1024;

/// How to open the files that a process names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// The working directory of the process.
    pub(crate) directory: Option<Vec<u8>>,
    pub(crate) process: Option<Pid>,
    /// Whether files are reachable only through /proc/PID/root, as those of another mount
    /// namespace.
    pub(crate) only_by_process: bool,
}

impl Place {
    /// Returns the place in a record. `components`: those of the working directory, if the record
    /// has them.
    pub(crate) fn in_record(called: &WireScriptCalled, components: &[u8]) -> Place {
        let process = i32::try_from(called.lines[SCRIPT_AT_PROCESS as usize]).ok().filter(|&pid| pid != 0).map(Pid);
        Place {
            directory: (called.flags & SCRIPT_HAS_DIRECTORY != 0).then(|| join_components(components)),
            process,
            only_by_process: called.flags & SCRIPT_IN_OTHER_MOUNTS != 0,
        }
    }

    /// Returns the place with the directory of the process. If it has ended, that was most likely
    /// the collector's.
    pub(crate) fn with_directory(self) -> Place {
        let own = || own_directory().filter(|_| !self.only_by_process);
        Place { directory: self.process.and_then(procfs::working_directory).or_else(own), ..self }
    }

    /// Returns the place of a stopped process.
    pub(crate) fn of(process: Pid) -> Place {
        Place { directory: procfs::working_directory(process), process: Some(process), only_by_process: true }
    }

    /// Returns the absolute path of a file. `None` if the file has no name, or the directory is
    /// unknown.
    pub(crate) fn absolute(&self, file: &[u8]) -> Option<Vec<u8>> {
        if file.is_empty() || file.starts_with(b"/") {
            return (!file.is_empty()).then(|| file.to_vec());
        }
        let directory = self.directory.as_deref()?;
        let separator: &[u8] = if directory.ends_with(b"/") { b"" } else { b"/" };
        Some([directory, separator, file.strip_prefix(b"./").unwrap_or(file)].concat())
    }

    /// Returns the absolute paths of a file that was named when the process began, which may have
    /// changed its directory since. Its variable PWD tells where that was, unless the launcher
    /// chose another directory; most programs begin in that of the collector.
    pub(crate) fn absolute_at_begin(&self, file: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        let at_begin = std::iter::once_with(|| procfs::variable(self.process?, b"PWD"));
        let others = at_begin.chain(std::iter::once_with(own_directory)).flatten();
        let others = others.filter(|_| !file.is_empty() && !file.starts_with(b"/"));
        let in_others = others.filter_map(|other| Place { directory: Some(other), ..Place::default() }.absolute(file));
        self.absolute(file).into_iter().chain(in_others)
    }

    /// Returns where a file may be opened: through the process, which may have another root, or as
    /// it is called if the process has ended.
    fn reachable(&self, path: &[u8]) -> impl Iterator<Item = PathBuf> {
        let path = Path::new(OsStr::from_bytes(path));
        let by_process = self.process.map(|process| {
            PathBuf::from(format!("/proc/{}/root", process.0)).join(path.strip_prefix("/").unwrap_or(path))
        });
        by_process.into_iter().chain((!self.only_by_process).then(|| path.to_owned()))
    }
}

/// The device, the inode number and the modification time (seconds, nanoseconds) of a file.
pub(crate) type Stamp = (u64, u64, i64, i64);

#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) stamp: Stamp,
    pub(crate) text: Vec<u8>,
}

/// The files read so far.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    files: HashMap<PathBuf, Arc<Source>>,
    bytes: usize,
}

impl Sources {
    /// Returns a file with an absolute path, as it is now.
    pub(crate) fn read(&mut self, path: &[u8], place: &Place) -> Option<Arc<Source>> {
        place.reachable(path).find_map(|path| self.read_file(path))
    }

    fn read_file(&mut self, path: PathBuf) -> Option<Arc<Source>> {
        let is_same = |known: &Source| path.metadata().is_ok_and(|found| stamp(&found) == known.stamp);
        if let Some(known) = self.files.get(&path).filter(|known| is_same(known)) {
            return Some(Arc::clone(known));
        }
        let (file, bytes) = open(&path)?;
        let found = stamp(&file.metadata().ok()?);
        let mut text = Vec::new();
        // A read of a file of the kernel, such as /proc/kmsg, may block. These have no size.
        file.take(bytes).read_to_end(&mut text).ok()?;
        self.bytes += text.len() + BYTES_OF_FILE;
        if self.bytes > MAX_CACHED_BYTES {
            self.files.clear();
            self.bytes = text.len() + BYTES_OF_FILE;
        }
        let source = Arc::new(Source { stamp: found, text });
        self.files.insert(path, Arc::clone(&source));
        Some(source)
    }
}

fn own_directory() -> Option<Vec<u8>> {
    std::env::current_dir().ok().map(|directory| directory.into_os_string().into_vec())
}

/// Opens a file that is not too large. Returns also its size.
fn open(path: &Path) -> Option<(File, u64)> {
    let file = open_regular(path, Links::Followed).ok()?;
    let bytes = file.metadata().ok()?.len();
    (bytes <= MAX_BYTES).then_some((file, bytes))
}

fn stamp(found: &Metadata) -> Stamp {
    (found.dev(), found.ino(), found.mtime(), found.mtime_nsec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(sources: &mut Sources, path: &[u8], place: &Place) -> Option<Vec<u8>> {
        sources.read(path, place).map(|source| source.text.clone())
    }

    #[test]
    fn a_changed_file_is_read_again() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("file");
        let name = path.as_os_str().as_bytes();
        let (mut sources, place) = (Sources::default(), Place::default());
        assert_eq!(text(&mut sources, name, &place), None);
        for content in [&b"one"[..], b"two"] {
            std::fs::write(temporary.path().join("new"), content).unwrap();
            std::fs::rename(temporary.path().join("new"), &path).unwrap();
            assert_eq!(text(&mut sources, name, &place).as_deref(), Some(content));
        }
    }

    #[test]
    fn a_file_of_another_mount_namespace_is_read_through_the_process() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().as_os_str().as_bytes();
        let mut place = Place { only_by_process: true, ..Place::default() };
        assert_eq!(text(&mut Sources::default(), path, &place), None);
        place.process = Some(Pid(std::process::id().cast_signed()));
        assert_eq!(text(&mut Sources::default(), path, &place), Some(Vec::new()));
    }

    #[test]
    fn a_file_of_the_kernel_is_not_read() {
        let status = std::fs::read("/proc/self/status").unwrap();
        assert!(!status.is_empty());
        assert_eq!(text(&mut Sources::default(), b"/proc/self/status", &Place::default()), Some(Vec::new()));
    }

    #[test]
    fn names_are_relative_to_the_directory() {
        let place = Place { directory: Some(b"/a".to_vec()), ..Place::default() };
        let absolute = |file: &str| place.absolute(file.as_bytes());
        assert_eq!(absolute("./b"), Some(b"/a/b".to_vec()));
        assert_eq!(absolute("/b"), Some(b"/b".to_vec()));
        assert_eq!(absolute(""), None);
        assert_eq!(Place::default().absolute(b"b"), None);
    }
}
