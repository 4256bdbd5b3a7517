//! What a thread waits for: the call that a blocked thread is in (/proc/PID/task/TID/syscall), or
//! in which a stopped one was, and the pipes behind its descriptors.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use spawnscope_data::event::{Pid, Syscall};
use spawnscope_system::ptrace::Registers;
use spawnscope_system::{memory, procfs};

use super::idle::Pipes;

/// Calls that wait for one of several descriptors.
#[cfg(target_arch = "x86_64")]
const POLLS: &[libc::c_long] = &[libc::SYS_poll, libc::SYS_ppoll];
#[cfg(not(target_arch = "x86_64"))]
const POLLS: &[libc::c_long] = &[libc::SYS_ppoll];
#[cfg(target_arch = "x86_64")]
const SELECTS: &[libc::c_long] = &[libc::SYS_select, libc::SYS_pselect6];
#[cfg(not(target_arch = "x86_64"))]
const SELECTS: &[libc::c_long] = &[libc::SYS_pselect6];
#[cfg(target_arch = "x86_64")]
const EPOLLS: &[libc::c_long] = &[libc::SYS_epoll_wait, libc::SYS_epoll_pwait];
#[cfg(not(target_arch = "x86_64"))]
const EPOLLS: &[libc::c_long] = &[libc::SYS_epoll_pwait];
/// Programs seldom wait for more descriptors in one call; the others are not examined.
const MAX_DESCRIPTORS: u64 = 1024;
/// Maximum number of descriptors whose files are compared with those of a child.
const MAX_COMPARED: usize = 64;
/// Size in bytes of a `struct pollfd`, which begins with the descriptor.
const POLL_BYTES: usize = 8;

/// Offset in bytes of the pid in a siginfo about a child.
const SIGINFO_PID: u64 = 16;
/// Results of a call that a signal has interrupted: EINTR, and the kernel's own ERESTARTSYS,
/// ERESTARTNOINTR, ERESTARTNOHAND and ERESTART_RESTARTBLOCK, after which the kernel may restart the
/// call.
const INTERRUPTED: [i64; 5] = [-4, -512, -513, -514, -516];

/// The number and the first two arguments of a call.
pub(crate) type Call = (libc::c_long, [u64; 2]);

/// Returns the call that a thread is blocked in; `None` if it is not blocked.
pub(super) fn call(file: &File) -> Option<Call> {
    let mut bytes = [0; 256];
    let length = file.read_at(&mut bytes, 0).ok()?;
    procfs::blocking_call(std::str::from_utf8(bytes.get(..length)?).ok()?)
}

/// How the end of a child ends a call of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndedBy {
    /// The call waits for children.
    Exit,
    /// The call waits for the output of the child.
    Output,
    /// The call reads a pipe that the exec of the child may close.
    Exec,
    /// The call may wait for anything, but a handler of SIGCHLD interrupts it.
    Signal,
}

/// Returns how the end of this child ends a call of its parent. `pipes`: those of the child.
/// `handles_signal`: whether the parent handles SIGCHLD.
pub(super) fn ended_by(
    (number, [first, second]): Call,
    parent: Pid,
    child: Pid,
    pipes: impl FnOnce() -> Pipes,
    handles_signal: impl FnOnce() -> bool,
) -> Option<EndedBy> {
    let is_child = |id: u64| id as i32 == child.0;
    let waits = match number {
        libc::SYS_wait4 => first as i32 == -1 || is_child(first),
        libc::SYS_waitid => first == u64::from(libc::P_ALL) || first == u64::from(libc::P_PID) && is_child(second),
        _ => false,
    };
    if waits {
        return Some(EndedBy::Exit);
    }
    let waits_for_several = [POLLS, SELECTS, EPOLLS].iter().any(|calls| calls.contains(&number));
    let read = descriptors((number, [first, second]), parent).into_iter().take(MAX_COMPARED);
    let mut read = read.filter_map(|fd| pipe_behind(parent, fd)).peekable();
    if read.peek().is_some() {
        let pipes = pipes();
        if read.any(|pipe| pipes.is_written(pipe)) {
            return Some(EndedBy::Output);
        }
    }
    (waits_for_several && handles_signal()).then_some(EndedBy::Signal)
}

/// Whether the pipe that a call reads is the output of a child; `None` if it reads none. The exec
/// of the child may close another one. `pipes`: those of the child.
pub(super) fn reads_output((number, [first, _]): Call, parent: Pid, pipes: impl FnOnce() -> Pipes) -> Option<bool> {
    let pipe = pipe_behind(parent, first).filter(|_| number == libc::SYS_read)?;
    Some(pipes().is_written(pipe))
}

/// Returns the descriptors that a call of a process waits for, to be readable.
pub(crate) fn descriptors((number, [first, second]): Call, process: Pid) -> Vec<u64> {
    match number {
        libc::SYS_read | libc::SYS_readv => vec![first],
        _ if POLLS.contains(&number) => {
            let bytes = memory::read(process, first, second.min(MAX_DESCRIPTORS) as usize * POLL_BYTES);
            let numbers =
                bytes.chunks_exact(POLL_BYTES).filter_map(|each| Some(i32::from_ne_bytes(*each.first_chunk()?)));
            numbers.filter_map(|fd| u64::try_from(fd).ok()).collect()
        }
        _ if SELECTS.contains(&number) => {
            let count = first.min(MAX_DESCRIPTORS);
            let bits = memory::read(process, second, count.div_ceil(64) as usize * 8);
            let is_set = |fd: &u64| bits.get((fd / 8) as usize).is_some_and(|byte| byte & (1 << (fd % 8)) != 0);
            (0..count).filter(is_set).collect()
        }
        _ if EPOLLS.contains(&number) => {
            let text = fs::read_to_string(format!("/proc/{}/fdinfo/{first}", process.0)).unwrap_or_default();
            let watched =
                text.lines().filter_map(|line| line.strip_prefix("tfd:")?.split_whitespace().next()?.parse().ok());
            watched.take(MAX_DESCRIPTORS as usize).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the inode of the pipe behind a descriptor; `None` if it is something else.
pub(super) fn pipe_behind(process: Pid, fd: u64) -> Option<u64> {
    let target = fs::read_link(format!("/proc/{}/fd/{fd}", process.0)).ok()?;
    target.to_str()?.strip_prefix("pipe:[")?.strip_suffix(']')?.parse().ok()
}

pub(super) fn handles(process: Pid, signal: i32) -> bool {
    let caught = procfs::status_field(process, "SigCgt");
    let caught = caught.and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    caught.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// It was waiting for children in this call, and the wait is over. The pid is that of the child
    /// that the call has reaped, if known.
    Waiting(Syscall, Option<Pid>),
    /// It was sleeping, and continues to.
    Asleep(Syscall),
    /// It was waiting for something else, and the signal has interrupted the wait.
    Interrupted,
    /// It was working, or in a call that is over.
    Working,
}

pub(super) fn activity(tid: Pid) -> Activity {
    let Ok(registers) = Registers::read(tid) else {
        return Activity::Interrupted;
    };
    let Some((number, argument, result)) = registers.ended_call(tid) else {
        return Activity::Working;
    };
    let Ok(call) = u32::try_from(number) else {
        return Activity::Interrupted;
    };
    let syscall = Syscall { number: call, argument };
    match number {
        libc::SYS_wait4 if result > 0 => Activity::Waiting(syscall, i32::try_from(result).ok().map(Pid)),
        libc::SYS_waitid if result == 0 => {
            Activity::Waiting(syscall, reaped_by_waitid(tid, registers.third_argument()))
        }
        // Without descriptors, it sleeps.
        _ if waits_for_nothing(number, argument)
            && INTERRUPTED[1..].contains(&result)
            && !handles(tid, libc::SIGCHLD) =>
        {
            Activity::Asleep(syscall)
        }
        // Programs use these calls to wait for signals.
        libc::SYS_rt_sigsuspend | libc::SYS_ppoll | libc::SYS_pselect6 | libc::SYS_epoll_pwait
            if INTERRUPTED.contains(&result) =>
        {
            Activity::Waiting(syscall, None)
        }
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep if INTERRUPTED[1..].contains(&result) => {
            Activity::Asleep(syscall)
        }
        _ if INTERRUPTED.contains(&result) => Activity::Interrupted,
        _ => Activity::Working,
    }
}

/// Whether a call waits for none of several descriptors. `argument` is the first one, the number of
/// descriptors or their address.
fn waits_for_nothing(number: libc::c_long, argument: u64) -> bool {
    argument == 0 && [POLLS, SELECTS].iter().any(|calls| calls.contains(&number))
}

/// Returns the child in the siginfo that waitid has written.
pub(super) fn reaped_by_waitid(tid: Pid, siginfo: u64) -> Option<Pid> {
    let bytes = memory::read(tid, siginfo.checked_add(SIGINFO_PID)?, size_of::<i32>());
    let pid = i32::from_ne_bytes(*bytes.first_chunk()?);
    (siginfo != 0 && pid > 0).then_some(Pid(pid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;
    use std::process::{Child, Command, Stdio};

    #[test]
    fn a_blocked_thread_waits_for_a_child_or_for_its_output() {
        let wait4 = libc::SYS_wait4;
        let blocked =
            procfs::blocking_call(&format!("{wait4} 0xffffffff 0x7ffc 0x0 0x0 0x0 0x0 0x7ffc 0x7f00\n")).unwrap();
        assert_eq!(blocked, (wait4, [0xffff_ffff, 0x7ffc]));
        let ended_by = |call, child| ended_by(call, Pid(1), Pid(child), || Pipes([None; 3]), || false);
        assert_eq!(ended_by(blocked, 7), Some(EndedBy::Exit));
        assert_eq!([ended_by((wait4, [7, 0]), 7), ended_by((wait4, [8, 0]), 7)], [Some(EndedBy::Exit), None]);
        assert_eq!(procfs::blocking_call("running\n"), None);
        assert_eq!(procfs::blocking_call("-1 0x7ffc 0x7f00\n").map(|(number, _)| number), Some(-1));
    }

    fn cat() -> (Child, [i32; 2]) {
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let ends = [child.stdout.as_ref().unwrap().as_raw_fd(), child.stdin.as_ref().unwrap().as_raw_fd()];
        (child, ends)
    }

    #[test]
    fn reads_and_polls_of_the_output_of_a_child_wait_for_it() {
        let (mut child, [output, input]) = cat();
        let own = Pid(std::process::id().cast_signed());
        let id = Pid(child.id().cast_signed());
        let ended_by = |call, handles| ended_by(call, own, id, || Pipes::of(id), || handles);
        let read = |fd: i32| (libc::SYS_read, [fd as u64, 0]);
        assert_eq!([ended_by(read(output), true), ended_by(read(input), true)], [Some(EndedBy::Output), None]);
        let reads_output = |fd| reads_output(read(fd), own, || Pipes::of(id));
        assert_eq!([input, output].map(reads_output), [Some(false), Some(true)]);
        let polled = [input, output].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        let poll = |count| (libc::SYS_ppoll, [polled.as_ptr() as u64, count]);
        assert_eq!(ended_by(poll(2), false), Some(EndedBy::Output));
        assert_eq!([ended_by(poll(1), false), ended_by(poll(1), true)], [None, Some(EndedBy::Signal)]);
        let bits = 1_u64 << output;
        assert_eq!(
            ended_by((libc::SYS_pselect6, [64, (&raw const bits) as u64]), false),
            Some(EndedBy::Output).filter(|_| output < 64)
        );
        child.stdin.take().unwrap().flush().unwrap();
        child.wait().unwrap();
    }
}
