//! Programs that checks start: without a terminal, with a limit of time, and with output that no descendant can hold up.

use std::io::{Read, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::MemfdFlags;

use crate::collect::pidfd;
use crate::event::{Nanos, Pid};

/// How long a program may take.
pub(super) const PATIENCE: Duration = Duration::from_millis(900);
/// How long all of them together may take, so that the doctor as a whole takes no more than 5 s.
const PATIENCE_WITH_ALL: Duration = Duration::from_millis(1900);
/// Between looks at a traced program.
const TRACE_PAUSE: Duration = Duration::from_micros(100);

/// A program that has ended by itself.
pub(super) struct Ran {
    pub(super) took: Nanos,
    pub(super) succeeded: bool,
    /// What it wrote, to both of its outputs.
    pub(super) output: String,
}

/// Starts programs, until the time for all of them is up.
pub(super) struct Programs {
    until: Instant,
}

impl Programs {
    pub(super) fn from_now() -> Programs {
        Programs {
            until: Instant::now() + PATIENCE_WITH_ALL,
        }
    }

    /// Runs a program to its end; `None` when it cannot be started, or takes too long: it is killed then.
    pub(super) fn run(&self, command: &mut Command) -> Option<Ran> {
        run(command, self.left()?)
    }

    /// The shortest of some runs that all succeeded: what else the machine does only makes them longer.
    pub(super) fn shortest(&self, runs: usize, mut command: impl FnMut() -> Command) -> Option<Nanos> {
        let times: Option<Vec<Nanos>> = (0..runs)
            .map(|_| self.run(&mut command()).filter(|ran| ran.succeeded).map(|ran| ran.took))
            .collect();
        times?.into_iter().min()
    }

    /// How many processes a program and its descendants make; `None` when it cannot be traced, or takes too long.
    pub(super) fn count_launches(&self, command: Command) -> Option<u64> {
        let patience = self.left()?;
        // Whoever traces is a thread, and gets the news of its own children only: another's are left alone.
        std::thread::spawn(move || count_launches(command, patience))
            .join()
            .ok()?
    }

    /// How long the next one may take; `None` when there is no time left.
    fn left(&self) -> Option<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then(|| left.min(PATIENCE))
    }
}

fn run(command: &mut Command, patience: Duration) -> Option<Ran> {
    let mut output = std::fs::File::from(rustix::fs::memfd_create("output", MemfdFlags::CLOEXEC).ok()?);
    command
        .stdin(Stdio::null())
        .stdout(output.try_clone().ok()?)
        .stderr(output.try_clone().ok()?);
    detach(command);
    let started = Instant::now();
    let mut child = Killed(command.spawn().ok()?);
    let ended = pidfd(Pid(child.0.id().cast_signed())).ok()?;
    if !is_readable_within(&ended, patience) {
        return None;
    }
    let took = Nanos(u64::try_from(started.elapsed().as_nanos()).ok()?);
    let succeeded = child.0.wait().ok()?.success();
    let mut bytes = Vec::new();
    output.rewind().ok()?;
    output.read_to_end(&mut bytes).ok()?;
    Some(Ran {
        took,
        succeeded,
        output: String::from_utf8_lossy(&bytes).into_owned(),
    })
}

fn count_launches(mut command: Command, patience: Duration) -> Option<u64> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    detach(&mut command);
    // SAFETY: a plain system call between fork and exec. The program stops at its exec for us.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let child = Killed(command.spawn().ok()?);
    follow(child.0.id().cast_signed(), patience)
}

/// Lets the traced process go on until it has ended, and counts what it and its descendants make.
fn follow(root: i32, patience: Duration) -> Option<u64> {
    let options =
        libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK | libc::PTRACE_O_TRACECLONE;
    let until = Instant::now() + patience;
    let (mut launches, mut is_prepared) = (0, false);
    while Instant::now() < until {
        let mut status = 0;
        // SAFETY: `status` has room for a status.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG) };
        match pid {
            0 => sleep(TRACE_PAUSE),
            -1 => return None,
            _ if pid == root && (libc::WIFEXITED(status) || libc::WIFSIGNALED(status)) => return Some(launches),
            _ if libc::WIFSTOPPED(status) => {
                if !is_prepared {
                    request(libc::PTRACE_SETOPTIONS, pid, options);
                    is_prepared = true;
                }
                launches += u64::from(is_new_process(pid, status >> 16));
                request(libc::PTRACE_CONT, pid, signal_for(status));
            }
            _ => {}
        }
    }
    None
}

fn request(what: libc::c_uint, pid: i32, data: i32) {
    // SAFETY: the requests used here touch no memory of ours. One to a process that has died is refused, which is fine.
    unsafe { libc::ptrace(what, pid, 0usize, data as usize) };
}

/// What the process would have got without us. New processes stop by SIGSTOP, execs and events by SIGTRAP.
fn signal_for(status: i32) -> i32 {
    match libc::WSTOPSIG(status) {
        libc::SIGSTOP | libc::SIGTRAP => 0,
        signal => signal,
    }
}

/// Whether an event tells of a process, not of a thread.
fn is_new_process(pid: i32, event: i32) -> bool {
    match event {
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => true,
        libc::PTRACE_EVENT_CLONE => {
            let mut new: libc::c_ulong = 0;
            // SAFETY: the kernel writes one long there.
            let told = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, pid, 0usize, &raw mut new) };
            // Only leaders of thread groups are listed there.
            told == 0
                && std::fs::read_to_string(format!("/proc/{new}/status"))
                    .is_ok_and(|status| super::processes::field(&status, "Tgid") == Some(new.to_string().as_str()))
        }
        _ => false,
    }
}

/// A session of its own: no terminal to read from or to take over, and a group that can be killed.
fn detach(command: &mut Command) {
    // SAFETY: a plain system call between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::setsid() {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
}

/// A child that does not outlive us, nor does its group.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            // SAFETY: a plain system call; the child has not been waited for, so the group is still its own.
            unsafe { libc::kill(-self.0.id().cast_signed(), libc::SIGKILL) };
            let _ = self.0.wait();
        }
    }
}

/// Waits for a descriptor to be readable.
pub(super) fn is_readable_within(fd: &OwnedFd, limit: Duration) -> bool {
    let until = Instant::now() + limit;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs().cast_signed(),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&timeout)) {
            Err(rustix::io::Errno::INTR) if !left.is_zero() => {}
            ready => return ready.is_ok_and(|count| count > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_program_is_started_when_the_time_for_all_is_up() {
        let late = Programs { until: Instant::now() };
        assert!(late.run(&mut Command::new("true")).is_none());
        assert!(late.count_launches(Command::new("true")).is_none());
        let early = Programs::from_now();
        assert!(early.run(&mut Command::new("true")).is_some_and(|ran| ran.succeeded));
    }

    #[test]
    fn a_program_that_takes_too_long_is_killed_with_what_it_has_launched() {
        let hanging = run(
            Command::new("sh").args(["-c", "sleep 60 & wait"]),
            Duration::from_millis(100),
        );
        assert!(hanging.is_none());
    }

    #[test]
    fn processes_are_counted_and_threads_are_not() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "(:); (: | :); true"]);
        // A subshell, another one, and two in its pipe.
        assert_eq!(Programs::from_now().count_launches(shell), Some(4));
    }
}
