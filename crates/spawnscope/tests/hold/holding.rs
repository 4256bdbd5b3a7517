//! Runs `spawnscope hold`, and reads the state of held processes from /proc.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::prelude::*;

/// The message for a process that is held without a terminal.
const HINT: &str = "continue it with `kill -CONT ";

/// Runs `hold` with default signal handling, as a shell would, even if the tests ignore signals.
pub const HOLD: [&str; 4] = ["env", "--default-signal", SPAWNSCOPE, "hold"];

/// Returns a `hold` command in a session without a terminal.
pub fn hold_command(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new("setsid");
    command.args(HOLD).args(arguments).stdin(Stdio::null());
    command
}

/// Runs `hold` to its end. Use this only if it holds nothing.
pub fn run_hold(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Finished {
    Running::start(&mut hold_command(arguments)).finish()
}

/// Starts `hold` without a terminal, and waits until it holds a process.
pub fn hold(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> (Running, Pid) {
    let running = Running::start(&mut hold_command(arguments));
    let pid = await_held(&running);
    (running, pid)
}

/// Runs `hold` without a terminal, and continues the process that it holds. Returns the arguments
/// of that process.
pub fn hold_and_continue(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> (String, Finished) {
    let (running, pid) = hold(arguments);
    let held = self::arguments(pid);
    send(pid, Signal::SIGCONT);
    (held, running.finish())
}

/// Waits until a process is held, and returns it. It must be stopped and not traced.
#[track_caller]
pub fn await_held(running: &Running) -> Pid {
    let pid = await_some("a held process", || {
        let errors = String::from_utf8_lossy(&running.written_so_far("stderr")).into_owned();
        let (_, rest) = errors.split_once(HINT)?;
        rest.split_once('`')?.0.parse().ok().map(Pid::from_raw)
    });
    assert_eq!((state(pid), tracer(pid)), (Some('T'), Some(0)), "{pid} must be stopped without a tracer");
    pid
}

pub fn send(pid: Pid, signal: Signal) {
    kill(pid, signal).expect("the process is there");
}

/// Returns the letter of a process's state, or `None` if the process does not exist.
pub fn state(pid: Pid) -> Option<char> {
    status(pid, "State:")?.chars().next()
}

/// Returns the pid of the tracer of a process, 0 if there is none.
pub fn tracer(pid: Pid) -> Option<i32> {
    status(pid, "TracerPid:")?.parse().ok()
}

/// Returns the parent of a process.
pub fn parent(pid: Pid) -> Pid {
    let text = status(pid, "PPid:").expect("the process is there");
    Pid::from_raw(text.parse().expect("a pid"))
}

fn status(pid: Pid, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(value.trim().to_owned())
}

pub fn await_end(pid: Pid) {
    await_some("the end of the process", || matches!(state(pid), None | Some('Z')).then_some(()));
}

/// Returns the arguments of a process, joined by spaces.
pub fn arguments(pid: Pid) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).expect("a process");
    let text = String::from_utf8(bytes).expect("text");
    text.trim_end_matches('\0').replace('\0', " ")
}
