//! Makes room for a new recording: the recording that stands at its path is kept as `<path>.old`, the way perf keeps
//! `perf.data.old`. What is not a recording is neither moved nor overwritten.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use super::claim;
use super::error::RecordError;
use super::header::Header;
use super::log::beside;
use super::version::APPLICATION_ID;

/// What stands at a path where a recording is to be.
#[derive(Debug, PartialEq, Eq)]
enum Occupant {
    Nothing,
    /// A file without content, such as `mktemp` makes: nothing is lost when it is written to.
    EmptyFile,
    Recording,
}

/// The place of a new recording, which nobody else records to while this lives.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    /// The recording that stood there before is at `<path>.old`.
    earlier_is_kept: bool,
    /// The recording, which holds the claim. Closed before SQLite's connection, it would take that one's locks with it.
    file: File,
}

/// Whose a new recording is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// What SQLite keeps beside a database: a rollback journal, a write-ahead log, and the memory that its readers share.
const BESIDE: [&str; 3] = ["-journal", "-wal", "-shm"];

/// Leaves an empty file at `path`, readable by its owner alone (argv can be private), and what was recorded there
/// before at `<path>.old`. SQLite makes the files that it keeps beside it as the file is: of the same owner and mode.
pub(super) fn make_room(path: &Path, owner: Option<Owner>) -> Result<Place, RecordError> {
    let earlier_is_kept = occupant(path)? == Occupant::Recording;
    if earlier_is_kept {
        let old = old_of(path);
        occupant(&old)?;
        move_recording(path, &old)?;
    }
    // Left by a recording that was removed without them, or put there by somebody: SQLite would take them for the new one's.
    remove_beside(path)?;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|source| RecordError::io("create", path, source))?;
    if !claim::claim(&file).map_err(|source| RecordError::io("claim", path, source))? {
        return Err(RecordError::BeingRecorded { path: path.to_owned() });
    }
    if let Some(Owner { uid, gid }) = owner {
        fchown(&file, Some(uid), Some(gid)).map_err(|source| RecordError::io("give away", path, source))?;
    }
    Ok(Place {
        path: path.to_owned(),
        earlier_is_kept,
        file,
    })
}

impl Place {
    /// The recording.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Whether the recording is still what stands at its path.
    pub(super) fn is_still_there(&self) -> bool {
        let identity = |metadata: io::Result<fs::Metadata>| metadata.ok().map(|it| (it.dev(), it.ino()));
        identity(fs::metadata(&self.path)) == identity(self.file.metadata())
    }

    /// Removes the new recording and puts the one that stood there before back.
    pub(super) fn take_back(&self) -> Result<(), RecordError> {
        let path = &self.path;
        fs::remove_file(path).map_err(|source| RecordError::io("remove", path, source))?;
        remove_beside(path)?;
        if self.earlier_is_kept {
            move_recording(&old_of(path), path)
        } else {
            Ok(())
        }
    }
}

fn old_of(path: &Path) -> PathBuf {
    beside(path, ".old")
}

/// Renames a recording, and with it the journal or log that a killed recorder left behind: without it the last batches were
/// lost, and SQLite would play it into whatever comes to stand at the old name.
fn move_recording(path: &Path, old: &Path) -> Result<(), RecordError> {
    // Those of the file that is about to be replaced go first, lest they be played into the wrong one.
    remove_beside(old)?;
    fs::rename(path, old).map_err(|source| RecordError::io("rename", path, source))?;
    for suffix in BESIDE {
        let (from, to) = (beside(path, suffix), beside(old, suffix));
        if_there(fs::rename(&from, &to)).map_err(|source| RecordError::io("rename", &from, source))?;
    }
    Ok(())
}

fn remove_beside(path: &Path) -> Result<(), RecordError> {
    BESIDE.iter().map(|suffix| beside(path, suffix)).try_for_each(|stray| {
        if_there(fs::remove_file(&stray)).map_err(|source| RecordError::io("remove", &stray, source))
    })
}

/// Says what stands at `path`; an error when that must not be touched.
fn occupant(path: &Path) -> Result<Occupant, RecordError> {
    let failed = |source| RecordError::io("look at", path, source);
    let in_the_way = || RecordError::InTheWay { path: path.to_owned() };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Occupant::Nothing),
        Err(error) => return Err(failed(error)),
        // Opening a pipe or a device to look inside could block, or do something.
        Ok(metadata) if !metadata.is_file() => return Err(in_the_way()),
        Ok(_) => {}
    }
    let file = File::open(path).map_err(failed)?;
    if claim::is_claimed(&file) {
        return Err(RecordError::BeingRecorded { path: path.to_owned() });
    }
    if file.metadata().map_err(failed)?.len() == 0 {
        return Ok(Occupant::EmptyFile);
    }
    match Header::read(&file).map_err(failed)? {
        Some(header) if header.application_id == APPLICATION_ID => Ok(Occupant::Recording),
        _ => Err(in_the_way()),
    }
}

/// Nothing to do is fine.
fn if_there(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn recording(content: &str) -> Vec<u8> {
        let mut bytes = b"SQLite format 3\0".to_vec();
        bytes.resize(68, 0);
        bytes.extend(APPLICATION_ID.to_be_bytes());
        bytes.resize(100, 0);
        bytes.extend(content.as_bytes());
        bytes
    }

    #[test]
    fn a_recording_is_kept_as_old_together_with_its_journal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        for (file, bytes) in [("x.db", recording("b")), ("x.db.old", recording("a"))] {
            fs::write(folder.path().join(file), bytes).unwrap();
        }
        fs::write(folder.path().join("x.db-journal"), "journal of b").unwrap();
        fs::write(folder.path().join("x.db.old-journal"), "journal of a").unwrap();

        make_room(&path, None).unwrap();

        assert_eq!(fs::read(&path).unwrap(), b"");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read(folder.path().join("x.db.old")).unwrap(), recording("b"));
        assert_eq!(
            fs::read(folder.path().join("x.db.old-journal")).unwrap(),
            b"journal of b"
        );
        assert!(!folder.path().join("x.db-journal").exists());
    }

    #[test]
    fn a_journal_without_its_successor_does_not_outlive_the_recording_it_belongs_to() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("x.db"), recording("b")).unwrap();
        fs::write(folder.path().join("x.db.old-journal"), "journal of a").unwrap();
        make_room(&folder.path().join("x.db"), None).unwrap();
        assert!(!folder.path().join("x.db.old-journal").exists());
    }

    #[test]
    fn what_is_not_a_recording_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let foreign = folder.path().join("thesis.txt");
        fs::write(&foreign, "years of work").unwrap();
        assert!(matches!(make_room(&foreign, None), Err(RecordError::InTheWay { .. })));
        assert_eq!(fs::read(&foreign).unwrap(), b"years of work");
        assert!(
            matches!(make_room(folder.path(), None), Err(RecordError::InTheWay { .. })),
            "a folder"
        );
    }

    #[test]
    fn an_old_file_that_is_not_a_recording_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        fs::write(&path, recording("b")).unwrap();
        fs::write(folder.path().join("x.db.old"), "years of work").unwrap();
        assert!(matches!(make_room(&path, None), Err(RecordError::InTheWay { path }) if path.ends_with("x.db.old")));
        assert_eq!(fs::read(&path).unwrap(), recording("b"));
    }

    #[test]
    fn an_empty_file_is_used_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        fs::write(&path, "").unwrap();
        make_room(&path, None).unwrap();
        assert!(!folder.path().join("x.db.old").exists());
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = make_room(&folder.path().join("nowhere/x.db"), None).unwrap_err();
        assert!(matches!(&error, RecordError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound));
        assert!(error.to_string().contains("nowhere/x.db"), "{error}");
    }
}
