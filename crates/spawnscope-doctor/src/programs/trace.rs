//! Counts the processes that a program creates by tracing it from a separate process. When the tracer ends, its tracees continue untraced.

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

/// Runs the program, and immediately writes one byte to standard output for each process that it and its descendants create. The reader
/// therefore has a count even if the program is killed. Returns the exit status: zero if the program succeeded and all bytes were written.
pub(super) fn report_launches(command: &mut Command) -> i32 {
    i32::from(!matches!(run_traced(command), Ok(true)))
}

/// Forks the program's process, which waits until it is traced. Returns as `follow`.
fn run_traced(command: &mut Command) -> io::Result<bool> {
    let (mut is_traced, mut go) = io::pipe()?;
    // SAFETY: the tracer is single-threaded, so its child may do anything.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => {
            let child = Pid(child.as_raw());
            let mut tracer = Tracer::new();
            tracer.seize(child, Options::CREATION)?;
            go.write_all(b"+")?;
            Ok(follow(tracer, child))
        }
        ForkResult::Child => {
            drop(go);
            if is_traced.read_exact(&mut [0]).is_ok() {
                let _not_executed = command.stdout(Stdio::null()).exec();
            }
            // SAFETY: exits at once; none of the tracer's code runs in the child.
            unsafe { libc::_exit(127) }
        }
    }
}

fn report_one() -> bool {
    // SAFETY: reads one byte of our own memory. Avoids the standard library's buffer, whose lock another thread may have held at the fork.
    unsafe { libc::write(1, c"+".as_ptr().cast(), 1) == 1 }
}

/// Traces the process until it ends, and reports each process that it and its descendants create. Returns whether it succeeded and all were
/// reported.
fn follow(mut tracer: Tracer, root: Pid) -> bool {
    let mut until: Option<Instant> = None;
    let (mut is_reported, mut status_of_root) = (true, None);
    while until.is_none_or(|until| Instant::now() < until) {
        match tracer.next_event() {
            None if !tracer.has_children() => break,
            None => sleep(CHECK_INTERVAL),
            Some(Event::Ended(process, status)) if process == root => {
                status_of_root = Some(status);
                // Processes in the background that end soon are counted to their end.
                until = Some(Instant::now() + GRACE);
            }
            Some(Event::Ended(..)) => {}
            Some(Event::Stopped(thread, stop)) => {
                if is_new_process(stop) {
                    is_reported &= report_one();
                }
                tracer.pass_on(thread, stop);
            }
        }
    }
    status_of_root == Some(0) && is_reported
}

/// Whether a stop is about a new process, not a thread.
fn is_new_process(stop: Stop) -> bool {
    match stop {
        Stop::Created {
            how: Creation::Fork | Creation::Vfork,
            ..
        } => true,
        Stop::Created {
            how: Creation::Clone,
            child: Some(Pid(new)),
        } => {
            // For a thread that is not the leader of its thread group, Tgid differs.
            std::fs::read_to_string(format!("/proc/{new}/status"))
                .is_ok_and(|status| processes::field(&status, "Tgid") == Some(new.to_string().as_str()))
        }
        _ => false,
    }
}
