//! Filters that make a system call fail, or that ask a thread of the test for a decision. A filter
//! stays in force for this thread and for all threads and processes that it starts later, so it is
//! only for tests in their own process.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::mpsc;

/// The offset in bytes of the arguments in `struct seccomp_data`.
const OFFSET_OF_ARGUMENTS: u32 = 16;

/// A system call, optionally restricted to a value of the low half of one of its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    number: libc::c_long,
    argument: Option<(u32, u32)>,
}

pub fn call(number: libc::c_long) -> Call {
    Call { number, argument: None }
}

impl Call {
    /// Restricts the call to those with this value as their argument `index` (from 0).
    pub fn with(mut self, index: u32, value: u32) -> Call {
        self.argument = Some((index, value));
        self
    }
}

/// Builds a filter that takes an action for each of the calls, and allows all others.
fn build_filter(rules: &[(Call, u32)]) -> Vec<libc::sock_filter> {
    let mut program = Vec::new();
    for (call, action) in rules {
        let number = call.number as u32;
        match call.argument {
            None => program.extend([load(0), skip_unless(number, 1)]),
            Some((index, value)) => {
                let argument = load(OFFSET_OF_ARGUMENTS + 8 * index);
                program.extend([load(0), skip_unless(number, 3), argument, skip_unless(value, 1)]);
            }
        }
        program.push(return_action(*action));
    }
    program.push(return_action(libc::SECCOMP_RET_ALLOW));
    program
}

fn load(offset: u32) -> libc::sock_filter {
    libc::sock_filter { code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, jt: 0, jf: 0, k: offset }
}

fn skip_unless(value: u32, skipped: u8) -> libc::sock_filter {
    libc::sock_filter { code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, jt: 0, jf: skipped, k: value }
}

fn return_action(action: u32) -> libc::sock_filter {
    libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: action }
}

fn install(rules: &[(Call, u32)], flags: libc::c_ulong) -> i32 {
    let mut filter = build_filter(rules);
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: a filter with its length.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        let result = libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program);
        assert!(result >= 0, "seccomp: {}", std::io::Error::last_os_error());
        result as i32
    }
}

/// Makes calls fail with an errno.
pub fn refuse(rules: &[(Call, i32)]) {
    let rules: Vec<_> = rules.iter().map(|(call, errno)| (*call, libc::SECCOMP_RET_ERRNO | *errno as u32)).collect();
    install(&rules, 0);
}

/// A call that waits for the test's answer.
pub struct PendingCall<'a> {
    listener: &'a OwnedFd,
    id: u64,
    pub pid: u32,
}

impl PendingCall<'_> {
    pub fn allow(self) {
        self.answer(0, 1);
    }

    pub fn fail(self, errno: i32) {
        self.answer(-errno, 0);
    }

    /// Sends the answer. Ignores a failure, since the caller may have been killed in the meantime.
    fn answer(self, error: i32, flags: u32) {
        let response = libc::seccomp_notif_resp { id: self.id, val: 0, error, flags };
        // SAFETY: the kernel's struct for this request (SECCOMP_IOCTL_NOTIF_SEND).
        unsafe { libc::ioctl(self.listener.as_raw_fd(), 0xc018_2101, &raw const response) };
    }
}

/// Installs a filter that passes each of the calls to `decide`, which runs in a thread that the
/// filter does not cover.
pub fn ask(calls: &[Call], mut decide: impl FnMut(PendingCall<'_>) + Send + 'static) {
    let (sender, receiver) = mpsc::channel::<OwnedFd>();
    std::thread::spawn(move || {
        let listener = receiver.recv().expect("the filter was installed");
        loop {
            // SAFETY: the kernel's struct, which must be zeros (SECCOMP_IOCTL_NOTIF_RECV).
            let (result, request) = unsafe {
                let mut request: libc::seccomp_notif = std::mem::zeroed();
                (libc::ioctl(listener.as_raw_fd(), 0xc050_2100, &raw mut request), request)
            };
            if result == 0 {
                let (id, pid) = (request.id, request.pid);
                decide(PendingCall { listener: &listener, id, pid });
            }
        }
    });
    let rules: Vec<_> = calls.iter().map(|call| (*call, libc::SECCOMP_RET_USER_NOTIF)).collect();
    let listener = install(&rules, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER);
    // SAFETY: a new descriptor, which has no other owner.
    sender.send(unsafe { OwnedFd::from_raw_fd(listener) }).expect("the thread listens");
}
