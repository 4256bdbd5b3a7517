//! The supervisor: a separate process for each program that the doctor starts. It times the program
//! and ends it, even if the doctor is gone by then. The doctor waits for the supervisor only with a
//! time limit, since a program can hang in the kernel where no signal reaches it.

use std::io::{self, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, FromRawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use super::program_session::{self, GRACE};
use super::{Capture, RunError, RunResult};
use spawnscope_data::event::Nanos;
use spawnscope_system::launch_timing::isolated_child::IsolatedChild;
use spawnscope_system::process::is_readable_within;

/// How much longer than its program's time limit a supervisor may take: it may wait `GRACE` after
/// each signal to processes that ignore them.
const TIME_TO_END: Duration = Duration::from_millis(5 * GRACE.as_millis() as u64);
const NOT_STARTED: [u8; 1] = [0];
/// The exit status of a shell for a program that cannot be executed.
const NOT_EXECUTED: i32 = 127;

pub(super) fn run(command: Command, time_limit: Duration, capture: Capture) -> Result<RunResult, RunError> {
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
    program_session::run(doctor, time_limit, capture, || {
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
