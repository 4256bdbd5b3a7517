//! Measures what a child costs a parent that writes to its own memory, while the child lives and after it has ended.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use super::Mechanism;
use super::ballast::Ballast;
use super::launcher::Launcher;
use super::protocol::{Companion, Program};
use super::wait_status::describe;
use crate::LabError;
use spawnscope_system::launch_timing::clone::IdleCopy;
use spawnscope_system::launch_timing::timing::timed;

/// Returns the times to write to all memory before a child is launched, while it lives, and after another child has ended. For the last
/// time, the memory is new and nothing is written while the child lives, because pages written then would already belong to the parent
/// alone.
pub fn rewrite(child: &Companion, ballast: &mut Ballast) -> Result<Vec<f64>, LabError> {
    ballast.replace_memory()?;
    ballast.rewrite();
    let before = write_time(ballast);
    let mut during = 0.0;
    while_child_lives(child, || during = write_time(ballast))?;
    ballast.replace_memory()?;
    ballast.rewrite();
    while_child_lives(child, || ())?;
    Ok(vec![before, during, write_time(ballast)])
}

fn write_time(ballast: &Ballast) -> f64 {
    timed(|| ballast.rewrite()).0 as f64
}

/// Calls `act` while a child lives. The child lives until a pipe is closed: a copy of the parent reads the pipe itself; a program gets its
/// path.
fn while_child_lives(child: &Companion, act: impl FnOnce()) -> Result<(), LabError> {
    match child {
        Companion::Copy => {
            let copy = IdleCopy::start().map_err(LabError::doing("fork"))?;
            act();
            match copy.end().map_err(LabError::doing("wait for a child"))? {
                0 => Ok(()),
                status => Err(LabError::Invalid(format!(
                    "the child ended with {} instead of exit status 0",
                    describe(status)
                ))),
            }
        }
        Companion::Program { mechanism, program } => while_program_lives(*mechanism, program, act),
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd), LabError> {
    pipe2(OFlag::O_CLOEXEC).map_err(|errno| LabError::doing("create a pipe")(errno.into()))
}

fn while_program_lives(mechanism: Mechanism, program: &Program, act: impl FnOnce()) -> Result<(), LabError> {
    let (reader, writer) = pipe()?;
    // SAFETY: clears the flag close-on-exec of our own descriptor.
    unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_SETFD, 0) };
    let mut program = program.clone();
    program.argv.push(format!("/dev/fd/{}", reader.as_raw_fd()));
    let mut launcher = Launcher::new(mechanism, &program)?;
    let (exec_reader, exec_writer) = pipe()?;
    let running = launcher.start(mechanism)?;
    drop(exec_writer);
    await_exec(exec_reader)?;
    act();
    drop(writer);
    launcher.finish(mechanism, running)
}

/// Waits for the child's exec. fork returns earlier, when the child still shares pages with the parent. The exec closes the pipe after it
/// has released the shared memory.
fn await_exec(executed: OwnedFd) -> Result<(), LabError> {
    let ended = File::from(executed).read_to_end(&mut Vec::new());
    ended.map(drop).map_err(LabError::doing("wait for an exec"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the process name of this thread's only child.
    fn child_name() -> String {
        let thread = nix::unistd::gettid();
        let children = std::fs::read_to_string(format!("/proc/self/task/{thread}/children")).unwrap();
        std::fs::read_to_string(format!("/proc/{}/comm", children.trim())).unwrap()
    }

    #[test]
    fn the_closure_runs_after_the_programs_exec() {
        let cat = Companion::Program { mechanism: Mechanism::ForkExec, program: Program::new(["/bin/cat"]) };
        for round in 0..20 {
            let mut found = String::new();
            while_child_lives(&cat, || found = child_name()).unwrap();
            assert_eq!(found, "cat\n", "round {round}");
        }
    }

    #[test]
    fn a_program_that_cannot_be_executed_is_an_error() {
        let missing =
            Companion::Program { mechanism: Mechanism::ForkExec, program: Program::new(["/nonexistent/program"]) };
        let failed = while_child_lives(&missing, || ()).unwrap_err().to_string();
        assert!(failed.contains("ended with exit status 127 instead of exit status 0"), "{failed}");
    }
}
