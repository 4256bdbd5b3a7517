//! Shells: which there are, and one that launches as scripts do, told how often through a pipe.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::LabError;

/// The file of a program along PATH, or along the system's own path where there is none, as exec has it.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    along(&std::env::var_os("PATH").unwrap_or_else(default_path), program)
}

fn along(path: &OsStr, program: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let is_program = |file: &PathBuf| {
        file.metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path)
        .map(|folder| folder.join(program))
        .find(is_program)
}

/// The name of that path on Linux, whichever the C library: the first of those that POSIX has.
const CS_PATH: libc::c_int = 0;

/// Where the standard utilities are, by the word of the C library.
fn default_path() -> OsString {
    let mut path = vec![0u8; 256];
    // SAFETY: the buffer is as long as it is said to be.
    let length = unsafe { libc::confstr(CS_PATH, path.as_mut_ptr().cast(), path.len()) };
    // With the null byte; nothing where it is not known, and more where it did not fit.
    if (1..=path.len()).contains(&length) {
        path.truncate(length - 1);
        return OsString::from_vec(path);
    }
    "/usr/local/bin:/usr/bin:/bin".into()
}

/// A shell that holds a variable of a given length, and launches a program when it is told to.
pub struct ShellParent {
    child: Child,
    pipes: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
}

/// Counts those that ended well, so that a launch which failed is seen. Zeros are the quickest that bash has to fill a
/// variable with: a GB takes it seconds, and `TAKEN_TO_FILL` times the memory.
const SCRIPT: &str = r#"ballast=
if (($1)); then printf -v ballast '%0*d' "$1" 0; fi
echo "${#ballast}"
while read -r count; do
    done=0
    for ((i = 0; i < count; i++)); do "$2" && ((++done)); done
    echo "$done"
done"#;
/// While bash is filled, it has what it will have, and a copy.
pub const TAKEN_TO_FILL: u64 = 2;
/// While it is filled, who waits looks up so often.
const PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

impl ShellParent {
    /// Starts bash with so many bytes in a variable, unless `goes_on` says no meanwhile.
    ///
    /// # Errors
    /// When it cannot be started, or did not get them.
    pub fn start(
        bash: &Path,
        bytes: u64,
        program: &Path,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<ShellParent>, LabError> {
        let mut child = Command::new(bash)
            .args(["-c", SCRIPT, "bash", &bytes.to_string()])
            .arg(program)
            // A multibyte encoding has it count characters for seconds.
            .env("LC_ALL", "C")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(LabError::doing("start bash"))?;
        let pipes = child.stdin.take().zip(child.stdout.take().map(BufReader::new));
        let pipes = pipes.ok_or_else(|| LabError::Untrusted("bash has no pipes".to_owned()))?;
        let parent = ShellParent {
            child,
            pipes: RefCell::new(pipes),
        };
        while !parent.has_answered()? {
            if !goes_on() {
                return Ok(None);
            }
        }
        parent.heard(bytes)?;
        Ok(Some(parent))
    }

    /// Launches so many times, and once before that does not count where these are more than one: nanoseconds of one.
    ///
    /// # Errors
    /// When not all of them ended well.
    pub fn launch(&self, count: u32) -> Result<f64, LabError> {
        if count > 1 {
            self.timed(1)?;
        }
        self.timed(count)
    }

    fn timed(&self, count: u32) -> Result<f64, LabError> {
        let began = Instant::now();
        writeln!(self.pipes.borrow_mut().0, "{count}").map_err(LabError::doing("ask bash"))?;
        self.heard(u64::from(count))?;
        Ok(began.elapsed().as_nanos() as f64 / f64::from(count))
    }

    /// Whether there is something to read, or its end, within a moment.
    fn has_answered(&self) -> Result<bool, LabError> {
        let pipes = self.pipes.borrow();
        match poll(&mut [PollFd::new(pipes.1.get_ref(), PollFlags::IN)], Some(&PATIENCE)) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(LabError::doing("wait for bash")(errno.into())),
        }
    }

    fn heard(&self, number: u64) -> Result<(), LabError> {
        let mut line = String::new();
        let read = self.pipes.borrow_mut().1.read_line(&mut line);
        match read.map_err(LabError::doing("hear bash"))? {
            0 => Err(LabError::Untrusted("bash ended, perhaps for want of memory".to_owned())),
            _ if line.trim() == number.to_string() => Ok(()),
            _ => Err(LabError::Untrusted(format!(
                "bash answered `{}`, not {number}",
                line.trim()
            ))),
        }
    }
}

impl Drop for ShellParent {
    fn drop(&mut self) {
        // It may be filling its variable, and would not hear of the end of its input.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_path_programs_are_found_along_that_of_the_system() {
        let path = default_path();
        assert!(
            std::env::split_paths(&path).all(|folder| folder.is_absolute()),
            "{path:?}"
        );
        assert!(along(&path, "sh").is_some(), "{path:?}");
        assert_eq!(along(&path, "no-such-program"), None);
    }
}
