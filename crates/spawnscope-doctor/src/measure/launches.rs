//! Makes and times launches in a measuring process, under the rules of `launch_timing`: programs
//! are prepared before the fork so that nothing is allocated after it, a launch that takes too long
//! is killed, and the times are stored in shared memory for the doctor. Bytes of zero there mean
//! that nothing is stored.

use std::ffi::{CStr, CString, OsStr, c_int};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::{c_path, median};
use spawnscope_data::event::{Nanos, Pid};
use spawnscope_system::clock::now;
use spawnscope_system::launch_timing::clone::fork;
use spawnscope_system::launch_timing::run_queue_waits::RunQueueWaits;
use spawnscope_system::launch_timing::series;
use spawnscope_system::launch_timing::shared::Shareable;
use spawnscope_system::process::{die_with_parent, is_readable_within, pidfd, reap};
use spawnscope_system::{ExecStrings, tiny};

/// How long the parent waits for a killed child before it gives up.
const TIME_TO_DIE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy)]
pub(super) enum Work<'a> {
    Exit,
    Execute(&'a Image),
    /// Executes the smallest program, which is in a file in memory.
    ExecuteInMemory(c_int),
    Write(&'a CStr, &'a [u8]),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LaunchError {
    Failed,
    TookTooLong,
}

/// Launches a child and waits for it, at most for `limit`. The child must exit with status 0.
pub(super) fn launch(work: Work<'_>, limit: Duration) -> Result<LaunchTime, LaunchError> {
    let waits = RunQueueWaits::begin();
    let began = now();
    let child = start(work)?;
    wait_for_end(child, limit)?;
    let took = now().since(began);
    let waited = waits.until_end_of(child);
    match reap(child) {
        Ok((_, 0)) => Ok(LaunchTime { took, waited }),
        _ => Err(LaunchError::Failed),
    }
}

/// Launches all programs concurrently. Adds the time from the common start to the end of each, in
/// the order in which they end.
pub(super) fn launch_concurrently<const N: usize>(images: &[Image; N], ends: &Series) -> Option<()> {
    let began = now();
    for image in images {
        start(Work::Execute(image)).ok()?;
    }
    for _ in images {
        let Ok((_, 0)) = reap(-1) else { return None };
        ends.add(LaunchTime { took: now().since(began), waited: Nanos(0) });
    }
    Some(())
}

fn start(work: Work<'_>) -> Result<c_int, LaunchError> {
    let child = fork(|| {
        die_with_parent(libc::SIGKILL);
        let succeeded = match work {
            Work::Execute(image) => image.execute(),
            Work::ExecuteInMemory(file) => tiny::execute(file),
            Work::Exit => true,
            Work::Write(path, content) => write(path, content),
        };
        c_int::from(!succeeded)
    });
    child.map_err(|_| LaunchError::Failed)
}

/// Waits for the child's end without reaping it, so that its time in the run queue can be read
/// afterwards. If that takes too long, kills and reaps the child.
fn wait_for_end(child: c_int, limit: Duration) -> Result<(), LaunchError> {
    let pidfd = pidfd(Pid(child)).map_err(|_| LaunchError::Failed)?;
    if is_readable_within(&pidfd, limit) {
        return Ok(());
    }
    // SAFETY: a plain system call; the child was not reaped.
    unsafe { libc::kill(child, libc::SIGKILL) };
    if is_readable_within(&pidfd, TIME_TO_DIE) {
        let _ = reap(child);
    }
    Err(LaunchError::TookTooLong)
}

/// A program with its arguments and environment, as execve takes them.
pub(super) struct Image {
    path: CString,
    arguments: ExecStrings,
    environment: ExecStrings,
}

impl Image {
    /// Prepares a program without arguments; returns `None` if any string contains a NUL.
    pub(super) fn new<'e>(path: &Path, variables: impl Iterator<Item = (&'e OsStr, &'e OsStr)>) -> Option<Image> {
        let path = c_path(path)?;
        Some(Image {
            arguments: ExecStrings::new(vec![path.clone()]),
            environment: ExecStrings::environment(variables)?,
            path,
        })
    }

    pub(super) fn path(&self) -> &CStr {
        &self.path
    }

    /// Executes the program, or exits with status 127.
    pub(super) fn execute(&self) -> ! {
        // SAFETY: all pointers point to strings owned by `self`, and both lists end with NULL.
        unsafe {
            libc::execve(self.path.as_ptr(), self.arguments.as_ptr(), self.environment.as_ptr());
            libc::_exit(127)
        }
    }
}

/// Creates an executable file; returns `false` on failure. Makes system calls only.
fn write(path: &CStr, content: &[u8]) -> bool {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o755));
    file.is_ok_and(|file| rustix::io::write(&file, content) == Ok(content.len()))
}

pub(super) const MAX_TIMES: usize = 48;
pub(super) const SERIES: usize = 5;

#[derive(Clone, Copy)]
pub(super) struct LaunchTime {
    pub(super) took: Nanos,
    /// How long the child and the parent waited for a CPU, as part of `took`; zero if the kernel
    /// does not report it.
    pub(super) waited: Nanos,
}

impl LaunchTime {
    /// Returns whether the launch waited for a CPU for more than half of its time.
    pub(super) fn is_disturbed(self) -> bool {
        self.waited.0 * 2 > self.took.0
    }
}

#[repr(C)]
pub(super) struct SharedResults {
    pub(super) series: [Series; SERIES],
}

/// The times of one kind of launch. All times are in nanoseconds.
#[repr(C)]
pub(super) struct Series {
    /// The time of the first launch, whose files are not yet cached.
    first_launch: series::Series<1, 1>,
    /// The time after which the first launch was abandoned.
    abandoned_after: series::Series<1, 1>,
    /// The time of each launch, and how long it waited for a CPU.
    launches: series::Series<2, MAX_TIMES>,
}

impl Series {
    pub(super) fn add(&self, launch: LaunchTime) {
        self.launches.add([launch.took.0, launch.waited.0]);
    }

    fn launches(&self) -> impl Iterator<Item = LaunchTime> {
        self.launches.rows().map(|[took, waited]| LaunchTime { took: Nanos(took), waited: Nanos(waited) })
    }

    pub(super) fn times(&self) -> Vec<Nanos> {
        self.launches().map(|launch| launch.took).collect()
    }

    /// Returns the times of the undisturbed launches. If there are fewer than `min_count`, returns
    /// the times of all launches, less their waits for a CPU.
    pub(super) fn undisturbed_times(&self, min_count: usize) -> Vec<Nanos> {
        let launches: Vec<LaunchTime> = self.launches().collect();
        let undisturbed = launches.iter().filter(|launch| !launch.is_disturbed());
        let undisturbed: Vec<Nanos> = undisturbed.map(|launch| launch.took).collect();
        if undisturbed.len() >= min_count {
            return undisturbed;
        }
        // A time during which both the child and its parent waited is subtracted twice, so the
        // difference can be zero.
        let times = launches.iter().map(|launch| launch.took.since(launch.waited));
        times.filter(|time| time.0 > 0).collect()
    }

    pub(super) fn set_first(&self, launch: LaunchTime) {
        self.first_launch.add([launch.took.0]);
    }

    pub(super) fn abandon(&self, after: Nanos) {
        self.abandoned_after.add([after.0]);
    }

    /// Returns the median, or the time of the first launch if there are no others.
    pub(super) fn typical(&self) -> Option<Nanos> {
        median(self.times()).or_else(|| only(&self.first_launch))
    }

    pub(super) fn abandoned_after(&self) -> Option<Nanos> {
        only(&self.abandoned_after)
    }
}

fn only(time: &series::Series<1, 1>) -> Option<Nanos> {
    time.rows().next().map(|[time]| Nanos(time))
}

// SAFETY: consists of atomic numbers, for which zero is valid.
unsafe impl Shareable for SharedResults {}
