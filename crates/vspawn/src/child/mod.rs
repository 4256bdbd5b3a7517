//! The code that runs in the child between clone and exec.
//!
//! The child shares the parent's memory, and may run at the same time. The rules for all code in
//! this folder, except for the parent's function in `job.rs`:
//! 1. Raw system calls only (`syscall!`): a libc function may write errno, take a lock, or be a
//!    cancellation point, and `set*id` (in musl also `setrlimit`) signals the parent's threads.
//! 2. No allocation, no lock, no thread-local variable, no panic: no indexing, no arithmetic that
//!    can overflow, no formatting.
//! 3. No memory of the parent is written except the `ChildReport` and the `Job`'s own moves.
//! 4. None of the parent's signal handlers may run here: CLONE_CLEAR_SIGHAND has removed them, or
//!    all signals are blocked until the last step.

mod descriptors;
pub(crate) mod job;

use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;

use self::descriptors::{carry_out, close_others, place_descriptors};
use self::job::{Failure, Job, SHARES_MEMORY_ONLY, Step, failed_at};
use crate::error::Stage;
use crate::plan::Plan;
use crate::request::{Identity, Limit};
use crate::sys::{Errno, SIGNAL_COUNT, SIGNAL_SET_BYTES, SignalAction, SignalSet, signal_bit, syscall};

/// Runs in the child until its exec or, if a step fails, until it exits.
///
/// # Safety
/// `job` is a `Job` whose plan, report and moves stay in place until the child has left this
/// memory.
pub(crate) unsafe extern "C" fn main(job: *const u8) -> ! {
    // SAFETY: the caller's promise; the plan keeps all arguments of the system calls alive.
    unsafe {
        let job = &*job.cast::<Job>();
        fail(job, &run(job))
    }
}

/// Like `main`, for a child that was not created in its cgroup.
///
/// # Safety
/// As for `main`.
pub(crate) unsafe fn main_in_cgroup(job: *const Job) -> ! {
    // SAFETY: the caller's promise.
    unsafe {
        let moved = (*(*job).plan).attributes.cgroup.as_ref().map_or(Ok(()), |cgroup| join_cgroup(cgroup.as_raw_fd()));
        match moved {
            Ok(()) => main(job.cast()),
            Err(errno) => fail(&*job, &failed_at(Stage::Clone)(errno)),
        }
    }
}

unsafe fn join_cgroup(directory: i32) -> Result<(), Errno> {
    // SAFETY: constant strings and integers. A pid of 0 means this process.
    unsafe {
        let flags = libc::O_WRONLY | libc::O_CLOEXEC;
        let processes = syscall!(SYS_openat, directory, c"cgroup.procs".as_ptr(), flags, 0)?;
        let written = syscall!(SYS_write, processes, c"0".as_ptr(), 1);
        let _ = syscall!(SYS_close, processes);
        written.map(drop)
    }
}

/// Reports a failure, and ends the child.
fn fail(job: &Job, failure: &Failure) -> ! {
    let report = job.report();
    report.stage.store(failure.stage as u32, Ordering::Relaxed);
    report.index.store(failure.index as u32, Ordering::Relaxed);
    report.errno.store(failure.errno, Ordering::Release);
    loop {
        // SAFETY: ends the process.
        let _ = unsafe { syscall!(SYS_exit_group, 127) };
    }
}

/// Carries out all steps and the exec. Returns only if one of them fails.
///
/// # Safety
/// As for `main`.
pub(crate) unsafe fn run(job: &Job) -> Failure {
    // SAFETY: the caller's promise.
    unsafe {
        let plan = &*job.plan;
        match carry_out_steps(job, plan) {
            Ok(()) => exec(job, plan),
            Err(failure) => failure,
        }
    }
}

/// Gives the child a file table of its own.
unsafe fn unshare_files(job: &Job) -> Step {
    let Some(above) = job.unshare_above else { return Ok(()) };
    // SAFETY: closes no descriptor that is in use; the address is that of a live value.
    unsafe {
        syscall!(SYS_close_range, above.wrapping_add(1), u32::MAX, libc::CLOSE_RANGE_UNSHARE)
            .map_err(failed_at(Stage::UnshareFiles))?;
        if job.parent_waits_for_files {
            let state = &job.report().sharing_state;
            state.store(SHARES_MEMORY_ONLY, Ordering::Release);
            let _ = syscall!(SYS_futex, state.as_ptr(), libc::FUTEX_WAKE, 1);
        }
    }
    Ok(())
}

unsafe fn give_up_privileges(plan: &Plan) -> Step {
    // SAFETY: each system call gets valid arguments from the plan.
    unsafe {
        if let Some(path) = &plan.chroot {
            syscall!(SYS_chroot, path.as_ptr()).map_err(failed_at(Stage::Chroot))?;
        }
        if let Some(identity) = &plan.attributes.identity {
            become_user(identity)?;
        }
        if plan.attributes.no_new_privileges {
            syscall!(SYS_prctl, libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).map_err(failed_at(Stage::NoNewPrivileges))?;
        }
    }
    Ok(())
}

/// Carries out all steps before the exec, in the order that privileges and descriptors require.
unsafe fn carry_out_steps(job: &Job, plan: &Plan) -> Step {
    // SAFETY: each step's system calls get valid arguments from the plan.
    unsafe {
        unshare_files(job)?;
        join_groups(plan)?;
        set_dispositions(job, plan)?;
        place_descriptors(job, plan)?;
        carry_out(&plan.attributes.actions)?;
        // Must precede the limits and the new root: without close_range, it needs a descriptor and
        // /proc.
        if plan.attributes.close_others {
            close_others(job, plan)?;
        }
        if let Some(mask) = plan.attributes.umask {
            let _ = syscall!(SYS_umask, mask);
        }
        set_niceness_and_limits(plan)?;
        set_scheduler(plan)?;
        give_up_privileges(plan)?;
        if let Some(path) = &plan.cwd {
            syscall!(SYS_chdir, path.as_ptr()).map_err(failed_at(Stage::Chdir))?;
        }
        // Must follow the change of user, which clears this signal.
        if let Some(signal) = plan.attributes.parent_death_signal {
            request_parent_death_signal(job, signal)?;
        }
        if let Some(hook) = &plan.attributes.pre_exec {
            // An errno of 0 would mean success.
            hook().map_err(|errno| failed_at(Stage::PreExec)(if errno == 0 { libc::ECANCELED } else { errno }))?;
        }
        match job.signal_mask {
            Some(mask) => set_mask(mask).map_err(failed_at(Stage::Signals)),
            None => Ok(()),
        }
    }
}

unsafe fn join_groups(plan: &Plan) -> Step {
    // SAFETY: integers only.
    unsafe {
        if plan.attributes.new_session {
            syscall!(SYS_setsid).map_err(failed_at(Stage::Session))?;
        }
        if let Some(terminal) = plan.attributes.controlling_terminal {
            syscall!(SYS_ioctl, terminal, libc::TIOCSCTTY, 0).map_err(failed_at(Stage::ControllingTerminal))?;
        }
        if let Some(group) = plan.attributes.process_group {
            syscall!(SYS_setpgid, 0, group).map_err(failed_at(Stage::ProcessGroup))?;
        }
    }
    Ok(())
}

/// Sets the dispositions of signals. The child has its own table of them, so the parent's are not
/// affected.
unsafe fn set_dispositions(job: &Job, plan: &Plan) -> Step {
    if job.clear_handlers {
        for signal in 1..=SIGNAL_COUNT {
            // SAFETY: reads into and writes from a local.
            unsafe { clear_handler(signal) };
        }
    }
    for signal in 1..=SIGNAL_COUNT {
        let bit = signal_bit(signal);
        let handler = match (plan.attributes.default_signals & bit != 0, plan.attributes.ignored_signals & bit != 0) {
            (true, _) => libc::SIG_DFL,
            (_, true) => libc::SIG_IGN,
            _ => continue,
        };
        // SAFETY: as above.
        unsafe { set_handler(signal, handler) }.map_err(failed_at(Stage::Signals))?;
    }
    Ok(())
}

unsafe fn set_handler(signal: i32, handler: usize) -> Result<(), Errno> {
    let action = SignalAction { handler, ..SignalAction::default() };
    // SAFETY: `action` is the kernel's struct.
    unsafe { syscall!(SYS_rt_sigaction, signal, &raw const action, 0, SIGNAL_SET_BYTES) }.map(drop)
}

/// Resets a signal to its default effect if it has a handler. An ignored signal stays ignored, as
/// with CLONE_CLEAR_SIGHAND.
unsafe fn clear_handler(signal: i32) {
    let mut action = SignalAction::default();
    // SAFETY: `action` is the kernel's struct. SIGKILL and SIGSTOP cannot be handled.
    unsafe {
        let read = syscall!(SYS_rt_sigaction, signal, 0, &raw mut action, SIGNAL_SET_BYTES);
        if read.is_ok() && action.handler != libc::SIG_DFL && action.handler != libc::SIG_IGN {
            let _ = set_handler(signal, libc::SIG_DFL);
        }
    }
}

unsafe fn set_mask(mask: SignalSet) -> Result<(), Errno> {
    // SAFETY: `mask` is a local.
    unsafe { syscall!(SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, 0, SIGNAL_SET_BYTES) }.map(drop)
}

unsafe fn set_niceness_and_limits(plan: &Plan) -> Step {
    // SAFETY: integers, and limits that the plan holds.
    unsafe {
        if let Some(increment) = plan.attributes.nice {
            // The system call returns 20 minus the niceness.
            let result = syscall!(SYS_getpriority, libc::PRIO_PROCESS, 0).map_err(failed_at(Stage::Nice))? as i32;
            let niceness = 20i32.wrapping_sub(result).saturating_add(increment);
            syscall!(SYS_setpriority, libc::PRIO_PROCESS, 0, niceness).map_err(failed_at(Stage::Nice))?;
        }
        for (index, Limit { resource, values }) in plan.attributes.limits.iter().enumerate() {
            syscall!(SYS_prlimit64, 0, *resource, values.as_ptr(), 0).map_err(|errno| Failure {
                stage: Stage::ResourceLimit,
                index,
                errno,
            })?;
        }
    }
    Ok(())
}

unsafe fn set_scheduler(plan: &Plan) -> Step {
    let failed = |index| move |errno| Failure { stage: Stage::Scheduler, index, errno };
    // SAFETY: a local, and a set that the plan holds, with its size.
    unsafe {
        if let Some((policy, priority)) = plan.attributes.scheduler {
            syscall!(SYS_sched_setscheduler, 0, policy, &raw const priority).map_err(failed(0))?;
        }
        if !plan.attributes.affinity.is_empty() {
            let bytes = plan.attributes.affinity.len().wrapping_mul(size_of::<u64>());
            syscall!(SYS_sched_setaffinity, 0, bytes, plan.attributes.affinity.as_ptr()).map_err(failed(1))?;
        }
    }
    Ok(())
}

unsafe fn become_user(identity: &Identity) -> Step {
    const UNCHANGED: u32 = u32::MAX;
    // SAFETY: integers, and groups that the plan holds.
    unsafe {
        if identity.reset {
            let gid = syscall!(SYS_getgid).map_err(failed_at(Stage::Group))?;
            syscall!(SYS_setresgid, UNCHANGED, gid, UNCHANGED).map_err(failed_at(Stage::Group))?;
            let uid = syscall!(SYS_getuid).map_err(failed_at(Stage::User))?;
            syscall!(SYS_setresuid, UNCHANGED, uid, UNCHANGED).map_err(failed_at(Stage::User))?;
        }
        if let Some(groups) = &identity.groups {
            syscall!(SYS_setgroups, groups.len(), groups.as_ptr()).map_err(failed_at(Stage::Groups))?;
        }
        if let Some(gid) = identity.gid {
            syscall!(SYS_setresgid, gid, gid, gid).map_err(failed_at(Stage::Group))?;
        }
        if let Some(uid) = identity.uid {
            syscall!(SYS_setresuid, uid, uid, uid).map_err(failed_at(Stage::User))?;
        }
    }
    Ok(())
}

/// Requests a signal at the parent's death. If the parent has already died, sends the signal at
/// once.
unsafe fn request_parent_death_signal(job: &Job, signal: i32) -> Step {
    // SAFETY: integers.
    unsafe {
        syscall!(SYS_prctl, libc::PR_SET_PDEATHSIG, signal, 0, 0, 0).map_err(failed_at(Stage::ParentDeath))?;
        // getppid returns 0 if the parent is in another pid namespace. It is then probably alive.
        let parent = syscall!(SYS_getppid).map_err(failed_at(Stage::ParentDeath))?;
        if parent != 0 && parent != job.parent_pid as usize {
            let pid = syscall!(SYS_getpid).map_err(failed_at(Stage::ParentDeath))?;
            let _ = set_mask(0);
            let _ = syscall!(SYS_kill, pid, signal);
        }
    }
    Ok(())
}

/// Tries each candidate as execvp does: skips directories that lack the program or may not be
/// searched.
unsafe fn exec(job: &Job, plan: &Plan) -> Failure {
    let mut failure = Failure { stage: Stage::Exec, index: 0, errno: libc::ENOENT };
    for (index, candidate) in plan.candidates.pointers().iter().enumerate() {
        // SAFETY: the plan holds the strings and the arrays, each ended by NULL.
        let result = unsafe { syscall!(SYS_execve, *candidate, plan.argv.as_ptr(), job.envp) };
        let Err(errno) = result else { continue };
        let try_next = match errno {
            libc::EACCES => true,
            libc::ENOENT | libc::ENOTDIR | libc::ENODEV | libc::ETIMEDOUT | libc::ESTALE => {
                // A program that may not be executed is a better error than a missing one.
                if failure.errno == libc::EACCES {
                    continue;
                }
                true
            }
            _ => false,
        };
        failure.index = index;
        failure.errno = errno;
        if !try_next {
            break;
        }
    }
    failure
}
