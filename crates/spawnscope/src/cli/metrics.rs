//! The file of `record --metrics FILE`. node_exporter's textfile collector may read it at any moment, so it is replaced as a whole.

use std::path::Path;

use anyhow::{Result, bail};

use super::output_file::OutputFile;
use crate::present::live_metrics::Snapshot;
use crate::present::prometheus;

/// The suffix of the files that node_exporter reads.
const SUFFIX: &str = "prom";
/// The mode of a new file. node_exporter runs as another user, who must be able to read it. It contains names of programs and numbers, but no
/// arguments.
const READABLE: u32 = 0o644;

/// The destination of `--metrics`.
pub struct MetricsFile(OutputFile);

impl MetricsFile {
    /// Checks that the file can be replaced. This happens before the command starts.
    ///
    /// # Errors
    /// When its directory cannot be written to, or the path is a recording or not a regular file.
    pub fn check(path: &Path) -> Result<MetricsFile> {
        let file = OutputFile::claim_with_mode(path, READABLE)?;
        if file.is_stream() {
            bail!("--metrics {} must be a regular file, because it is replaced: name another file", path.display());
        }
        Ok(MetricsFile(file))
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn replace(&self, snapshot: &Snapshot<'_>) -> Result<()> {
        self.0.replace(|out| prometheus::write(out, snapshot))
    }
}

/// Whether node_exporter ignores a file of this name.
pub fn is_ignored(path: &Path) -> bool {
    path.extension().is_none_or(|suffix| suffix != SUFFIX)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

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
            ..RecorderState::default()
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
        let file = MetricsFile::check(&path).unwrap();
        assert!(names(directory.path()).is_empty() && !is_ignored(&path));
        replace(&file, 1).unwrap();
        let mut open = fs::File::open(&path).unwrap();
        replace(&file, 22).unwrap();
        let mut old = String::new();
        std::io::Read::read_to_string(&mut open, &mut old).unwrap();
        assert!(old.contains("spawnscope_launches_started_total 1\n"), "{old}");
        let new = fs::read_to_string(&path).unwrap();
        assert!(new.contains("spawnscope_launches_started_total 22\n"), "{new}");
        assert_eq!(names(directory.path()), ["spawnscope.prom"]);
        // Another user reads the file, unless its owner has created it with another mode.
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        let other = directory.path().join("other");
        fs::write(&other, "").unwrap();
        let usual = fs::metadata(&other).unwrap().permissions().mode();
        assert_eq!(mode(), usual & 0o644);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        replace(&file, 3).unwrap();
        assert_eq!(mode(), 0o600);
    }

    #[test]
    fn files_that_must_not_be_replaced_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link.prom");
        symlink("elsewhere", &link).unwrap();
        for path in [link.as_path(), directory.path(), &directory.path().join("missing/x.prom")] {
            assert!(MetricsFile::check(path).is_err(), "{}", path.display());
        }
        assert!(is_ignored(&directory.path().join("spawnscope.txt")));
    }

    #[test]
    fn no_temporary_file_remains_if_the_file_cannot_be_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.prom");
        let file = MetricsFile::check(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(replace(&file, 1).is_err());
        assert_eq!(names(directory.path()), ["x.prom"]);
    }
}
