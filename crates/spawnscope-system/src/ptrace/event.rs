//! What a wait status says about a tracee. ptrace(2) describes each kind of stop.

use super::request::Resume;
use spawnscope_data::event::Pid;

/// A change of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The thread is stopped until it is resumed.
    Stopped(Pid, Stop),
    /// The thread has ended with this wait status. The first thread of a process ends last. If a process is killed, or if another of
    /// its threads executes a program, threads may end without this event.
    Ended(Pid, i32),
}

/// Why a tracee is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It is about to receive this signal (signal-delivery-stop). The signal is delivered only if it is passed to the resuming request,
    /// which may also pass another one.
    Signal(i32),
    /// Its process was stopped by this signal, which is SIGSTOP, SIGTSTP, SIGTTIN or SIGTTOU (group-stop). It must only listen, or it
    /// would continue although the user has stopped it.
    Group(i32),
    /// It stopped without a cause of its own (PTRACE_EVENT_STOP): a new thread before its first instruction, a thread after
    /// PTRACE_INTERRUPT, or a listening thread that SIGCONT continues.
    Interrupted,
    /// It has created a thread or process, and is still in that system call. The child is traced with the same options.
    Created {
        /// The kind of creation.
        how: Creation,
        /// The new thread, in the tracer's pid namespace; `None` if the creator was killed.
        child: Option<Pid>,
    },
    /// Its vfork child has executed a program or ended.
    VforkDone,
    /// It has executed a program, and is stopped before the first instruction. All other threads of the process are gone.
    Exec {
        /// The id of the thread that executed. Afterwards it has the id of the process, and events use that one. `None` if it was
        /// killed.
        former_thread: Option<Pid>,
    },
    /// It is about to end with this wait status: its memory, descriptors and registers can still be read. `None` if it was killed.
    /// A killed thread may end without this stop.
    Exiting(Option<i32>),
    /// A seccomp filter returned SECCOMP_RET_TRACE with this data. `None` if it was killed.
    Seccomp(Option<u16>),
    /// It enters or leaves a system call. PTRACE_GET_SYSCALL_INFO says which, and has number, arguments or result.
    SystemCall,
    /// An event that this module does not know, by its number.
    Other(i32),
}

/// How a thread or process was created. The kernel derives this from the flags of clone (kernel_clone in kernel/fork.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    /// By fork, or by clone without CLONE_VFORK, whose end sends SIGCHLD.
    Fork,
    /// By vfork, or by clone with CLONE_VFORK, as in posix_spawn.
    Vfork,
    /// By clone whose end sends another signal, or none. This is usually a thread.
    Clone,
}

/// The signals that stop a process.
const STOPPING: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
/// With PTRACE_O_TRACESYSGOOD, system call stops have this bit in the signal, which no signal has.
const SYSTEM_CALL_BIT: i32 = 0x80;

impl Event {
    /// Decodes a wait status. `message` requests the event's message from the kernel (PTRACE_GETEVENTMSG), which is valid while the thread
    /// is in the event's stop.
    pub(super) fn of(thread: Pid, status: i32, message: impl FnOnce(Pid) -> Option<u64>) -> Event {
        if libc::WIFSTOPPED(status) {
            Event::Stopped(thread, Stop::of(status, || message(thread)))
        } else {
            Event::Ended(thread, status)
        }
    }
}

impl Stop {
    fn of(status: i32, message: impl FnOnce() -> Option<u64>) -> Stop {
        let signal = libc::WSTOPSIG(status);
        let pid = |message: Option<u64>| message.and_then(|pid| i32::try_from(pid).ok()).map(Pid);
        let created = |how, message| Stop::Created {
            how,
            child: pid(message),
        };
        match status >> 16 {
            0 if signal == libc::SIGTRAP | SYSTEM_CALL_BIT => Stop::SystemCall,
            0 => Stop::Signal(signal),
            libc::PTRACE_EVENT_STOP if STOPPING.contains(&signal) => Stop::Group(signal),
            libc::PTRACE_EVENT_STOP => Stop::Interrupted,
            libc::PTRACE_EVENT_FORK => created(Creation::Fork, message()),
            libc::PTRACE_EVENT_VFORK => created(Creation::Vfork, message()),
            libc::PTRACE_EVENT_CLONE => created(Creation::Clone, message()),
            libc::PTRACE_EVENT_VFORK_DONE => Stop::VforkDone,
            libc::PTRACE_EVENT_EXEC => Stop::Exec {
                former_thread: pid(message()),
            },
            libc::PTRACE_EVENT_EXIT => Stop::Exiting(message().map(|status| status as i32)),
            libc::PTRACE_EVENT_SECCOMP => Stop::Seccomp(message().map(|data| data as u16)),
            other => Stop::Other(other),
        }
    }

    /// How to resume the thread so that it behaves as if it were not traced.
    #[must_use]
    pub fn transparently(self) -> Resume {
        match self {
            Stop::Signal(signal) => Resume::Continue(signal),
            Stop::Group(_) => Resume::Listen,
            _ => Resume::Continue(0),
        }
    }

    /// How to detach from the thread so that it behaves as if it had not been traced. A process in a group-stop stays stopped.
    #[must_use]
    pub fn detachment(self) -> Resume {
        match self {
            Stop::Signal(signal) => Resume::Detach(signal),
            _ => Resume::Detach(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The wait status of a stop with this signal and event.
    fn stopped(signal: i32, event: i32) -> i32 {
        event << 16 | signal << 8 | 0x7f
    }

    #[test]
    fn each_status_has_its_event() {
        let child = Some(Pid(7));
        let expected = [
            (stopped(libc::SIGUSR1, 0), Stop::Signal(libc::SIGUSR1)),
            (stopped(libc::SIGTRAP, 0), Stop::Signal(libc::SIGTRAP)),
            // A real-time signal, of which the C library keeps the first.
            (stopped(32, 0), Stop::Signal(32)),
            (stopped(libc::SIGSTOP, 0), Stop::Signal(libc::SIGSTOP)),
            (stopped(libc::SIGTRAP | 0x80, 0), Stop::SystemCall),
            (
                stopped(libc::SIGTSTP, libc::PTRACE_EVENT_STOP),
                Stop::Group(libc::SIGTSTP),
            ),
            (stopped(libc::SIGTRAP, libc::PTRACE_EVENT_STOP), Stop::Interrupted),
            (
                stopped(libc::SIGTRAP, libc::PTRACE_EVENT_FORK),
                Stop::Created {
                    how: Creation::Fork,
                    child,
                },
            ),
            (
                stopped(libc::SIGTRAP, libc::PTRACE_EVENT_VFORK),
                Stop::Created {
                    how: Creation::Vfork,
                    child,
                },
            ),
            (
                stopped(libc::SIGTRAP, libc::PTRACE_EVENT_CLONE),
                Stop::Created {
                    how: Creation::Clone,
                    child,
                },
            ),
            (stopped(libc::SIGTRAP, libc::PTRACE_EVENT_VFORK_DONE), Stop::VforkDone),
            (
                stopped(libc::SIGTRAP, libc::PTRACE_EVENT_EXEC),
                Stop::Exec { former_thread: child },
            ),
            (stopped(libc::SIGTRAP, libc::PTRACE_EVENT_EXIT), Stop::Exiting(Some(7))),
            (
                stopped(libc::SIGTRAP, libc::PTRACE_EVENT_SECCOMP),
                Stop::Seccomp(Some(7)),
            ),
            (stopped(libc::SIGTRAP, 100), Stop::Other(100)),
        ];
        for (status, stop) in expected {
            assert_eq!(Event::of(Pid(1), status, |_| Some(7)), Event::Stopped(Pid(1), stop));
        }
        for status in [0, 3 << 8, libc::SIGKILL, 0x80 | libc::SIGSEGV] {
            assert_eq!(Event::of(Pid(1), status, |_| None), Event::Ended(Pid(1), status));
        }
    }

    #[test]
    fn only_signals_are_delivered_and_only_group_stops_last() {
        let stops = [Stop::Signal(40), Stop::Group(libc::SIGSTOP), Stop::Interrupted];
        let resumed = stops.map(Stop::transparently);
        assert_eq!(resumed, [Resume::Continue(40), Resume::Listen, Resume::Continue(0)]);
        let detached = stops.map(Stop::detachment);
        assert_eq!(detached, [Resume::Detach(40), Resume::Detach(0), Resume::Detach(0)]);
    }
}
