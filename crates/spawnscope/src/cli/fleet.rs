//! `spawnscope fleet`: executes `spawnscope-fleet`. That program is a Python package, because its
//! query engine is installed in seconds there, and would take minutes to build here.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Error, Result};

use super::exit::Status;
const PROGRAM: &str = "spawnscope-fleet";

pub const EXAMPLES: &str = "\
Examples:
  spawnscope export --format parquet -o fleet/ spawnscope.db
  spawnscope fleet top fleet/
  spawnscope fleet regressions --since 2026-11-10 --check fleet/
  spawnscope fleet dashboard --html fleet.html fleet/
  spawnscope doctor -o fleet/
  spawnscope fleet push fleet/ s3://builds/fleet
  spawnscope fleet sql fleet/ \"SELECT host, wall_ns FROM runs\"";

/// Runs the program with the same arguments. Returns only if it cannot be started.
pub fn run(arguments: &[OsString]) -> Result<Status> {
    let program = program();
    let error = Command::new(&program).args(arguments).exec();
    Err(start_error(&program, error))
}

/// Whether a dataset is in an object store. Only `spawnscope-fleet` has a client for object stores.
#[cfg(feature = "parquet")]
pub fn is_store(dataset: &Path) -> bool {
    dataset.to_str().is_some_and(|name| name.contains("://"))
}

/// Copies the files of a dataset to another dataset, except those that it already has.
#[cfg(feature = "parquet")]
pub fn push(from: &Path, to: &Path) -> Result<()> {
    let program = program();
    let status = Command::new(&program).arg("push").arg(from).arg(to).status();
    let status = status.map_err(|error| start_error(&program, error))?;
    if !status.success() {
        anyhow::bail!("failed to add all files to {}: export again", to.display());
    }
    Ok(())
}

/// Returns the path of `spawnscope-fleet` in the directory of this program, or only its name if it
/// is not there.
fn program() -> PathBuf {
    match std::env::current_exe().map(|this_program| this_program.with_file_name(PROGRAM)) {
        Ok(path) if path.exists() => path,
        _ => PROGRAM.into(),
    }
}

fn start_error(program: &Path, error: io::Error) -> Error {
    if error.kind() == ErrorKind::NotFound {
        return anyhow::anyhow!(
            "{PROGRAM} is neither in the directory of spawnscope nor in PATH: install it with `pipx install 'spawnscope-fleet[s3]'`, or with \
             `make install-fleet` in a checkout"
        );
    }
    Error::new(error).context(format!("failed to run {}", program.display()))
}
