//! `spawnscope fleet`: replaces itself by `spawnscope-fleet`, which is a package of its own, so that only those who need its engine build it.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Error, Result};

const PROGRAM: &str = "spawnscope-fleet";

pub const EXAMPLES: &str = "\
Examples:
  spawnscope export --format parquet -o fleet/ spawnscope.db
  spawnscope fleet top fleet/
  spawnscope fleet regressions --since 2026-11-10 fleet/
  spawnscope fleet machines --html machines.html fleet/
  spawnscope doctor -o fleet/
  spawnscope fleet push fleet/ s3://builds/fleet
  spawnscope fleet sql fleet/ \"SELECT host, wall_ns FROM runs\"";

/// Runs the program with the same arguments. Returns only if it cannot be started.
///
/// # Errors
/// When it is not installed.
pub fn run(arguments: &[OsString]) -> Result<ExitCode> {
    let program = program();
    let error = Command::new(&program).args(arguments).exec();
    Err(not_run(&program, error))
}

/// Whether a dataset is in an object store. Only the program of the engine has a client for it.
#[cfg(feature = "parquet")]
pub fn is_store(dataset: &Path) -> bool {
    dataset.to_str().is_some_and(|name| name.contains("://"))
}

/// Copies the files of a dataset to another one, unless it has them.
///
/// # Errors
/// When the program is not installed or fails. It has printed why.
#[cfg(feature = "parquet")]
pub fn push(from: &Path, to: &Path) -> Result<()> {
    let program = program();
    let status = Command::new(&program).arg("push").arg(from).arg(to).status();
    let status = status.map_err(|error| not_run(&program, error))?;
    if !status.success() {
        anyhow::bail!("nothing was added to {}, or not all of it: export again", to.display());
    }
    Ok(())
}

fn program() -> PathBuf {
    next_to_this_program().unwrap_or_else(|| PROGRAM.into())
}

fn not_run(program: &Path, error: io::Error) -> Error {
    if error.kind() == ErrorKind::NotFound {
        return anyhow::anyhow!(
            "{PROGRAM} is neither in the directory of spawnscope nor in PATH: build it with `make fleet`, and install it with `make install-fleet`"
        );
    }
    Error::new(error).context(format!("failed to run {}", program.display()))
}

/// The program in the directory of this one, if it is there.
fn next_to_this_program() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name(PROGRAM);
    path.exists().then_some(path)
}
