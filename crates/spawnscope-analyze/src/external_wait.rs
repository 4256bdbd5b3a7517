//! External waits, which no recorded thread ended: a timer, a disk, the network, another process.

use std::collections::BTreeMap;

use spawnscope_data::event::{LeftCpu, Nanos, ObjectKind};
use spawnscope_data::rows::{ObjectRef, SliceRow, TextId, WakerRow};

/// The cause of an external wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExternalWait {
    /// The thread slept on purpose, or a call timed out.
    Timer,
    /// File I/O, or a page that had to be read.
    Disk,
    /// A socket with an unrecorded peer.
    Network,
    /// An unrecorded process, by the name of the thread that woke the waiting one.
    Process(Option<TextId>),
    /// The permission of a scanner to open or execute a file (fanotify), by the name of the scanner.
    Scanner(Option<TextId>),
    /// Stopped by a signal.
    Stopped,
    /// The recorder: before the command's exec, and between its end and the end of the wall.
    Recorder,
    /// Unknown.
    Unknown,
}

impl ExternalWait {
    /// Returns the name of the process that was waited for, if it was one with a known name.
    #[must_use]
    pub fn process(self) -> Option<TextId> {
        match self {
            ExternalWait::Process(name) | ExternalWait::Scanner(name) => name,
            _ => None,
        }
    }
}

/// Time by cause.
pub type ExternalWaitTimes = BTreeMap<ExternalWait, Nanos>;

/// System calls by the kind of wait, as x86-64 numbers, which all rows use.
mod calls {
    /// `pause`, `nanosleep`, `clock_nanosleep`.
    pub(super) const SLEEPS: [u16; 3] = [34, 35, 230];
    /// poll, select, pselect6, ppoll, epoll_wait, epoll_pwait, futex, epoll_pwait2, rt_sigtimedwait, semtimedop, io_getevents,
    /// mq_timedsend, mq_timedreceive, futex_waitv, futex_wait: they may time out. restart_syscall continues one of these or a sleep.
    pub(super) const TIMED: [u16; 16] = [
        7, 23, 270, 271, 232, 281, 202, 441, 128, 220, 208, 242, 243, 449, 455, 219,
    ];
    /// connect, accept, sendto, recvfrom, sendmsg, recvmsg, accept4, recvmmsg, sendmmsg.
    pub(super) const SOCKETS: [u16; 9] = [42, 43, 44, 45, 46, 47, 288, 299, 307];
    /// clone, fork, vfork, clone3: a vfork's parent sleeps uninterruptibly until its child's exec.
    pub(super) const CREATIONS: [u16; 4] = [56, 57, 58, 435];
}

/// Whether the waker is the cause of a wake-up. In an interrupt, the running thread was only interrupted. Not every kernel lets the
/// recorder distinguish these; the slice contains whether it could. Before version 7 of the format it never does. Waits that only an
/// interrupt ends are recognized by their system call.
#[must_use]
pub fn waker_is_cause(slice: &SliceRow) -> bool {
    match slice.reason {
        _ if slice.is_waker_certain == Some(false) => false,
        LeftCpu::Stopped => false,
        LeftCpu::Uninterruptible => is_in(slice, &calls::CREATIONS) || kind_of(slice) == Some(ObjectKind::Permission),
        _ => !is_in(slice, &calls::SLEEPS),
    }
}

/// Whether the thread slept, and nothing but a signal could end that earlier.
pub(crate) fn is_sleep(slice: &SliceRow) -> bool {
    is_in(slice, &calls::SLEEPS)
}

/// Returns the cause of a wait that no recorded thread ended.
#[must_use]
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
        LeftCpu::Stopped => ExternalWait::Stopped,
        // The last of several wake-ups counts: the reply to another thread also wakes this one, which then sleeps again.
        _ if kind_of(slice) == Some(ObjectKind::Permission) => ExternalWait::Scanner(name),
        _ if is_in(slice, &calls::SLEEPS) => ExternalWait::Timer,
        LeftCpu::Uninterruptible if !is_in(slice, &calls::CREATIONS) => ExternalWait::Disk,
        _ => match waker {
            Some(WakerRow::Other(..)) => ExternalWait::Process(name),
            _ if by_interrupt && is_in(slice, &calls::SOCKETS) => ExternalWait::Network,
            // Of calls that watch a socket and may time out, only those that did not have it as their object.
            _ if by_interrupt && kind_of(slice) == Some(ObjectKind::Socket) => ExternalWait::Network,
            _ if by_interrupt && is_in(slice, &calls::TIMED) => ExternalWait::Timer,
            _ if by_interrupt && kind_of(slice) == Some(ObjectKind::Timerfd) => ExternalWait::Timer,
            _ => ExternalWait::Unknown,
        },
    }
}

/// Returns the cause of a wait that is still open when the recording ends. It has no waker, so only system call and object identify it.
/// Anything may still end a `poll` with a timeout.
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

/// Whether a slice ended in one of these system calls.
fn is_in(slice: &SliceRow, calls: &[u16]) -> bool {
    slice.syscall.is_some_and(|call| calls.contains(&call))
}

fn kind_of(slice: &SliceRow) -> Option<ObjectKind> {
    slice.object.map(ObjectRef::kind)
}
