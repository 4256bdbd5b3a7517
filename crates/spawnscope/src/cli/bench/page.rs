//! Which file `-o` may name. Whether it can be written is checked before minutes are spent on measurements.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use anyhow::{Result, bail};

use crate::cli::output_file::OutputFile;

/// Checks that a page can be written to the path. No file is created yet, and an older page stays until the new one is complete.
///
/// # Errors
/// When the path cannot be written to, is a link, a report or a recording, or has the suffix of another format.
pub fn claim(path: &Path) -> Result<OutputFile> {
    check_replaceable(path)?;
    OutputFile::claim(path)
}

/// Fails if a page must not replace the file of this path.
fn check_replaceable(path: &Path) -> Result<()> {
    let shown = path.display();
    if path.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("json")) {
        bail!("-o writes HTML, not the format that {shown} suggests: for JSON, redirect the output of --json");
    }
    if is_report(path) {
        bail!("{shown} is a report, and writing to it would destroy it: name another file with -o");
    }
    Ok(())
}

/// Whether the file is JSON with a `schema_version`, which all JSON of spawnscope has.
fn is_report(path: &Path) -> bool {
    if !fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return false;
    }
    let Ok(file) = File::open(path) else { return false };
    let found: Result<serde_json::Value, _> = serde_json::from_reader(BufReader::new(file));
    found.is_ok_and(|value| value.get("schema_version").is_some())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(path: &Path, page: &str) -> Result<()> {
        claim(path)?.replace(|out| out.write_all(page.as_bytes()))
    }

    #[test]
    fn reports_are_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let [report, other, json] = ["report", "other", "a.JSON"].map(|name| directory.path().join(name));
        fs::write(&report, "{\"schema_version\": 1}").unwrap();
        fs::write(&other, "{\"version\": 1}").unwrap();
        for (path, reason) in [(&report, "is a report"), (&json, "-o writes HTML")] {
            let error = claim(path).err().unwrap().to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert!(claim(&other).is_ok());
    }

    #[test]
    fn no_file_is_created_or_changed_until_the_page_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let (new, old) = (directory.path().join("new"), directory.path().join("old"));
        fs::write(&old, "an older page, which is longer").unwrap();
        drop((claim(&new).unwrap(), claim(&old).unwrap()));
        assert!(!new.exists());
        assert_eq!(fs::read_to_string(&old).unwrap(), "an older page, which is longer");
        for path in [new, old] {
            write(&path, "a page").unwrap();
            assert_eq!(fs::read_to_string(path).unwrap(), "a page");
        }
    }

    #[test]
    fn links_and_directories_are_refused_and_devices_are_written_to() {
        let directory = tempfile::tempdir().unwrap();
        let (link, file) = (directory.path().join("link"), directory.path().join("file"));
        symlink(&file, &link).unwrap();
        assert!(claim(&link).is_err());
        assert!(link.is_symlink() && !file.exists());
        write(Path::new("/dev/null"), "").unwrap();
        assert!(claim(directory.path()).is_err());
    }
}
