//! A program of the user's that runs for a while: in a session of its own, without a terminal, and seen out as when a terminal is
//! closed, so that it can remove its locks. All of this happens in a host process (`host`).

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::unistd::{ForkResult, fork};
use rustix::event::{PollFd, PollFlags};
use rustix::io::ioctl_fionbio;

use super::{Outcome, Ran, Reads};
use crate::collect::pidfd;
use crate::doctor::child::wait;
use crate::doctor::processes;
use crate::event::{Nanos, Pid};

/// How long what a program left behind may go on by itself, and how long all may take to end when they are asked to.
pub(super) const GRACE: Duration = Duration::from_millis(200);
/// Between looks at what is left of it.
pub(super) const PAUSE: Duration = Duration::from_millis(2);
/// More of an output is read, but not kept.
const MOST_OUTPUT: usize = 1 << 20;

/// How a session is asked to end: scripts tidy up at the first, interactive shells heed only the second.
pub(super) const REQUESTS: [&[i32]; 3] = [&[libc::SIGTERM, libc::SIGCONT], &[libc::SIGHUP], &[libc::SIGKILL]];

/// The first process of the session. What it leaves running in there ends with it; daemons that made a session for themselves are the
/// user's.
struct Guest {
    pid: i32,
    /// Whether it is a process of ours that traces the program: it goes first, since it holds up signals.
    is_tracer: bool,
    /// Known once it has been waited for.
    status: Option<i32>,
}

impl Guest {
    /// Forks it; it does not wait for its exec, which may hang.
    fn start(
        output: Option<&PipeWriter>,
        reads: Reads,
        is_tracer: bool,
        body: impl FnOnce() -> i32,
    ) -> io::Result<Guest> {
        // SAFETY: the host has one thread, so that its child may do what any process may.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(Guest {
                pid: child.as_raw(),
                is_tracer,
                status: None,
            }),
            ForkResult::Child => {
                take_outputs(output, reads);
                let status = body();
                // SAFETY: leaves at once; nothing of the doctor's runs here.
                unsafe { libc::_exit(status) }
            }
        }
    }

    /// Waits for what can be waited for; whether nobody of the session is left.
    fn is_over(&mut self) -> bool {
        loop {
            let mut status = 0;
            // SAFETY: `status` has room for a status. Orphans of the session are children of the host.
            let reaped = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
            match reaped {
                0 => break,
                -1 => return true,
                pid if pid == self.pid => self.status = Some(status),
                _ => {}
            }
        }
        self.status.is_some() && self.members().is_empty()
    }

    fn is_over_within(&mut self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        while !self.is_over() {
            if Instant::now() > until {
                return false;
            }
            sleep(PAUSE);
        }
        true
    }

    fn members(&self) -> Vec<u32> {
        members(self.pid)
    }

    fn signal(&self, signals: &[i32]) {
        let others = self.members().into_iter().map(u32::cast_signed);
        // Its group, where /proc does not tell; the number is its own until it has been waited for.
        let group = self.status.is_none().then_some(-self.pid);
        for process in others.chain(group) {
            for signal in signals {
                // SAFETY: a plain system call; a session's number is taken as long as it has members.
                unsafe { libc::kill(process, *signal) };
            }
        }
    }

    /// Waits for what it left behind, or asks it to end, and kills what does not heed that. Who hangs in the kernel is left behind.
    fn see_out(&mut self) {
        self.is_over();
        if self.status.is_some() && self.is_over_within(GRACE) {
            return;
        }
        if self.is_tracer && self.status.is_none() {
            // SAFETY: a plain system call on a child that has not been waited for. What it traces goes on untraced.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            self.is_over_within(PAUSE * 5);
        }
        for signals in REQUESTS {
            self.signal(signals);
            if self.is_over_within(GRACE) {
                return;
            }
        }
    }
}

/// Who of a session runs still, as far as /proc is this process's own.
pub(super) fn members(session: i32) -> Vec<u32> {
    let own = std::fs::read_link("/proc/self").ok();
    if own.as_deref() == Some(std::process::id().to_string().as_ref()) {
        processes::of_session(session.cast_unsigned())
    } else {
        Vec::new()
    }
}

/// Tells the doctor who it is, in case this process is killed by it. Nobody may be there any more to be told.
fn introduce(guest: &Guest, doctor: BorrowedFd<'_>) {
    let pid = guest.pid.to_ne_bytes();
    // SAFETY: the bytes are valid for the call.
    unsafe { libc::send(doctor.as_raw_fd(), pid.as_ptr().cast(), pid.len(), libc::MSG_NOSIGNAL) };
}

/// Runs a guest for so long at most, or until `doctor` has gone.
pub(super) fn run(
    doctor: BorrowedFd<'_>,
    patience: Duration,
    reads: Reads,
    is_tracer: bool,
    body: impl FnOnce() -> i32,
) -> io::Result<Outcome> {
    let (reader, writer) = io::pipe()?;
    ioctl_fionbio(&reader, true)?;
    let began = Instant::now();
    let mut guest = Guest::start(Some(&writer), reads, is_tracer, body)?;
    introduce(&guest, doctor);
    drop(writer);
    let ended = pidfd(Pid(guest.pid))?;
    let mut bytes = Vec::new();
    let in_time = read_until_end(&ended, doctor, reader, began + patience, &mut bytes);
    let took = Nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
    guest.see_out();
    let status = guest.status.filter(|_| in_time);
    let ran = Ran {
        took,
        succeeded: status == Some(0),
        output: String::from_utf8_lossy(&bytes).into_owned(),
    };
    Ok(match status {
        Some(_) => Outcome::Ended(ran),
        None => Outcome::TookTooLong(ran),
    })
}

/// A session, nothing to read, and only the output that is wanted. No signal is ignored or blocked that the doctor's own parent did so.
fn take_outputs(output: Option<&PipeWriter>, reads: Reads) {
    // SAFETY: plain system calls in a process of our own; standard input is the host's connection until here.
    unsafe {
        libc::setsid();
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        for standard in 0..3 {
            libc::dup2(null, standard);
        }
        let wanted = match reads {
            Reads::Nothing => None,
            Reads::Output => Some(1),
            Reads::Errors => Some(2),
        };
        if let (Some(wanted), Some(output)) = (wanted, output) {
            libc::dup2(output.as_raw_fd(), wanted);
        }
    }
}

/// Reads what comes until the process has ended; `false` when that takes too long, or nobody wants to know any more.
fn read_until_end(
    process: &OwnedFd,
    doctor: BorrowedFd<'_>,
    mut output: PipeReader,
    until: Instant,
    bytes: &mut Vec<u8>,
) -> bool {
    let mut is_open = true;
    loop {
        let mut watched = vec![
            PollFd::new(process, PollFlags::IN),
            PollFd::from_borrowed_fd(doctor, PollFlags::IN),
        ];
        if is_open {
            watched.push(PollFd::from_borrowed_fd(output.as_fd(), PollFlags::IN));
        }
        let ready = wait(&mut watched, until);
        let [has_ended, is_alone] = [0, 1].map(|number| !watched[number].revents().is_empty());
        is_open = is_open && take(&mut output, bytes);
        if has_ended || is_alone || !ready {
            return has_ended;
        }
    }
}

/// Takes what is there; `false` at the end.
fn take(output: &mut PipeReader, bytes: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 8192];
    loop {
        match output.read(&mut buffer) {
            Ok(0) => return false,
            Ok(count) if bytes.len() < MOST_OUTPUT => bytes.extend_from_slice(&buffer[..count]),
            Ok(_) => return true,
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}
