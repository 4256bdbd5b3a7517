//! The parent's side of a spawn: pipes, the clone call and its fallbacks, and what the child reported.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::arch::clone_arguments;
use crate::child::{self, INSIDE, Job, Report};
use crate::descriptors::Move;
use crate::dumpable::DumpableKept;
use crate::error::{Error, Stage};
use crate::guards::{CancellationHeld, SignalsBlocked};
use crate::handle::{Handle, pidfd_open};
use crate::plan::Plan;
use crate::process::{Child, Parts};
use crate::stdio::{Pipe, Source};
use crate::sys::{
    CLONE_ARGS_FIRST_BYTES, CLONE_CLEAR_SIGHAND, CLONE_INTO_CGROUP, CloneArgs, Errno, clone_into, syscall,
};
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

/// clone3 is missing (an old kernel, or a seccomp filter), so it is not tried again.
static NO_CLONE3: AtomicBool = AtomicBool::new(false);
/// The same for close_range with CLOSE_RANGE_UNSHARE.
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

/// Creates the child, without a pidfd if there is no number for it. An emulator that refuses pidfds (qemu-user) is only known for a
/// fork: it would serve a request for shared memory by a copy, without a word.
unsafe fn create(plan: &Plan, job: *mut Job, workspace: &Workspace, start: Start) -> Result<Handle, Errno> {
    // SAFETY: the caller's promise.
    unsafe {
        match create_with(plan, job, workspace, start, libc::CLONE_PIDFD as u64) {
            Err(libc::EMFILE | libc::ENFILE) => create_with(plan, job, workspace, start, 0),
            Err(libc::EINVAL) if plan.fork => fork_without_pidfd(plan, job, workspace).map_err(|_| libc::EINVAL),
            result => result,
        }
    }
}

/// An emulator also ignores CLONE_VFORK: that the child has called exec or ended is known when it has closed a pipe.
unsafe fn fork_without_pidfd(plan: &Plan, job: *mut Job, workspace: &Workspace) -> Result<Handle, Errno> {
    let pipe = Pipe::new().map_err(|error| error.raw_os_error())?;
    let above = plan.highest_target.saturating_add(1);
    // SAFETY: a job that is ours until the child is created; the new descriptor has no other owner; a byte of ours.
    unsafe {
        let writer = syscall!(SYS_fcntl, pipe.writer.as_raw_fd(), libc::F_DUPFD_CLOEXEC, above)?;
        let writers = (OwnedFd::from_raw_fd(writer as i32), pipe.writer);
        (*job).close_flags = libc::CLOSE_RANGE_CLOEXEC;
        let child = create_with(plan, job, workspace, Start::Waited, 0)?;
        drop(writers);
        let mut byte = 0u8;
        let _ = syscall!(SYS_read, pipe.reader.as_raw_fd(), &raw mut byte, 1);
        // No other code knows the child yet, so the number is still its own.
        let pidfd = pidfd_open(child.pid).ok();
        Ok(Handle { pidfd, ..child })
    }
}

/// Uses clone3, or else clone; fork only if it was requested.
unsafe fn create_with(
    plan: &Plan,
    job: *mut Job,
    workspace: &Workspace,
    start: Start,
    pidfd_flag: u64,
) -> Result<Handle, Errno> {
    let mut pidfd = -1i32;
    // SAFETY: the caller's promise; `pidfd` is written before the parent continues.
    let pid = unsafe {
        let report = (*job).report;
        let mut flags = pidfd_flag;
        if !plan.fork {
            flags |= libc::CLONE_VM as u64;
        }
        if start == Start::Waited {
            flags |= libc::CLONE_VFORK as u64;
        } else {
            flags |= libc::CLONE_CHILD_CLEARTID as u64;
            (*report).inside.store(INSIDE, Ordering::Relaxed);
        }
        if (*job).unshare_above.is_some() {
            flags |= libc::CLONE_FILES as u64;
        }
        let args = CloneArgs {
            flags: flags | CLONE_CLEAR_SIGHAND,
            pidfd: (&raw mut pidfd) as u64,
            child_tid: (*report).inside.as_ptr() as u64,
            exit_signal: libc::SIGCHLD as u64,
            // A forked child uses the caller's stack, and a pre_exec function may need a large one.
            stack: if plan.fork { 0 } else { workspace.stack() as u64 },
            stack_size: if plan.fork { 0 } else { workspace.stack_bytes() as u64 },
            ..CloneArgs::default()
        };
        match clone3(plan, args, job) {
            // EINVAL: Linux 5.3 and 5.4 have clone3 but not CLONE_CLEAR_SIGHAND.
            Err(errno @ (libc::ENOSYS | libc::EPERM | libc::EINVAL)) if plan.cgroup.is_none() => {
                let result = clone(args, flags, job);
                if errno == libc::ENOSYS || (errno == libc::EINVAL && result.is_ok()) {
                    NO_CLONE3.store(true, Ordering::Relaxed);
                }
                result
            }
            result => result,
        }?
    };
    Ok(Handle {
        pid: pid as u32,
        // Before Linux 5.2, clone ignores the flag.
        // SAFETY: the kernel has stored a new descriptor, which has no other owner.
        pidfd: (pidfd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(pidfd) }),
    })
}

unsafe fn clone3(plan: &Plan, mut args: CloneArgs, job: *mut Job) -> Result<usize, Errno> {
    if NO_CLONE3.load(Ordering::Relaxed) && plan.cgroup.is_none() {
        return Err(libc::ENOSYS);
    }
    let mut bytes = CLONE_ARGS_FIRST_BYTES;
    if let Some(cgroup) = &plan.cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = cgroup.as_raw_fd() as u64;
        bytes = size_of::<CloneArgs>();
    }
    // SAFETY: the caller's promise.
    unsafe {
        clone_into(
            libc::SYS_clone3,
            [(&raw const args) as usize, bytes, 0, 0, 0],
            child::main,
            job.cast(),
        )
    }
}

/// clone has no CLONE_CLEAR_SIGHAND: the child clears the handlers itself, and no signal may reach it before that.
unsafe fn clone(args: CloneArgs, flags: u64, job: *mut Job) -> Result<usize, Errno> {
    let _blocked = SignalsBlocked::new().map_err(|error| error.raw_os_error())?;
    // SAFETY: as above; the place for the pidfd is passed where clone expects it.
    unsafe {
        (*job).clear_handlers = true;
        let flags = flags | args.exit_signal;
        let top = args.stack + args.stack_size;
        clone_into(
            libc::SYS_clone,
            clone_arguments(
                flags as usize,
                top as usize,
                args.pidfd as usize,
                args.child_tid as usize,
            ),
            child::main,
            job.cast(),
        )
    }
}

/// Names the request that the kernel refused; there is no silent fallback.
fn clone_error(plan: &Plan, errno: Errno) -> Error {
    let action = match errno {
        _ if plan.fork => "fork".to_owned(),
        libc::ENOSYS | libc::EPERM if plan.cgroup.is_some() => {
            "create a process in a cgroup: clone3 is refused, and clone cannot".to_owned()
        }
        libc::EINVAL | libc::EPERM => format!(
            "create a process for {} that shares memory: the kernel refuses (in another time namespace, or by a filter); \
             Command::mechanism(Mechanism::Fork) asks for a fork instead",
            plan.program
        ),
        _ => format!("create a process for {}", plan.program),
    };
    Error::new(Stage::Clone, errno, action)
}
