//! External waits, which no recorded thread ended: a timer, a disk, the network, another process.

use std::collections::BTreeMap;

use spawnscope_data::event::{LeftCpu, Nanos, ObjectKind};
use spawnscope_data::rows::{ObjectRef, SliceRow, TextId, WakerRow};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExternalWait {
    /// The thread slept on purpose, or a call timed out.
    Timer,
    /// File I/O, or a page that had to be read.
    Disk,
    /// A socket with an unrecorded peer.
    Network,
    /// An unrecorded process, with the name of its thread that woke the waiting thread.
    Process(Option<TextId>),
    /// A permission scanner that had to allow opening or executing a file (fanotify), with the
    /// scanner's name.
    Scanner(Option<TextId>),
    Stopped,
    /// The recorder: before the command's exec, between the command's end and the end of the wall,
    /// and while it stopped a thread.
    Recorder,
    Unknown,
}

impl ExternalWait {
    /// Returns the name of the process that was waited for. `None` if the cause is not a process or
    /// the name is unknown.
    pub fn process(self) -> Option<TextId> {
        match self {
            ExternalWait::Process(name) | ExternalWait::Scanner(name) => name,
            _ => None,
        }
    }
}

pub type ExternalWaitTimes = BTreeMap<ExternalWait, Nanos>;

/// System calls grouped by the kind of their wait.
mod calls {
    pub(crate) use spawnscope_data::event::syscalls::CREATIONS;
    use spawnscope_data::event::syscalls::numbers;

    pub(crate) const SLEEPS: [u16; 3] = numbers(["pause", "nanosleep", "clock_nanosleep"]);
    /// Calls that may time out; and restart_syscall, which continues one of them or a sleep.
    pub(crate) const TIMED: [u16; 16] = numbers([
        "poll", "select", "pselect6", "ppoll", "epoll_wait", "epoll_pwait", "futex", "epoll_pwait2", "rt_sigtimedwait",
        "semtimedop", "io_getevents", "mq_timedsend", "mq_timedreceive", "futex_waitv", "futex_wait",
        "restart_syscall",
    ]);
    pub(crate) const SOCKETS: [u16; 9] =
        numbers(["connect", "accept", "sendto", "recvfrom", "sendmsg", "recvmsg", "accept4", "recvmmsg", "sendmmsg"]);
}

/// Whether the waker is the cause of a wake-up. If an interrupt handler woke the thread, the
/// recorded waker is only the thread that was interrupted. Not every kernel lets the recorder
/// distinguish the two; `is_waker_certain` says whether it could (never before format version 7).
/// Waits that only an interrupt can end are recognized by their system call.
pub fn waker_is_cause(slice: &SliceRow) -> bool {
    match slice.reason {
        _ if slice.is_waker_certain == Some(false) => false,
        LeftCpu::Stopped => false,
        LeftCpu::Uninterruptible => is_in(slice, &calls::CREATIONS) || kind_of(slice) == Some(ObjectKind::Permission),
        _ => !is_in(slice, &calls::SLEEPS),
    }
}

/// Whether a slice, which `reconstruct` has written, ends with a stop by the collector.
pub(crate) fn is_by_collector(slice: &SliceRow) -> bool {
    slice.reason == LeftCpu::Stopped && slice.is_waker_certain == Some(true) && slice.waker.is_none()
}

/// Whether the thread slept in a call that only a signal can end early.
pub(crate) fn is_sleep(slice: &SliceRow) -> bool {
    is_in(slice, &calls::SLEEPS)
}

/// Returns the cause of a wait that no recorded thread ended.
pub fn external_wait_of(slice: &SliceRow) -> ExternalWait {
    let waker = slice.waker.filter(|_| slice.is_waker_certain != Some(false));
    let by_interrupt = matches!(waker, Some(WakerRow::Interrupt) | None);
    let name = match waker {
        Some(WakerRow::Other(_, name)) => name,
        _ => None,
    };
    if slice.is_open_wait() {
        return cause_of_open_wait(slice);
    }
    match slice.reason {
        LeftCpu::Stopped if is_by_collector(slice) => ExternalWait::Recorder,
        LeftCpu::Stopped => ExternalWait::Stopped,
        // A scanner's reply to another thread also wakes this one, which then sleeps again. The
        // slice has the last waker, the one that replied to this thread.
        _ if kind_of(slice) == Some(ObjectKind::Permission) => ExternalWait::Scanner(name),
        _ if is_in(slice, &calls::SLEEPS) => ExternalWait::Timer,
        LeftCpu::Uninterruptible if !is_in(slice, &calls::CREATIONS) => ExternalWait::Disk,
        _ => match waker {
            Some(WakerRow::Other(..)) => ExternalWait::Process(name),
            _ if by_interrupt && is_in(slice, &calls::SOCKETS) => ExternalWait::Network,
            // After the socket check: a call with a timeout whose object is a socket counts as
            // network.
            _ if by_interrupt && kind_of(slice) == Some(ObjectKind::Socket) => ExternalWait::Network,
            _ if by_interrupt && is_in(slice, &calls::TIMED) => ExternalWait::Timer,
            _ if by_interrupt && kind_of(slice) == Some(ObjectKind::Timerfd) => ExternalWait::Timer,
            _ => ExternalWait::Unknown,
        },
    }
}

/// Returns the cause of a wait that is still open when the recording ends. The wait has no waker,
/// so only the system call and the object indicate the cause. The cause of a `poll` with a timeout
/// is unknown.
fn cause_of_open_wait(slice: &SliceRow) -> ExternalWait {
    match (slice.reason, kind_of(slice)) {
        (LeftCpu::Stopped, _) => ExternalWait::Stopped,
        (_, Some(ObjectKind::Permission)) => ExternalWait::Scanner(None),
        (_, Some(ObjectKind::Timerfd)) => ExternalWait::Timer,
        (_, Some(ObjectKind::Socket)) => ExternalWait::Network,
        _ if is_in(slice, &calls::SLEEPS) => ExternalWait::Timer,
        (LeftCpu::Uninterruptible, _) if !is_in(slice, &calls::CREATIONS) => ExternalWait::Disk,
        _ => ExternalWait::Unknown,
    }
}

/// Whether a slice's thread left the CPU in one of these system calls.
fn is_in(slice: &SliceRow, calls: &[u16]) -> bool {
    slice.syscall.is_some_and(|call| calls.contains(&call))
}

fn kind_of(slice: &SliceRow) -> Option<ObjectKind> {
    slice.object.map(ObjectRef::kind)
}
