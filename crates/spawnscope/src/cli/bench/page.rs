//! The file of `-o`: known to be writable before minutes are spent, and as it was until there is something to write.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::cli::output;
use crate::record::reader::RecordingFile;

/// A place for a page.
pub struct Destination<'p> {
    path: &'p Path,
    /// What is no file that could be opened again for the same, such as a pipe.
    open: Option<File>,
}

impl<'p> Destination<'p> {
    /// Finds out that a page can be written there. Whatever ends us before, nothing empty is left, nor an older page lost.
    ///
    /// # Errors
    /// When it cannot be written to, or is a recording.
    pub fn claim(path: &'p Path) -> Result<Destination<'p>> {
        let failed = || format!("failed to create {}", path.display());
        let found = fs::metadata(path);
        let is_file = found.as_ref().is_ok_and(Metadata::is_file);
        // A recording is left to `create`, which refuses it.
        if is_file && RecordingFile::open(path).is_err() {
            OpenOptions::new().write(true).open(path).with_context(failed)?;
            return Ok(Destination { path, open: None });
        }
        let created = output::create(path)?;
        if found.is_ok() {
            let open = Some(created);
            return Ok(Destination { path, open });
        }
        // A link to nothing stays one.
        let made = path.canonicalize().with_context(failed)?;
        fs::remove_file(made).with_context(failed)?;
        Ok(Destination { path, open: None })
    }

    /// Writes the page.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(self, page: &str) -> Result<()> {
        let mut file = match self.open {
            Some(file) => file,
            None => output::create(self.path)?,
        };
        file.write_all(page.as_bytes())
            .with_context(|| format!("failed to write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_is_left_or_lost_before_there_is_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new"), folder.path().join("old"));
        fs::write(&old, "an older page, which is longer").unwrap();
        drop((Destination::claim(&new).unwrap(), Destination::claim(&old).unwrap()));
        assert!(!new.exists());
        assert_eq!(fs::read_to_string(&old).unwrap(), "an older page, which is longer");
        for path in [new, old] {
            Destination::claim(&path).unwrap().write("a page").unwrap();
            assert_eq!(fs::read_to_string(path).unwrap(), "a page");
        }
    }

    #[test]
    fn links_and_what_is_no_file_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (link, file) = (folder.path().join("link"), folder.path().join("file"));
        symlink(&file, &link).unwrap();
        let destination = Destination::claim(&link).unwrap();
        assert!(link.is_symlink() && !file.exists());
        destination.write("a page").unwrap();
        assert_eq!(fs::read_to_string(file).unwrap(), "a page");
        Destination::claim(Path::new("/dev/null")).unwrap().write("").unwrap();
        assert!(Destination::claim(folder.path()).is_err());
    }
}
