//! Decodes the wait status of a tracee. ptrace(2) describes each kind of stop.

use std::ffi::c_int;

use super::request::{Resume, message};
use spawnscope_data::event::Pid;

/// A change of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The thread is stopped until it is resumed.
    Stopped(Pid, Stop),
    /// The thread has ended with this wait status. The first thread of a process ends last. A
    /// thread may end without this event if its process is killed, or if another thread of the
    /// process executes a program.
    Ended(Pid, i32),
}

/// Why a tracee is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The thread is about to receive this signal (signal-delivery-stop). The thread receives the
    /// signal that is passed to the resuming request, which may be this one, another one or none.
    Signal(i32),
    /// The thread's process was stopped by this signal, which is SIGSTOP, SIGTSTP, SIGTTIN or
    /// SIGTTOU (group-stop). The thread must be resumed by `Resume::Listen`. Otherwise it would
    /// continue although the user has stopped it.
    Group(i32),
    /// A stop for another reason (PTRACE_EVENT_STOP): a new thread before its first instruction, a
    /// thread after PTRACE_INTERRUPT, or a listening thread that SIGCONT continues.
    Interrupted,
    /// The thread has created a thread or process, and is still in that system call. The child is
    /// traced with the same options.
    Created {
        how: Creation,
        /// The new thread, in the tracer's pid namespace; `None` if the creator was killed.
        child: Option<Pid>,
    },
    /// The thread has executed a program, and is stopped before the first instruction. All other
    /// threads of the process are gone, and the thread has the id of the process.
    Exec,
    /// The thread is about to end with this wait status. Its memory, descriptors and registers can
    /// still be read. The status is `None` if the thread was killed since it stopped. A killed
    /// thread may end without this stop.
    Exiting(Option<i32>),
    /// The thread enters or leaves a system call. PTRACE_GET_SYSCALL_INFO says which, and returns
    /// number and arguments or the result.
    SystemCall,
    /// An event with this number, which this module does not know.
    Other(i32),
}

/// How a thread or process was created. The kernel derives this from the flags of clone
/// (kernel_clone in kernel/fork.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    /// By fork, or by clone without CLONE_VFORK and with SIGCHLD as the child's exit signal.
    Fork,
    /// By vfork, or by clone with CLONE_VFORK, as in posix_spawn.
    Vfork,
    /// By clone with another exit signal or none. The child is usually a thread.
    Clone,
}

const STOP_SIGNALS: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
/// The bit that PTRACE_O_TRACESYSGOOD sets in the signal number of system call stops. No signal has
/// this bit.
const SYSTEM_CALL_BIT: i32 = 0x80;

impl Event {
    /// Waits for the next event of a child. `None` if it cannot be awaited.
    pub(super) fn await_of(child: Pid) -> Option<Event> {
        let mut status: c_int = 0;
        // SAFETY: `status` has room for a status.
        let pid = unsafe { libc::waitpid(child.0, &raw mut status, libc::__WALL) };
        (pid == child.0).then(|| Event::decode(child, status, message))
    }

    /// Decodes a wait status. `message` requests the event's message from the kernel
    /// (PTRACE_GETEVENTMSG), which is possible while the thread is stopped by the event.
    pub(super) fn decode(thread: Pid, status: i32, message: impl FnOnce(Pid) -> Option<u64>) -> Event {
        if libc::WIFSTOPPED(status) {
            Event::Stopped(thread, Stop::decode(status, || message(thread)))
        } else {
            Event::Ended(thread, status)
        }
    }
}

impl Stop {
    fn decode(status: i32, message: impl FnOnce() -> Option<u64>) -> Stop {
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            0 if signal == libc::SIGTRAP | SYSTEM_CALL_BIT => Stop::SystemCall,
            0 => Stop::Signal(signal),
            libc::PTRACE_EVENT_STOP if STOP_SIGNALS.contains(&signal) => Stop::Group(signal),
            libc::PTRACE_EVENT_STOP => Stop::Interrupted,
            libc::PTRACE_EVENT_FORK => Stop::Created { how: Creation::Fork, child: decode_pid(message()) },
            libc::PTRACE_EVENT_VFORK => Stop::Created { how: Creation::Vfork, child: decode_pid(message()) },
            libc::PTRACE_EVENT_CLONE => Stop::Created { how: Creation::Clone, child: decode_pid(message()) },
            libc::PTRACE_EVENT_EXEC => Stop::Exec,
            libc::PTRACE_EVENT_EXIT => Stop::Exiting(message().map(|status| status as i32)),
            other => Stop::Other(other),
        }
    }

    /// Returns how to resume the thread so that it behaves as if it were not traced.
    pub fn transparent_resume(self) -> Resume {
        match self {
            Stop::Signal(signal) => Resume::Continue(signal),
            Stop::Group(_) => Resume::Listen,
            _ => Resume::Continue(0),
        }
    }

    /// Returns how to detach from the thread so that it behaves as if it had not been traced. A
    /// process in a group-stop stays stopped.
    pub fn transparent_detach(self) -> Resume {
        match self {
            Stop::Signal(signal) => Resume::Detach(signal),
            _ => Resume::Detach(0),
        }
    }
}

fn decode_pid(message: Option<u64>) -> Option<Pid> {
    message.and_then(|pid| i32::try_from(pid).ok()).map(Pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the wait status of a stop with this signal and event.
    fn stopped(signal: i32, event: i32) -> i32 {
        event << 16 | signal << 8 | 0x7f
    }

    #[test]
    fn each_status_is_decoded_to_its_event() {
        let child = Some(Pid(7));
        let expected = [
            (stopped(libc::SIGUSR1, 0), Stop::Signal(libc::SIGUSR1)),
            (stopped(libc::SIGTRAP, 0), Stop::Signal(libc::SIGTRAP)),
            // A real-time signal that the C library reserves for itself.
            (stopped(32, 0), Stop::Signal(32)),
            (stopped(libc::SIGSTOP, 0), Stop::Signal(libc::SIGSTOP)),
            (stopped(libc::SIGTRAP | 0x80, 0), Stop::SystemCall),
            (stopped(libc::SIGTSTP, libc::PTRACE_EVENT_STOP), Stop::Group(libc::SIGTSTP)),
            (stopped(libc::SIGTRAP, libc::PTRACE_EVENT_STOP), Stop::Interrupted),
            (stopped(libc::SIGTRAP, libc::PTRACE_EVENT_FORK), Stop::Created { how: Creation::Fork, child }),
            (stopped(libc::SIGTRAP, libc::PTRACE_EVENT_VFORK), Stop::Created { how: Creation::Vfork, child }),
            (stopped(libc::SIGTRAP, libc::PTRACE_EVENT_CLONE), Stop::Created { how: Creation::Clone, child }),
            (stopped(libc::SIGTRAP, libc::PTRACE_EVENT_EXEC), Stop::Exec),
            (stopped(libc::SIGTRAP, libc::PTRACE_EVENT_EXIT), Stop::Exiting(Some(7))),
            (stopped(libc::SIGTRAP, 100), Stop::Other(100)),
        ];
        for (status, stop) in expected {
            assert_eq!(Event::decode(Pid(1), status, |_| Some(7)), Event::Stopped(Pid(1), stop));
        }
        for status in [0, 3 << 8, libc::SIGKILL, 0x80 | libc::SIGSEGV] {
            assert_eq!(Event::decode(Pid(1), status, |_| None), Event::Ended(Pid(1), status));
        }
    }

    #[test]
    fn signals_are_passed_on_and_group_stops_are_kept() {
        let stops = [Stop::Signal(40), Stop::Group(libc::SIGSTOP), Stop::Interrupted];
        let resumed = stops.map(Stop::transparent_resume);
        assert_eq!(resumed, [Resume::Continue(40), Resume::Listen, Resume::Continue(0)]);
        let detached = stops.map(Stop::transparent_detach);
        assert_eq!(detached, [Resume::Detach(40), Resume::Detach(0), Resume::Detach(0)]);
    }
}
