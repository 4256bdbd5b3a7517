//! What a child costs a parent that writes to its memory, while the child lives and after its end.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Instant;

use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use super::Mechanism;
use super::ballast::Ballast;
use super::ending::ending;
use super::launcher::Launcher;
use super::operations::nanos;
use super::protocol::{Companion, Program};
use crate::LabError;

/// The time to write to all memory before any child, while one lives, and after one has ended. The last measurement uses new memory and
/// another child, during whose life nothing is written: pages written then would already belong to the parent alone.
pub fn rewrite(child: &Companion, ballast: &mut Ballast) -> Result<Vec<f64>, LabError> {
    ballast.renew()?;
    ballast.rewrite();
    let before = timed(ballast);
    let mut during = 0.0;
    in_the_life_of(child, || during = timed(ballast))?;
    ballast.renew()?;
    ballast.rewrite();
    in_the_life_of(child, || ())?;
    Ok(vec![before, during, timed(ballast)])
}

fn timed(ballast: &Ballast) -> f64 {
    let began = Instant::now();
    ballast.rewrite();
    nanos(began.elapsed())
}

/// Keeps the child alive until the pipe is closed. A copy of the parent reads the pipe itself; a program gets its path.
fn in_the_life_of(child: &Companion, act: impl FnOnce()) -> Result<(), LabError> {
    let (reader, writer) = pipe()?;
    match child {
        Companion::Copy => {
            let pid = fork_until_the_end_of(&reader, &writer).map_err(LabError::doing("fork"))?;
            act();
            drop(writer);
            let mut status = 0;
            // SAFETY: the kernel fills `status`.
            unsafe { libc::waitpid(pid, &raw mut status, 0) };
            match status {
                0 => Ok(()),
                _ => Err(LabError::Untrusted(format!(
                    "the child ended with {} instead of exit status 0",
                    ending(status)
                ))),
            }
        }
        Companion::Program { mechanism, program } => beside_a_program(*mechanism, program, &reader, writer, act),
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd), LabError> {
    pipe2(OFlag::O_CLOEXEC).map_err(|errno| LabError::doing("create a pipe")(errno.into()))
}

fn beside_a_program(
    mechanism: Mechanism,
    program: &Program,
    reader: &OwnedFd,
    writer: OwnedFd,
    act: impl FnOnce(),
) -> Result<(), LabError> {
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

fn fork_until_the_end_of(reader: &OwnedFd, writer: &OwnedFd) -> io::Result<i32> {
    // SAFETY: the child only makes system calls, on its own byte, and exits.
    match unsafe { libc::fork() } {
        // SAFETY: see above.
        0 => unsafe {
            libc::close(writer.as_raw_fd());
            let mut byte = 0u8;
            let length = libc::read(reader.as_raw_fd(), (&raw mut byte).cast(), 1);
            libc::_exit(i32::from(length != 0))
        },
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(pid),
    }
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
