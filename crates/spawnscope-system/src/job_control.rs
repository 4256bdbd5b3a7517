//! Ends and stops as the command does (job control): a shell waits for spawnscope and not for the command, so it must see the command's stop and
//! the signal that killed it.
//!
//! A stopped process cannot notice that another process continues only the command, so a watcher continues it then. There is no watcher for a
//! command that spawnscope itself traces: the kernel reports the change to the tracer alone, which is stopped. Only the shell continues both.

use std::ffi::c_int;
use std::fs::File;
use std::time::Duration;

use crate::process::{die_with_parent, reap};
use crate::procfs::Status;
use spawnscope_data::event::Pid;

/// How often the watcher checks whether the child still is stopped.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Whether a child has stopped since the last call. Must not be called for a process that another thread of this process traces, because that
/// thread would miss the stop.
#[must_use]
pub fn has_stopped(child: Pid) -> bool {
    change(child, libc::WSTOPPED).is_some()
}

/// Returns how a child has changed since the last call: CLD_STOPPED or CLD_CONTINUED.
fn change(child: Pid, changes: c_int) -> Option<c_int> {
    // SAFETY: all zeroes is a valid siginfo_t.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = changes | libc::WNOHANG;
    // SAFETY: `info` is valid for writes.
    let result = unsafe { libc::waitid(libc::P_PID, child.0.cast_unsigned(), &raw mut info, options) };
    // SAFETY: waitid sets the pid, or leaves it zero.
    (result == 0 && unsafe { info.si_pid() } == child.0).then_some(info.si_code)
}

/// Stops this process as `child` has stopped, if there is a terminal at which a user can continue it. Returns when this process continues; the
/// child then continues as well. If another process continues only the child, or the child is killed, this process continues by itself.
pub fn stop_with(child: Pid) {
    // Without a controlling terminal no shell waits for the stop, and the process that continues the child knows nothing of this one.
    if File::open("/dev/tty").is_err() {
        return;
    }
    while let Some(status) = Status::read(child).filter(Status::is_stopped) {
        stop_while_stopped(child, status.is_stopped_by_tracer());
        // A tracer in this process waits for the changes of the child itself.
        match if status.is_stopped_by_tracer() { None } else { change(child, libc::WSTOPPED | libc::WCONTINUED) } {
            Some(libc::CLD_CONTINUED) => return,
            // The child has continued and stopped again.
            Some(_) => {}
            None => {
                // SAFETY: a plain system call.
                unsafe { libc::kill(child.0, libc::SIGCONT) };
                return;
            }
        }
    }
}

/// Stops this process until it is continued, or until the child is.
fn stop_while_stopped(child: Pid, is_traced: bool) {
    let watcher = if is_traced { None } else { start_watcher(child) };
    // SAFETY: plain system calls.
    unsafe {
        libc::kill(libc::getpid(), libc::SIGSTOP);
        if let Some(Pid(watcher)) = watcher {
            libc::kill(watcher, libc::SIGKILL);
            let _ = reap(watcher);
        }
    }
}

/// Starts a process that continues this one when `child` is no longer stopped.
fn start_watcher(child: Pid) -> Option<Pid> {
    // SAFETY: `getpid` has no preconditions. The new process calls nothing that could wait for a lock of another thread.
    let (parent, watcher) = unsafe { (libc::getpid(), libc::fork()) };
    match watcher {
        -1 => None,
        0 => watch(parent, child),
        watcher => Some(Pid(watcher)),
    }
}

/// The watcher. It calls only async-signal-safe functions, because other threads may have held locks when it was forked.
fn watch(parent: c_int, child: Pid) -> ! {
    die_with_parent(libc::SIGKILL);
    let interval = libc::timespec { tv_sec: 0, tv_nsec: i64::from(CHECK_INTERVAL.subsec_nanos()) };
    let path = path_of_state(child);
    loop {
        // SAFETY: plain system calls; `interval` is valid.
        unsafe {
            libc::nanosleep(&raw const interval, std::ptr::null_mut());
            if libc::getppid() != parent {
                libc::_exit(0);
            }
            if state(&path) != b'T' {
                libc::kill(parent, libc::SIGCONT);
            }
        }
    }
}

/// Returns `/proc/PID/stat` as a C string.
fn path_of_state(Pid(pid): Pid) -> [u8; 32] {
    let (mut path, mut digits, mut at) = ([0; 32], [0; 10], 0);
    let mut rest = pid.unsigned_abs();
    while rest > 0 || at == 0 {
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        at += 1;
    }
    let parts = b"/proc/".iter().chain(digits[..at].iter().rev()).chain(b"/stat");
    path.iter_mut().zip(parts).for_each(|(place, byte)| *place = *byte);
    path
}

/// Returns the letter of a process's state (proc_pid_stat(5)), or 0 if there is no such process.
fn state(path: &[u8; 32]) -> u8 {
    let mut text = [0_u8; 128];
    // SAFETY: `path` ends with NUL, and `text` has room for the bytes.
    let length = unsafe {
        let file = libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        let length = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        length
    };
    let text = &text[..usize::try_from(length).unwrap_or(0)];
    // The state follows the name, which is in parentheses and may contain any byte.
    let name_end = text.iter().rposition(|byte| *byte == b')');
    name_end.and_then(|end| text.get(end + 2)).copied().unwrap_or(0)
}

/// Ends this process by a signal, without a core dump. Returns only if the kernel ignores the signal, as it does for the init process of a pid
/// namespace.
pub fn die_of(signal: c_int) {
    // SAFETY: plain system calls, with a valid signal set.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        libc::signal(signal, libc::SIG_DFL);
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_process_is_read_without_allocating() {
        let own = std::process::id().cast_signed();
        assert_eq!(&path_of_state(Pid(120))[..15], b"/proc/120/stat\0");
        assert!(matches!(state(&path_of_state(Pid(own))), b'R' | b'S'));
        assert_eq!(state(&path_of_state(Pid(i32::MAX))), 0);
    }
}
