//! What a worker can do, each as one request asks for it: launches with their times, many in flight, the stall of another
//! thread, rewritten memory.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use super::Mechanism;
use super::ballast::Ballast;
use super::launcher::{Launcher, Running};
use super::protocol::{Program, Request};
use crate::lab::LabError;
use crate::statistics::median;

/// Does what is asked for.
pub fn perform(request: &Request, ballast: &mut Ballast) -> Result<Vec<f64>, LabError> {
    match request {
        Request::Launch {
            mechanism,
            program,
            count,
        } => launch(*mechanism, program, *count),
        Request::Grow { bytes } => ballast.grow(*bytes as usize).map(|()| Vec::new()),
        Request::Stall {
            mechanism,
            program,
            count,
        } => stall(*mechanism, program, *count),
        Request::Throughput {
            mechanism,
            program,
            threads,
            in_flight,
            count,
        } => throughput(*mechanism, program, *threads, *in_flight as usize, *count),
        Request::AllAtOnce { paths, status } => all_at_once(paths, *status),
        Request::Rewrite { mechanism, program } => rewrite(*mechanism, program, ballast),
    }
}

fn launch(mechanism: Mechanism, program: &Program, count: u32) -> Result<Vec<f64>, LabError> {
    let mut launcher = Launcher::new(mechanism, program)?;
    let (mut walls, mut calls) = (Vec::new(), Vec::new());
    let before = cpu_time();
    for _ in 0..count {
        let began = Instant::now();
        let running = launcher.start(mechanism)?;
        let call = began.elapsed();
        launcher.finish(mechanism, running)?;
        walls.push(nanos(began.elapsed()));
        calls.push(nanos(call));
    }
    let after = cpu_time();
    let of_one = |spent: Duration| nanos(spent) / f64::from(count.max(1));
    let user = of_one(after.0.saturating_sub(before.0));
    let system = of_one(after.1.saturating_sub(before.1));
    Ok(vec![
        median(walls).unwrap_or_default(),
        median(calls).unwrap_or_default(),
        user + system,
        user,
        system,
    ])
}

fn nanos(span: Duration) -> f64 {
    span.as_nanos() as f64
}

/// User and system time of this process and of its children that were waited for.
fn cpu_time() -> (Duration, Duration) {
    let mut sum = (Duration::ZERO, Duration::ZERO);
    for who in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN] {
        // SAFETY: a `rusage` of zeros is valid, and the kernel fills it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &raw mut usage);
            usage
        };
        let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
        sum.0 += time(usage.ru_utime);
        sum.1 += time(usage.ru_stime);
    }
    sum
}

/// Another thread maps, touches and unmaps a page without end, which needs the lock that fork takes.
fn stall(mechanism: Mechanism, program: &Program, count: u32) -> Result<Vec<f64>, LabError> {
    let mut launcher = Launcher::new(mechanism, program)?;
    let (ended, longest, turns) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        let neighbour = scope.spawn(|| {
            let mut last = Instant::now();
            while !ended.load(Ordering::Relaxed) {
                map_and_unmap();
                let now = Instant::now();
                longest.fetch_max((now - last).as_nanos() as u64, Ordering::Relaxed);
                turns.fetch_add(1, Ordering::Relaxed);
                last = now;
            }
        });
        let mut measure = || {
            let (mut walls, mut stalls) = (Vec::new(), Vec::new());
            for _ in 0..count {
                longest.store(0, Ordering::Relaxed);
                let began = Instant::now();
                let running = launcher.start(mechanism)?;
                launcher.finish(mechanism, running)?;
                walls.push(nanos(began.elapsed()));
                // A stall that outlasts the launch is told when it ends.
                let turn = turns.load(Ordering::Relaxed);
                while turns.load(Ordering::Relaxed) == turn {
                    thread::yield_now();
                }
                stalls.push(longest.load(Ordering::Relaxed) as f64);
            }
            Ok(vec![
                median(walls).unwrap_or_default(),
                median(stalls).unwrap_or_default(),
            ])
        };
        let outcome = measure();
        ended.store(true, Ordering::Relaxed);
        let joined = neighbour.join();
        match joined {
            Ok(()) => outcome,
            Err(_) => Err(LabError::Untrusted("the other thread died".to_owned())),
        }
    })
}

fn map_and_unmap() {
    const BYTES: usize = 4096;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: memory of our own, written within its bounds and given back.
    unsafe {
        let start: *mut c_void = libc::mmap(std::ptr::null_mut(), BYTES, protection, flags, -1, 0);
        if start != libc::MAP_FAILED {
            start.cast::<u8>().write_volatile(1);
            libc::munmap(start, BYTES);
        }
    }
}

fn throughput(
    mechanism: Mechanism,
    program: &Program,
    threads: u32,
    in_flight: usize,
    count: u32,
) -> Result<Vec<f64>, LabError> {
    let of_each = count.div_ceil(threads).max(1);
    let began = Instant::now();
    let outcomes: Vec<Result<(), LabError>> = thread::scope(|scope| {
        let keep = || {
            let mut launcher = Launcher::new(mechanism, program)?;
            let mut running = VecDeque::with_capacity(in_flight);
            for _ in 0..of_each {
                if running.len() == in_flight
                    && let Some(oldest) = running.pop_front()
                {
                    launcher.finish(mechanism, oldest)?;
                }
                running.push_back(launcher.start(mechanism)?);
            }
            running
                .into_iter()
                .try_for_each(|child| launcher.finish(mechanism, child))
        };
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(keep)).collect();
        let dead = |_| Err(LabError::Untrusted("a launching thread died".to_owned()));
        started
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(dead))
            .collect()
    });
    let elapsed = began.elapsed();
    outcomes.into_iter().collect::<Result<(), _>>()?;
    Ok(vec![f64::from(of_each * threads) / elapsed.as_secs_f64()])
}

/// Detached children: an exec that is held up holds up none of the others.
fn all_at_once(paths: &[String], status: i32) -> Result<Vec<f64>, LabError> {
    let programs: Vec<Program> = paths
        .iter()
        .map(|path| Program::new([path]).ends_with(status))
        .collect();
    let mechanism = Mechanism::VspawnDetached;
    let mut launchers = programs
        .iter()
        .map(|program| Launcher::new(mechanism, program))
        .collect::<Result<Vec<_>, _>>()?;
    let mut running = Vec::new();
    for (launcher, program) in launchers.iter_mut().zip(&programs) {
        let began = Instant::now();
        match launcher.start(mechanism)? {
            Running::Vspawn(child) => running.push((began, child, program)),
            _ => return Err(LabError::Untrusted("not a detached child".to_owned())),
        }
    }
    let mut walls = Vec::new();
    while !running.is_empty() {
        let ended = any_end()?;
        let Some(position) = running.iter().position(|(_, child, _)| child.id() == ended.0) else {
            return Err(LabError::Untrusted("a stranger's child ended".to_owned()));
        };
        let (began, child, program) = running.swap_remove(position);
        walls.push(nanos(began.elapsed()));
        drop(child);
        if !libc::WIFEXITED(ended.1) || libc::WEXITSTATUS(ended.1) != program.status {
            return Err(LabError::Untrusted(format!(
                "a child ended with wait status {:#x}",
                ended.1
            )));
        }
    }
    Ok(walls)
}

/// Waits for the end of any child: its pid and wait status.
fn any_end() -> Result<(u32, i32), LabError> {
    let mut status = 0;
    // SAFETY: the kernel fills `status`.
    match unsafe { libc::waitpid(-1, &raw mut status, 0) } {
        -1 => Err(LabError::doing("wait for a child")(io::Error::last_os_error())),
        pid => Ok((pid as u32, status)),
    }
}

/// The child lives until the pipe ends: one that was only forked reads it itself, any other is a program that is given
/// its name.
fn rewrite(mechanism: Mechanism, program: &Program, ballast: &mut Ballast) -> Result<Vec<f64>, LabError> {
    let (reader, writer): (OwnedFd, OwnedFd) =
        pipe2(OFlag::O_CLOEXEC).map_err(|errno| LabError::doing("make a pipe")(errno.into()))?;
    ballast.renew()?;
    let ballast = &*ballast;
    let timed = || {
        let began = Instant::now();
        ballast.rewrite();
        nanos(began.elapsed())
    };
    ballast.rewrite();
    let before = timed();
    if mechanism == Mechanism::ForkExit {
        let pid = fork_until_the_end_of(&reader, &writer).map_err(LabError::doing("fork"))?;
        let during = timed();
        drop(writer);
        let mut status = 0;
        // SAFETY: the kernel fills `status`.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        return match status {
            0 => Ok(vec![before, during, timed()]),
            _ => Err(LabError::Untrusted(format!(
                "the child ended with wait status {status:#x}"
            ))),
        };
    }
    // SAFETY: clears close-on-exec of a descriptor of ours.
    unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_SETFD, 0) };
    let mut program = program.clone();
    program.argv.push(format!("/dev/fd/{}", reader.as_raw_fd()));
    let mut launcher = Launcher::new(mechanism, &program)?;
    let running = launcher.start(mechanism)?;
    let during = timed();
    drop(writer);
    launcher.finish(mechanism, running)?;
    Ok(vec![before, during, timed()])
}

fn fork_until_the_end_of(reader: &OwnedFd, writer: &OwnedFd) -> io::Result<i32> {
    // SAFETY: the child makes system calls only, on a byte of its own, and leaves.
    match unsafe { libc::fork() } {
        // SAFETY: as above.
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
