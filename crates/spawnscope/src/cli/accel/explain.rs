//! `accel --explain`: runs the command as a child of this process, and prints the counts of the
//! library. The library keeps them in a file that every process of the tree maps into its memory.

use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::cli::exit::Status;
use crate::cli::output::print_message;
use crate::event::Pid;
use crate::held::HeldCommand;
use crate::job_control;
use crate::process::reap;
use crate::signals::Signals;

/// How often to check whether the command has stopped.
const STOP_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 40_000_000 };
/// The size of the file in bytes, as in `crates/vspawn-preload/src/settings.rs`.
const FILE_BYTES: usize = 4096;
/// What each number in the file counts, in the order of `crates/vspawn-preload/src/settings.rs`.
const REASONS: [&str; 10] = [
    "skipped: the command was started without a shell",
    "kept: more than one simple command",
    "kept: a builtin of the shell",
    "kept: a variable changes what the shell does",
    "kept: signals, user ids or standard input are unusual",
    "kept: the program was not found, or cannot be executed",
    "kept: the shell is neither dash nor bash",
    "kept: --strict",
    "used after all: the program could not be executed",
    "kept: a redirection that only the shell can do",
];
/// The index, in the file, of the count of small programs whose work was done in place. It follows
/// the counts of the reasons.
const IN_PLACE_INDEX: usize = REASONS.len();

pub fn run(command: &[OsString], mut variables: Vec<(OsString, OsString)>) -> Result<Status> {
    let counters = tempfile::Builder::new()
        .prefix("spawnscope-accel-")
        .tempfile()
        .context("failed to create a file for the counts")?;
    fs::write(&counters, [0; FILE_BYTES]).context("failed to write the file for the counts")?;
    let signals = Signals::catch().context("failed to catch signals")?;
    variables.push(("SPAWNSCOPE_ACCEL_EXPLAIN".into(), counters.path().into()));
    let held = HeldCommand::start(command, None, &variables, signals.inherited_mask())?;
    let pid = held.pid();
    let process = held.release()?;
    let status = wait(pid, &process, &signals)?;
    print_message(&describe_counts(&fs::read(&counters).context("failed to read the counts")?));
    Ok(Status::of_command(status))
}

/// Waits for the command's end, and forwards signals to it. Returns its wait status.
fn wait(Pid(pid): Pid, process: &OwnedFd, signals: &Signals) -> Result<i32> {
    loop {
        let readiness = signals.readiness();
        let mut both = [PollFd::new(process, PollFlags::IN), PollFd::new(&readiness, PollFlags::IN)];
        match poll(&mut both, Some(&STOP_INTERVAL)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("failed to wait for the command"),
        }
        let [ended, arrived] = both;
        if job_control::has_stopped(Pid(pid)) {
            job_control::stop_with(Pid(pid));
        }
        if !arrived.revents().is_empty() {
            while let Some(signal) = signals.next() {
                signal.forward_to(pid);
            }
        }
        if !ended.revents().is_empty() {
            let (_, status) = reap(pid).context("failed to read the command's status")?;
            return Ok(status);
        }
    }
}

fn describe_counts(page: &[u8]) -> String {
    let numbers: Vec<u64> =
        page.chunks_exact(8).filter_map(|chunk| chunk.try_into().ok().map(u64::from_ne_bytes)).collect();
    let shells = describe_shells(&numbers);
    match numbers.get(IN_PLACE_INDEX).copied().unwrap_or(0) {
        0 => shells,
        count => format!(
            "{shells}\nsmall programs (such as dirname and mv) whose work was done without executing them:\n{count:>8}"
        ),
    }
}

fn describe_shells(numbers: &[u64]) -> String {
    let counted = numbers.iter().zip(REASONS).filter(|(count, _)| **count > 0);
    let lines: String = counted.map(|(count, reason)| format!("\n{count:>8} {reason}")).collect();
    if lines.is_empty() {
        return "none of the programs that loaded the library requested a shell for a command".to_owned();
    }
    format!("shells requested for a command:{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_counts_above_zero_are_listed() {
        let mut page = vec![0; FILE_BYTES];
        page[0] = 3;
        page[8] = 1;
        let text = describe_counts(&page);
        assert!(text.contains("       3 skipped"), "{text}");
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(describe_counts(&vec![0; FILE_BYTES]).starts_with("none of the programs"));
        page[8 * IN_PLACE_INDEX] = 7;
        assert!(describe_counts(&page).ends_with("executing them:\n       7"), "{}", describe_counts(&page));
    }
}
