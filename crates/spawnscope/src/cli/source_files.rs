//! Reads the user's own scripts and makefiles, so that `advise` can show their lines and print a
//! diff that edits them. Files are never written, and only regular files that are older than the
//! recording are read: paths in a recording may come from anyone.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::analyze::Report;
use crate::analyze::explain::advice::{Advice, Edit, EditedLine, Owner, Splice, spliced};
use crate::present::patch;
use crate::units;

/// Larger files are not read: scripts and makefiles are smaller.
const MAX_BYTES: u64 = 1 << 20;
/// How often refused edits of a fix are tried again. Pipelines with more filters are rare.
const MAX_ROUNDS: usize = 5;

pub struct SourceFiles {
    started_unix_ns: i64,
    /// The current directory. Names of files below it are relative.
    directory: Option<PathBuf>,
    files: BTreeMap<PathBuf, Result<SourceFile, String>>,
}

/// A file that has not changed since the recording.
struct SourceFile {
    original: Vec<u8>,
    edited: Edited,
}

/// A text that several edits change one after the other.
#[derive(Default)]
struct Edited {
    text: Vec<u8>,
    /// What the edits replace in the original.
    splices: Vec<Splice>,
}

/// What one fix changes in a file.
struct OwnEdits {
    /// The name of the file in the recording.
    name: Vec<u8>,
    /// The text with the edits of this fix alone. `None` if one of these needs an edit of another
    /// fix.
    alone: Option<Edited>,
    /// The text with the edits of earlier fixes.
    before: Vec<u8>,
}

/// The diff of all edits, and what it does not contain.
#[derive(Default)]
pub struct Patch<'a> {
    /// Unified diffs of the files, by name.
    pub text: Vec<u8>,
    /// The fixes with edits in the diff.
    pub fixes: Vec<&'a Advice>,
    pub left_out: Vec<String>,
}

impl SourceFiles {
    /// Tries the edits of all advice on the files, and sets `Advice::edited` and `Advice::patch`.
    pub fn look_up(report: &mut Report) -> SourceFiles {
        let mut sources = SourceFiles {
            started_unix_ns: report.info.started_unix_ns,
            directory: std::env::current_dir().ok(),
            files: BTreeMap::new(),
        };
        report.advices.worth.iter_mut().for_each(|advice| sources.check(advice));
        report.advices.settle();
        // What copies other commands of a loop comes last, so that it copies what became of them.
        let mut in_order: Vec<&mut Advice> = report.advices.worth.iter_mut().collect();
        in_order.sort_by_key(|advice| advice.finding.edits.iter().all(Edit::is_of_loop));
        for advice in in_order {
            sources.apply_first_fix(advice);
            let line = advice.finding.line.as_ref().and_then(|line| sources.line(line));
            advice.line = line.unwrap_or_default();
        }
        // An edit may be possible only after one of later advice.
        let all = report.advices.worth.iter_mut();
        all.filter(|advice| advice.edited_fix().is_none()).for_each(|advice| sources.apply_first_fix(advice));
        sources
    }

    /// Corrects advice that a file shows to be wrong: it may show that one call cannot replace
    /// several, or that no generator wrote it.
    fn check(&mut self, advice: &mut Advice) {
        advice.object(&mut |edit| self.file(edit).ok().map(|(_, file)| file.original.clone()));
        let of_user = advice.finding.line.as_ref().filter(|line| self.file(line).is_ok()).map(|line| line.file.clone());
        let foreign = advice.foreign.as_ref().filter(|foreign| foreign.owner == Owner::Generated);
        if let Some(file) = of_user.filter(|file| foreign.is_some_and(|foreign| foreign.file == *file)) {
            advice.disown(&file);
        }
    }

    /// Applies the first fix that can be applied: that of the advice, or an alternative.
    fn apply_first_fix(&mut self, advice: &mut Advice) {
        let _ = self.apply_fix(advice) || advice.alternatives.iter_mut().any(|other| self.apply_fix(other));
    }

    /// Applies the edits of one fix, with the limits of those that are applied. Returns whether any
    /// edit could be applied.
    fn apply_fix(&mut self, advice: &mut Advice) -> bool {
        let mut own: BTreeMap<PathBuf, OwnEdits> = BTreeMap::new();
        let mut pending: Vec<&Edit> = advice.finding.edits.iter().collect();
        let (mut refused, mut limits, mut applied) = (Vec::new(), Vec::new(), Vec::new());
        // An edit may need a later one: the last filter of a pipeline goes first.
        for _ in 0..MAX_ROUNDS {
            refused.clear();
            let count = pending.len();
            pending.retain(|edit| match self.apply(edit, &mut own) {
                Ok(of_edit) => {
                    limits.extend(of_edit);
                    applied.push(*edit);
                    false
                }
                Err(reason) => {
                    refused.push((*edit, reason));
                    true
                }
            });
            if pending.is_empty() || pending.len() == count {
                break;
            }
        }
        let refused = without_applied(&refused, &applied);
        advice.edited_share = share_of(advice.finding.executed, &applied);
        advice.edited.clear();
        for (path, own) in &own {
            let (original, edited) = self.texts(path);
            // If an earlier fix changes the same line, the change of its result is shown.
            let alone = own.alone.as_ref().filter(|alone| !change_a_common_line(original, &alone.text, &own.before));
            advice.is_edited_after_others |= alone.is_none();
            let [from, to] = alone.map_or([&own.before[..], edited], |alone| [original, &alone.text]);
            advice.edited.extend(edited_lines(&own.name, from, to));
            advice.patch.extend(self.diff_of(path, from, to).unwrap_or_default());
        }
        advice.edit_limits = distinct(limits).join("; ");
        advice.edited.extend(refused);
        !own.is_empty()
    }

    /// Applies an edit to the text with the edits of all fixes, and to that with the edits of this
    /// fix alone. Returns what it changes besides the launches.
    fn apply(&mut self, edit: &Edit, own: &mut BTreeMap<PathBuf, OwnEdits>) -> Result<Vec<&'static str>, String> {
        let (path, file) = self.file(edit)?;
        let before = file.edited.text.clone();
        let limits = file.edited.apply(edit, &file.original)?;
        let own = own.entry(path).or_insert_with(|| {
            let alone = Some(Edited::new(&file.original));
            OwnEdits { name: edit.file.clone(), alone, before }
        });
        own.alone = own.alone.take().and_then(|mut alone| {
            alone.apply(edit, &file.original).ok()?;
            Some(alone)
        });
        Ok(limits)
    }

    /// Returns the text of the line that an edit names, if it can be shown.
    fn line(&mut self, edit: &Edit) -> Option<Vec<u8>> {
        let file = self.file(edit).ok()?.1;
        let line = file.original.split(|byte| *byte == b'\n').nth(edit.line.checked_sub(1)? as usize)?.trim_ascii();
        patch::is_printable(line).then(|| line.to_vec())
    }

    /// Returns the text of a file without and with all edits.
    fn texts(&self, path: &Path) -> (&[u8], &[u8]) {
        match self.files.get(path) {
            Some(Ok(file)) => (&file.original, &file.edited.text),
            _ => (b"", b""),
        }
    }

    fn diff_of(&self, path: &Path, from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
        let below = self.directory.as_deref().and_then(|directory| name_below(path, directory).ok());
        let whole = || path.to_str().filter(|name| patch::is_plain_name(name)).map(str::to_owned);
        patch::unified(&below.or_else(whole)?, from, to).ok()
    }

    fn file(&mut self, edit: &Edit) -> Result<(PathBuf, &mut SourceFile), String> {
        let foreign = || Err("this file is generated, or belongs to a package".to_owned());
        if Owner::of(&edit.file) == Owner::ThirdParty {
            return foreign();
        }
        let path = path_of(edit)?;
        let started = self.started_unix_ns;
        let file = self.files.entry(path.clone()).or_insert_with_key(|path| SourceFile::read(path, started));
        let file = file.as_mut().map_err(|reason| reason.clone())?;
        match Owner::of_file(&edit.file, &file.original) {
            Owner::User => Ok((path, file)),
            _ => foreign(),
        }
    }

    /// Returns the diff of all edits in files below a directory, and what it leaves out.
    pub fn patch<'a>(&self, advices: &'a [Advice], directory: &Path) -> Patch<'a> {
        let mut result = Patch { left_out: without_edit(advices), ..Patch::default() };
        let mut written = BTreeSet::new();
        for (path, file) in &self.files {
            let Ok(file) = file else { continue };
            let edited = &file.edited.text;
            if file.original == *edited {
                continue;
            }
            let diff = name_below(path, directory).and_then(|name| patch::unified(&name, &file.original, edited));
            match diff {
                Ok(diff) => {
                    written.insert(path);
                    result.text.extend(diff);
                }
                Err(reason) => result.left_out.push(format!("{}: {reason}", path.display())),
            }
        }
        let is_written = |edit| path_of(edit).is_ok_and(|path| written.contains(&path));
        let fixes = advices.iter().filter_map(Advice::edited_fix);
        result.fixes = fixes.filter(|fix| fix.finding.edits.iter().any(is_written)).collect();
        result
    }
}

/// Returns which changes a diff cannot make, with the reasons.
fn without_edit(advices: &[Advice]) -> Vec<String> {
    let mut left_out = Vec::new();
    // A reason is given once for each file: a generated file may have hundreds of lines with the
    // same one.
    let mut refused: BTreeMap<(&[u8], &str), BTreeSet<u32>> = BTreeMap::new();
    for advice in advices {
        let edited = || std::iter::once(advice).chain(&advice.alternatives).flat_map(|fix| &fix.edited);
        if edited().next().is_none() {
            left_out.push(format!("{}: this change needs your decision", advice.finding.title));
        }
        // Of several fixes for a line, one is enough.
        let is_changed = |line: &EditedLine| {
            edited().any(|other| other.change.is_ok() && (&other.file, other.line) == (&line.file, line.line))
        };
        for edited in edited().filter(|edited| !is_changed(edited)) {
            if let Err(reason) = &edited.change {
                refused.entry((&edited.file, reason)).or_default().insert(edited.line);
            }
        }
    }
    left_out.extend(refused.into_iter().map(|((file, reason), lines)| {
        let file = Path::new(OsStr::from_bytes(file)).display();
        let first = lines.first().copied().unwrap_or_default();
        let more = match lines.len() {
            1 => String::new(),
            count => format!(" and {}", units::counted(count as u64 - 1, "more line", "more lines")),
        };
        format!("{file}:{first}{more}: {reason}")
    }));
    left_out
}

fn distinct(mut limits: Vec<&'static str>) -> Vec<&'static str> {
    let mut known = BTreeSet::new();
    limits.retain(|limit| known.insert(*limit));
    limits
}

/// Returns the refused edits of lines without another edit. A line may have several edits, of which
/// one is enough.
fn without_applied(refused: &[(&Edit, String)], applied: &[&Edit]) -> Vec<EditedLine> {
    let refused = refused.iter().filter(|(edit, _)| !applied.iter().any(|other| edit.is_done_by(other)));
    refused.filter_map(|(edit, reason)| edit.refused(reason.clone())).collect()
}

/// Returns the share of the launches that execute a program that these edits are about. One that is
/// about none in particular, such as that of a variable, changes all launches.
fn share_of(executed: u32, edits: &[&Edit]) -> f64 {
    let is_of_all = executed == 0 || edits.iter().any(|edit| edit.launches == 0);
    let count: u32 = edits.iter().map(|edit| edit.launches).sum();
    if is_of_all { 1.0 } else { (f64::from(count) / f64::from(executed)).min(1.0) }
}

/// Returns the path of an edited file, which makefiles may include as `a/../b.mk`, too.
fn path_of(edit: &Edit) -> Result<PathBuf, String> {
    let directory = Path::new(OsStr::from_bytes(edit.directory.as_deref().unwrap_or_default()));
    let path = directory.join(OsStr::from_bytes(&edit.file));
    let parent = path.parent().filter(|_| path.is_absolute()).ok_or("its directory was not recorded")?;
    Ok(parent.canonicalize().unwrap_or(parent.to_path_buf()).join(path.file_name().unwrap_or_default()))
}

/// Returns the name of a file relative to a directory, for the header of a diff. `patch` accepts no
/// other names.
pub(super) fn name_below(path: &Path, directory: &Path) -> Result<String, String> {
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
        Ok(SourceFile { edited: Edited::new(&original), original })
    }
}

impl Edited {
    fn new(original: &[u8]) -> Edited {
        Edited { text: original.to_vec(), splices: Vec::new() }
    }

    /// Applies an edit of the original to the text, which earlier edits may have changed. Returns
    /// what it changes besides the launches.
    fn apply(&mut self, edit: &Edit, original: &[u8]) -> Result<Vec<&'static str>, String> {
        let limits = |splices: &[Splice]| splices.iter().flat_map(|splice| &splice.limits).copied().collect();
        let of_original = edit.splices(original);
        let is_applied = |splices: &&Vec<Splice>| splices.iter().all(|splice| self.splices.contains(splice));
        if let Some(applied) = of_original.as_ref().ok().filter(is_applied) {
            return Ok(limits(applied));
        }
        let mut lines = lines_after(original, &self.text, edit.line as usize - 1);
        let splices = lines.find_map(|line| edit.at(1 + line as u32).splices(&self.text).ok());
        let Some(splices) = splices else {
            return Err(of_original.map_or_else(
                |refusal| refusal.to_string(),
                |_| "an earlier finding changes the same code: apply that, and record again".to_owned(),
            ));
        };
        let text = spliced(&self.text, &splices);
        if edited_lines(&edit.file, &self.text, &text).iter().any(|lines| !is_printable(lines)) {
            return Err("the line contains control characters, or is not UTF-8".to_owned());
        }
        self.text = text;
        self.splices.extend(of_original.unwrap_or_default());
        Ok(limits(&splices))
    }
}

/// Whether two edited texts differ from the original in the same line.
fn change_a_common_line(original: &[u8], one: &[u8], other: &[u8]) -> bool {
    let others = patch::changed_lines(original, other);
    let overlaps = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
    patch::changed_lines(original, one).iter().any(|[lines, _]| others.iter().any(|[other, _]| overlaps(lines, other)))
}

/// Returns the lines that an original line may have become, from 0.
fn lines_after(original: &[u8], edited: &[u8], line: usize) -> Range<usize> {
    let mut moved = line;
    for [before, after] in patch::changed_lines(original, edited) {
        if before.contains(&line) {
            return after;
        }
        if before.end <= line {
            moved = after.end + line - before.end;
        }
    }
    moved..moved + 1
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

/// Returns the lines that differ between two texts, as groups of adjacent lines.
fn edited_lines(file: &[u8], original: &[u8], edited: &[u8]) -> Vec<EditedLine> {
    let [old, new] = [original, edited].map(|text| text.split(|byte| *byte == b'\n').collect::<Vec<_>>());
    let lines = |all: &[&[u8]], range: Range<usize>| all[range].iter().map(|line| line.to_vec()).collect::<Vec<_>>();
    let groups = patch::changed_lines(original, edited).into_iter().map(|[before, after]| EditedLine {
        file: file.to_vec(),
        line: 1 + before.start as u32,
        change: Ok([lines(&old, before), lines(&new, after)]),
    });
    groups.collect()
}

fn is_printable(lines: &EditedLine) -> bool {
    lines.change.iter().flatten().flatten().all(|line| patch::is_printable(line))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A time after the last change of any file.
    const LATER: i64 = i64::MAX;

    #[test]
    fn edited_lines_fix_the_share_of_launches_that_they_request() {
        let mut edits = [9, 1, 0].map(|_| Edit::for_test(b"configure"));
        edits.iter_mut().zip([9, 1, 0]).for_each(|(edit, launches)| edit.launches = launches);
        let share = |numbers: &[usize]| share_of(20, &numbers.iter().map(|number| &edits[*number]).collect::<Vec<_>>());
        assert_eq!([share(&[1]), share(&[0, 1])], [0.05, 0.5]);
        assert_eq!(share(&[1, 2]), 1.0, "the line of a variable");
    }

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
        let mut included = Edit::for_test(b"../c.mk");
        included.directory = Some(root.join("a/b").into_os_string().into_encoded_bytes());
        assert_eq!(path_of(&included).unwrap(), root.join("a/c.mk"), "one file has one path");
        assert!(name_below(&root.join("c.sh"), &root.join("a")).unwrap_err().contains("not below"));
        for name in ["a\nb", "a\tb", "a\u{202e}b", "\"a", "a\\b"] {
            assert!(name_below(&root.join(name), &root).is_err(), "{name:?}");
        }
    }

    #[test]
    fn changed_lines_are_shown_in_groups() {
        let shown = |edited: &[u8]| {
            let groups = edited_lines(b"a.sh", b"one\ntwo\nthree", edited).into_iter();
            let text = |lines: &[Vec<u8>]| String::from_utf8(lines.join(&b'/')).unwrap();
            let groups = groups.map(|group| {
                let [before, after] = group.change.unwrap();
                format!("{}:-{}+{}", group.line, text(&before), text(&after))
            });
            groups.collect::<Vec<_>>()
        };
        assert_eq!(shown(b"one\n2\nthree"), ["2:-two+2"]);
        assert_eq!(shown(b"one\nnew\ntwo\nt"), ["2:-+new", "3:-three+t"]);
        assert_eq!(shown(b"OnE\ntwo\nthree"), ["1:-one+OnE"]);
    }

    #[test]
    fn changes_of_one_line_are_shown_one_after_the_other() {
        let common = |one: &[u8], other: &[u8]| change_a_common_line(b"a\nb\nc", one, other);
        assert!(common(b"a\nb1\nc", b"a\nb2\nc") && common(b"a\nb1\nc", b"a1\nb2\nc"));
        assert!(!common(b"a\nb1\nc", b"a1\nb\nc") && !common(b"a\nb1\nc", b"a\nb\nc"));
        assert!(!common(b"a\nb1\nc", b"a\nb\nnew\nc"), "a line that is added changes no other");
    }

    #[test]
    fn a_line_is_found_after_other_edits() {
        let after = |line| lines_after(b"a\nb\nc\nd", b"new\na\nb1\nb2\nc\nd", line);
        assert_eq!([0, 1, 2, 3].map(after), [1..2, 2..4, 4..5, 5..6]);
    }
}
