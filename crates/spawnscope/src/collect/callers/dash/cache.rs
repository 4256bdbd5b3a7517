//! What was found out about builds of dash, in the user's cache folder, and while this process runs. Not being able to read
//! or write the folder costs some milliseconds at the next start, and is no error.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Mutex;

use zerocopy::{FromBytes, IntoBytes};

use crate::collect::ebpf::wire::WireDash;

/// A build, and what was found out about it.
type Known = (Box<[u8]>, Option<WireDash>);

/// What this process found out itself.
static OWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// What is known of a build: `Some(None)` is that nothing can be found out.
pub(super) fn find(build: &[u8]) -> Option<Option<WireDash>> {
    let own = OWN
        .lock()
        .ok()?
        .iter()
        .find(|(known, _)| **known == *build)
        .map(|(_, found)| *found);
    own.or_else(|| read(build))
}

fn read(build: &[u8]) -> Option<Option<WireDash>> {
    let bytes = fs::read(file(build)?).ok()?;
    if bytes.is_empty() {
        return Some(None);
    }
    WireDash::read_from_bytes(&bytes).ok().map(Some)
}

/// Keeps what was found out of a build.
pub(super) fn keep(build: &[u8], found: Option<WireDash>) {
    if let Ok(mut own) = OWN.lock() {
        own.push((build.into(), found));
    }
    let Some(file) = file(build) else { return };
    let bytes = found.as_ref().map_or(&[][..], IntoBytes::as_bytes);
    // Somebody may be reading it.
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

/// Where a build is kept; another layout of the format gets another name.
fn file(build: &[u8]) -> Option<PathBuf> {
    let mut name = "dash-2-".to_owned();
    for byte in build {
        write!(name, "{byte:02x}").ok()?;
    }
    Some(folder()?.join("spawnscope").join(name))
}

/// The cache folder of the user that this process runs as. The environment may be somebody else's, under sudo for instance: only a folder
/// that is this user's own is written to, and believed.
fn folder() -> Option<PathBuf> {
    let user = nix::unistd::geteuid();
    let named = |name| {
        let folder = std::env::var_os(name).map(PathBuf::from)?;
        let is_own = fs::metadata(&folder).is_ok_and(|found| found.uid() == user.as_raw());
        (folder.is_absolute() && is_own).then_some(folder)
    };
    let of_user = || Some(nix::unistd::User::from_uid(user).ok()??.dir);
    named("XDG_CACHE_HOME").or_else(|| Some(named("HOME").or_else(of_user)?.join(".cache")))
}
