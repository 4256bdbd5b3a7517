//! Determines what ended a wait. If the kernel does not let BPF programs see whether a wake-up came
//! from an interrupt, the waiting system call may show it: by its number, by the object that it
//! waited for, or by its return value.

use crate::wire::*;
use spawnscope_data::event::{ObjectKind, TaskId, Wake, Waker};

use super::{observed, pid, until_nul};

/// The errors by which calls report a timeout.
const TIMEOUT_ERRORS: [i32; 2] = [-libc::ETIMEDOUT, -libc::EAGAIN];

/// Calls that end when a timer expires.
const SLEEPS: &[i64] = &[libc::SYS_nanosleep, libc::SYS_clock_nanosleep];

/// Calls that only a signal ends, possibly the signal of a timer.
const SUSPENSIONS: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_pause,
    libc::SYS_rt_sigsuspend,
];

/// Calls with a time limit that return 0 when it expires.
const ZERO_ON_TIMEOUT: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_io_getevents,
];

/// Calls with a time limit that fail when it expires. The limit of a socket call is that of the
/// socket (SO_RCVTIMEO, SO_SNDTIMEO).
const ERROR_ON_TIMEOUT: &[i64] = &[
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    SYS_FUTEX_WAIT,
    libc::SYS_semtimedop,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_timedreceive,
    libc::SYS_io_uring_enter,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
];
/// Since Linux 6.7; libc has no constant for it.
const SYS_FUTEX_WAIT: i64 = 455;

/// Calls in which a thread waits, uninterruptibly, for a process that it created.
const CREATING_CALLS: &[i64] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
    libc::SYS_clone,
    libc::SYS_clone3,
];

/// Returns the wake-up that ended a wait; `None` if it was not observed.
pub(super) fn wake(slice: &WireSlice, object: Option<ObjectKind>) -> Option<Wake> {
    let at = observed(slice.waker.woken)?;
    let is_in_doubt = slice.waker.kind & WAKER_IN_DOUBT != 0;
    if is_in_doubt && has_timed_out(slice) {
        return Some(Wake { at, by: Waker::Interrupt, is_certain: true });
    }
    Some(Wake { at, by: waker(&slice.waker)?, is_certain: !is_in_doubt || must_be_thread(slice, object) })
}

/// Whether the slice's object is what the thread waited for. A call that watches an internet socket
/// may also have a time limit. Both the socket and the timer end the wait by an interrupt, and only
/// the call's return value shows which of them did.
pub(super) fn was_waited_for(slice: &WireSlice, object: ObjectKind) -> bool {
    if object != ObjectKind::Socket || !is_one_of(slice, ZERO_ON_TIMEOUT) {
        return true;
    }
    let is_only_socket = slice.object_kind & OBJECT_UNLESS_THREAD == 0;
    let has_event = call_result(slice).is_some_and(|result| result > 0);
    let is_in_doubt = slice.waker.kind & WAKER_IN_DOUBT != 0;
    match slice.waker.kind & WAKER_KINDS {
        WAKER_UNKNOWN => is_only_socket && slice.header.kind == KIND_LAST_SEEN,
        WAKER_INTERRUPT => has_event,
        _ => is_only_socket && (has_event || !is_in_doubt),
    }
}

fn waker(waker: &WireWaker) -> Option<Waker> {
    Some(match waker.kind & WAKER_KINDS {
        WAKER_TASK => Waker::Task(TaskId(waker.task)),
        WAKER_OTHER => Waker::Other { pid: pid(waker.pid), name: until_nul(&waker.comm) },
        WAKER_INTERRUPT => Waker::Interrupt,
        _ => return None,
    })
}

fn is_one_of(slice: &WireSlice, calls: &[i64]) -> bool {
    calls.contains(&i64::from(slice.syscall))
}

/// Returns the return value of the system call, if this was the call's last wait.
fn call_result(slice: &WireSlice) -> Option<i32> {
    (slice.waker.kind & WAKER_CALL_RETURNED != 0).then_some(slice.result)
}

/// Whether the return value shows a timeout, so that a timer interrupt ended the wait.
fn has_timed_out(slice: &WireSlice) -> bool {
    call_result(slice).is_some_and(|result| {
        is_one_of(slice, SLEEPS)
            || TIMEOUT_ERRORS.contains(&result)
            || (result == 0 && is_one_of(slice, ZERO_ON_TIMEOUT))
    })
}

/// Whether only a thread can have ended the wait. A call that failed, but did not time out, was
/// ended by a signal, and a timer may have sent that signal.
fn must_be_thread(slice: &WireSlice, object: Option<ObjectKind>) -> bool {
    if slice.reason != LEFT_INTERRUPTIBLE {
        return is_one_of(slice, CREATING_CALLS) || object == Some(ObjectKind::Permission);
    }
    let may_be_interrupt = matches!(
        object,
        Some(
            ObjectKind::Socket
                | ObjectKind::CharacterDevice
                | ObjectKind::BlockDevice
                | ObjectKind::Timerfd
                | ObjectKind::Signalfd
        )
    );
    let has_limit =
        [SLEEPS, SUSPENSIONS, ZERO_ON_TIMEOUT, ERROR_ON_TIMEOUT].iter().any(|calls| is_one_of(slice, calls));
    let succeeded = call_result(slice).map(|result| result >= 0);
    slice.syscall >= 0 && !may_be_interrupt && succeeded.unwrap_or(!has_limit)
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;

    const SEEN: u32 = WAKER_TASK;
    const DOUBT: u32 = WAKER_TASK | WAKER_IN_DOUBT;
    const RETURNED: u32 = DOUBT | WAKER_CALL_RETURNED;
    const ERESTARTSYS: i32 = -512;

    fn decoded(call: i64, kind: u32, result: i32, object: Option<ObjectKind>) -> (Waker, bool) {
        let mut slice = WireSlice::new_zeroed();
        (slice.syscall, slice.reason) = (call as i32, LEFT_INTERRUPTIBLE);
        (slice.waker.woken, slice.waker.task, slice.waker.kind, slice.result) = (9, 5, kind, result);
        let wake = wake(&slice, object).unwrap();
        (wake.by, wake.is_certain)
    }

    fn by_thread(call: i64, kind: u32, result: i32, object: Option<ObjectKind>) -> bool {
        let (by, is_certain) = decoded(call, kind, result, object);
        assert_eq!(by, Waker::Task(TaskId(5)));
        is_certain
    }

    #[test]
    fn a_waker_that_the_kernel_shows_is_certain() {
        assert!(by_thread(libc::SYS_ppoll, SEEN, 0, None));
        assert!(by_thread(-1, SEEN, 0, None));
        assert_eq!(decoded(libc::SYS_futex, WAKER_INTERRUPT, 0, None), (Waker::Interrupt, true));
    }

    #[test]
    fn a_call_that_timed_out_was_ended_by_a_timer() {
        for (call, result) in [
            (libc::SYS_ppoll, 0),
            (libc::SYS_epoll_pwait, 0),
            (libc::SYS_io_getevents, 0),
            (libc::SYS_futex, -libc::ETIMEDOUT),
            (libc::SYS_mq_timedreceive, -libc::ETIMEDOUT),
            (libc::SYS_semtimedop, -libc::EAGAIN),
            (libc::SYS_recvfrom, -libc::EAGAIN),
            (libc::SYS_nanosleep, 0),
        ] {
            assert_eq!(decoded(call, RETURNED, result, None), (Waker::Interrupt, true), "{call}");
        }
    }

    #[test]
    fn a_call_that_got_what_it_waited_for_was_ended_by_a_thread() {
        assert!(by_thread(libc::SYS_ppoll, RETURNED, 1, Some(ObjectKind::Pipe)));
        assert!(by_thread(libc::SYS_futex, RETURNED, 0, None));
        assert!(by_thread(libc::SYS_rt_sigtimedwait, RETURNED, libc::SIGCHLD, None));
        assert!(by_thread(libc::SYS_recvfrom, RETURNED, 1, Some(ObjectKind::UnixSocket)));
        assert!(by_thread(libc::SYS_read, RETURNED, 0, Some(ObjectKind::Pipe)), "the end of a pipe is not a timeout");
    }

    #[test]
    fn the_waker_of_a_call_without_time_limit_is_certain_before_the_call_returns() {
        assert!(by_thread(libc::SYS_wait4, DOUBT, 0, None));
        assert!(by_thread(libc::SYS_read, DOUBT, 0, Some(ObjectKind::Pipe)));
    }

    /// Whether the waker of an uninterruptible wait is certain.
    fn is_certain(call: i64, object: Option<ObjectKind>) -> bool {
        let mut slice = WireSlice::new_zeroed();
        (slice.waker.woken, slice.waker.kind, slice.reason) = (9, DOUBT, LEFT_UNINTERRUPTIBLE);
        slice.syscall = call as i32;
        wake(&slice, object).unwrap().is_certain
    }

    #[test]
    fn the_waker_of_an_uninterruptible_wait_is_certain_if_it_was_for_a_child_or_a_scanner() {
        assert!(is_certain(libc::SYS_clone3, None));
        assert!(is_certain(libc::SYS_openat, Some(ObjectKind::Permission)));
        assert!(!is_certain(libc::SYS_openat, Some(ObjectKind::File)), "a disk");
        assert!(!is_certain(libc::SYS_exit_group, None));
    }

    fn socket_wait(call: i64, kind: u32, result: i32, object: u32) -> WireSlice {
        let mut slice = WireSlice::new_zeroed();
        (slice.waker.kind, slice.result, slice.object_kind) = (kind, result, object);
        slice.syscall = i32::try_from(call).unwrap();
        slice
    }

    fn is_for(call: i64, kind: u32, result: i32, object: u32) -> bool {
        was_waited_for(&socket_wait(call, kind, result, object), ObjectKind::Socket)
    }

    #[test]
    fn a_watched_socket_is_the_object_of_a_wait_if_it_ended_the_wait() {
        let alone = OBJECT_SOCKET;
        let beside = OBJECT_SOCKET | OBJECT_UNLESS_THREAD;
        let interrupted = WAKER_INTERRUPT | WAKER_CALL_RETURNED;
        for call in [libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_epoll_pwait] {
            assert!(is_for(call, interrupted, 1, alone) && is_for(call, interrupted, 1, beside));
            assert!(!is_for(call, interrupted, 0, alone), "the call timed out");
            assert!(!is_for(call, interrupted, -libc::EINTR, alone), "a signal ended it, perhaps that of a timer");
            assert!(!is_for(call, WAKER_INTERRUPT, 0, alone), "the call has not returned");
            assert!(is_for(call, WAKER_TASK, 0, alone) && is_for(call, WAKER_OTHER, 0, alone));
            assert!(!is_for(call, WAKER_TASK, 0, beside), "perhaps another socket");
            assert!(is_for(call, RETURNED, 1, alone) && !is_for(call, RETURNED, 1, beside));
            assert!(!is_for(call, RETURNED, 0, alone) && !is_for(call, DOUBT, 0, alone));
            assert!(!is_for(call, WAKER_UNKNOWN, 0, alone));
        }
        assert!(is_for(libc::SYS_recvfrom, WAKER_INTERRUPT, 0, alone), "the call has one file only");
        let mut slice = socket_wait(libc::SYS_ppoll, WAKER_UNKNOWN, 0, alone);
        slice.header.kind = KIND_LAST_SEEN;
        assert!(was_waited_for(&slice, ObjectKind::Socket), "the thread still waits");
        slice.object_kind = beside;
        assert!(!was_waited_for(&slice, ObjectKind::Socket));
        assert!(was_waited_for(&slice, ObjectKind::UnixSocket), "only a thread makes it ready");
    }

    #[test]
    fn uncertain_wakers_stay_uncertain_without_evidence() {
        assert!(!by_thread(libc::SYS_ppoll, DOUBT, 0, None), "the call has not returned");
        assert!(!by_thread(libc::SYS_nanosleep, DOUBT, 0, None));
        assert!(!by_thread(libc::SYS_rt_sigsuspend, RETURNED, ERESTARTSYS, None));
        assert!(!by_thread(libc::SYS_wait4, RETURNED, ERESTARTSYS, None), "a signal");
        assert!(!by_thread(libc::SYS_read, DOUBT, 0, Some(ObjectKind::Socket)), "the network");
        assert!(!by_thread(libc::SYS_ppoll, RETURNED, 1, Some(ObjectKind::Timerfd)));
        assert!(!by_thread(-1, DOUBT, 0, None), "no known system call");
    }
}
