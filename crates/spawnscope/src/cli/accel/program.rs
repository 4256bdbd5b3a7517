//! Detects commands on which accel has no effect: those into which the library must not be loaded (`obstacle`), and set-user-id or set-group-id
//! ones, for which the dynamic loader removes LD_PRELOAD.

use std::env;
use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::obstacle::{Obstacle, obstacle};

const SET_ID: u32 = 0o6000;

/// Returns a notice that says why accel has no effect on a command, unless the command launches nothing.
pub fn notice(name: &OsStr) -> Option<String> {
    let path = find(name)?;
    let reason = if fs::metadata(&path).ok()?.mode() & SET_ID != 0 {
        "is set-user-id or set-group-id"
    } else {
        match obstacle(&CString::new(path.as_os_str().as_bytes()).ok()?)? {
            Obstacle::Static => "is statically linked",
            Obstacle::Foreign => "is for another architecture or C library",
            Obstacle::Sanitizer => "is built with a sanitizer, whose library must be loaded first",
            Obstacle::LaunchesNothing => return None,
        }
    };
    Some(format!("{} {reason}: accel has no effect on it or on what it launches", path.display()))
}

/// Finds the command's file, in PATH if the name has no slash.
fn find(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(Path::new(name))).find(|path| path.is_file())
}
