//! `spawnscope fleet`: replaces itself by `spawnscope-fleet`, which is a package of its own, so that only those who need its engine build it.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Error, Result};

const PROGRAM: &str = "spawnscope-fleet";

pub const EXAMPLES: &str = "\
Examples:
  spawnscope export --format parquet -o fleet/ spawnscope.db
  spawnscope fleet top fleet/
  spawnscope fleet regressions --since 2026-11-10 fleet/
  spawnscope fleet machines --html machines.html fleet/
  spawnscope fleet sql fleet/ \"SELECT host, wall_ns FROM runs\"";

/// Runs the program with the same arguments. Returns only if it cannot be started.
///
/// # Errors
/// When it is not installed.
pub fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let program = beside().unwrap_or_else(|| PROGRAM.into());
    let error = Command::new(&program).args(arguments).exec();
    let context = if error.kind() == ErrorKind::NotFound {
        format!(
            "{PROGRAM} is neither beside spawnscope nor in PATH: build it with `make fleet`, and install it with `make install-fleet`"
        )
    } else {
        format!("failed to run {}", program.display())
    };
    Err(Error::new(error).context(context))
}

/// The program in the folder of this one, if it is there.
fn beside() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name(PROGRAM);
    path.exists().then_some(path)
}
