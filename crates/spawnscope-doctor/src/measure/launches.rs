//! Makes and times launches in a measuring process, under the rules of `launch_timing`. A launch
//! that takes too long is killed.

use std::ffi::{CStr, c_int};
use std::time::Duration;

use super::image::{Image, write};
use super::shared_results::{LaunchTime, Series};
use spawnscope_data::event::{Nanos, Pid};
use spawnscope_system::clock::now;
use spawnscope_system::launch_timing::clone::fork;
use spawnscope_system::launch_timing::run_queue_waits::RunQueueWaits;
use spawnscope_system::process::{die_with_parent, is_readable_within, pidfd, reap};
use spawnscope_system::tiny;

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
