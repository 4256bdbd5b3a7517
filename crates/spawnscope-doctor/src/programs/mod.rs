//! Starts the programs that checks run and time. Each check gets a share of the doctor's time.
//!
//! A separate process supervises each program. It times the program and ends it, even if the doctor
//! is gone by then. The doctor waits for the supervisor only with a time limit, since a program can
//! hang in the kernel where no signal reaches it. The program runs in a session of its own without
//! a terminal. If its time is up, the supervisor sends the signals that a program also gets when
//! its terminal closes, so that it can remove its locks.

use std::fmt::{self, Display, Formatter};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::unistd::{self, ForkResult, fork, getsid};
use rustix::event::{PollFd, PollFlags};
use rustix::io::ioctl_fionbio;

use crate::Effect;
use spawnscope_data::event::{Nanos, Pid};
use spawnscope_data::units;
use spawnscope_system::launch_timing::isolated_child::IsolatedChild;
use spawnscope_system::process::{die_with_parent, is_readable_within, pidfd, wait_until};
use spawnscope_system::procfs::{self, Status};

/// The time limit of all measurements and of the user's programs together, without the time to end
/// the last program.
pub(super) const TOTAL_TIME: Duration = Duration::from_millis(3800);
/// A difference between minimum run times counts as noise up to 1/NOISE_DIVISOR of the run time, or
/// up to `MIN_NOISE` if that is more.
const NOISE_DIVISOR: u64 = 10;
const MIN_NOISE: Nanos = Nanos(500_000);

/// Which output of a program is read. Other output goes to /dev/null.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Capture {
    Nothing,
    Stdout = 1,
    Stderr = 2,
}

pub(super) struct RunResult {
    pub(super) took: Nanos,
    /// Whether the program ended. Otherwise it was killed at its time limit.
    has_ended: bool,
    pub(super) succeeded: bool,
    pub(super) output: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunError {
    NotStarted,
    /// The supervisor was killed, most likely by the program.
    SupervisorKilled,
    Failed,
    DidNotEnd(Nanos),
    NoTime,
}

impl Display for RunError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            RunError::NotStarted => "could not be started",
            RunError::SupervisorKilled => "could not be timed: its supervising process was killed",
            RunError::Failed => "failed",
            RunError::DidNotEnd(time) => return write!(formatter, "did not finish within {}", units::time(*time)),
            RunError::NoTime => "was not run: the programs before it used up the time",
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RunTime {
    pub(super) time: Nanos,
    /// Whether the program was killed at `time`, so that its real run time is longer.
    pub(super) is_lower_bound: bool,
}

impl RunTime {
    /// Returns how much longer this run time is than that of a program that ended.
    pub(super) fn excess_over(self, other: Nanos) -> RunTime {
        RunTime { time: self.time.since(other), ..self }
    }

    /// Returns the excess over `other`, if it exceeds the noise between runs of one program.
    pub(super) fn beyond_noise(self, other: Nanos) -> Option<RunTime> {
        let noise = Nanos(other.0 / NOISE_DIVISOR).max(MIN_NOISE);
        let excess = self.excess_over(other);
        (self.is_lower_bound || excess.time > noise).then_some(excess)
    }

    pub(super) fn effect(self, affected: &'static str) -> Effect {
        Effect { is_lower_bound: self.is_lower_bound, ..Effect::measured(self.time, affected) }
    }

    /// Returns the time, if the program ended on its own.
    pub(super) fn complete(self) -> Result<Nanos, RunError> {
        if self.is_lower_bound { Err(RunError::DidNotEnd(self.time)) } else { Ok(self.time) }
    }
}

impl Display for RunTime {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let more_than = if self.is_lower_bound { "more than " } else { "" };
        write!(formatter, "{more_than}{}", units::time(self.time))
    }
}

pub(super) struct Programs {
    until: Instant,
}

impl Programs {
    /// Gives a check its share of the time until `until`. `checks` checks, including this one, have
    /// yet to run.
    pub(super) fn for_check(until: Instant, checks: u32) -> Programs {
        let now = Instant::now();
        Programs { until: now + until.saturating_duration_since(now) / checks.max(1) }
    }

    /// Returns when the doctor's time ends; `spent` of it is used up.
    pub(super) fn deadline(spent: Duration) -> Instant {
        Instant::now() + TOTAL_TIME.saturating_sub(spent)
    }

    pub(super) fn run(&self, command: Command, capture: Capture) -> Result<RunResult, RunError> {
        let ran = run_supervised(command, self.time_limit()?, capture)?;
        if ran.has_ended { Ok(ran) } else { Err(RunError::DidNotEnd(ran.took)) }
    }

    /// Returns the shortest time of several runs, because other load only makes a run longer. Slow
    /// programs run fewer times. Every run must succeed.
    pub(super) fn shortest(&self, runs: usize, mut command: impl FnMut() -> Command) -> Result<RunTime, RunError> {
        let mut shortest: Option<Nanos> = None;
        for _ in 0..runs {
            if shortest.is_some_and(|shortest| !self.has_time_after(shortest)) {
                break;
            }
            let ran = run_supervised(command(), self.time_limit()?, Capture::Nothing)?;
            match (ran.has_ended, shortest) {
                (true, _) if !ran.succeeded => return Err(RunError::Failed),
                (true, _) => shortest = Some(shortest.map_or(ran.took, |shortest| shortest.min(ran.took))),
                (false, None) => return Ok(RunTime { time: ran.took, is_lower_bound: true }),
                (false, Some(_)) => break,
            }
        }
        let time = shortest.ok_or(RunError::NoTime)?;
        Ok(RunTime { time, is_lower_bound: false })
    }

    /// Returns whether there is time for another run, which may take twice as long as the shortest
    /// one.
    fn has_time_after(&self, shortest: Nanos) -> bool {
        self.time_limit().is_ok_and(|limit| limit > Duration::from_nanos(shortest.0) * 2)
    }

    /// Returns the time limit for a program: half of the remaining time, so that time is left for
    /// others if the program hangs.
    fn time_limit(&self) -> Result<Duration, RunError> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(RunError::NoTime) } else { Ok(left / 2) }
    }
}

/// How much longer than its program's time limit a supervisor may take: it may wait `GRACE` after
/// each signal to processes that ignore them.
const TIME_TO_END: Duration = Duration::from_millis(5 * GRACE.as_millis() as u64);
const NOT_STARTED: [u8; 1] = [0];
/// The exit status of a shell for a program that cannot be executed.
const NOT_EXECUTED: i32 = 127;

fn run_supervised(command: Command, time_limit: Duration, capture: Capture) -> Result<RunResult, RunError> {
    let (bytes, is_over) = run_supervisor(command, time_limit, capture).map_err(|_| RunError::NotStarted)?;
    match bytes.as_slice() {
        [] if !is_over => Err(RunError::DidNotEnd(Nanos(time_limit.as_nanos() as u64))),
        bytes if *bytes == NOT_STARTED => Err(RunError::NotStarted),
        bytes => decode(bytes).ok_or(RunError::SupervisorKilled),
    }
}

/// Runs a supervisor. Returns what it sends, and whether it has ended.
fn run_supervisor(mut command: Command, time_limit: Duration, capture: Capture) -> io::Result<(Vec<u8>, bool)> {
    let (mut answer, supervisor_end) = UnixStream::pair()?;
    let supervisor = IsolatedChild::fork(Some(supervisor_end.as_fd()), || {
        let outcome = serve(&mut command, time_limit, capture);
        let answer = outcome.map_or_else(|_| NOT_STARTED.to_vec(), |ran| encode(&ran));
        // SAFETY: standard input is the supervisor's end of the connection, which no other object
        // here owns.
        let mut connection = ManuallyDrop::new(unsafe { UnixStream::from_raw_fd(0) });
        // Errors are ignored: if the doctor is gone, the answer is not needed.
        let _ = connection.write_all(&answer);
    })?;
    drop(supervisor_end);
    let until = Instant::now() + time_limit + TIME_TO_END;
    let bytes = read_all(&mut answer, until)?;
    let is_over = supervisor.has_ended_by(until);
    // A late supervisor ends on its own, once the doctor's end of the connection is closed.
    drop(answer);
    if !is_over {
        supervisor.leave_running();
    }
    Ok((bytes, is_over))
}

/// Runs the program; this code runs in the supervisor. The supervisor becomes the parent of
/// orphans, so that it can detect when no process is left.
fn serve(command: &mut Command, time_limit: Duration, capture: Capture) -> io::Result<RunResult> {
    // SAFETY: plain system calls in one of our own processes. In a session of its own, the process
    // gets no signals from the terminal.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    let doctor = io::stdin();
    let doctor = doctor.as_fd();
    run_session(doctor, time_limit, capture, || {
        let _not_executed = command.exec();
        NOT_EXECUTED
    })
}

fn encode(ran: &RunResult) -> Vec<u8> {
    let flags = [ran.has_ended, ran.succeeded].map(u8::from);
    [&flags[..], &ran.took.0.to_ne_bytes(), ran.output.as_bytes()].concat()
}

fn decode(bytes: &[u8]) -> Option<RunResult> {
    let (flags, rest) = bytes.split_first_chunk()?;
    let (took, output) = rest.split_first_chunk()?;
    let [has_ended, succeeded] = flags.map(|flag| flag != 0);
    let output = String::from_utf8_lossy(output).into_owned();
    Some(RunResult { took: Nanos(u64::from_ne_bytes(*took)), has_ended, succeeded, output })
}

fn read_all(answer: &mut UnixStream, until: Instant) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 8192];
    while is_readable_within(&*answer, until.saturating_duration_since(Instant::now())) {
        match answer.read(&mut buffer)? {
            0 => break,
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(bytes)
}

/// How long background processes may continue after the program has ended, and how long processes
/// have to end after each signal.
const GRACE: Duration = Duration::from_millis(200);
const CHECK_INTERVAL: Duration = Duration::from_millis(2);
/// At most about this many bytes of output are stored. The rest is read, but dropped.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// The signals that end a session, in order. Scripts clean up at SIGTERM; interactive shells react
/// only to SIGHUP.
const END_SIGNALS: [&[i32]; 3] = [&[libc::SIGTERM, libc::SIGCONT], &[libc::SIGHUP], &[libc::SIGKILL]];

/// A session of a program and the processes that it creates, which are ended with it. Daemons that
/// create a session of their own are not ended: they belong to the user.
struct ProgramSession {
    /// The pid of the first process, which is also the session id.
    pid: i32,
    /// The wait status of the first process, once it is reaped.
    status: Option<i32>,
}

impl ProgramSession {
    /// Forks the first process, without waiting for its exec, which may hang.
    fn start(output: &PipeWriter, capture: Capture, body: impl FnOnce() -> i32) -> io::Result<ProgramSession> {
        // SAFETY: the supervisor is single-threaded, so its child may do anything.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(ProgramSession { pid: child.as_raw(), status: None }),
            ForkResult::Child => {
                // If the program kills the supervisor, nothing else ends it.
                die_with_parent(libc::SIGKILL);
                redirect_standard_streams(output, capture);
                let status = body();
                // SAFETY: exits at once; no code of the doctor runs in the child.
                unsafe { libc::_exit(status) }
            }
        }
    }

    /// Reaps all children that have ended. Returns whether no process of the session is left.
    fn reap_and_check_end(&mut self) -> bool {
        loop {
            let mut status = 0;
            // SAFETY: `status` has room for a status. Orphans of the session are children of the
            // supervisor.
            let reaped = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
            match reaped {
                0 => break,
                -1 => return true,
                pid if pid == self.pid => self.status = Some(status),
                _ => {}
            }
        }
        self.status.is_some() && members(self.pid).is_empty()
    }

    fn ends_within(&mut self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        while !self.reap_and_check_end() {
            if Instant::now() > until {
                return false;
            }
            sleep(CHECK_INTERVAL);
        }
        true
    }

    fn signal(&self, signals: &[i32]) {
        let others = members(self.pid).into_iter().map(|pid| pid.0);
        // Also signals the process group, in case /proc does not show the members. Its id cannot be
        // reused before the first process is reaped.
        let group = self.status.is_none().then_some(-self.pid);
        for process in others.chain(group) {
            for signal in signals {
                // SAFETY: a plain system call; the session id is not reused while the session has
                // members.
                unsafe { libc::kill(process, *signal) };
            }
        }
    }

    /// Ends the session. If the program has ended, its background processes first get some time to
    /// end on their own. Then all are asked to end, and finally killed. A process that hangs in the
    /// kernel is left behind.
    fn end(&mut self) {
        self.reap_and_check_end();
        if self.status.is_some() && self.ends_within(GRACE) {
            return;
        }
        for signals in END_SIGNALS {
            self.signal(signals);
            if self.ends_within(GRACE) {
                return;
            }
        }
    }
}

/// Returns the running processes of a session; empty if /proc belongs to another pid namespace.
fn members(session: i32) -> Vec<Pid> {
    let self_link = std::fs::read_link("/proc/self").ok();
    if self_link.as_deref() != Some(std::process::id().to_string().as_ref()) {
        return Vec::new();
    }
    // A kernel thread has session 0.
    let is_member = |pid: &Pid| getsid(Some(unistd::Pid::from_raw(pid.0))).is_ok_and(|found| found.as_raw() == session);
    let is_running = |pid: &Pid| Status::read(*pid).is_some_and(|status| !status.has_ended());
    procfs::processes().filter(|pid| is_member(pid) && is_running(pid)).collect()
}

/// Runs a program for up to `time_limit`, or until `doctor` is gone.
fn run_session(
    doctor: BorrowedFd<'_>,
    time_limit: Duration,
    capture: Capture,
    body: impl FnOnce() -> i32,
) -> io::Result<RunResult> {
    let (reader, writer) = io::pipe()?;
    ioctl_fionbio(&reader, true)?;
    let began = Instant::now();
    let mut session = ProgramSession::start(&writer, capture, body)?;
    drop(writer);
    let ended = pidfd(Pid(session.pid))?;
    let mut bytes = Vec::new();
    let in_time = read_until_end(&ended, doctor, reader, began + time_limit, &mut bytes);
    let took = Nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
    session.end();
    let status = session.status.filter(|_| in_time);
    let output = String::from_utf8_lossy(&bytes).into_owned();
    Ok(RunResult { took, has_ended: status.is_some(), succeeded: status == Some(0), output })
}

/// Creates a session, and redirects standard input, output and error to /dev/null, except for the
/// output that is captured. Signals need no change, because the supervisor has reset them.
fn redirect_standard_streams(output: &PipeWriter, capture: Capture) {
    // SAFETY: plain system calls in one of our own processes. Standard input was the supervisor's
    // connection, which is not needed here.
    unsafe {
        libc::setsid();
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        for standard in 0..3 {
            libc::dup2(null, standard);
        }
        if capture != Capture::Nothing {
            libc::dup2(output.as_raw_fd(), capture as i32);
        }
    }
}

/// Reads output until the process has ended; returns `false` if that takes too long, or if the
/// doctor is gone.
fn read_until_end(
    process: &OwnedFd,
    doctor: BorrowedFd<'_>,
    mut output: PipeReader,
    until: Instant,
    bytes: &mut Vec<u8>,
) -> bool {
    let mut is_open = true;
    loop {
        let mut watched = vec![PollFd::new(process, PollFlags::IN), PollFd::from_borrowed_fd(doctor, PollFlags::IN)];
        if is_open {
            watched.push(PollFd::from_borrowed_fd(output.as_fd(), PollFlags::IN));
        }
        let is_in_time = wait_until(&mut watched, until);
        let [has_ended, is_doctor_gone] = [0, 1].map(|number| !watched[number].revents().is_empty());
        is_open = is_open && read_available(&mut output, bytes);
        if has_ended || is_doctor_gone || !is_in_time {
            return has_ended;
        }
    }
}

/// Reads the available output; returns `false` if there will be no more.
fn read_available(output: &mut PipeReader, bytes: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 8192];
    loop {
        match output.read(&mut buffer) {
            Ok(0) => return false,
            Ok(count) if bytes.len() < MAX_OUTPUT_BYTES => bytes.extend_from_slice(&buffer[..count]),
            Ok(_) => return true,
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}

#[cfg(test)]
#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "../../../spawnscope/tests/support/attempts.rs"]
mod attempts;

#[cfg(test)]
mod tests;
