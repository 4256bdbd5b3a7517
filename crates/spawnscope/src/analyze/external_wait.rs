//! What a thread waited for when no recorded thread let it go on: a timer, a disk, the network, another process.

use std::collections::BTreeMap;

use crate::event::{LeftCpu, Nanos, ObjectKind};
use crate::record::reader::{ObjectRef, SliceRow, TextId, WakerRow};

/// Something outside of the recorded processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExternalWait {
    /// It slept on purpose, or a call's time ran out.
    Timer,
    /// File input or output, or a page that had to be read.
    Disk,
    /// A socket whose other end is not recorded.
    Network,
    /// A process that is not recorded, by the name of the thread that woke it.
    Process(Option<TextId>),
    /// A scanner's permission to open or execute a file (fanotify), by the name of the scanner.
    Scanner(Option<TextId>),
    /// Stopped by a signal.
    Stopped,
    /// The recorder: before the command's exec, and between its end and the end of the wall.
    Recorder,
    /// The recording does not say.
    Unknown,
}

impl ExternalWait {
    /// The name of the process that was waited for, where it is one and its name is known.
    #[must_use]
    pub fn process(self) -> Option<TextId> {
        match self {
            ExternalWait::Process(name) | ExternalWait::Scanner(name) => name,
            _ => None,
        }
    }
}

/// Time by what was waited for.
pub type ExternalWaitTimes = BTreeMap<ExternalWait, Nanos>;

/// System calls by what a wait in them is for, with x86-64's numbers, which all rows have.
mod calls {
    /// pause, nanosleep, clock_nanosleep.
    pub(super) const SLEEPS: [u16; 3] = [34, 35, 230];
    /// poll, select, pselect6, ppoll, epoll_wait, epoll_pwait, futex, epoll_pwait2, rt_sigtimedwait, semtimedop, io_getevents,
    /// mq_timedsend, mq_timedreceive, futex_waitv, futex_wait: they may time out.
    pub(super) const TIMED: [u16; 15] = [7, 23, 270, 271, 232, 281, 202, 441, 128, 220, 208, 242, 243, 449, 455];
    /// connect, accept, sendto, recvfrom, sendmsg, recvmsg, accept4, recvmmsg, sendmmsg.
    pub(super) const SOCKETS: [u16; 9] = [42, 43, 44, 45, 46, 47, 288, 299, 307];
    /// clone, fork, vfork, clone3: a vfork's parent sleeps uninterruptibly until its child's exec.
    pub(super) const CREATIONS: [u16; 4] = [56, 57, 58, 435];
}

/// Whether the thread that woke another can be believed to have been the cause. In an interrupt, the thread that ran is
/// merely the one that was interrupted. Not every kernel lets the recorder tell these apart: it says where it could not, and
/// did not before version 7 of the format. Waits which only an interrupt ends are known by their system call.
#[must_use]
pub fn waker_is_cause(slice: &SliceRow) -> bool {
    let call = slice.syscall;
    let is = |calls: &[u16]| call.is_some_and(|call| calls.contains(&call));
    match slice.reason {
        _ if !slice.is_waker_certain => false,
        LeftCpu::Stopped => false,
        LeftCpu::Uninterruptible => is(&calls::CREATIONS) || kind_of(slice) == Some(ObjectKind::Permission),
        _ => !is(&calls::SLEEPS),
    }
}

/// What a wait was for that no recorded thread ended.
#[must_use]
pub fn external_wait_of(slice: &SliceRow) -> ExternalWait {
    let is = |calls: &[u16]| slice.syscall.is_some_and(|call| calls.contains(&call));
    let waker = slice.waker.filter(|_| slice.is_waker_certain);
    let by_interrupt = matches!(waker, Some(WakerRow::Interrupt) | None);
    let name = match waker {
        Some(WakerRow::Other(_, name)) => name,
        _ => None,
    };
    if slice.is_open_wait() {
        return still_awaited(slice);
    }
    match slice.reason {
        LeftCpu::Stopped => ExternalWait::Stopped,
        // Of several wake-ups the last one counts: a reply to another thread wakes this one too, which sleeps again.
        _ if kind_of(slice) == Some(ObjectKind::Permission) => ExternalWait::Scanner(name),
        _ if is(&calls::SLEEPS) => ExternalWait::Timer,
        LeftCpu::Uninterruptible if !is(&calls::CREATIONS) => ExternalWait::Disk,
        _ => match waker {
            Some(WakerRow::Other(..)) => ExternalWait::Process(name),
            _ if by_interrupt && is(&calls::SOCKETS) => ExternalWait::Network,
            _ if by_interrupt && is(&calls::TIMED) => ExternalWait::Timer,
            _ if by_interrupt && kind_of(slice) == Some(ObjectKind::Socket) => ExternalWait::Network,
            _ if by_interrupt && kind_of(slice) == Some(ObjectKind::Timerfd) => ExternalWait::Timer,
            _ => ExternalWait::Unknown,
        },
    }
}

/// What a wait is for that is not over when the recording ends: nobody has ended it, so only call and object tell. A `poll` with a
/// time limit may still be ended by anybody.
fn still_awaited(slice: &SliceRow) -> ExternalWait {
    let is = |calls: &[u16]| slice.syscall.is_some_and(|call| calls.contains(&call));
    match (slice.reason, kind_of(slice)) {
        (LeftCpu::Stopped, _) => ExternalWait::Stopped,
        (_, Some(ObjectKind::Permission)) => ExternalWait::Scanner(None),
        (_, Some(ObjectKind::Timerfd)) => ExternalWait::Timer,
        (_, Some(ObjectKind::Socket)) => ExternalWait::Network,
        _ if is(&calls::SLEEPS) => ExternalWait::Timer,
        (LeftCpu::Uninterruptible, _) if !is(&calls::CREATIONS) => ExternalWait::Disk,
        _ => ExternalWait::Unknown,
    }
}

fn kind_of(slice: &SliceRow) -> Option<ObjectKind> {
    slice.object.map(ObjectRef::kind)
}
