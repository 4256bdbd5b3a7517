//! Finds the library that holds the interpreter of a Python program, as the program's loader does. Should it be another one
//! than the loader took, addresses do not fit, and the program's launches stay without lines.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A program as its process sees it.
pub(in crate::collect) struct Program<'a> {
    /// Its path.
    pub(in crate::collect) path: &'a Path,
    /// The root of the process's files, as seen from here.
    pub(in crate::collect) root: &'a Path,
    /// The value of `LD_LIBRARY_PATH`; empty: not set.
    pub(in crate::collect) library_path: &'a [u8],
}

/// Where loaders look in the end, glibc's on Debian's and on others' machines, and musl's.
const DIRECTORIES: [&str; 7] = [
    "/usr/local/lib",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// Opens the library of this name; `directories` are those in which the program wants it searched.
pub(super) fn open(name: &[u8], directories: &[&[u8]], program: &Program<'_>) -> Option<File> {
    let asked_for = program.library_path.split(|&byte| byte == b':');
    let configured = configured(program.root);
    let places = asked_for.chain(directories.iter().copied()).map(|directory| expanded(directory, program));
    let places = places.chain(configured).chain(DIRECTORIES.map(PathBuf::from));
    places
        .filter(|directory| directory.is_absolute())
        .find_map(|directory| File::open(within(program.root, &directory.join(OsStr::from_bytes(name)))).ok())
}

fn within(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// `$ORIGIN` is the directory of the program.
fn expanded(directory: &[u8], program: &Program<'_>) -> PathBuf {
    let origin = program.path.parent().unwrap_or(Path::new("/"));
    let rest = [&b"$ORIGIN"[..], b"${ORIGIN}"].iter().find_map(|word| directory.strip_prefix(*word));
    match rest {
        Some(rest) => {
            let rest = rest.strip_prefix(b"/").unwrap_or(rest);
            origin.join(OsStr::from_bytes(rest))
        }
        None => PathBuf::from(OsStr::from_bytes(directory)),
    }
}

/// The directories of the loader's configuration.
fn configured(root: &Path) -> Vec<PathBuf> {
    let folder = within(root, Path::new("/etc/ld.so.conf.d"));
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    texts
        .flat_map(|text| text.lines().map(|line| PathBuf::from(line.trim())).collect::<Vec<_>>())
        .collect()
}
