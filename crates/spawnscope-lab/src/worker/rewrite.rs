//! What a child costs a parent that writes to its memory, while the child lives and after its end.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use super::Mechanism;
use super::ballast::Ballast;
use super::ending::ending;
use super::launcher::Launcher;
use super::protocol::{Companion, Program};
use crate::LabError;
use spawnscope_system::launch_timing::clone::LivingCopy;
use spawnscope_system::launch_timing::timing::timed;

/// The time to write to all memory before any child, while one lives, and after one has ended. The last measurement uses new memory and
/// another child, during whose life nothing is written: pages written then would already belong to the parent alone.
pub fn rewrite(child: &Companion, ballast: &mut Ballast) -> Result<Vec<f64>, LabError> {
    ballast.renew()?;
    ballast.rewrite();
    let before = time_of_writing(ballast);
    let mut during = 0.0;
    in_the_life_of(child, || during = time_of_writing(ballast))?;
    ballast.renew()?;
    ballast.rewrite();
    in_the_life_of(child, || ())?;
    Ok(vec![before, during, time_of_writing(ballast)])
}

fn time_of_writing(ballast: &Ballast) -> f64 {
    timed(|| ballast.rewrite()).0 as f64
}

/// Keeps the child alive until the pipe is closed. A copy of the parent reads the pipe itself; a program gets its path.
fn in_the_life_of(child: &Companion, act: impl FnOnce()) -> Result<(), LabError> {
    match child {
        Companion::Copy => {
            let copy = LivingCopy::start().map_err(LabError::doing("fork"))?;
            act();
            match copy.end().map_err(LabError::doing("wait for a child"))? {
                0 => Ok(()),
                status => Err(LabError::Untrusted(format!(
                    "the child ended with {} instead of exit status 0",
                    ending(status)
                ))),
            }
        }
        Companion::Program { mechanism, program } => beside_a_program(*mechanism, program, act),
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd), LabError> {
    pipe2(OFlag::O_CLOEXEC).map_err(|errno| LabError::doing("create a pipe")(errno.into()))
}

fn beside_a_program(mechanism: Mechanism, program: &Program, act: impl FnOnce()) -> Result<(), LabError> {
    let (reader, writer) = pipe()?;
    // SAFETY: clears close-on-exec of our own descriptor.
    unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_SETFD, 0) };
    let mut program = program.clone();
    program.argv.push(format!("/dev/fd/{}", reader.as_raw_fd()));
    let mut launcher = Launcher::new(mechanism, &program)?;
    let (executed, not_yet) = pipe()?;
    let running = launcher.start(mechanism)?;
    drop(not_yet);
    await_exec(executed)?;
    act();
    drop(writer);
    launcher.finish(mechanism, running)
}

/// Waits for the child's exec. fork returns before it, and until then the child shares pages with the parent. The exec closes the pipe
/// after it has released that memory.
fn await_exec(executed: OwnedFd) -> Result<(), LabError> {
    let ended = File::from(executed).read_to_end(&mut Vec::new());
    ended.map(drop).map_err(LabError::doing("wait for an exec"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of this thread's only child.
    fn name_of_the_child() -> String {
        let thread = nix::unistd::gettid();
        let children = std::fs::read_to_string(format!("/proc/self/task/{thread}/children")).unwrap();
        std::fs::read_to_string(format!("/proc/{}/comm", children.trim())).unwrap()
    }

    #[test]
    fn beside_a_program_is_after_its_exec() {
        let cat = Companion::Program {
            mechanism: Mechanism::ForkExec,
            program: Program::new(["/bin/cat"]),
        };
        for round in 0..20 {
            let mut found = String::new();
            in_the_life_of(&cat, || found = name_of_the_child()).unwrap();
            assert_eq!(found, "cat\n", "round {round}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_not_waited_for() {
        let missing = Companion::Program {
            mechanism: Mechanism::ForkExec,
            program: Program::new(["/nonexistent/program"]),
        };
        let failed = in_the_life_of(&missing, || ()).unwrap_err().to_string();
        assert!(
            failed.contains("ended with exit status 127 instead of exit status 0"),
            "{failed}"
        );
    }
}
