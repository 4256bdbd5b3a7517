//! A program of the user that runs for a limited time: in its own session, without a terminal. At the end it receives the signals of a
//! closing terminal, so that it can remove its locks. All of this happens in a supervisor (`supervisor`).

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::unistd::{ForkResult, fork};
use rustix::event::{PollFd, PollFlags};
use rustix::io::ioctl_fionbio;

use super::{Outcome, Ran, Reads};
use crate::processes;
use spawnscope_data::event::{Nanos, Pid};
use spawnscope_system::process::{pidfd, wait_until};

/// How long processes that a program left behind may continue, and how long processes have to end after each request.
pub(super) const GRACE: Duration = Duration::from_millis(200);
/// The interval between checks for remaining processes.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(2);
/// The limit for stored output. More is read, but dropped.
const MAX_OUTPUT: usize = 1 << 20;

/// The signals that ask a session to end: scripts clean up at the first, interactive shells only react to the second.
pub(super) const REQUESTS: [&[i32]; 3] = [&[libc::SIGTERM, libc::SIGCONT], &[libc::SIGHUP], &[libc::SIGKILL]];

/// The first process of the session. Processes that it leaves in the session are ended with it; daemons that created their own session
/// belong to the user.
struct ProgramSession {
    pid: i32,
    /// Whether it is our tracer of the program. A tracer is ended first, because it delays signals.
    is_tracer: bool,
    /// Known once it was reaped.
    status: Option<i32>,
}

impl ProgramSession {
    /// Forks it without waiting for its exec, which may hang.
    fn start(
        output: Option<&PipeWriter>,
        reads: Reads,
        is_tracer: bool,
        body: impl FnOnce() -> i32,
    ) -> io::Result<ProgramSession> {
        // SAFETY: the supervisor is single-threaded, so its child may do anything.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(ProgramSession {
                pid: child.as_raw(),
                is_tracer,
                status: None,
            }),
            ForkResult::Child => {
                take_outputs(output, reads);
                let status = body();
                // SAFETY: exits at once; no code of the doctor runs in the child.
                unsafe { libc::_exit(status) }
            }
        }
    }

    /// Reaps all children that have ended. Returns whether no process of the session is left.
    fn is_over(&mut self) -> bool {
        loop {
            let mut status = 0;
            // SAFETY: `status` has room for a status. Orphans of the session are children of the supervisor.
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
            sleep(CHECK_INTERVAL);
        }
        true
    }

    fn members(&self) -> Vec<u32> {
        members(self.pid)
    }

    fn signal(&self, signals: &[i32]) {
        let others = self.members().into_iter().map(u32::cast_signed);
        // Also its process group, in case /proc does not show the members. The pid cannot be reused before it is reaped.
        let group = self.status.is_none().then_some(-self.pid);
        for process in others.chain(group) {
            for signal in signals {
                // SAFETY: a plain system call; the session id is not reused while the session has members.
                unsafe { libc::kill(process, *signal) };
            }
        }
    }

    /// Waits for processes that it left behind, or asks them to end and finally kills them. A process that hangs in the kernel is left
    /// behind.
    fn end_all(&mut self) {
        self.is_over();
        if self.status.is_some() && self.is_over_within(GRACE) {
            return;
        }
        if self.is_tracer && self.status.is_none() {
            // SAFETY: a plain system call on a child that was not reaped. Its tracees continue untraced.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            self.is_over_within(CHECK_INTERVAL * 5);
        }
        for signals in REQUESTS {
            self.signal(signals);
            if self.is_over_within(GRACE) {
                return;
            }
        }
    }
}

/// The running processes of a session; empty if /proc belongs to another pid namespace.
pub(super) fn members(session: i32) -> Vec<u32> {
    let own = std::fs::read_link("/proc/self").ok();
    if own.as_deref() == Some(std::process::id().to_string().as_ref()) {
        processes::of_session(session.cast_unsigned())
    } else {
        Vec::new()
    }
}

/// Sends the session's first pid to the doctor, in case the program kills this process. The doctor may be gone by then.
fn send_pid(session: &ProgramSession, doctor: BorrowedFd<'_>) {
    let pid = session.pid.to_ne_bytes();
    // SAFETY: the bytes are valid for the call.
    unsafe { libc::send(doctor.as_raw_fd(), pid.as_ptr().cast(), pid.len(), libc::MSG_NOSIGNAL) };
}

/// Runs a program for up to `time_limit`, or until `doctor` is gone.
pub(super) fn run(
    doctor: BorrowedFd<'_>,
    time_limit: Duration,
    reads: Reads,
    is_tracer: bool,
    body: impl FnOnce() -> i32,
) -> io::Result<Outcome> {
    let (reader, writer) = io::pipe()?;
    ioctl_fionbio(&reader, true)?;
    let began = Instant::now();
    let mut session = ProgramSession::start(Some(&writer), reads, is_tracer, body)?;
    send_pid(&session, doctor);
    drop(writer);
    let ended = pidfd(Pid(session.pid))?;
    let mut bytes = Vec::new();
    let in_time = read_until_end(&ended, doctor, reader, began + time_limit, &mut bytes);
    let took = Nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
    session.end_all();
    let status = session.status.filter(|_| in_time);
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

/// Creates a session, without input, and with only the requested output. The program inherits no ignored or blocked signals from the doctor's
/// parent, since the supervisor has reset them.
fn take_outputs(output: Option<&PipeWriter>, reads: Reads) {
    // SAFETY: plain system calls in one of our own processes; until here, standard input is the supervisor's connection.
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

/// Reads output until the process has ended; `false` if that takes too long, or if the doctor is gone.
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
        let ready = wait_until(&mut watched, until);
        let [has_ended, is_alone] = [0, 1].map(|number| !watched[number].revents().is_empty());
        is_open = is_open && take(&mut output, bytes);
        if has_ended || is_alone || !ready {
            return has_ended;
        }
    }
}

/// Reads the available output; `false` at its end.
fn take(output: &mut PipeReader, bytes: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 8192];
    loop {
        match output.read(&mut buffer) {
            Ok(0) => return false,
            Ok(count) if bytes.len() < MAX_OUTPUT => bytes.extend_from_slice(&buffer[..count]),
            Ok(_) => return true,
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}
