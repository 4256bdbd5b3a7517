//! `spawnscope import`: makes a recording from a log that another tool wrote, here or on another
//! machine.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueHint};

use super::args::{DEFAULT_FILE, STANDARD_STREAM, named};
use super::output::{escape_line, print_message};
use crate::import::{Format, Imported, import};
use crate::record::Redaction;
use crate::units;

pub const EXAMPLES: &str = "\
Examples:
  strace -f -ttt -T -s 4096 -o make.log make
  spawnscope import make.log              # then: spawnscope report
  spawnscope import -o ci.db make.log.gz  # gzip, xz and zstd are unpacked
  strace -ff -ttt -T -s 4096 -o m make; spawnscope import m.*
  perf script --show-task-events | spawnscope import -
  spawnscope import slow.json --scans scans.log  # both from a Mac
  ssh build strace -f -ttt -T make 2>&1 >/dev/null | spawnscope import -

Secrets in arguments are masked as by `record`. The log itself contains them,
and without -s 4096, strace cuts arguments after 32 bytes.";

#[derive(Debug, Args)]
pub struct ImportArguments {
    /// The files of one log; - reads standard input
    #[arg(value_name = "LOG", required = true, value_hint = ValueHint::FilePath)]
    pub logs: Vec<PathBuf>,
    /// Where to write the recording
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE, value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// The format of the log, instead of detecting it
    #[arg(long, value_parser = named(FORMATS))]
    pub format: Option<Format>,
    /// With a log of eslogger: the output of log stream from the same time, which shows what
    /// macOS's scanner did
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub scans: Option<PathBuf>,
    /// Store arguments that look like secrets unchanged
    #[arg(long)]
    pub no_redact: bool,
}

/// The values of --format, and what `--help` says about each.
const FORMATS: [(&str, &str, Format); 3] = [
    ("strace", "The output of strace", Format::Strace),
    (
        "perf",
        "Events of the scheduler: the output of perf script or trace-cmd report, or ftrace's file `trace`",
        Format::Perf,
    ),
    ("eslogger", "The output of macOS's eslogger", Format::Eslogger),
];

pub fn run(arguments: &ImportArguments) -> Result<()> {
    if arguments.logs.contains(&arguments.output) {
        bail!("-o names the log itself, {}", arguments.output.display());
    }
    let inputs = arguments.logs.iter().filter(|log| log.as_os_str() == STANDARD_STREAM).count();
    if inputs > 0 && arguments.logs.len() > 1 {
        bail!("standard input cannot be one of several files: name the files, or join them");
    }
    let redaction = if arguments.no_redact { Redaction::Keep } else { Redaction::Mask };
    let imported = import(&arguments.logs, arguments.format, arguments.scans.as_deref(), &arguments.output, redaction)?;
    print_refused(&imported);
    let launches = units::counted(imported.launches, "launch", "launches");
    let lines = units::counted(imported.lines, "line", "lines");
    print_message(&format!("imported {launches} from {lines} to {}", arguments.output.display()));
    if let Some((tied, all)) = imported.scans {
        print_message(&format!("{tied} of {} belong to a launch", units::counted(all, "scan", "scans")));
    }
    Ok(())
}

fn print_refused(imported: &Imported) {
    let Some(refused) = &imported.refused else { return };
    let lines = units::counted(refused.count, "line", "lines");
    let text = escape_line(String::from_utf8_lossy(&refused.text));
    let (path, number) = (escape_line(refused.path.display()), refused.number);
    let verb = if refused.count == 1 { "is" } else { "are" };
    print_message(&format!(
        "{lines} {verb} not imported: torn, or not of this format; the first is {path}:{number}: {text}"
    ));
}
