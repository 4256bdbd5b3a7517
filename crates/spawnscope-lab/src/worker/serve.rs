//! The main loop of a worker: allocates what its setting requires, reports that it is ready, and
//! performs each request until the end of its input.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;

use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::ballast::Ballast;
use super::operations;
use super::protocol::{Reply, Request, Setting};
use spawnscope_system::process::die_with_parent;

pub fn serve(setting: &str) -> io::Result<()> {
    end_group_with_parent();
    let mut pipes = Pipes::take_over()?;
    let setting: Setting = serde_json::from_str(setting)?;
    let mut ballast = match Ballast::allocate(&setting) {
        Ok(ballast) => ballast,
        Err(error) => return pipes.reply(&Err(error)),
    };
    pipes.reply(&Ok(Vec::new()))?;
    let mut line = String::new();
    while pipes.input.read_line(&mut line)? > 0 {
        let request: Request = serde_json::from_str(&line)?;
        pipes.reply(&operations::perform(&request, &mut ballast))?;
        line.clear();
    }
    Ok(())
}

/// Ends the worker and its children when the parent dies, because a worker may have gigabytes of
/// memory. The parent-death signal does not reach grandchildren of the parent, so the worker leads
/// its own process group and kills that.
fn end_group_with_parent() {
    extern "C" fn kill_group(_: i32) {
        // SAFETY: a plain system call; the group belongs to this process.
        unsafe { libc::kill(0, libc::SIGKILL) };
    }
    let handler: extern "C" fn(i32) = kill_group;
    // SAFETY: plain system calls. setpgid fails only for a session leader, which leads a group
    // anyway.
    unsafe {
        libc::setpgid(0, 0);
        libc::signal(libc::SIGTERM, handler as libc::sighandler_t);
    }
    die_with_parent(libc::SIGTERM);
}

/// The original standard input and output. Standard input, output and error are replaced by
/// /dev/null, so that output of children is not mistaken for a reply.
struct Pipes {
    input: BufReader<File>,
    output: File,
}

impl Pipes {
    fn take_over() -> io::Result<Pipes> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        dup2_stdin(&nothing)?;
        dup2_stdout(&nothing)?;
        dup2_stderr(&nothing)?;
        Ok(Pipes { input: BufReader::new(File::from(input)), output: File::from(output) })
    }

    fn reply(&mut self, reply: &Reply) -> io::Result<()> {
        let mut line = serde_json::to_vec(reply)?;
        line.push(b'\n');
        self.output.write_all(&line)
    }
}
