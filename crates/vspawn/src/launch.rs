//! The parent's side of a spawn: pipes, the job for the child, and what the child reported.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::child::{self, INSIDE, Job, Report};
use crate::create::{clone_error, create};
use crate::descriptors::Move;
use crate::dumpable::DumpableKept;
use crate::error::{Error, Stage};
use crate::guards::{CancellationHeld, SignalsBlocked};
use crate::plan::Plan;
use crate::process::{Child, Parts};
use crate::stdio::{Pipe, Source};
use crate::sys::syscall;
use crate::workspace::{InUse, Workspace};

/// Whether the parent continues before the child has called exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// After the exec, or its failure.
    Waited,
    /// At once.
    Detached,
}

/// Copying a descriptor table up to this number takes a few microseconds; sharing only helps above it.
const SMALL_TABLE: i32 = 1024;

/// close_range with CLOSE_RANGE_UNSHARE is missing, so it is not tried again.
static NO_UNSHARE: AtomicBool = AtomicBool::new(false);

/// Pipes between parent and child, by the child's descriptor.
type Pipes = [Option<Pipe>; 3];

/// Starts a child.
pub(crate) fn launch(plan: &Arc<Plan>, start: Start) -> Result<Child, Error> {
    let held = CancellationHeld::new();
    let child = launch_uncancelled(plan, start);
    // By name and not as the last drop: a cancellation that acts here unwinds, and must drop the child's handle.
    drop(held);
    child
}

fn launch_uncancelled(plan: &Arc<Plan>, start: Start) -> Result<Child, Error> {
    check_numbers(plan)?;
    let pipes = make_pipes(plan)?;
    match launch_with(plan, start, &pipes, !NO_UNSHARE.load(Ordering::Relaxed)) {
        Err(error) if error.stage() == Stage::UnshareFiles => {
            // Others, such as ENOMEM, may be temporary.
            if matches!(error.raw_os_error(), libc::ENOSYS | libc::EPERM | libc::EINVAL) {
                NO_UNSHARE.store(true, Ordering::Relaxed);
            }
            launch_with(plan, start, &pipes, false)
        }
        result => result,
    }
    .map(|parts| Child::new(parts, pipes))
}

/// Replaces this process: what a child does, without a child.
pub(crate) fn replace(plan: &Plan) -> Error {
    let piped = |placement: &crate::plan::Placement| matches!(placement.source, Source::Piped);
    if plan.cgroup.is_some() || plan.placements.iter().any(piped) {
        return Error::invalid("replace this process with a pipe or in a cgroup: there is no parent to serve it");
    }
    let _held = CancellationHeld::new();
    let in_place = || {
        check_numbers(plan)?;
        let workspace = Workspace::take()?;
        let report = ReportPlace::Beside(workspace.report());
        // SAFETY: the workspace is ours, and the job complete; nothing is shared with another process.
        unsafe {
            let job = &mut *write_job(plan, &workspace, &report, &[const { None }; 3], Start::Waited, false);
            job.parent_pid = std::os::unix::process::parent_id();
            let _blocked = SignalsBlocked::new()?;
            let failure = child::run(job);
            Ok(plan.error(job, failure.stage, failure.index, failure.errno))
        }
    };
    in_place().unwrap_or_else(|error| error)
}

/// If a source's number is not open, the next pipe or the pidfd would get it.
fn check_numbers(plan: &Plan) -> Result<(), Error> {
    for placement in &plan.placements {
        if let Source::Number(number) = placement.source {
            // SAFETY: integers.
            unsafe { syscall!(SYS_fcntl, number, libc::F_GETFD) }.map_err(|errno| {
                let action = format!("dup of {number} to {}", placement.target);
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

/// The child reads its standard input and writes the other streams.
fn pipe_end(pipes: &Pipes, target: i32) -> i32 {
    let pipe = pipes.get(target as usize).and_then(Option::as_ref);
    pipe.map_or(-1, |pipe| match target {
        0 => pipe.reader.as_raw_fd(),
        _ => pipe.writer.as_raw_fd(),
    })
}

fn launch_with(plan: &Arc<Plan>, start: Start, pipes: &Pipes, may_share_files: bool) -> Result<Parts, Error> {
    let workspace = Workspace::take()?;
    let report = ReportPlace::new(plan.fork, &workspace)?;
    // SAFETY: only we use the workspace until the child is created.
    let job = unsafe { write_job(plan, &workspace, &report, pipes, start, may_share_files) };
    let created = {
        // Signals first, so that no handler of this thread runs within the section of the dumpable flag. A detached
        // child does not need this, unless it ignores or blocks signals: CLONE_CLEAR_SIGHAND alone prevents our handlers
        // from running in it, and two system calls are a tenth of this start's time.
        let must_block =
            start == Start::Waited || plan.ignored_signals | plan.signal_mask != 0 || !plan.actions.is_empty();
        let _blocked = must_block.then(SignalsBlocked::new).transpose()?;
        let _dumpable = plan.identity.is_some().then(DumpableKept::new);
        // SAFETY: the job is complete; plan and workspace stay valid until the child has left this memory.
        unsafe { create(plan, job, &workspace, start) }
    };
    let handle = created.map_err(|errno| clone_error(plan, errno))?;
    let parts = Parts {
        handle,
        in_use: None,
        has_own_group: plan.new_session || plan.process_group == Some(0),
    };
    if start == Start::Detached {
        let in_use = InUse {
            workspace,
            plan: Arc::clone(plan),
        };
        return detached(parts, in_use);
    }
    // SAFETY: still valid, and the child has left it.
    let job = unsafe { &*job };
    match failure(plan, job) {
        None => Ok(parts),
        Some(error) => {
            parts.reap();
            Err(error)
        }
    }
}

/// The handle of a child that runs beside us. If it began with our file table, it first has to get its own: the caller may
/// close or open descriptors as soon as it continues.
fn detached(parts: Parts, in_use: InUse) -> Result<Parts, Error> {
    let job = in_use.job();
    if job.parent_waits_for_files {
        while in_use.inside().load(Ordering::Acquire) == INSIDE && !parts.handle.has_ended() {
            in_use.sleep_while(INSIDE);
        }
        if let Some(error) = failure(&in_use.plan, job)
            && error.stage() == Stage::UnshareFiles
        {
            parts.reap();
            return Err(error);
        }
    }
    Ok(Parts {
        in_use: Some(in_use),
        ..parts
    })
}

/// What the child reported, if it failed.
pub(crate) fn failure(plan: &Plan, job: &Job) -> Option<Error> {
    let report = job.report();
    let errno = report.errno.load(Ordering::Acquire);
    let stage = Stage::from_number(report.stage.load(Ordering::Relaxed));
    let index = report.index.load(Ordering::Relaxed) as usize;
    (errno != 0).then(|| plan.error(job, stage, index, errno))
}

/// Where the child writes its report: beside the job, or in memory that a forked child shares too.
#[derive(Debug)]
enum ReportPlace {
    Beside(*mut Report),
    Shared(*mut Report),
}

impl ReportPlace {
    fn new(fork: bool, workspace: &Workspace) -> Result<ReportPlace, Error> {
        if !fork {
            return Ok(ReportPlace::Beside(workspace.report()));
        }
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping does not affect others.
        unsafe { syscall!(SYS_mmap, 0, size_of::<Report>(), protection, flags, -1isize, 0) }
            .map(|address| ReportPlace::Shared(address as *mut Report))
            .map_err(|errno| Error::new(Stage::Stack, errno, "map memory that a forked child can report in"))
    }

    fn address(&self) -> *mut Report {
        match *self {
            ReportPlace::Beside(report) | ReportPlace::Shared(report) => report,
        }
    }
}

impl Drop for ReportPlace {
    fn drop(&mut self) {
        if let ReportPlace::Shared(report) = *self {
            // SAFETY: mapped in `new`, and no longer used.
            unsafe {
                let _ = syscall!(SYS_munmap, report, size_of::<Report>());
            }
        }
    }
}

unsafe fn write_job(
    plan: &Plan,
    workspace: &Workspace,
    report: &ReportPlace,
    pipes: &Pipes,
    start: Start,
    may_share_files: bool,
) -> *mut Job {
    let moves: *mut Move = workspace.moves();
    let move_count = plan.placements.len();
    // SAFETY: the workspace has room for a report, a job, and as many moves as a plan may have.
    unsafe {
        plan.write_moves(moves, |target| pipe_end(pipes, target));
        report.address().write(Report::default());
        let needed = plan.highest_needed(std::slice::from_raw_parts(moves, move_count));
        let shares = may_share_files
            && plan.close_others
            // An action may name any of the parent's descriptors.
            && plan.actions.is_empty()
            && needed < SMALL_TABLE
            // A detached child is waited for until it has its own table, so that must be worth it.
            && (start == Start::Waited || (!plan.fork && has_large_table()));
        workspace.job().write(Job {
            plan,
            report: report.address(),
            moves,
            move_count,
            unshare_above: shares.then_some(needed),
            parent_waits_for_files: shares && start == Start::Detached,
            close_flags: 0,
            clear_handlers: false,
            envp: plan.envp.as_ptr(),
            parent_pid: plan.parent_death_signal.map_or(0, |_| std::process::id()),
        });
    }
    workspace.job()
}

/// Whether the table of descriptors is large enough to be expensive to copy: the lowest free number is then a large one.
fn has_large_table() -> bool {
    // SAFETY: integers; the copy is closed at once. Without any open descriptor among the first three, the table counts as small.
    unsafe {
        let copy = (0..3).find_map(|fd| syscall!(SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, 0).ok());
        copy.is_some_and(|copy| {
            let _ = syscall!(SYS_close, copy);
            copy >= SMALL_TABLE as usize
        })
    }
}
