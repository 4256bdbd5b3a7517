//! Caches the layouts of dash builds, in the user's cache directory and in this process. It is not
//! an error if the directory cannot be read or written: the next start is only a few milliseconds
//! slower.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Mutex;

use nix::unistd::{User, geteuid};
use zerocopy::{FromBytes, IntoBytes};

use crate::wire::WireDash;

/// A build id and the layout found for it; `None`: the layout cannot be determined.
type CachedResult = (Box<[u8]>, Option<WireDash>);

/// Results that this process itself has found.
static FOUND: Mutex<Vec<CachedResult>> = Mutex::new(Vec::new());

/// Returns the cached result for a build. `Some(None)`: its layout cannot be determined.
pub(super) fn find(build: &[u8]) -> Option<Option<WireDash>> {
    let own = FOUND.lock().ok()?.iter().find(|(known, _)| **known == *build).map(|(_, found)| *found);
    own.or_else(|| read(build))
}

fn read(build: &[u8]) -> Option<Option<WireDash>> {
    let bytes = fs::read(file(build)?).ok()?;
    if bytes.is_empty() {
        return Some(None);
    }
    WireDash::read_from_bytes(&bytes).ok().map(Some)
}

pub(super) fn store(build: &[u8], found: Option<WireDash>) {
    if let Ok(mut results) = FOUND.lock() {
        results.push((build.into(), found));
    }
    let Some(file) = file(build) else { return };
    let bytes = found.as_ref().map_or(&[][..], IntoBytes::as_bytes);
    // Write another file and rename it, because another process may be reading the cache file.
    let new = file.with_extension(std::process::id().to_string());
    let written = file
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(&new, bytes))
        .and_then(|()| fs::rename(&new, &file));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
}

/// Returns the path of a build's cache file. The number in the file's name changes with the format.
fn file(build: &[u8]) -> Option<PathBuf> {
    let mut name = "dash-2-".to_owned();
    for byte in build {
        write!(name, "{byte:02x}").ok()?;
    }
    Some(directory()?.join("spawnscope").join(name))
}

/// Returns the cache directory of the user that this process runs as. The environment may be that
/// of another user, for instance under sudo, so only a directory that this user owns is trusted and
/// written to.
fn directory() -> Option<PathBuf> {
    own_directory("XDG_CACHE_HOME").or_else(|| {
        let home = own_directory("HOME").or_else(|| Some(User::from_uid(geteuid()).ok()??.dir))?;
        Some(home.join(".cache"))
    })
}

/// Returns the directory that a variable names, if this user owns it.
fn own_directory(variable: &str) -> Option<PathBuf> {
    let directory = std::env::var_os(variable).map(PathBuf::from)?;
    let is_own = fs::metadata(&directory).is_ok_and(|found| found.uid() == geteuid().as_raw());
    (directory.is_absolute() && is_own).then_some(directory)
}
