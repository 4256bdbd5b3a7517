//! Finds programs in PATH, and controls a shell that launches programs as scripts do.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::LabError;
use spawnscope_system::held;

pub fn find_program(program: &str) -> Option<PathBuf> {
    held::find_program(OsStr::new(program)).ok()
}

/// A bash that has a variable of a given length, and launches a program on request.
pub struct ShellParent {
    child: Child,
    /// Connected to the standard input and output of bash.
    pipes: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
}

/// The script of `ShellParent`. It counts successful launches, so that failures are noticed. The
/// fastest way for bash to fill a variable is to format a number with leading zeros. A GB takes
/// seconds, and temporarily `FILL_MEMORY_FACTOR` times the memory.
const SCRIPT: &str = r#"ballast=
if (($1)); then printf -v ballast '%0*d' "$1" 0; fi
echo "${#ballast}"
while read -r count; do
    done=0
    for ((i = 0; i < count; i++)); do "$2" && ((++done)); done
    echo "$done"
done"#;
/// The peak memory of bash while the variable is filled, as a multiple of the variable's size: the
/// value and a copy.
pub const FILL_MEMORY_FACTOR: u64 = 2;
/// The interval between checks for an interruption while the variable is filled.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl ShellParent {
    /// Starts bash with a variable of this many bytes. Returns `None` if `may_continue` returns
    /// false while the variable is filled.
    pub fn start(
        bash: &Path,
        bytes: u64,
        program: &Path,
        may_continue: &dyn Fn() -> bool,
    ) -> Result<Option<ShellParent>, LabError> {
        let mut child = Command::new(bash)
            .args(["-c", SCRIPT, "bash", &bytes.to_string()])
            .arg(program)
            // In a multibyte encoding, bash would need seconds to count the characters.
            .env("LC_ALL", "C")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(LabError::doing("start bash"))?;
        let pipes = child.stdin.take().zip(child.stdout.take().map(BufReader::new));
        let pipes = pipes.ok_or_else(|| LabError::Invalid("no pipes to bash".to_owned()))?;
        let parent = ShellParent { child, pipes: RefCell::new(pipes) };
        while !parent.has_answered()? {
            if !may_continue() {
                return Ok(None);
            }
        }
        parent.expect_answer(bytes)?;
        Ok(Some(parent))
    }

    /// Launches the program `count` times, and returns the time of one launch in nanoseconds. If
    /// `count` is more than one, an uncounted launch comes first.
    pub fn launch(&self, count: u32) -> Result<f64, LabError> {
        if count > 1 {
            self.time_launches(1)?;
        }
        self.time_launches(count)
    }

    fn time_launches(&self, count: u32) -> Result<f64, LabError> {
        let began = Instant::now();
        writeln!(self.pipes.borrow_mut().0, "{count}").map_err(LabError::doing("write to bash"))?;
        self.expect_answer(u64::from(count))?;
        Ok(began.elapsed().as_nanos() as f64 / f64::from(count))
    }

    /// Waits for at most `POLL_INTERVAL`, and returns whether there is output, or its end, to read.
    fn has_answered(&self) -> Result<bool, LabError> {
        let pipes = self.pipes.borrow();
        match poll(&mut [PollFd::new(pipes.1.get_ref(), PollFlags::IN)], Some(&POLL_INTERVAL)) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(LabError::doing("wait for bash")(errno.into())),
        }
    }

    /// Reads a line from bash, which must be this number.
    fn expect_answer(&self, number: u64) -> Result<(), LabError> {
        let mut line = String::new();
        let read = self.pipes.borrow_mut().1.read_line(&mut line);
        match read.map_err(LabError::doing("read from bash"))? {
            0 => Err(LabError::Invalid("bash ended, possibly out of memory".to_owned())),
            _ if line.trim() == number.to_string() => Ok(()),
            _ => Err(LabError::Invalid(format!("bash answered `{}`, not {number}", line.trim()))),
        }
    }
}

impl Drop for ShellParent {
    fn drop(&mut self) {
        // Closing the input would not be enough: while bash fills its variable, it does not read.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
