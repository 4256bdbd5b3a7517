//! Reads a recording from standard input, which `-` names. SQLite needs a file, so the recording is
//! copied to a temporary file without a name, and this file replaces standard input. From then on,
//! its path is /dev/stdin, also in messages.

use std::env;
use std::fs::{File, Permissions};
use std::io::{self, IsTerminal, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nix::unistd::dup2_stdin;

use super::args::STANDARD_STREAM;
use crate::record::is_recording;

const STANDARD_INPUT: &str = "/dev/stdin";
/// Number of bytes to copy before checking that they are the beginning of a recording: standard
/// input may be endless.
const CHECKED_BYTES: u64 = 4096;

pub fn is_standard_input(file: &Path) -> bool {
    file == Path::new(STANDARD_INPUT)
}

pub fn replace_standard_input(files: Vec<&mut PathBuf>) -> Result<()> {
    let mut named = files.into_iter().filter(|file| *file == Path::new(STANDARD_STREAM));
    let Some(file) = named.next() else { return Ok(()) };
    if named.next().is_some() {
        bail!(
            "standard input has one recording, but `-` was given more than once: give file names for the other recordings"
        );
    }
    if io::stdin().is_terminal() {
        bail!("standard input is a terminal: pipe a recording into spawnscope, or name its file");
    }
    let directory = env::temp_dir();
    let copy_failure = || {
        format!(
            "failed to copy standard input to {}: name another directory in TMPDIR, or the file of the recording",
            directory.display()
        )
    };
    let mut copy = tempfile::tempfile_in(&directory).with_context(copy_failure)?;
    copy.set_permissions(Permissions::from_mode(0o600)).with_context(copy_failure)?;
    let mut input = stdin_without_buffer().context("failed to read standard input")?;
    io::copy(&mut input.by_ref().take(CHECKED_BYTES), &mut copy).with_context(copy_failure)?;
    if !is_recording(&descriptor_path(&copy)) {
        bail!("standard input is not a spawnscope recording: pipe a file that `spawnscope record` wrote");
    }
    io::copy(&mut input, &mut copy).with_context(copy_failure)?;
    dup2_stdin(&copy).with_context(copy_failure)?;
    *file = PathBuf::from(STANDARD_INPUT);
    Ok(())
}

/// Returns standard input as a file. `io::stdin` has a buffer, so it may read more than it returns.
fn stdin_without_buffer() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

fn descriptor_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
