//! A running `spawnscope hold`, and what /proc says of the processes that it holds.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::run::{Finished, Running, SPAWNSCOPE, await_some};

/// What a process that is held without a terminal is told to be continued by.
const HINT: &str = "continue it with `kill -CONT ";

/// `hold` as a shell starts it, whatever signals these tests were started to ignore.
pub const HOLD: [&str; 4] = ["env", "--default-signal", SPAWNSCOPE, "hold"];

/// `hold` in a session without a terminal, whatever these tests run on.
pub fn command(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new("setsid");
    command.args(HOLD).args(arguments).stdin(Stdio::null());
    command
}

/// `hold` to its end, when nothing is to be held.
pub fn finish(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Finished {
    Running::start(&mut command(arguments)).finish()
}

/// Starts `hold` and waits until it holds something, without a terminal.
pub fn hold(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> (Running, Pid) {
    let running = Running::start(&mut command(arguments));
    let pid = await_held(&running);
    (running, pid)
}

/// The process that is held. It stands, and nobody traces it.
#[track_caller]
pub fn await_held(running: &Running) -> Pid {
    let pid = await_some("a held process", || {
        let errors = String::from_utf8_lossy(&running.written_so_far("stderr")).into_owned();
        let (_, rest) = errors.split_once(HINT)?;
        rest.split_once('`')?.0.parse().ok().map(Pid::from_raw)
    });
    assert_eq!(
        (state(pid), tracer(pid)),
        (Some('T'), Some(0)),
        "{pid} stands by itself"
    );
    pid
}

pub fn send(pid: Pid, signal: Signal) {
    kill(pid, signal).expect("the process is there");
}

/// The letter of its state; `None`: it is gone.
pub fn state(pid: Pid) -> Option<char> {
    status(pid, "State:")?.chars().next()
}

/// Who traces it; 0: nobody.
pub fn tracer(pid: Pid) -> Option<i32> {
    status(pid, "TracerPid:")?.parse().ok()
}

/// Who launched it.
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
    await_some("its end", || matches!(state(pid), None | Some('Z')).then_some(()));
}

/// Its arguments, joined by blanks.
pub fn arguments(pid: Pid) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).expect("a process");
    let text = String::from_utf8(bytes).expect("text");
    text.trim_end_matches('\0').replace('\0', " ")
}
