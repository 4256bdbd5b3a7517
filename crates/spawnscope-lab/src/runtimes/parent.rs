//! Finds programs in PATH, and controls a runtime that launches programs as scripts do.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::LabError;
use crate::asked::AskedChild;
use spawnscope_data::event::Pid;
use spawnscope_system::held;

pub fn find_program(program: &str) -> Option<PathBuf> {
    held::find_program(OsStr::new(program)).ok()
}

/// A runtime that has filled memory of a given size, and launches a program on request.
pub struct RuntimeParent {
    child: RefCell<AskedChild>,
    name: String,
}

/// The peak memory of a launcher while it fills its memory, as a multiple of the size that it is
/// given: bash has the value of its variable and a copy.
pub const FILL_MEMORY_FACTOR: u64 = 2;
/// The interval between checks for an interruption while memory is filled.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl RuntimeParent {
    /// Starts a launcher (`Runtime::prepare`) with this many bytes of memory. `program`: what it
    /// launches, and the status of that. Returns `None` if `may_continue` returns false while the
    /// memory is filled.
    pub fn start(
        launcher: &[PathBuf],
        name: &str,
        bytes: u64,
        (program, status): (&Path, i32),
        may_continue: &dyn Fn() -> bool,
    ) -> Result<Option<RuntimeParent>, LabError> {
        let [runtime, options @ ..] = launcher else { return Ok(None) };
        let mut command = Command::new(runtime);
        // In a multibyte encoding, bash would need seconds to count the characters.
        command.args(options).arg(bytes.to_string()).arg(program).arg(status.to_string()).env("LC_ALL", "C");
        let child = RefCell::new(AskedChild::start(&mut command, name)?);
        let parent = RuntimeParent { child, name: name.to_owned() };
        while !parent.has_answered()? {
            if !may_continue() {
                return Ok(None);
            }
        }
        parent.expect_answer(bytes)?;
        Ok(Some(parent))
    }

    pub(super) fn pid(&self) -> Pid {
        Pid(self.child.borrow().child.id() as i32)
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
        self.child.borrow_mut().ask(&count.to_string()).map_err(LabError::doing(format!("write to {}", self.name)))?;
        self.expect_answer(u64::from(count))?;
        Ok(began.elapsed().as_nanos() as f64 / f64::from(count))
    }

    /// Waits for at most `POLL_INTERVAL`, and returns whether there is output, or its end, to read.
    fn has_answered(&self) -> Result<bool, LabError> {
        let child = self.child.borrow();
        match poll(&mut [PollFd::new(child.output.get_ref(), PollFlags::IN)], Some(&POLL_INTERVAL)) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(errno) => Err(LabError::doing(format!("wait for {}", self.name))(errno)),
        }
    }

    fn expect_answer(&self, number: u64) -> Result<(), LabError> {
        let line = self.child.borrow_mut().answer().map_err(LabError::doing(format!("read from {}", self.name)))?;
        match line.trim() {
            _ if line.is_empty() => Err(LabError::Invalid(format!("{} ended, possibly out of memory", self.name))),
            answer if answer == number.to_string() => Ok(()),
            answer => Err(LabError::Invalid(format!("{} answered `{answer}`, not {number}", self.name))),
        }
    }
}

impl Drop for RuntimeParent {
    fn drop(&mut self) {
        // Closing the input would not be enough: while memory is filled, it is not read.
        let child = &mut self.child.get_mut().child;
        let _ = child.kill();
        let _ = child.wait();
    }
}
