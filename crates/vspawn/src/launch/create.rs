//! Creates the child by clone3 or, if clone3 is missing, by clone. The child gets a copy of the
//! parent's memory (a fork) only if that was requested.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use super::guards::SignalGuard;
use crate::arch::clone_arguments;
use crate::child;
use crate::child::job::{Job, SHARES_MEMORY};
use crate::error::{Error, Stage};
use crate::plan::Plan;
use crate::process::handle::{Handle, pidfd_open};
use crate::stdio::Pipe;
use crate::sys::{CLONE_ARGS_SIZE_VER0, CLONE_CLEAR_SIGHAND, CLONE_INTO_CGROUP, CloneArgs, Errno, clone_into, syscall};
use crate::workspace::Workspace;

/// Whether the parent continues before the child has called exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// The parent continues after the exec or its failure.
    Waited,
    /// The parent continues at once.
    Detached,
}

/// Whether clone3 is missing (an old kernel, or a seccomp filter). It is then not tried again.
static IS_CLONE3_MISSING: AtomicBool = AtomicBool::new(false);

/// Creates the child, without a pidfd if no descriptor number is free. An emulator that refuses
/// pidfds (qemu-user) is accepted only for a fork: if it were asked for shared memory without a
/// pidfd, it would silently make a copy.
pub(crate) unsafe fn create(plan: &Plan, job: *mut Job, workspace: &Workspace, start: Start) -> Result<Handle, Errno> {
    // SAFETY: the caller's promise.
    unsafe {
        if plan.attributes.pre_exec.is_some() {
            return wait_by_pipe(plan, job, || fork_with_handlers(job));
        }
        match create_with(plan, job, workspace, start, true) {
            Err(libc::EMFILE | libc::ENFILE) => create_with(plan, job, workspace, start, false),
            Err(libc::EINVAL) if plan.attributes.forks() => {
                let fork = || create_with(plan, job, workspace, Start::Waited, false);
                wait_by_pipe(plan, job, fork).map_err(|_| libc::EINVAL)
            }
            result => result,
        }
    }
}

/// Forks by libc's function, for a child that runs the caller's code. It puts the allocator's locks
/// into order, and runs the handlers of `pthread_atfork`. The child moves itself to its cgroup,
/// because only clone3 can create it there.
unsafe fn fork_with_handlers(job: *mut Job) -> Result<Handle, Errno> {
    // SAFETY: all signals are blocked, so the child can clear the handlers before any of them runs;
    // the job is a copy of its own.
    unsafe {
        (*job).clear_handlers = true;
        (*job).unshare_above = None;
        match libc::fork() {
            0 => child::main_in_cgroup(job),
            -1 => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EAGAIN)),
            pid => Ok(Handle { pid: pid as u32, pidfd: None }),
        }
    }
}

/// Creates a child by a function that gives no pidfd and ignores CLONE_VFORK: libc's fork, or the
/// clone of an emulator. The parent waits until the child has closed a pipe, which happens when it
/// calls exec or ends.
unsafe fn wait_by_pipe(
    plan: &Plan,
    job: *mut Job,
    create: impl FnOnce() -> Result<Handle, Errno>,
) -> Result<Handle, Errno> {
    let pipe = Pipe::new().map_err(|error| error.raw_os_error())?;
    let above = plan.highest_target.saturating_add(1);
    // SAFETY: a job that is ours until the child is created; the new descriptor has no other owner;
    // a byte of our own.
    unsafe {
        let writer = syscall!(SYS_fcntl, pipe.writer.as_raw_fd(), libc::F_DUPFD_CLOEXEC, above)?;
        let writers = (OwnedFd::from_raw_fd(writer as i32), pipe.writer);
        (*job).close_flags = libc::CLOSE_RANGE_CLOEXEC;
        let child = create()?;
        drop(writers);
        let mut byte = 0u8;
        let _ = syscall!(SYS_read, pipe.reader.as_raw_fd(), &raw mut byte, 1);
        // No other code can have waited for the child yet, so its pid was not reused.
        let pidfd = pidfd_open(child.pid).ok();
        Ok(Handle { pidfd, ..child })
    }
}

/// Creates the child. `may_have_pidfd`: with a pidfd, if the plan wants one.
unsafe fn create_with(
    plan: &Plan,
    job: *mut Job,
    workspace: &Workspace,
    start: Start,
    may_have_pidfd: bool,
) -> Result<Handle, Errno> {
    let mut pidfd = -1i32;
    let flag_of_pidfd = |wanted: bool| if wanted { libc::CLONE_PIDFD as u64 } else { 0 };
    // SAFETY: the caller's promise; `pidfd` is written before the parent continues.
    let pid = unsafe {
        let report = (*job).report;
        let mut flags = if plan.attributes.forks() { 0 } else { libc::CLONE_VM as u64 };
        if start == Start::Waited {
            flags |= libc::CLONE_VFORK as u64;
        } else {
            flags |= libc::CLONE_CHILD_CLEARTID as u64;
            (*report).sharing_state.store(SHARES_MEMORY, Ordering::Relaxed);
        }
        flags |= if (*job).unshare_above.is_some() { libc::CLONE_FILES as u64 } else { 0 };
        let args = CloneArgs {
            flags: flags | CLONE_CLEAR_SIGHAND | flag_of_pidfd(may_have_pidfd && !plan.attributes.without_pidfd),
            pidfd: (&raw mut pidfd) as u64,
            child_tid: (*report).sharing_state.as_ptr() as u64,
            exit_signal: libc::SIGCHLD as u64,
            // A forked child uses the caller's stack, and a pre_exec function may need a large one.
            stack: if plan.attributes.forks() { 0 } else { workspace.stack() as u64 },
            stack_size: if plan.attributes.forks() { 0 } else { workspace.stack_bytes() as u64 },
            ..CloneArgs::default()
        };
        // clone gets a pidfd even if none is wanted: an emulator that would make a copy refuses it.
        clone3_or_clone(plan, args, flags | flag_of_pidfd(may_have_pidfd), job)?
    };
    Ok(Handle {
        pid: pid as u32,
        // `pidfd` is still -1 if CLONE_PIDFD was not set, or if clone ignored it (before Linux
        // 5.2). SAFETY: the kernel has stored a new descriptor, which has no other owner.
        pidfd: (pidfd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(pidfd) }),
    })
}

/// Calls clone3, or clone with its own flags if this kernel has no clone3 that can do this.
unsafe fn clone3_or_clone(plan: &Plan, args: CloneArgs, flags: u64, job: *mut Job) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    unsafe {
        match clone3(plan, args, job) {
            // EINVAL: Linux 5.3 and 5.4 have clone3 but not CLONE_CLEAR_SIGHAND.
            Err(errno @ (libc::ENOSYS | libc::EPERM | libc::EINVAL)) if plan.attributes.cgroup.is_none() => {
                let result = clone(args, flags, job);
                if errno == libc::ENOSYS || (errno == libc::EINVAL && result.is_ok()) {
                    IS_CLONE3_MISSING.store(true, Ordering::Relaxed);
                }
                result
            }
            result => result,
        }
    }
}

unsafe fn clone3(plan: &Plan, mut args: CloneArgs, job: *mut Job) -> Result<usize, Errno> {
    if IS_CLONE3_MISSING.load(Ordering::Relaxed) && plan.attributes.cgroup.is_none() {
        return Err(libc::ENOSYS);
    }
    let mut bytes = CLONE_ARGS_SIZE_VER0;
    if let Some(cgroup) = &plan.attributes.cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = cgroup.as_raw_fd() as u64;
        bytes = size_of::<CloneArgs>();
    }
    // SAFETY: the caller's promise.
    unsafe { clone_into(libc::SYS_clone3, [(&raw const args) as usize, bytes, 0, 0, 0], child::main, job.cast()) }
}

/// Calls clone, which has no CLONE_CLEAR_SIGHAND: the child clears the handlers itself, and no
/// signal may reach it before that.
unsafe fn clone(args: CloneArgs, flags: u64, job: *mut Job) -> Result<usize, Errno> {
    let blocked = SignalGuard::new().map_err(|error| error.raw_os_error())?;
    // SAFETY: the caller's promise; the address for the pidfd is passed where clone expects it
    // (`parent_tid`).
    unsafe {
        (*job).clear_handlers = true;
        (*job).signal_mask.get_or_insert(blocked.previous_mask);
        let flags = flags | args.exit_signal;
        let top = args.stack + args.stack_size;
        clone_into(
            libc::SYS_clone,
            clone_arguments(flags as usize, top as usize, args.pidfd as usize, args.child_tid as usize),
            child::main,
            job.cast(),
        )
    }
}

/// Returns the error of a failed clone. It names the request that the kernel refused, since nothing
/// silently falls back to a fork.
pub(crate) fn clone_error(plan: &Plan, errno: Errno) -> Error {
    let action = match errno {
        _ if plan.attributes.forks() => "fork".to_owned(),
        libc::ENOSYS | libc::EPERM if plan.attributes.cgroup.is_some() => {
            "create a process in a cgroup: clone3 is refused, and clone has no option for it".to_owned()
        }
        libc::EINVAL | libc::EPERM => format!(
            "create a process for {} that shares memory: the kernel refuses it (a seccomp filter, or another time namespace); \
             Command::mechanism(Mechanism::Fork) requests a fork instead",
            plan.program
        ),
        _ => format!("create a process for {}", plan.program),
    };
    Error::new(Stage::Clone, errno, action)
}
