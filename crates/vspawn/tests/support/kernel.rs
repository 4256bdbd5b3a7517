//! Safe functions for calls of libc that tests need.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

pub fn kill(pid: i32, signal: i32) {
    // SAFETY: integers.
    unsafe { libc::kill(pid, signal) };
}

pub fn dumpable() -> i32 {
    // SAFETY: reads a flag.
    unsafe { libc::prctl(libc::PR_GET_DUMPABLE) }
}

pub fn set_dumpable(value: i32) {
    // SAFETY: sets a flag.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, value, 0, 0, 0) }, 0);
}

/// Whether a signal can be sent to a process group by a pidfd (Linux 6.9). Sends signal 0 to this
/// process's own group.
pub fn can_signal_groups_by_pidfd() -> bool {
    const PIDFD_SIGNAL_PROCESS_GROUP: u32 = 1 << 2;
    // SAFETY: integers, and no siginfo; the value owns the descriptor.
    let result = unsafe {
        let number = libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0);
        assert!(number >= 0, "pidfd_open");
        let pidfd = OwnedFd::from_raw_fd(number as RawFd);
        libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), 0, 0, PIDFD_SIGNAL_PROCESS_GROUP)
    };
    // A process that leads no group gets ESRCH.
    result == 0 || errno() != libc::EINVAL
}

/// Whether any child exists, running or ended.
pub fn has_children() -> bool {
    // SAFETY: a `siginfo_t` of zeros is valid; WNOWAIT reaps no process.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) == 0
    }
}

/// Waits for any child. Returns its pid and status.
pub fn reap_any() -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: stores the status in a local.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, 0) };
    (pid > 0).then_some((pid, status))
}

pub fn close(fd: RawFd) {
    // SAFETY: for descriptors that no Rust value owns.
    unsafe { libc::close(fd) };
}

/// Closes all descriptors above `fd`. Only for a process that has just started, in which no value
/// owns a descriptor.
pub fn close_all_above(fd: u32) {
    // SAFETY: integers.
    assert_eq!(unsafe { libc::syscall(libc::SYS_close_range, fd + 1, u32::MAX, 0) }, 0);
}

pub fn is_open(fd: RawFd) -> bool {
    // SAFETY: reads a flag.
    unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
}

/// Copies a descriptor to `number`, which must be free or owned by the test. The copy is closed on
/// exec.
pub fn copy_to(fd: RawFd, number: RawFd) -> OwnedFd {
    // SAFETY: the returned value owns the new descriptor.
    unsafe {
        assert_eq!(libc::dup3(fd, number, libc::O_CLOEXEC), number);
        OwnedFd::from_raw_fd(number)
    }
}

/// Copies a descriptor to `number`. The copy is inheritable and has no owner.
pub fn copy_to_inheritable(fd: RawFd, number: RawFd) {
    // SAFETY: integers.
    assert_eq!(unsafe { libc::dup2(fd, number) }, number);
}

/// Copies a descriptor to the first free number from `min_number` on.
pub fn copy_above(fd: RawFd, min_number: RawFd) -> Option<OwnedFd> {
    // SAFETY: the returned value owns the new descriptor.
    unsafe {
        let copy = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, min_number);
        (copy >= 0).then(|| OwnedFd::from_raw_fd(copy))
    }
}

/// Returns the soft and the hard limit.
pub fn limit(resource: u32) -> (u64, u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: stores the limits in a local.
    assert_eq!(unsafe { libc::getrlimit(resource, &raw mut limit) }, 0);
    (limit.rlim_cur, limit.rlim_max)
}

/// Sets a soft limit.
pub fn set_soft_limit(resource: u32, soft: u64) {
    let (_, hard) = limit(resource);
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: reads the limits from a local.
    assert_eq!(unsafe { libc::setrlimit(resource, &raw const limit) }, 0);
}

pub fn set_errno(value: i32) {
    // SAFETY: this thread's own.
    unsafe { *libc::__errno_location() = value };
}

pub fn errno() -> i32 {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() }
}

/// Sets a signal's disposition: `SIG_DFL`, `SIG_IGN` or an `extern "C" fn(i32)`.
pub fn set_handler(signal: i32, handler: libc::sighandler_t) {
    // SAFETY: the handlers of these tests only use atomics and raw calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(signal, &raw const action, std::ptr::null_mut()), 0);
    }
}

/// Runs a function in a forked process. Returns the process's status as `waitpid` stores it.
pub fn run_in_fork(run: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child only runs the function and ends.
    unsafe {
        let pid = libc::fork();
        assert!(pid >= 0, "fork");
        if pid == 0 {
            let code = run();
            libc::_exit(code);
        }
        let mut status = 0;
        while libc::waitpid(pid, &raw mut status, 0) != pid {}
        status
    }
}

pub fn block_all_signals() {
    // SAFETY: our own set.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
}

pub fn block(signal: i32) {
    change_mask(libc::SIG_BLOCK, signal);
}

pub fn unblock(signal: i32) {
    change_mask(libc::SIG_UNBLOCK, signal);
}

fn change_mask(how: i32, signal: i32) {
    // SAFETY: our own set.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut());
    }
}

/// Sends a signal to the first thread of a process.
pub fn signal_thread(pid: i32, signal: i32) {
    // SAFETY: integers.
    unsafe { libc::syscall(libc::SYS_tgkill, pid, pid, signal) };
}

/// Sends SIGALRM periodically to this process. An interval of 0 stops the timer.
pub fn set_interval_timer(every: std::time::Duration) {
    let interval = libc::timeval { tv_sec: 0, tv_usec: every.subsec_micros().into() };
    let timer = libc::itimerval { it_interval: interval, it_value: interval };
    // SAFETY: reads a local (ITIMER_REAL is 0).
    assert_eq!(unsafe { libc::syscall(libc::SYS_setitimer, 0, &raw const timer, 0) }, 0);
}

pub fn put_children_into_new_pid_namespace() {
    // SAFETY: integers.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWPID) }, 0);
}

pub fn read_byte(fd: &impl AsRawFd) {
    let mut byte = 0u8;
    // SAFETY: one byte, into a local.
    let count = unsafe { libc::read(fd.as_raw_fd(), (&raw mut byte).cast(), 1) };
    assert_eq!(count, 1);
}

pub fn write_byte(fd: &impl AsRawFd) {
    // SAFETY: one byte of a constant.
    let count = unsafe { libc::write(fd.as_raw_fd(), [0u8].as_ptr().cast(), 1) };
    assert_eq!(count, 1);
}

/// Restricts this process to the first of its CPUs.
pub fn stay_on_one_cpu() {
    // SAFETY: sets of zeros are valid; the kernel writes and reads one.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &raw mut set), 0);
        let first = (0..libc::CPU_SETSIZE as usize).find(|cpu| libc::CPU_ISSET(*cpu, &set));
        libc::CPU_ZERO(&mut set);
        libc::CPU_SET(first.expect("a CPU"), &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &raw const set), 0);
    }
}

/// Gives this thread the policy SCHED_FIFO.
pub fn become_real_time() {
    let parameter = libc::sched_param { sched_priority: 10 };
    // SAFETY: the kernel reads the parameter.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) };
    assert_eq!(result, 0);
}

/// Returns the CPU time of this thread.
pub fn thread_cpu_time() -> std::time::Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: stores into a local.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
