//! The directories that `scripts/interpreter-roots.sh` creates. Each has the interpreters of one
//! Debian suite, which run with that directory as their root.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::run::{Finished, Record, run};

const SUITES: [&str; 4] = ["bullseye", "bookworm", "trixie", "sid"];

/// A script that enters a root. Files that tests create have the same path inside as outside.
const ENTER: &str = r#"root=$0 made=$1; shift
mkdir -p "$root$made"
for directory in /proc /dev "$made"; do mount --rbind "$directory" "$root$directory" || exit; done
exec chroot "$root" "$@""#;

/// The root of a Debian suite.
#[derive(Clone, Copy)]
pub struct Root {
    pub suite: &'static str,
}

impl Root {
    pub fn all() -> [Root; 4] {
        SUITES.map(|suite| Root { suite })
    }

    pub fn path(self) -> PathBuf {
        directory().join(self.suite)
    }

    /// Lists files in a directory of the root, for example `bin`, by name.
    pub fn list(self, directory: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path().join(directory)).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let names = names.filter(|name| is_wanted(name));
        names.map(|name| Path::new("/").join(directory).join(name)).collect()
    }

    /// Returns a command line that runs these words in the root.
    pub fn command(self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Vec<OsString> {
        let enter = ["unshare", "--mount", "sh", "-c", ENTER].map(OsString::from);
        let directories_to_bind = [self.path().into_os_string(), std::env::temp_dir().into_os_string()];
        let words = words.into_iter().map(|word| word.as_ref().to_owned());
        enter.into_iter().chain(directories_to_bind).chain(words).collect()
    }

    pub fn run(self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Finished {
        let words = self.command(words);
        run(Command::new(&words[0]).args(&words[1..]))
    }

    /// Returns the command that records these words in the root. The root's interpreters are also
    /// in the recorder's PATH, so that the recorder knows them at the start.
    pub fn recorder(self, record: &Record, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = record.command(self.command(words));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let interpreters = ["bin", "usr/bin"].map(|directory| self.path().join(directory));
        let directories: Vec<PathBuf> = std::env::split_paths(&path).chain(interpreters).collect();
        command.env("PATH", std::env::join_paths(directories).expect("no colons"));
        command
    }
}

/// Returns the directory of all roots.
pub fn directory() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../target/roots"].iter().collect()
}
