//! Performs the requests to a worker. Larger operations have files of their own.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::Mechanism;
use super::ballast::Ballast;
use super::launcher::{ChildProcess, Launcher, RunningChild};
use super::protocol::{Program, Request};
use crate::LabError;
use spawnscope_data::statistics::median;
use spawnscope_system::process::reap;

pub fn perform(request: &Request, ballast: &mut Ballast) -> Result<Vec<f64>, LabError> {
    match request {
        Request::Launch { mechanism, program, count } => launch(*mechanism, program, *count),
        Request::Grow { bytes } => ballast.grow(*bytes as usize).map(|()| Vec::new()),
        Request::Concurrent { paths, status } => launch_concurrently(paths, *status),
    }
}

fn launch(mechanism: Mechanism, program: &Program, count: u32) -> Result<Vec<f64>, LabError> {
    let mut launcher = Launcher::new(mechanism, program)?;
    if count > 1 {
        // A launch after other work finds cold caches, so the first one is not counted.
        launcher.time(mechanism)?;
    }
    let (mut walls, mut calls) = (Vec::new(), Vec::new());
    let before = cpu_ns();
    for _ in 0..count {
        let [wall, call] = launcher.time(mechanism)?;
        walls.push(nanos(wall));
        calls.push(nanos(call));
    }
    let after = cpu_ns();
    let [user, system] = [0, 1].map(|kind| (after[kind] - before[kind]) as f64 / f64::from(count.max(1)));
    Ok(vec![median(walls).unwrap_or_default(), median(calls).unwrap_or_default(), user + system, user, system])
}

fn nanos(span: Duration) -> f64 {
    span.as_nanos() as f64
}

/// Returns the user and the system time of this process and of its reaped children.
fn cpu_ns() -> [i64; 2] {
    let usages = [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN].map(|who| getrusage(who).ok());
    [Usage::user_time, Usage::system_time]
        .map(|time| usages.iter().flatten().map(|usage| time(usage).num_nanoseconds()).sum())
}

/// Launches all files, and returns the time of each from its start until it was reaped. The
/// children are detached, so that a delayed exec of one does not delay the start of the others.
fn launch_concurrently(paths: &[String], status: i32) -> Result<Vec<f64>, LabError> {
    let programs: Vec<Program> = paths.iter().map(|path| Program::new([path]).with_status(status)).collect();
    let mechanism = Mechanism::VspawnDetached;
    let mut launchers =
        programs.iter().map(|program| Launcher::new(mechanism, program)).collect::<Result<Vec<_>, _>>()?;
    let mut running = Vec::new();
    let mut failure = None;
    for launcher in &mut launchers {
        let began = Instant::now();
        match launcher.start(mechanism) {
            Ok(RunningChild { process: ChildProcess::Vspawn(child), .. }) => running.push((began, child)),
            Ok(_) => failure = Some(LabError::Invalid("the child is not detached".to_owned())),
            Err(error) => failure = Some(error),
        }
    }
    let mut walls = Vec::new();
    // Wait for all children even after a failure. Otherwise a later wait would return one of them.
    while !running.is_empty() {
        let (pid, ended) = reap(-1).map_err(LabError::doing("wait for a child"))?;
        let Some(position) = running.iter().position(|(_, child)| child.id() == pid as u32) else {
            return Err(LabError::Invalid("an unknown child ended".to_owned()));
        };
        walls.push(nanos(running.swap_remove(position).0.elapsed()));
        if !libc::WIFEXITED(ended) || libc::WEXITSTATUS(ended) != status {
            failure = Some(LabError::Invalid(format!(
                "a child ended with {}, not with exit status: {status}",
                ExitStatus::from_raw(ended)
            )));
        }
    }
    failure.map_or(Ok(walls), Err)
}
