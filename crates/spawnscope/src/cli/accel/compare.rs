//! `accel --record`: records the command without and with the library, and prints the wall, launches and launch tax of both runs.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::explain::accel_command_line;
use crate::cli::args::AccelArguments;
use crate::cli::exit::Status;
use crate::cli::output::print_message;
use crate::held::inheritance::restore_dispositions;
use crate::record::reader::RecordingFile;
use crate::units;

const BEFORE: &str = "spawnscope-before.db";
const AFTER: &str = "spawnscope-after.db";

/// Runs the command twice, and returns the exit status of the second run.
///
/// # Errors
/// When a run cannot be recorded, or a recording cannot be read.
pub fn run(arguments: &AccelArguments) -> Result<Status> {
    let first = record(BEFORE, arguments.command.clone())?;
    if matches!(first, Status::Killed(libc::SIGINT | libc::SIGQUIT | libc::SIGHUP | libc::SIGTERM)) {
        return Ok(first);
    }
    let status = record(AFTER, accel_command_line(arguments, None)?)?;
    let (before, after) = (summarize(Path::new(BEFORE))?, summarize(Path::new(AFTER))?);
    print_message(&format!(
        "recorded the command twice\n  without accel: {before}\n  with accel:    {after}\n  spawnscope diff {BEFORE} {AFTER}"
    ));
    Ok(status)
}

/// Records the command with a second spawnscope process, and returns the command's exit status.
fn record(file: &str, command: Vec<OsString>) -> Result<Status> {
    let program = env::current_exe().context("failed to find spawnscope's own program")?;
    let mut recorder = Command::new(program);
    recorder.args(["record", "--quiet", "-o", file, "--"]).args(command);
    keep_dispositions(&mut recorder);
    let status = recorder.status().context("failed to start the recorder")?;
    Ok(Status::of_command(status.into_raw()))
}

/// Describes the wall, launches and launch tax of a recording.
fn summarize(file: &Path) -> Result<String> {
    let recording = RecordingFile::open(file)?.read()?;
    let report = crate::analyze::report(&recording, crate::analyze::GroupBy::Command);
    Ok(format!(
        "wall {}, {}, launch tax {}",
        units::time(report.wall),
        units::counted(report.all.count, "launch", "launches"),
        units::time(report.all.tax)
    ))
}

/// Makes the command start with the dispositions that spawnscope was started with. `Command` sets that of SIGPIPE, and spawnscope that of
/// SIGCHLD.
fn keep_dispositions(command: &mut Command) {
    // SAFETY: the closure only makes system calls.
    unsafe {
        command.pre_exec(|| {
            restore_dispositions();
            Ok(())
        })
    };
}
