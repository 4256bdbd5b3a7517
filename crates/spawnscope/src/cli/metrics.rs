//! The file of `record --metrics FILE`. node_exporter's textfile collector may read it at any moment, so a new file is written next to it and
//! renamed.

use std::fs::{self, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::owner::{Owner, act_as};
use crate::present::live_metrics::Snapshot;
use crate::present::prometheus;
use crate::record::is_recording;

/// The suffix of the files that node_exporter reads.
const SUFFIX: &str = "prom";

/// The destination of `--metrics`. It is checked before the command starts.
pub struct MetricsFile {
    path: PathBuf,
    owner: Option<Owner>,
}

impl MetricsFile {
    /// Checks that the file can be replaced, by writing an empty one next to it.
    ///
    /// # Errors
    /// When its directory cannot be written to, or the path is a recording or not a regular file.
    pub fn check(path: &Path, owner: Option<&Owner>) -> Result<MetricsFile> {
        let file = MetricsFile { path: path.to_owned(), owner: owner.cloned() };
        let _owner_guard = file.act_as_owner()?;
        if is_recording(path) {
            bail!("--metrics {} would replace a recording: name another file", path.display());
        }
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            bail!(
                "--metrics {} must be a regular file, because it is replaced by renaming: name another file",
                path.display()
            );
        }
        file.create_temporary()?;
        Ok(file)
    }

    /// Whether node_exporter would ignore a file of this name.
    pub fn is_ignored(&self) -> bool {
        self.path.extension().is_none_or(|suffix| suffix != SUFFIX)
    }

    fn act_as_owner(&self) -> Result<Option<crate::owner::OwnerGuard>> {
        act_as(self.owner.as_ref()).with_context(|| {
            format!("failed to switch to the ids of the user who called sudo, for {}", self.path.display())
        })
    }

    /// Creates a file in the same directory, which is removed when dropped. Its name does not end in `.prom`.
    fn create_temporary(&self) -> Result<tempfile::NamedTempFile> {
        let directory = match self.path.parent() {
            Some(directory) if !directory.as_os_str().is_empty() => directory,
            _ => Path::new("."),
        };
        let created = tempfile::Builder::new()
            .prefix(".spawnscope-metrics-")
            .suffix(".tmp")
            // node_exporter runs as another user, who must be able to read the file.
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(directory);
        created.with_context(|| match &self.owner {
            Some(owner) => format!(
                "failed to create a file next to {} as user {}, who called sudo: name a file in a directory that this user may write to",
                self.path.display(),
                owner.uid
            ),
            None => format!("failed to create a file next to {}", self.path.display()),
        })
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn replace(&self, snapshot: &Snapshot<'_>) -> Result<()> {
        let _owner_guard = self.act_as_owner()?;
        let file = self.create_temporary()?;
        let mut out = BufWriter::new(file.as_file());
        prometheus::write(&mut out, snapshot).and_then(|()| out.flush()).with_context(|| self.write_failure())?;
        drop(out);
        file.persist(&self.path).with_context(|| self.write_failure())?;
        Ok(())
    }

    fn write_failure(&self) -> String {
        format!("failed to write metrics to {}", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::analyze::Scope;
    use crate::analyze::live::LaunchMetrics;
    use crate::present::live_metrics::RecorderState;

    fn state() -> RecorderState {
        RecorderState {
            collector: "ebpf".to_owned(),
            scope: Scope::System,
            started_unix_ns: 1_800_000_000_000_000_000,
            is_recording: true,
            lost: Vec::new(),
            skipped: 0,
            undelivered: None,
        }
    }

    fn replace(file: &MetricsFile, started: u64) -> Result<()> {
        file.replace(&Snapshot { launches: &LaunchMetrics::new(2), started, running: 0, recorder: &state() })
    }

    fn names(directory: &Path) -> Vec<std::ffi::OsString> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_reader_sees_the_old_file_or_the_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("spawnscope.prom");
        let file = MetricsFile::check(&path, None).unwrap();
        assert!(names(directory.path()).is_empty() && !file.is_ignored());
        replace(&file, 1).unwrap();
        let mut open = fs::File::open(&path).unwrap();
        replace(&file, 22).unwrap();
        let mut old = String::new();
        std::io::Read::read_to_string(&mut open, &mut old).unwrap();
        assert!(old.contains("spawnscope_launches_started_total 1\n"), "{old}");
        let new = fs::read_to_string(&path).unwrap();
        assert!(new.contains("spawnscope_launches_started_total 22\n"), "{new}");
        assert_eq!(names(directory.path()), ["spawnscope.prom"]);
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o600, 0o600, "{mode:o}");
    }

    #[test]
    fn files_that_must_not_be_replaced_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link.prom");
        symlink("elsewhere", &link).unwrap();
        for path in [link.as_path(), directory.path(), &directory.path().join("missing/x.prom")] {
            assert!(MetricsFile::check(path, None).is_err(), "{}", path.display());
        }
        let file = MetricsFile::check(&directory.path().join("spawnscope.txt"), None).unwrap();
        assert!(file.is_ignored());
    }

    #[test]
    fn no_temporary_file_remains_if_the_file_cannot_be_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.prom");
        let file = MetricsFile::check(&path, None).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(replace(&file, 1).is_err());
        assert_eq!(names(directory.path()), ["x.prom"]);
    }
}
