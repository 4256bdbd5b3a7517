//! The user's own scripts and makefiles, which `advise` shows lines of, and edits in a diff. They are only read, and only if they are still what
//! was recorded: paths in a recording may come from anyone.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::analyze::Report;
use crate::analyze::explain::advice::{Advice, Edit, EditedLine, Owner};
use crate::present::patch;

/// Larger files are not read: scripts and makefiles are smaller.
const MAX_BYTES: u64 = 1 << 20;

/// The files that edits name.
pub struct SourceFiles {
    started_unix_ns: i64,
    files: BTreeMap<PathBuf, Result<SourceFile, String>>,
}

/// A file that has not changed since the recording.
struct SourceFile {
    original: Vec<u8>,
    /// The text with the edits so far.
    edited: Vec<u8>,
}

/// The diff of all edits, and what it does not contain.
#[derive(Default)]
pub struct Patch {
    /// Unified diffs of the files, by name.
    pub text: Vec<u8>,
    /// Sentences on what was left out.
    pub left_out: Vec<String>,
}

impl SourceFiles {
    /// Looks up all edits of a report, and sets `Advice::edited`.
    pub fn look_up(report: &mut Report) -> SourceFiles {
        let mut sources = SourceFiles { started_unix_ns: report.started_unix_ns, files: BTreeMap::new() };
        for advice in &mut report.advices.worth {
            advice.edited = advice.finding.edits.iter().map(|edit| sources.edited_line(edit)).collect();
        }
        sources
    }

    fn edited_line(&mut self, edit: &Edit) -> EditedLine {
        let mut edited = EditedLine { file: edit.file.clone(), line: edit.line, change: Err(String::new()) };
        edited.change = self.apply(edit).map(|(line, change)| {
            edited.line = line;
            change
        });
        edited
    }

    /// Makes an edit in the text of its file. Returns the number of the line, and the line before and after.
    fn apply(&mut self, edit: &Edit) -> Result<(u32, [Vec<u8>; 2]), String> {
        if Owner::of(&edit.file) != Owner::User {
            return Err("this file is generated, or belongs to a package".to_owned());
        }
        let path = path_of(edit)?;
        let started = self.started_unix_ns;
        let file = self.files.entry(path).or_insert_with_key(|path| SourceFile::read(path, started));
        let file = file.as_mut().map_err(|reason| reason.clone())?;
        let (line, after) = edit.apply(&file.original).map_err(|refusal| refusal.to_string())?;
        let before = line_at(&file.original, line).ok_or("the file has no such line")?;
        if !patch::is_printable(before) || !patch::is_printable(&after) {
            return Err("the line contains control characters, or is not UTF-8".to_owned());
        }
        let change = [before.to_vec(), after];
        // An earlier edit may have changed the line.
        let (line, after) = edit.apply(&file.edited).map_err(|refusal| refusal.to_string())?;
        file.edited = with_line(&file.edited, line, &after);
        Ok((line, change))
    }

    /// Returns the diff of all edits in files below a directory, and what it leaves out.
    pub fn patch(&self, advices: &[Advice], directory: &Path) -> Patch {
        let mut result = Patch::default();
        for advice in advices {
            if advice.edited.is_empty() {
                result.left_out.push(format!("{}: this change needs your decision", advice.finding.title));
            }
            for edited in &advice.edited {
                if let Err(reason) = &edited.change {
                    result.left_out.push(format!(
                        "{}:{}: {reason}",
                        Path::new(OsStr::from_bytes(&edited.file)).display(),
                        edited.line
                    ));
                }
            }
        }
        for (path, file) in &self.files {
            let Ok(file) = file else { continue };
            if file.original == file.edited {
                continue;
            }
            let diff = name_below(path, directory).and_then(|name| patch::unified(&name, &file.original, &file.edited));
            match diff {
                Ok(diff) => result.text.extend(diff),
                Err(reason) => result.left_out.push(format!("{}: {reason}", path.display())),
            }
        }
        result
    }
}

fn path_of(edit: &Edit) -> Result<PathBuf, String> {
    let file = Path::new(OsStr::from_bytes(&edit.file));
    if file.is_absolute() {
        return Ok(file.to_path_buf());
    }
    let directory = edit.directory.as_deref().map(|directory| Path::new(OsStr::from_bytes(directory)));
    let directory = directory.filter(|directory| directory.is_absolute());
    directory.map(|directory| directory.join(file)).ok_or_else(|| "its directory was not recorded".to_owned())
}

/// Returns the name of a file relative to a directory, for the header of a diff. `patch` accepts no other names.
fn name_below(path: &Path, directory: &Path) -> Result<String, String> {
    let (parent, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or_default());
    let parent = fs::canonicalize(parent).map_err(|error| error.to_string())?;
    let below = parent
        .strip_prefix(directory)
        .map_err(|_| format!("is not below the current directory: run the command in {} or above", parent.display()))?;
    let name = below.join(name);
    let is_plain = |name: &&str| patch::is_plain_name(name);
    let name = name.to_str().filter(is_plain).ok_or("a diff cannot contain this name")?;
    Ok(name.to_owned())
}

impl SourceFile {
    fn read(path: &Path, started_unix_ns: i64) -> Result<SourceFile, String> {
        let original = read_unchanged(path, started_unix_ns)?;
        Ok(SourceFile { edited: original.clone(), original })
    }
}

/// Reads a regular file that was last modified before the recording began.
fn read_unchanged(path: &Path, started_unix_ns: i64) -> Result<Vec<u8>, String> {
    let explain = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    };
    let kind = fs::symlink_metadata(path).map_err(explain)?.file_type();
    if kind.is_symlink() {
        return Err("is a symbolic link".to_owned());
    }
    if !kind.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(explain)?;
    let metadata = file.metadata().map_err(explain)?;
    if !metadata.is_file() {
        return Err("is not a regular file".to_owned());
    }
    if metadata.len() > MAX_BYTES {
        return Err("is too large".to_owned());
    }
    let modified_unix_ns = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
    if modified_unix_ns >= i128::from(started_unix_ns) {
        return Err("was modified after the recording began".to_owned());
    }
    let mut text = Vec::new();
    file.by_ref().take(MAX_BYTES).read_to_end(&mut text).map_err(explain)?;
    Ok(text)
}

fn line_at(text: &[u8], line: u32) -> Option<&[u8]> {
    text.split(|byte| *byte == b'\n').nth(line.checked_sub(1)? as usize)
}

fn with_line(text: &[u8], line: u32, new: &[u8]) -> Vec<u8> {
    let lines = text.split(|byte| *byte == b'\n').zip(1..);
    let lines: Vec<&[u8]> = lines.map(|(old, number)| if number == line { new } else { old }).collect();
    lines.join(&b'\n')
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A time after that of all files.
    const LATER: i64 = i64::MAX;

    #[test]
    fn only_regular_files_older_than_the_recording_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("script"), "text").unwrap();
        assert_eq!(read_unchanged(&path("script"), LATER).unwrap(), b"text");
        symlink("script", path("link")).unwrap();
        nix::unistd::mkfifo(&path("fifo"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        let large = fs::File::create(path("large")).unwrap();
        large.set_len(MAX_BYTES + 1).unwrap();
        for (name, started, reason) in [
            ("script", 0, "was modified after the recording began"),
            ("link", LATER, "is a symbolic link"),
            ("fifo", LATER, "is not a regular file"),
            (".", LATER, "is not a regular file"),
            ("large", LATER, "is too large"),
            ("missing", LATER, "there is no such file"),
        ] {
            assert_eq!(read_unchanged(&path(name), started).unwrap_err(), reason, "{name}");
        }
        assert!(read_unchanged(Path::new("/dev/null"), LATER).is_err());
        assert!(read_unchanged(Path::new("a\0b"), LATER).is_err());
    }

    #[test]
    fn only_files_below_the_directory_get_a_name() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        assert_eq!(name_below(&root.join("a/b/../c.sh"), &root).unwrap(), "a/c.sh");
        assert_eq!(name_below(&root.join("c d.sh"), &root).unwrap(), "c d.sh");
        assert!(name_below(&root.join("c.sh"), &root.join("a")).unwrap_err().contains("not below"));
        for name in ["a\nb", "a\tb", "a\u{202e}b", "\"a", "a\\b"] {
            assert!(name_below(&root.join(name), &root).is_err(), "{name:?}");
        }
    }

    #[test]
    fn one_line_is_replaced() {
        assert_eq!(with_line(b"a\nb\nc", 2, b"x"), b"a\nx\nc");
        assert_eq!(with_line(b"a\nb\n", 2, b"x"), b"a\nx\n");
        assert_eq!(line_at(b"a\nb\n", 2), Some(&b"b"[..]));
        assert_eq!(line_at(b"a", 0), None);
    }
}
