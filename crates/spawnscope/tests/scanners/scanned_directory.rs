//! A directory that a real scanner watches while commands run.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::support::needs::scanner_daemons;
use crate::support::prelude::*;

/// A directory for one scanner, by the name of the daemon that execs wait for.
pub struct ScannedDirectory {
    scanner: &'static str,
    directory: TempDir,
}

impl ScannedDirectory {
    pub fn new(scanner: &'static str) -> ScannedDirectory {
        let directory = tempfile::tempdir().expect("a temporary directory");
        // The user of the scanner must be able to enter the directory.
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).expect("chmod");
        ScannedDirectory { scanner, directory }
    }

    /// Returns the directory that the scanner watches while a command runs.
    fn watched(&self) -> PathBuf {
        self.directory.path().join("scanned")
    }

    /// Returns a command that runs spawnscope while the directory, which is its TMPDIR, is watched.
    pub fn spawnscope(&self, arguments: &[&str]) -> Command {
        let launcher = self.launcher();
        let mut command = Command::new(&launcher[0]);
        command
            .args(&launcher[1..])
            .arg("env")
            .arg(format!("TMPDIR={}", self.watched().display()))
            .arg(SPAWNSCOPE)
            .args(arguments)
            .env_remove("LD_LIBRARY_PATH");
        command
    }

    /// Returns the beginning of a command line. The command that follows runs while the directory
    /// is watched.
    fn launcher(&self) -> Vec<String> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scanners/within.sh");
        let daemons = scanner_daemons();
        let daemons = daemons.to_str().expect("a path of characters");
        let directory = self.directory.path().to_str().expect("a path of characters");
        let namespaces = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"];
        let words = ["unshare"].into_iter().chain(namespaces);
        words.chain([script, self.scanner, daemons, directory]).map(str::to_owned).collect()
    }
}
