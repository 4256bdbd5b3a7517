//! Makes room for a new recording: the recording that stands at its path is kept as `<path>.old`, the way perf keeps
//! `perf.data.old`. What is not a recording is neither moved nor overwritten.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::claim;
use super::error::RecordError;
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
    /// Holds the claim.
    _file: File,
}

/// Leaves an empty file at `path`, readable by its owner alone (argv can be private), and what was recorded there
/// before at `<path>.old`.
pub(super) fn make_room(path: &Path) -> Result<Place, RecordError> {
    let earlier_is_kept = occupant(path)? == Occupant::Recording;
    if earlier_is_kept {
        let old = old_of(path);
        occupant(&old)?;
        move_recording(path, &old)?;
    }
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
    Ok(Place {
        path: path.to_owned(),
        earlier_is_kept,
        _file: file,
    })
}

impl Place {
    /// Removes the new recording and puts the one that stood there before back.
    pub(super) fn take_back(&self) -> Result<(), RecordError> {
        let path = &self.path;
        fs::remove_file(path).map_err(|source| RecordError::io("remove", path, source))?;
        if self.earlier_is_kept {
            move_recording(&old_of(path), path)
        } else {
            Ok(())
        }
    }
}

fn old_of(path: &Path) -> PathBuf {
    with_suffix(path, ".old")
}

/// Renames a recording, and with it the journal that a killed recorder left behind: without it the last batch could not
/// be taken back, and SQLite would play it into whatever comes to stand at the old name.
fn move_recording(path: &Path, old: &Path) -> Result<(), RecordError> {
    let (journal, old_journal) = (with_suffix(path, "-journal"), with_suffix(old, "-journal"));
    // The journal of the file that is about to be replaced goes first, lest it be played into the wrong one.
    if_there(fs::remove_file(&old_journal)).map_err(|source| RecordError::io("remove", &old_journal, source))?;
    fs::rename(path, old).map_err(|source| RecordError::io("rename", path, source))?;
    if_there(fs::rename(&journal, &old_journal)).map_err(|source| RecordError::io("rename", &journal, source))
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
    let mut head = Vec::new();
    let file = File::open(path).map_err(failed)?;
    if claim::is_claimed(&file) {
        return Err(RecordError::BeingRecorded { path: path.to_owned() });
    }
    file.take(HEADER_BYTES).read_to_end(&mut head).map_err(failed)?;
    match head.as_slice() {
        [] => Ok(Occupant::EmptyFile),
        head if is_recording(head) => Ok(Occupant::Recording),
        _ => Err(in_the_way()),
    }
}

/// The size of SQLite's file header (<https://sqlite.org/fileformat2.html#the_database_header>).
const HEADER_BYTES: u64 = 100;

/// Whether a file begins as recordings do: SQLite's magic, and at offset 68 the `application_id`, big-endian.
fn is_recording(head: &[u8]) -> bool {
    head.starts_with(b"SQLite format 3\0") && head.get(68..72) == Some(&APPLICATION_ID.to_be_bytes())
}

/// Appends to the whole path, as SQLite does for its journal.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
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

        make_room(&path).unwrap();

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
        make_room(&folder.path().join("x.db")).unwrap();
        assert!(!folder.path().join("x.db.old-journal").exists());
    }

    #[test]
    fn what_is_not_a_recording_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let foreign = folder.path().join("thesis.txt");
        fs::write(&foreign, "years of work").unwrap();
        assert!(matches!(make_room(&foreign), Err(RecordError::InTheWay { .. })));
        assert_eq!(fs::read(&foreign).unwrap(), b"years of work");
        assert!(
            matches!(make_room(folder.path()), Err(RecordError::InTheWay { .. })),
            "a folder"
        );
    }

    #[test]
    fn an_old_file_that_is_not_a_recording_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        fs::write(&path, recording("b")).unwrap();
        fs::write(folder.path().join("x.db.old"), "years of work").unwrap();
        assert!(matches!(make_room(&path), Err(RecordError::InTheWay { path }) if path.ends_with("x.db.old")));
        assert_eq!(fs::read(&path).unwrap(), recording("b"));
    }

    #[test]
    fn an_empty_file_is_used_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        fs::write(&path, "").unwrap();
        make_room(&path).unwrap();
        assert!(!folder.path().join("x.db.old").exists());
    }

    #[test]
    fn a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = make_room(&folder.path().join("nowhere/x.db")).unwrap_err();
        assert!(matches!(&error, RecordError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound));
        assert!(error.to_string().contains("nowhere/x.db"), "{error}");
    }
}
