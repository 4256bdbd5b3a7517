//! Reads makefiles, in order to find the lines of call sites in them, and caches them.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::recipe::{self, RecipeLine};
use crate::callers::{contains, known};
use crate::wire::*;
use spawnscope_data::event::{Chain, Frame, Language, Pid};
use spawnscope_system::files::{Links, open_regular};

/// What was read from make's memory about a call site.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site<'a> {
    /// One of the numbers MAKE_RUNS to MAKE_VARIABLE.
    pub(crate) kind: u32,
    /// The makefile's path, possibly relative; empty for a rule that is built into make.
    pub(crate) file: &'a [u8],
    /// The name of the target; empty if it is unknown.
    pub(crate) target: &'a [u8],
    /// The line that make stores: that of the call site, or, for a recipe, that of the recipe's
    /// first line.
    pub(crate) line: u32,
    /// The index of the recipe's line, from 0.
    pub(crate) index: u32,
    /// The text of the recipe's line, or the name of the variable.
    pub(crate) text: &'a [u8],
    /// The working directory of make.
    pub(crate) directory: Option<&'a [u8]>,
    /// The make process.
    pub(crate) process: Option<Pid>,
    /// Whether the process is in another mount namespace, so that its files are reachable only
    /// through /proc/PID/root.
    pub(crate) is_in_other_mounts: bool,
}

/// Maximum size in bytes of a makefile that is read.
const MAX_BYTES: u64 = 16 << 20;
/// Maximum number of makefiles in the cache.
const MAX_CACHED: usize = 64;
/// Number of bytes at the start of a makefile that may say what generated it.
const HEAD_BYTES: usize = 512;

/// The device, the inode number and the modification time (seconds, nanoseconds) of a file.
type Stamp = (u64, u64, i64, i64);

#[derive(Debug)]
struct Makefile {
    stamp: Stamp,
    text: Vec<u8>,
}

/// The makefiles read so far.
#[derive(Debug, Default)]
pub(crate) struct Makefiles(HashMap<PathBuf, Arc<Makefile>>);

impl Makefiles {
    /// Returns the chain of a call site, which has one frame.
    pub(crate) fn chain(&mut self, site: &Site<'_>) -> Chain {
        let path = absolute_path(site);
        let makefile = path.as_deref().and_then(|path| self.read(path, site));
        let text = makefile.as_ref().map(|makefile| makefile.text.as_slice());
        let frame = Frame {
            function: known(site.target),
            line: line(site, text).filter(|line| *line != 0),
            module: text.and_then(template).map(<[u8]>::to_vec),
            file: path.or_else(|| known(site.file)),
            ..Frame::unknown(Language::Make)
        };
        Chain { frames: vec![frame], is_truncated: false }
    }

    /// Reads a makefile. If the process is in another mount namespace, the file is reachable only
    /// through the process.
    fn read(&mut self, path: &[u8], site: &Site<'_>) -> Option<Arc<Makefile>> {
        let plain_path = Path::new(OsStr::from_bytes(path));
        let path = if site.is_in_other_mounts {
            let root = PathBuf::from(format!("/proc/{}/root", site.process?.0));
            root.join(plain_path.strip_prefix("/").unwrap_or(plain_path))
        } else {
            plain_path.to_owned()
        };
        let is_same = |known: &Makefile| path.metadata().is_ok_and(|found| stamp(&found) == known.stamp);
        if let Some(known) = self.0.get(&path).filter(|known| is_same(known)) {
            return Some(Arc::clone(known));
        }
        let file = open(&path)?;
        let found = stamp(&file.metadata().ok()?);
        let mut text = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
        if self.0.len() >= MAX_CACHED {
            self.0.clear();
        }
        let makefile = Arc::new(Makefile { stamp: found, text });
        self.0.insert(path, Arc::clone(&makefile));
        Some(makefile)
    }
}

fn open(path: &Path) -> Option<File> {
    let file = open_regular(path, Links::Followed).ok()?;
    (file.metadata().ok()?.len() <= MAX_BYTES).then_some(file)
}

fn stamp(found: &Metadata) -> Stamp {
    (found.dev(), found.ino(), found.mtime(), found.mtime_nsec())
}

/// Returns the absolute path of a site's makefile.
fn absolute_path(site: &Site<'_>) -> Option<Vec<u8>> {
    if site.file.is_empty() || site.file.starts_with(b"/") {
        return (!site.file.is_empty()).then(|| site.file.to_vec());
    }
    let directory = site.directory?;
    let separator: &[u8] = if directory.ends_with(b"/") { b"" } else { b"/" };
    let file = site.file.strip_prefix(b"./").unwrap_or(site.file);
    Some([directory, separator, file].concat())
}

/// Returns the line of a call site, if the makefile confirms it: what make stores is not always the
/// line of the call site.
fn line(site: &Site<'_>, text: Option<&[u8]>) -> Option<u32> {
    match site.kind {
        MAKE_RUNS => recipe_line(site, text?),
        MAKE_EXPANDS => recipe_line(site, text?).filter(|_| has_shell_call(site.text)),
        MAKE_READS => Some(site.line),
        MAKE_VARIABLE => Some(site.line).filter(|line| defines(text.unwrap_or_default(), *line, site.text)),
        _ => None,
    }
}

fn recipe_line(site: &Site<'_>, makefile: &[u8]) -> Option<u32> {
    let wanted = RecipeLine {
        first_line: site.line,
        index: site.index,
        text: site.text,
        is_truncated: site.text.len() + 1 >= MAKE_TEXT_BYTES as usize,
    };
    recipe::find_line(makefile, &wanted)
}

/// Whether a recipe's line itself contains a $(shell ...). One in a variable of the line does not
/// count, because the launch may then belong to another expansion for the same recipe.
fn has_shell_call(line: &[u8]) -> bool {
    contains(line, b"$(shell") || contains(line, b"${shell")
}

fn defines(makefile: &[u8], line: u32, variable: &[u8]) -> bool {
    const KEYWORDS: [&[u8]; 4] = [b"export", b"override", b"private", b"define"];
    let Some(number) = (line as usize).checked_sub(1) else { return false };
    let line = makefile.split(|byte| *byte == b'\n').nth(number).unwrap_or_default();
    let mut words =
        line.split(|byte| byte.is_ascii_whitespace() || b":=?+!".contains(byte)).filter(|word| !word.is_empty());
    words.find(|word| !KEYWORDS.contains(word)) == Some(variable)
}

/// Returns the template that a makefile was generated from, if its first lines name it.
fn template(makefile: &[u8]) -> Option<&'static [u8]> {
    let head = makefile.get(..HEAD_BYTES).unwrap_or(makefile);
    if contains(head, b"generated by automake") || contains(head, b"Generated from Makefile.in") {
        return Some(b"Makefile.in");
    }
    contains(head, b"CMAKE generated file").then_some(b"CMakeLists.txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECIPE: &str = "x:\n\tone\n\ttwo\n";

    /// Returns the frame of a site in a directory with this makefile, and the directory.
    fn frame(makefile: &str, change: impl Fn(&mut Site<'_>)) -> (Frame, String) {
        let temporary = tempfile::tempdir().unwrap();
        std::fs::write(temporary.path().join("Makefile"), makefile).unwrap();
        let directory = temporary.path().to_str().unwrap().to_owned();
        let mut site = Site {
            kind: MAKE_RUNS,
            file: b"./Makefile",
            target: b"x",
            line: 2,
            index: 1,
            text: b"two",
            directory: Some(directory.as_bytes()),
            process: None,
            is_in_other_mounts: false,
        };
        change(&mut site);
        let chain = Makefiles::default().chain(&site);
        (chain.frames.into_iter().next().unwrap(), directory)
    }

    fn line(makefile: &str, change: impl Fn(&mut Site<'_>)) -> Option<u32> {
        frame(makefile, change).0.line
    }

    #[test]
    fn the_line_of_a_recipe_is_found_in_the_makefile() {
        let (frame, directory) = frame(RECIPE, |_| ());
        assert_eq!(frame.line, Some(3));
        assert_eq!(frame.file, Some(format!("{directory}/Makefile").into_bytes()));
        assert_eq!(frame.function, Some(b"x".to_vec()));
        assert_eq!(frame.module, None);
    }

    #[test]
    fn without_the_makefile_the_line_is_unknown() {
        assert_eq!(line(RECIPE, |site| site.file = b"other.mk"), None);
        assert_eq!(line(RECIPE, |site| site.is_in_other_mounts = true), None);
        let (frame, _) = frame(RECIPE, |site| site.directory = None);
        assert_eq!((frame.line, frame.file), (None, Some(b"./Makefile".to_vec())));
    }

    #[test]
    fn a_file_of_another_mount_namespace_is_read_through_the_process() {
        let own = Pid(std::process::id().cast_signed());
        assert_eq!(
            line(RECIPE, |site| {
                (site.is_in_other_mounts, site.process) = (true, Some(own));
            }),
            Some(3)
        );
    }

    #[test]
    fn a_built_in_rule_has_no_file() {
        let (frame, _) = frame(RECIPE, |site| site.file = b"");
        assert_eq!((frame.file, frame.line), (None, None));
        assert_eq!(frame.function, Some(b"x".to_vec()));
    }

    #[test]
    fn an_expansion_has_a_line_only_if_the_line_is_certain() {
        let shell = "A = 1\nexport V = $(shell date)\nx:\n\techo $(shell date)\n\techo $(V)\n";
        for (kind, stored_line, index, text, expected) in [
            (MAKE_EXPANDS, 4, 0, &b"echo $(shell date)"[..], Some(4)),
            (MAKE_EXPANDS, 4, 1, b"echo $(V)", None),
            (MAKE_VARIABLE, 2, 1, b"V", Some(2)),
            (MAKE_VARIABLE, 1, 1, b"V", None),
            (MAKE_READS, 2, 1, b"two", Some(2)),
            (MAKE_EVALUATES, 2, 1, b"two", None),
        ] {
            let found = line(shell, |site| {
                (site.kind, site.line, site.index, site.text) = (kind, stored_line, index, text);
            });
            assert_eq!(found, expected, "kind {kind} in line {stored_line}");
        }
    }

    #[test]
    fn a_changed_makefile_is_read_again() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("Makefile");
        let file = path.to_str().unwrap().to_owned();
        let site = Site {
            kind: MAKE_RUNS,
            file: file.as_bytes(),
            target: b"x",
            line: 2,
            index: 0,
            text: b"one",
            directory: None,
            process: None,
            is_in_other_mounts: false,
        };
        let mut makefiles = Makefiles::default();
        std::fs::write(&path, RECIPE).unwrap();
        assert_eq!(makefiles.chain(&site).frames[0].line, Some(2));
        std::fs::write(temporary.path().join("new"), "x:\n\tother\n").unwrap();
        std::fs::rename(temporary.path().join("new"), &path).unwrap();
        assert_eq!(makefiles.chain(&site).frames[0].line, None);
    }

    #[test]
    fn a_generated_makefile_names_its_template() {
        let head = "# Makefile.in generated by automake 1.16.5 from Makefile.am.\n";
        assert_eq!(template(head.as_bytes()), Some(&b"Makefile.in"[..]));
        assert_eq!(template(b"# CMAKE generated file: DO NOT EDIT!\n"), Some(&b"CMakeLists.txt"[..]));
        assert_eq!(template(RECIPE.as_bytes()), None);
        let far = [vec![b'#'; HEAD_BYTES], head.as_bytes().to_vec()].concat();
        assert_eq!(template(&far), None);
    }
}
