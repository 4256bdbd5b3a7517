//! What the dynamic loader of glibc reads besides a program: its library cache, and variables of
//! the environment.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::Machine;

pub(crate) const CACHE: &str = "/etc/ld.so.cache";
/// What the cache starts with, in glibc's new and old format (`dl-cache.h`).
const MAGICS: [&[u8]; 2] = [b"glibc-ld.so.cache1.1", b"ld.so-1.7.0"];
/// Dynamic loaders of glibc. On a machine without one, no program uses the cache.
const LOADERS: [&str; 4] =
    ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-linux-armhf.so.3", "/lib64/ld64.so.2"];
/// Variables that slow down program starts, and how.
pub(crate) const VARIABLES: [(&str, &str); 6] = [
    ("LD_PRELOAD", "loads more libraries into each program"),
    ("LD_AUDIT", "calls its library for each object and each symbol"),
    ("LD_LIBRARY_PATH", "its directories are searched first for each library"),
    ("LD_BIND_NOW", "all functions are resolved at start"),
    ("LD_DEBUG", "the loader logs its work"),
    ("LD_PROFILE", "calls into a library are counted"),
];

/// Returns why the cache is unusable; `None` if it is usable, or if no program needs it.
pub(crate) fn why_cache_is_unusable(machine: &Machine) -> Option<&'static str> {
    // On NixOS, each program contains the paths of its libraries.
    if machine.exists("/etc/NIXOS") || !LOADERS.iter().any(|loader| machine.exists(loader)) {
        return None;
    }
    let Ok(metadata) = fs::metadata(machine.path(CACHE)) else { return Some("is missing") };
    if metadata.permissions().mode() & 0o004 == 0 {
        return Some("cannot be read by all users");
    }
    match machine.bytes(CACHE) {
        Err(_) => Some("cannot be read"),
        Ok(cache) if !MAGICS.iter().any(|magic| cache.starts_with(magic)) => Some("is not a cache"),
        Ok(_) => None,
    }
}

pub(crate) fn is_loader_variable(name: &str) -> bool {
    VARIABLES.iter().any(|(variable, _)| *variable == name)
}

/// Returns the variables that are set, with their values.
pub(crate) fn variables(machine: &Machine) -> impl Iterator<Item = (&'static str, String)> {
    VARIABLES.iter().filter_map(|(name, _)| Some((*name, machine.variable_text(name)?)))
}

pub(crate) fn named_paths(machine: &Machine) -> Vec<PathBuf> {
    variables(machine).flat_map(|(name, value)| paths(name, &value).map(PathBuf::from).collect::<Vec<_>>()).collect()
}

pub(crate) fn paths<'v>(name: &str, value: &'v str) -> impl Iterator<Item = &'v str> {
    let separators: &[char] = match name {
        "LD_PRELOAD" => &[':', ' '],
        "LD_AUDIT" => &[':'],
        "LD_LIBRARY_PATH" => &[':', ';'],
        _ => &[],
    };
    // Paths with `$LIB` or `$ORIGIN` are skipped, because only the loader can expand these.
    value
        .split(separators)
        .filter(move |path| !separators.is_empty() && Path::new(path).is_absolute() && !path.contains('$'))
}
