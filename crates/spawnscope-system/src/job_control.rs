//! Ends and stops as the command does (job control): a shell waits for spawnscope and not for the
//! command, so it must see the command's stop and the signal that killed it.
//!
//! A stopped process cannot notice that another process continues only the command, so a watcher
//! continues it then. There is no watcher for a command that spawnscope itself traces: the kernel
//! reports the change to the tracer alone, which is stopped. Only the shell continues both.

use std::ffi::c_int;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::process::{WaitId, WaitIdOptions, WaitIdStatus};

use crate::process::{die_with_parent, reap};
use crate::procfs::Status;
use spawnscope_data::event::Pid;

/// How often the watcher checks whether the child still is stopped.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Whether a child has stopped since the last call. Must not be called for a process that another
/// thread of this process traces, because that thread would miss the stop.
#[must_use]
pub fn has_stopped(child: Pid) -> bool {
    change(child, WaitIdOptions::STOPPED).is_some()
}

/// Returns how a child has changed since the last call.
fn change(child: Pid, changes: WaitIdOptions) -> Option<WaitIdStatus> {
    let child = rustix::process::Pid::from_raw(child.0)?;
    rustix::process::waitid(WaitId::Pid(child), changes | WaitIdOptions::NOHANG).ok()?
}

/// Stops this process as `child` has stopped, if there is a terminal at which a user can continue
/// it. Returns when this process continues; the child then continues as well. If another process
/// continues only the child, or the child is killed, this process continues by itself.
pub fn stop_with(child: Pid) {
    // Without a controlling terminal no shell waits for the stop, and the process that continues
    // the child knows nothing of this one.
    if File::open("/dev/tty").is_err() {
        return;
    }
    while let Some(status) = Status::read(child).filter(Status::is_stopped) {
        stop_while_stopped(child, status.is_stopped_by_tracer());
        // A tracer in this process waits for the changes of the child itself.
        let changes = WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED;
        match if status.is_stopped_by_tracer() { None } else { change(child, changes) } {
            Some(change) if change.continued() => return,
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
    let Ok(stat) = File::open(format!("/proc/{}/stat", child.0)) else { return };
    let watcher = if is_traced { None } else { start_watcher(&stat) };
    // SAFETY: plain system calls.
    unsafe {
        libc::kill(libc::getpid(), libc::SIGSTOP);
        if let Some(Pid(watcher)) = watcher {
            libc::kill(watcher, libc::SIGKILL);
            let _ = reap(watcher);
        }
    }
}

/// Starts a process that continues this one when the process with this `/proc/PID/stat` is no
/// longer stopped.
fn start_watcher(stat: &File) -> Option<Pid> {
    // SAFETY: `getpid` has no preconditions. The new process calls nothing that could wait for a
    // lock of another thread.
    let (parent, watcher) = unsafe { (libc::getpid(), libc::fork()) };
    match watcher {
        -1 => None,
        0 => watch(parent, stat),
        watcher => Some(Pid(watcher)),
    }
}

/// The watcher. It calls only async-signal-safe functions, because other threads may have held
/// locks when it was forked.
fn watch(parent: c_int, stat: &File) -> ! {
    die_with_parent(libc::SIGKILL);
    let interval = libc::timespec { tv_sec: 0, tv_nsec: i64::from(CHECK_INTERVAL.subsec_nanos()) };
    loop {
        // SAFETY: plain system calls; `interval` is valid.
        unsafe {
            libc::nanosleep(&raw const interval, std::ptr::null_mut());
            if libc::getppid() != parent {
                libc::_exit(0);
            }
            if state(stat) != b'T' {
                libc::kill(parent, libc::SIGCONT);
            }
        }
    }
}

/// Returns the letter of a process's state (proc_pid_stat(5)), or 0 if the process is gone.
fn state(stat: &File) -> u8 {
    let mut text = [0; 128];
    let length = stat.read_at(&mut text, 0).unwrap_or(0);
    let text = &text[..length];
    // The state follows the name, which is in parentheses and may contain any byte.
    let name_end = text.iter().rposition(|byte| *byte == b')');
    name_end.and_then(|end| text.get(end + 2)).copied().unwrap_or(0)
}

/// Ends this process by a signal, without a core dump. Returns only if the kernel ignores the
/// signal, as it does for the init process of a pid namespace.
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
    fn the_state_of_a_process_is_read_until_it_is_gone() {
        let mut child = std::process::Command::new("sleep").arg("20").spawn().unwrap();
        let stat = File::open(format!("/proc/{}/stat", child.id())).unwrap();
        assert!(matches!(state(&stat), b'R' | b'S' | b'D'));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(state(&stat), 0);
    }
}
