//! Opens a file in the user's browser.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::identity;

/// The program that opens a file as the user's desktop would.
const OPENER: &str = "xdg-open";

/// Opens the file. Under sudo this is refused: a browser must not run as root, and the desktop belongs to the user who called
/// sudo.
///
/// # Errors
/// When the opener cannot be started or fails.
pub fn open(path: &Path) -> Result<()> {
    if identity::caller()?.is_some() {
        bail!("a browser is not started as root: open {} yourself", path.display());
    }
    // A name that begins with a hyphen would be parsed as an option.
    let path = path.canonicalize().with_context(|| format!("failed to find {}", path.display()))?;
    let status = Command::new(OPENER).arg(&path).stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("failed to run {OPENER}: open {} yourself", path.display()))?;
    if !status.success() {
        bail!("{OPENER} failed ({status}): open {} yourself", path.display());
    }
    Ok(())
}
