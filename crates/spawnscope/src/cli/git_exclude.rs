//! Keeps the default recording out of `git status`: in a git repository, its name is added to
//! `.git/info/exclude`, git's list of files to ignore in this clone only. No tracked file changes.
//! Recordings that the user names with `-o` are not added.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::owner::file_uid;

/// Maximum size of the list. A larger list is not changed.
const MAX_BYTES: u64 = 1 << 20;

/// Matches the default recording, and the files beside it, such as its log.
pub const ONE_RUN_PATTERN: &str = "spawnscope.db*";
/// Matches the default recordings of `record --runs`, and the files beside them.
pub const SEVERAL_RUNS_PATTERN: &str = "spawnscope.[0-9]*.db*";

/// Adds a pattern of default recordings to the list of the repository that `directory` is in.
/// Returns the path of the list if it was changed. The calling thread must have the ids of the
/// recordings' owner (`owner::act_as`).
pub fn add_default_recording(directory: &Path, pattern: &str) -> io::Result<Option<PathBuf>> {
    let Some(git) = directory.ancestors().map(|above| above.join(".git")).find(|git| is_own_directory(git)) else {
        return Ok(None);
    };
    let list = git.join("info").join("exclude");
    let mut file = match open(&list) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    if !file.metadata()?.is_file() || file.metadata()?.len() > MAX_BYTES {
        return Ok(None);
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    if text.split(|byte| *byte == b'\n').any(|line| line == pattern.as_bytes()) {
        return Ok(None);
    }
    let line_end = if text.is_empty() || text.ends_with(b"\n") { "" } else { "\n" };
    file.write_all(format!("{line_end}{pattern}\n").as_bytes())?;
    Ok(Some(list))
}

/// Whether this is a directory that belongs to the user whose ids this thread has. Another user's
/// repository may be malicious; git refuses it for the same reason.
fn is_own_directory(git: &Path) -> bool {
    let user = file_uid().as_raw();
    fs::symlink_metadata(git).is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user)
}

fn open(list: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    OpenOptions::new().read(true).append(true).custom_flags(flags).open(list)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn repository() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join(".git/info")).unwrap();
        let below = directory.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        (directory, below)
    }

    #[test]
    fn the_pattern_is_added_once_on_a_line_of_its_own() {
        let (directory, below) = repository();
        let list = directory.path().join(".git/info/exclude");
        fs::write(&list, "*.o").unwrap();
        assert_eq!(add_default_recording(&below, ONE_RUN_PATTERN).unwrap().as_deref(), Some(list.as_path()));
        assert_eq!(add_default_recording(directory.path(), ONE_RUN_PATTERN).unwrap(), None);
        assert!(add_default_recording(&below, SEVERAL_RUNS_PATTERN).unwrap().is_some());
        assert_eq!(fs::read_to_string(&list).unwrap(), "*.o\nspawnscope.db*\nspawnscope.[0-9]*.db*\n");
    }

    #[test]
    fn a_missing_list_is_not_created_and_a_link_is_not_followed() {
        let (directory, below) = repository();
        let list = directory.path().join(".git/info/exclude");
        assert_eq!(add_default_recording(&below, ONE_RUN_PATTERN).unwrap(), None);
        assert!(!list.exists(), "git creates the list; if it is missing, the user has deleted it");
        let other = directory.path().join("other");
        fs::write(&other, "").unwrap();
        symlink(&other, &list).unwrap();
        assert!(add_default_recording(&below, ONE_RUN_PATTERN).is_err());
        assert_eq!(fs::read(&other).unwrap(), b"");
    }

    #[test]
    fn outside_a_repository_nothing_is_written() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(".git"), "gitdir: elsewhere").unwrap();
        assert_eq!(add_default_recording(directory.path(), ONE_RUN_PATTERN).unwrap(), None);
    }
}
