//! The names of several recordings of one command (`--runs`) or of one ring (`--keep`): the number
//! is before the suffix, so that a suffix keeps its meaning.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Inserts a number before the suffix: `spawnscope.db` becomes `spawnscope.3.db`.
pub fn numbered_file(output: &Path, number: u64) -> PathBuf {
    let mut name = OsString::from(output.file_stem().unwrap_or_default());
    name.push(format!(".{number}"));
    if let Some(suffix) = output.extension() {
        name.push(".");
        name.push(suffix);
    }
    output.with_file_name(name)
}

/// Returns the first numbered file that exists instead of a missing one.
pub(super) fn first_numbered(missing: &Path) -> Option<PathBuf> {
    (1..10).map(|number| numbered_file(missing, number)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_before_the_suffix() {
        for (output, file) in [
            ("spawnscope.db", "spawnscope.3.db"),
            ("/tmp/a.b/recording", "/tmp/a.b/recording.3"),
            ("./x.y.db", "./x.y.3.db"),
        ] {
            assert_eq!(numbered_file(Path::new(output), 3), Path::new(file));
        }
    }

    #[test]
    fn a_numbered_file_is_found_instead_of_a_missing_one() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("runs.db");
        assert_eq!(first_numbered(&missing), None);
        let second = directory.path().join("runs.2.db");
        std::fs::write(&second, "").unwrap();
        assert_eq!(first_numbered(&missing), Some(second));
    }
}
