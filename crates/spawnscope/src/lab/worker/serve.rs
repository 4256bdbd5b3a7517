//! A worker's life: be what it was told to be, say so, and then do what each line of its input says, until there is no more.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;

use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::ballast::Ballast;
use super::operations;
use super::protocol::{Reply, Request, Setting};
use crate::lab::LabError;

/// Serves until the end of the input.
///
/// # Errors
/// When the setting is not one, or when nobody listens any more.
pub fn serve(setting: &str) -> io::Result<()> {
    die_with_the_parent();
    let mut pipes = Pipes::take()?;
    let setting: Setting = serde_json::from_str(setting)?;
    let mut ballast = match Ballast::take(&setting) {
        Ok(ballast) => ballast,
        Err(error) => return pipes.answer(Err(error)),
    };
    pipes.answer(Ok(Vec::new()))?;
    let mut line = String::new();
    while pipes.input.read_line(&mut line)? > 0 {
        let request: Request = serde_json::from_str(&line)?;
        pipes.answer(operations::perform(&request, &mut ballast))?;
        line.clear();
    }
    Ok(())
}

/// The parent's death must leave nothing behind, neither a process with gigabytes of memory nor what it launched. All of
/// that is in a group of its own: the kernel does not tell children of children.
fn die_with_the_parent() {
    extern "C" fn end_all(_: i32) {
        // SAFETY: a plain system call; the group is this process's own.
        unsafe { libc::kill(0, libc::SIGKILL) };
    }
    let handler: extern "C" fn(i32) = end_all;
    // SAFETY: plain system calls. A process that leads a group already is refused a new one, and needs none.
    unsafe {
        libc::setpgid(0, 0);
        libc::signal(libc::SIGTERM, handler as libc::sighandler_t);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
    }
}

/// What was standard input and output: children have /dev/null there, so that nothing they say is taken for an answer.
struct Pipes {
    input: BufReader<File>,
    output: File,
}

impl Pipes {
    fn take() -> io::Result<Pipes> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        dup2_stdin(&nothing)?;
        dup2_stdout(&nothing)?;
        dup2_stderr(&nothing)?;
        Ok(Pipes {
            input: BufReader::new(File::from(input)),
            output: File::from(output),
        })
    }

    fn answer(&mut self, outcome: Result<Vec<f64>, LabError>) -> io::Result<()> {
        let reply = match outcome {
            Ok(values) => Reply::Done(values),
            Err(LabError::Unavailable(reason)) => Reply::Unavailable(reason),
            Err(LabError::Untrusted(reason)) => Reply::Untrusted(reason),
            Err(error @ LabError::System { .. }) => Reply::Unavailable(error.to_string()),
        };
        let mut line = serde_json::to_vec(&reply)?;
        line.push(b'\n');
        self.output.write_all(&line)
    }
}
