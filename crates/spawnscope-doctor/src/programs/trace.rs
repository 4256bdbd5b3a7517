//! Counts the processes that a program creates. A separate process traces the program; if that tracer ends, its tracees continue untraced.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::unistd::{ForkResult, fork};

use super::program_session::GRACE;
use crate::processes;
use spawnscope_data::event::Pid;
use spawnscope_system::ptrace::{Creation, Event, Options, Stop, Tracer};

/// The interval between checks of a traced program.
const CHECK_INTERVAL: Duration = Duration::from_micros(100);

/// Runs the program, and writes one byte to standard output for each process that it and its descendants create, at the moment of the
/// creation. The reader therefore has a count even if the program is killed. Returns the exit status of the tracer: zero if the program
/// succeeded and all bytes were written.
pub(super) fn report_launches(command: &mut Command) -> i32 {
    i32::from(!matches!(run_traced(command), Ok(true)))
}

/// Forks the program's process, which waits until it is traced, and follows it. Returns the result of `follow`.
fn run_traced(command: &mut Command) -> io::Result<bool> {
    let (mut start_reader, mut start_writer) = io::pipe()?;
    // SAFETY: the tracer is single-threaded, so its child may do anything.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => {
            let child = Pid(child.as_raw());
            let mut tracer = Tracer::new();
            tracer.seize(child, Options::CREATION)?;
            start_writer.write_all(b"+")?;
            Ok(follow(tracer, child))
        }
        ForkResult::Child => {
            drop(start_writer);
            if start_reader.read_exact(&mut [0]).is_ok() {
                let _not_executed = command.stdout(Stdio::null()).exec();
            }
            // SAFETY: exits at once; none of the tracer's code runs in the child.
            unsafe { libc::_exit(127) }
        }
    }
}

fn report_launch() -> bool {
    // SAFETY: the call reads one byte of our own memory. The standard library's buffer cannot be used: another thread of the doctor may
    // have held its lock at the fork.
    unsafe { libc::write(1, c"+".as_ptr().cast(), 1) == 1 }
}

/// Traces a process until it ends, and reports each process that it and its descendants create. Returns whether the process succeeded and
/// every creation was reported.
fn follow(mut tracer: Tracer, root: Pid) -> bool {
    let mut until: Option<Instant> = None;
    let (mut is_reported, mut status_of_root) = (true, None);
    while until.is_none_or(|until| Instant::now() < until) {
        match tracer.next_event() {
            None if !tracer.has_children() => break,
            None => sleep(CHECK_INTERVAL),
            Some(Event::Ended(process, status)) if process == root => {
                status_of_root = Some(status);
                // Background processes may create more, so they are followed for a while.
                until = Some(Instant::now() + GRACE);
            }
            Some(Event::Ended(..)) => {}
            Some(Event::Stopped(thread, stop)) => {
                if is_new_process(stop) {
                    is_reported &= report_launch();
                }
                tracer.pass_on(thread, stop);
            }
        }
    }
    status_of_root == Some(0) && is_reported
}

/// Returns whether a stop reports a new process, and not a new thread.
fn is_new_process(stop: Stop) -> bool {
    match stop {
        Stop::Created { how: Creation::Fork | Creation::Vfork, .. } => true,
        Stop::Created { how: Creation::Clone, child: Some(Pid(new)) } => {
            // Only a process has its own id as Tgid; a new thread has that of its process.
            std::fs::read_to_string(format!("/proc/{new}/status"))
                .is_ok_and(|status| processes::field(&status, "Tgid") == Some(new.to_string().as_str()))
        }
        _ => false,
    }
}
