//! The parent's part of a spawn: makes pipes, writes the job for the child, and reads the child's
//! report.

mod create;
pub(crate) mod dumpable;
mod guards;

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use self::create::Start;
use self::create::{clone_error, create};
use self::dumpable::DumpableGuard;
use self::guards::{CancellationGuard, SignalGuard};
use crate::child;
use crate::child::job::{ChildReport, Job, SHARES_MEMORY};
use crate::error::{Error, Stage};
use crate::plan::{Move, Plan};
use crate::process::Child;
use crate::stdio::{Pipe, Source};
use crate::sys::syscall;
use crate::workspace::{ChildMemory, Workspace};

/// The number of descriptors up to which a table is cheap to copy (a few microseconds). Sharing the
/// table helps only above it.
const SMALL_TABLE_DESCRIPTORS: i32 = 1024;

/// Whether close_range with CLOSE_RANGE_UNSHARE is missing. It is then not tried again.
static IS_UNSHARE_MISSING: AtomicBool = AtomicBool::new(false);

/// Pipes between parent and child, by the child's descriptor.
type Pipes = [Option<Pipe>; 3];

pub(crate) fn launch(plan: &Arc<Plan>, start: Start) -> Result<Child, Error> {
    let cancellation_disabled = CancellationGuard::new();
    let child = launch_uncancelled(plan, start);
    // Dropped while `child` is a local: a pending cancellation acts here and unwinds, and must then
    // drop the child's handle.
    drop(cancellation_disabled);
    child
}

fn launch_uncancelled(plan: &Arc<Plan>, start: Start) -> Result<Child, Error> {
    check_numbered_sources(plan)?;
    let pipes = make_pipes(plan)?;
    match launch_with(plan, start, &pipes, !IS_UNSHARE_MISSING.load(Ordering::Relaxed)) {
        Err(error) if error.stage() == Stage::UnshareFiles => {
            // Other errors, such as ENOMEM, may be temporary.
            if matches!(error.raw_os_error(), libc::ENOSYS | libc::EPERM | libc::EINVAL) {
                IS_UNSHARE_MISSING.store(true, Ordering::Relaxed);
            }
            launch_with(plan, start, &pipes, false)
        }
        result => result,
    }
    .map(|child| child.with_pipes(pipes))
}

/// Replaces this process by the program: takes the steps that a child would take. Returns only if
/// one of them fails.
pub(crate) fn replace(plan: &Plan) -> Error {
    if plan.attributes.cgroup.is_some()
        || plan.placements.iter().any(|placement| matches!(placement.source, Source::Piped))
    {
        return Error::invalid("replace this process: a pipe or a cgroup needs a new process");
    }
    let _cancellation_disabled = CancellationGuard::new();
    take_steps(plan).unwrap_or_else(|error| error)
}

/// Takes the steps of a child. Returns the error of the step that failed.
fn take_steps(plan: &Plan) -> Result<Error, Error> {
    check_numbered_sources(plan)?;
    let workspace = Workspace::take()?;
    let report = ReportMemory::new(false, &workspace)?;
    // SAFETY: the workspace is ours, and the job complete; nothing is shared with another process.
    unsafe {
        let job = &mut *write_job(plan, &workspace, &report, &[const { None }; 3], Start::Waited, false);
        job.parent_pid = std::os::unix::process::parent_id();
        let blocked = SignalGuard::new()?;
        job.signal_mask.get_or_insert(blocked.previous_mask);
        let failure = child::run(job);
        Ok(plan.error(failure.stage, failure.index, failure.errno))
    }
}

/// Checks that every source that is given by its number is open. Otherwise, the next pipe or the
/// pidfd could get that number.
fn check_numbered_sources(plan: &Plan) -> Result<(), Error> {
    for placement in &plan.placements {
        if let Source::Number(number) = placement.source {
            // SAFETY: integers.
            unsafe { syscall!(SYS_fcntl, number, libc::F_GETFD) }.map_err(|errno| {
                let action = format!("dup {number} to {}", placement.target);
                Error::new(Stage::Dup, errno, action)
            })?;
        }
    }
    Ok(())
}

fn make_pipes(plan: &Plan) -> Result<Pipes, Error> {
    let mut pipes = [const { None }; 3];
    for placement in &plan.placements {
        if let (Source::Piped, Some(pipe)) = (&placement.source, pipes.get_mut(placement.target as usize)) {
            *pipe = Some(Pipe::new()?);
        }
    }
    Ok(pipes)
}

/// Returns the child's end of the pipe for `target`, or -1 without a pipe. The child reads standard
/// input and writes the other streams.
fn pipe_end(pipes: &Pipes, target: i32) -> i32 {
    let pipe = pipes.get(target as usize).and_then(Option::as_ref);
    pipe.map_or(-1, |pipe| match target {
        0 => pipe.reader.as_raw_fd(),
        _ => pipe.writer.as_raw_fd(),
    })
}

fn launch_with(plan: &Arc<Plan>, start: Start, pipes: &Pipes, may_share_files: bool) -> Result<Child, Error> {
    let workspace = Workspace::take()?;
    let report = ReportMemory::new(plan.attributes.forks(), &workspace)?;
    // SAFETY: only we use the workspace until the child is created.
    let job = unsafe { write_job(plan, &workspace, &report, pipes, start, may_share_files) };
    let created = {
        let blocked = plan.attributes.need_blocked_signals().then(SignalGuard::new).transpose()?;
        if let Some(blocked) = &blocked {
            // SAFETY: as above.
            unsafe { (*job).signal_mask.get_or_insert(blocked.previous_mask) };
        }
        let _dumpable = plan.attributes.identity.is_some().then(DumpableGuard::new);
        // SAFETY: the job is complete; plan and workspace stay valid until the child has left this
        // memory.
        unsafe { create(plan, job, &workspace, start) }
    };
    let handle = created.map_err(|errno| clone_error(plan, errno))?;
    let has_own_group = plan.attributes.new_session || plan.attributes.process_group == Some(0);
    let child = Child::new(handle, has_own_group);
    if start == Start::Detached {
        return finish_detached(child, ChildMemory { workspace, plan: Arc::clone(plan) });
    }
    // SAFETY: the job is still valid, and the child no longer uses it.
    let job = unsafe { &*job };
    match job.reported_error(plan) {
        None => Ok(child),
        Some(error) => Err(reap(&child, error)),
    }
}

/// Completes a child that runs at the same time as the parent. If the child starts with our file
/// table, waits until it has its own, because the caller may close or open descriptors as soon as
/// it continues.
fn finish_detached(mut child: Child, child_memory: ChildMemory) -> Result<Child, Error> {
    let job = child_memory.job();
    if job.parent_waits_for_files {
        while child_memory.sharing_state().load(Ordering::Acquire) == SHARES_MEMORY && !child.handle.has_ended() {
            child_memory.sleep_while(SHARES_MEMORY);
        }
        if let Some(error) = job.reported_error(&child_memory.plan)
            && error.stage() == Stage::UnshareFiles
        {
            return Err(reap(&child, error));
        }
    }
    child.child_memory = Some(child_memory);
    Ok(child)
}

/// Waits for a child that has failed and is about to end.
fn reap(child: &Child, error: Error) -> Error {
    let _ = child.handle.wait(0);
    error
}

/// The memory that the child writes its report to: a part of the workspace or, for a forked child,
/// which has only a copy of the workspace, a shared mapping.
#[derive(Debug)]
struct ReportMemory {
    address: *mut ChildReport,
    is_mapped: bool,
}

impl ReportMemory {
    fn new(fork: bool, workspace: &Workspace) -> Result<ReportMemory, Error> {
        if !fork {
            return Ok(ReportMemory { address: workspace.report(), is_mapped: false });
        }
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping does not affect others.
        unsafe { syscall!(SYS_mmap, 0, size_of::<ChildReport>(), protection, flags, -1isize, 0) }
            .map(|address| ReportMemory { address: address as *mut ChildReport, is_mapped: true })
            .map_err(|errno| Error::new(Stage::Stack, errno, "map memory for the report of a forked child"))
    }
}

impl Drop for ReportMemory {
    fn drop(&mut self) {
        if self.is_mapped {
            // SAFETY: mapped in `new`, and no longer used.
            unsafe {
                let _ = syscall!(SYS_munmap, self.address, size_of::<ChildReport>());
            }
        }
    }
}

unsafe fn write_job(
    plan: &Plan,
    workspace: &Workspace,
    report: &ReportMemory,
    pipes: &Pipes,
    start: Start,
    may_share_files: bool,
) -> *mut Job {
    let moves: *mut Move = workspace.moves();
    let move_count = plan.placements.len();
    // SAFETY: the workspace has room for a report, a job, and as many moves as a plan may have.
    unsafe {
        plan.write_moves(moves, |target| pipe_end(pipes, target));
        report.address.write(ChildReport::default());
        let needed = plan.highest_needed(std::slice::from_raw_parts(moves, move_count));
        let shares = may_share_files
            && plan.attributes.close_others
            // An action may name any of the parent's descriptors.
            && plan.attributes.actions.is_empty()
            && needed < SMALL_TABLE_DESCRIPTORS
            // The parent of a detached child waits until the child has its own table, which must be
            // worth it.
            && (start == Start::Waited || (!plan.attributes.forks() && has_large_table()));
        workspace.job().write(Job {
            plan,
            report: report.address,
            moves,
            move_count,
            unshare_above: shares.then_some(needed),
            parent_waits_for_files: shares && start == Start::Detached,
            close_flags: 0,
            clear_handlers: false,
            signal_mask: plan.attributes.signal_mask,
            envp: plan.envp.as_ptr(),
            parent_pid: plan.attributes.parent_death_signal.map_or(0, |_| std::process::id()),
        });
    }
    workspace.job()
}

/// Returns whether the table of descriptors is expensive to copy, judged by the lowest free number.
fn has_large_table() -> bool {
    // A descriptor of its own: closing a copy of one of the caller's would release the caller's
    // POSIX record locks on that file. SAFETY: integers; the descriptor is closed at once. If it
    // cannot be created, the table counts as small.
    unsafe {
        syscall!(SYS_eventfd2, 0, libc::EFD_CLOEXEC).is_ok_and(|lowest| {
            let _ = syscall!(SYS_close, lowest);
            lowest >= SMALL_TABLE_DESCRIPTORS as usize
        })
    }
}
