//! Finds programs in PATH, and controls a shell that launches programs as scripts do.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::LabError;
use super::asked::AskedChild;
use spawnscope_system::held;

pub fn find_program(program: &str) -> Option<PathBuf> {
    held::find_program(OsStr::new(program)).ok()
}

/// A bash that has a variable of a given length, and launches a program on request.
pub struct ShellParent(RefCell<AskedChild>);

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
        let mut command = Command::new(bash);
        // In a multibyte encoding, bash would need seconds to count the characters.
        command.args(["-c", SCRIPT, "bash", &bytes.to_string()]).arg(program).env("LC_ALL", "C");
        let parent = ShellParent(RefCell::new(AskedChild::start(&mut command, "bash")?));
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
        self.0.borrow_mut().ask(&count.to_string()).map_err(LabError::doing("write to bash"))?;
        self.expect_answer(u64::from(count))?;
        Ok(began.elapsed().as_nanos() as f64 / f64::from(count))
    }

    /// Waits for at most `POLL_INTERVAL`, and returns whether there is output, or its end, to read.
    fn has_answered(&self) -> Result<bool, LabError> {
        let bash = self.0.borrow();
        match poll(&mut [PollFd::new(bash.output.get_ref(), PollFlags::IN)], Some(&POLL_INTERVAL)) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(LabError::doing("wait for bash")(errno)),
        }
    }

    fn expect_answer(&self, number: u64) -> Result<(), LabError> {
        let line = self.0.borrow_mut().answer().map_err(LabError::doing("read from bash"))?;
        match line.trim() {
            _ if line.is_empty() => Err(LabError::Invalid("bash ended, possibly out of memory".to_owned())),
            answer if answer == number.to_string() => Ok(()),
            answer => Err(LabError::Invalid(format!("bash answered `{answer}`, not {number}"))),
        }
    }
}

impl Drop for ShellParent {
    fn drop(&mut self) {
        // Closing the input would not be enough: while bash fills its variable, it does not read.
        let child = &mut self.0.get_mut().child;
        let _ = child.kill();
        let _ = child.wait();
    }
}
