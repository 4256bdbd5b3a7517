//! What can be typed: the one definition behind parsing, `--help`, the man pages and the completions.

mod bench;
mod doctor;
mod hold;
mod identity;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};

pub use self::bench::BenchArguments;
pub use self::doctor::DoctorArguments;
pub use self::hold::HoldArguments;
pub use self::identity::IdentityArguments;
use crate::analyze::phases::Phase;

/// File that holds a recording unless another is named.
pub const DEFAULT_FILE: &str = "spawnscope.db";

/// Show where the time of process launches goes
///
/// Spawnscope runs a command and says what it launched, how long each launch took, and where that time went: fork,
/// queue, set-up, exec, loader, run, exit, reap.
#[derive(Debug, Parser)]
#[command(name = "spawnscope", version, after_help = EXAMPLES, max_term_width = 80, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  spawnscope record -- ./configure          a command, and its report
  spawnscope record -o ci.db -- make -j8    keep the recording in ci.db
  spawnscope report --by parent             who launches
  spawnscope advise                         what to change, what it saves
  spawnscope whatif --remove dirname        the wall without these launches
  spawnscope tree ci.db                     every process with its phases
  spawnscope flame -o build.svg ci.db       the same as a flame graph
  spawnscope export --format perfetto -o t.pftrace   for ui.perfetto.dev
  spawnscope hold --match cc1 -- make       stop cc1 at its start, for gdb
  spawnscope bench --quick                  what launches cost here
  spawnscope doctor                         what makes launches slow here

Exit status: the command's own (128+n on signal n); 125 when spawnscope itself
fails, 126 when the command cannot be executed, 127 when it is not found.";

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a command, or watch processes, and record every launch
    ///
    /// The command runs as it would without spawnscope: its input, output, terminal, signals and exit status are its own. The
    /// report goes to standard error. Ctrl-C goes to the command; three within a second stop recording and leave it running.
    #[command(after_help = RECORD_EXAMPLES)]
    Record(RecordArguments),
    /// Report where the time of launches went
    ///
    /// The report fits one screen; --full prints everything. Launch tax is the time of launches without `run`, the program's own
    /// phase. It is summed over launches, so it can exceed the wall when launches overlap. `-` means unknown, not zero.
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArguments),
    /// List what to change, how, and how much wall time it saves
    ///
    /// Each saving is predicted by a replay of the recording with that fix. The largest saving comes first. Fixes that save less
    /// than 1 % of the wall, or less than 5 ms, are left out.
    Advise(AdviseArguments),
    /// Predict the wall time with changes to launches
    ///
    /// The recording is replayed with all changes together. SEL selects launches: a glob on the program's base name
    /// (`dirname`, `python3*`; `(bash)` for forks of bash that run no other program), argv=GLOB, parent=GLOB (base name of the
    /// parent's program), or line=FILE:N (the script line that launches, as in `report --by line`; also FILE or
    /// FILE:N-M). Terms joined by commas must all hold. Options can be repeated.
    #[command(after_help = WHATIF_EXAMPLES)]
    Whatif(Box<WhatifArguments>),
    /// Print the process tree with arguments, phases and exit statuses
    ///
    /// Each line is a process: its pid, the programs that it executed, its wall time, its exit status if that is not 0, and its
    /// phases, the longest first. On a terminal, lines are cut to its width.
    Tree(TreeArguments),
    /// Draw launches as a flame graph: an interactive SVG
    ///
    /// A box is a program, and the boxes above it are what it launched; with --by caller, boxes are the functions that launch. The
    /// width of a box is its cost with everything above it.
    #[command(after_help = FLAME_EXAMPLES)]
    Flame(FlameArguments),
    /// Export the launches in another format
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArguments),
    /// Stop a new process before its first instruction, so that a debugger can attach
    ///
    /// The command, or a process that it launches, stops right after its exec, before the first instruction of its dynamic
    /// loader. Its pid is printed, and any profiler or debugger can attach. Enter on the terminal continues it.
    #[command(after_help = hold::EXAMPLES)]
    Hold(HoldArguments),
    /// Measure what a launch costs on this machine, and what makes it slow
    ///
    /// Each experiment alternates its cases for as many rounds as the noise needs and the time allows, and prints medians with 95 %
    /// confidence intervals. `--list` names the experiments; without names, all are run.
    #[command(after_help = bench::EXAMPLES)]
    Bench(BenchArguments),
    /// Launch for `bench`
    #[command(hide = true)]
    LabWorker {
        /// What the process is to be, as JSON
        setting: String,
    },
    /// Find what makes launches slow on this machine
    ///
    /// Measures what a launch costs, looks for scanners, shims, slow directories and start-up files, and prints what each costs
    /// here, how to fix it, and what the fix costs. Nothing is changed.
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(DoctorArguments),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a directory
    #[command(hide = true)]
    Man {
        /// The directory
        directory: PathBuf,
    },
}

/// Arguments of `record`.
#[derive(Debug, Args)]
pub struct RecordArguments {
    /// The recording; an older one is kept as FILE.old
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE, value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// Follow the process PID and what it launches from now on
    #[arg(short, long, value_name = "PID", conflicts_with_all = ["all", "command"], value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: Option<i32>,
    /// Follow every process of the machine, until Ctrl-C, --duration, or the end of the command
    #[arg(short, long)]
    pub all: bool,
    /// Stop recording after S seconds; a command is left to run to its end
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// Record until everything that the command launched has ended, daemons too; Ctrl-C after the command ends the recording
    #[arg(long, requires = "command", conflicts_with_all = ["all", "pid"])]
    pub wait_for_all: bool,
    /// How to collect events
    #[arg(long, value_enum, default_value_t = CollectorChoice::Auto, value_name = "WHICH")]
    pub collector: CollectorChoice,
    /// Also record the native call stack of each launch
    #[arg(long)]
    pub stacks: bool,
    /// Also sample, HZ times a second, what each CPU runs and what processes wait for: for `flame --phase`, --on-cpu, --off-cpu
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub sample: Option<u32>,
    /// Kernel buffer in KiB; raise it when events are lost [default: 16384; less where a control group limits memory]
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(4..=1024 * 1024))]
    pub buffer: Option<u32>,
    /// Do not look up the lines of scripts that ask for launches
    #[arg(long)]
    pub no_lines: bool,
    /// Store arguments that look like secrets as they are, instead of masked
    #[arg(long)]
    pub no_redact: bool,
    /// Print the report as JSON: to standard error, where the command writes as well
    #[arg(long)]
    pub json: bool,
    /// Print no report and no progress
    #[arg(short, long)]
    pub quiet: bool,
    /// Print which BPF programs the kernel refuses, with the end of the verifier's log
    #[arg(short, long)]
    pub verbose: bool,
    #[command(flatten)]
    pub identity: IdentityArguments,
    /// The command and its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

const RECORD_EXAMPLES: &str = "\
Examples:
  spawnscope record -- git status
  spawnscope record -o build.db -- make -j8
  spawnscope record -q -o t.db -- ./test.sh
  spawnscope report --json t.db              what that recorded, as JSON
  spawnscope record --sample 999 -- make     for `flame --phase load`
  spawnscope record --wait-for-all -- ./start    and the daemons it starts
  spawnscope record -p $(pidof -s nagios) --duration 60
  sudo spawnscope record -a --duration 10

Needs root or the capabilities CAP_BPF and CAP_PERFMON. Under sudo the
command runs as the user who typed it, and the recording is that user's; a
permission for it in sudoers is one for everything all the same (SECURITY.md).";

/// Which collector to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CollectorChoice {
    /// The best one that this machine allows
    Auto,
    /// eBPF: every phase, at the least cost; needs root or CAP_BPF and CAP_PERFMON
    Ebpf,
}

const REPORT_EXAMPLES: &str = "\
Examples:
  spawnscope report                       of spawnscope.db
  spawnscope report --full                everything
  spawnscope report --by parent ci.db     who launches
  spawnscope report --by line             lines of scripts
  spawnscope report --by command --top 0  every command
  spawnscope report --json | jq '.commands[0]'";

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    #[command(flatten)]
    pub recording: RecordingArgument,
    /// Print everything, not only what fits one screen
    #[arg(long, conflicts_with_all = ["json"])]
    pub full: bool,
    /// Print only the table of launches by BY; with --full or --json, group that table by BY
    #[arg(long, value_enum)]
    pub by: Option<Grouping>,
    /// Rows of the table to print, the most expensive first; 0 prints all [default: 15]. Alone, it prints the
    /// table of commands
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub top: Option<usize>,
    /// Print JSON (schema_version 1)
    #[arg(long)]
    pub json: bool,
}

/// What a row of the table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Grouping {
    /// A launched program
    Command,
    /// The program that launches
    Parent,
    /// The line of a script that asks for launches
    Line,
    /// The same by function
    Caller,
}

/// Arguments of `advise`.
#[derive(Debug, Args)]
pub struct AdviseArguments {
    #[command(flatten)]
    pub recording: RecordingArgument,
    /// Also print findings that are not worth fixing or too uncertain
    #[arg(long)]
    pub all: bool,
    /// Print JSON (schema_version 1)
    #[arg(long)]
    pub json: bool,
}

const WHATIF_EXAMPLES: &str = "\
Examples:
  spawnscope whatif --builtin dirname --builtin basename
  spawnscope whatif --remove '(bash)' --remove sed
  spawnscope whatif --batch mv=50 unpack.db
  spawnscope whatif --vfork 'parent=python3*'
  spawnscope whatif --remove git,parent=emacs --json
  spawnscope whatif --cpus 8 build.db

The interval holds the wall with 95 % as far as the model is right; caches,
copy-on-write after a fork and clock frequency are not in it.";

/// Arguments of `whatif`.
#[derive(Debug, Args)]
pub struct WhatifArguments {
    #[command(flatten)]
    pub recording: RecordingArgument,
    /// Without these launches and everything that they launch
    #[arg(long, value_name = "SEL")]
    pub remove: Vec<String>,
    /// As shell builtins; a fork for $( ) or a pipeline stays
    #[arg(long, value_name = "SEL")]
    pub builtin: Vec<String>,
    /// K launches of one parent become one launch
    #[arg(long, value_name = "SEL=K")]
    pub batch: Vec<String>,
    /// Created by vfork or posix_spawn
    #[arg(long, value_name = "SEL")]
    pub vfork: Vec<String>,
    /// With the parents' memory in huge pages
    #[arg(long, value_name = "SEL")]
    pub huge_pages: Vec<String>,
    /// Without needless `sh -c` between parent and program: all of them, or those of SEL
    #[arg(long, value_name = "SEL", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    pub no_shell: Vec<String>,
    /// Linked statically: no dynamic loader
    #[arg(long = "static", value_name = "SEL")]
    pub static_: Vec<String>,
    /// Executed directly, without the wrappers (env, pyenv, scripts) in front
    #[arg(long, value_name = "SEL")]
    pub direct: Vec<String>,
    /// Executed by path: no failed execs along PATH
    #[arg(long, value_name = "SEL")]
    pub absolute: Vec<String>,
    /// With each library where the dynamic loader looks first
    #[arg(long, value_name = "SEL")]
    pub no_search: Vec<String>,
    /// With a parent that does not grow: fork stays as fast as at first
    #[arg(long, value_name = "SEL")]
    pub steady_parent: Vec<String>,
    /// With an immediate exit, whatever memory they hold
    #[arg(long, value_name = "SEL")]
    pub no_teardown: Vec<String>,
    /// Launched as fast as on a machine with fast launches
    #[arg(long, value_name = "SEL")]
    pub quick_launch: Vec<String>,
    /// With descriptors closed by one close_range before the exec
    #[arg(long, value_name = "SEL")]
    pub close_range: Vec<String>,
    /// With parents that reap at once: all launches, or those of SEL
    #[arg(long, value_name = "SEL", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    pub reap_now: Vec<String>,
    /// Without permission scanners that delay execs and opens
    #[arg(long)]
    pub no_scan: bool,
    /// On this number of CPUs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub cpus: Option<u32>,
    /// Print JSON (schema_version 1)
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tree`.
#[derive(Debug, Args)]
pub struct TreeArguments {
    #[command(flatten)]
    pub recording: RecordingArgument,
}

const FLAME_EXAMPLES: &str = "\
Examples:
  spawnscope flame                            at a terminal: flame.svg
  spawnscope flame -o flame.svg               anywhere: without -o, scripts
                                              get it on standard output
  spawnscope flame --weight critical ci.db    what the wall was spent on
  spawnscope flame --phase load -o load.svg   the dynamic loader only; with
                                              samples, what it does
  spawnscope flame --off-cpu                  what is waited for, where
  spawnscope flame --by caller --weight tax   who asked for it
  spawnscope flame --folded | grep ';load '   text, for other programs

Processes at work at the same time are counted each in --weight wall, so that
all together can be wider than the wall; --weight critical is exactly the wall.";

/// Arguments of `flame`.
#[derive(Debug, Args)]
pub struct FlameArguments {
    #[command(flatten)]
    pub recording: RecordingArgument,
    /// Where to write it, - for standard output; by default flame.svg, or standard output if that is no terminal
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// What the width of a box is [default: wall; with --phase, where there are samples, as --on-cpu]
    #[arg(long, value_enum)]
    pub weight: Option<WeightChoice>,
    /// What processes do: their stacks and the kernel's, by the samples of `record --sample`
    #[arg(long, conflicts_with_all = ["weight", "off_cpu"])]
    pub on_cpu: bool,
    /// What processes wait for, by the same samples
    #[arg(long, conflicts_with = "weight")]
    pub off_cpu: bool,
    /// How boxes are stacked
    #[arg(long, value_enum, default_value_t = StackingChoice::Tree)]
    pub by: StackingChoice,
    /// Only this phase of launches
    #[arg(long, value_name = "PHASE", value_parser = phase)]
    pub phase: Option<Phase>,
    /// Write folded stacks instead: `make;sh;cc1;load 1234`, times in microseconds
    #[arg(long)]
    pub folded: bool,
    /// The title [default: the command]
    #[arg(long, value_name = "TEXT", conflicts_with = "folded")]
    pub title: Option<String>,
}

/// What the width of a box is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WeightChoice {
    /// Wall time of processes, without that of their children
    Wall,
    /// Launch tax: all phases but run
    Tax,
    /// Launches
    Count,
    /// Time on the critical path
    Critical,
}

/// How boxes are stacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StackingChoice {
    /// By process, with its phases on top
    Tree,
    /// By the functions that launch
    Caller,
    /// By program, whoever launched it, with its phases on top
    Command,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  spawnscope export --format ndjson | jq -c 'select(.phases.create > 1e6)'
  spawnscope export --format perfetto -o trace.pftrace

A Perfetto trace is opened in https://ui.perfetto.dev.";

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    #[command(flatten)]
    pub recording: RecordingArgument,
    /// The format
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// Where to write it instead of standard output (-)
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// A format of exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One launch a line, as JSON
    Ndjson,
    /// A Perfetto trace (protobuf): a track for each process, with phases as slices
    Perfetto,
}

/// The recording to read.
#[derive(Debug, Args)]
pub struct RecordingArgument {
    /// The recording to read
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE, value_hint = ValueHint::FilePath, action = ArgAction::Set)]
    pub file: PathBuf,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("must be more than 0 seconds".to_owned()),
    }
}

fn phase(text: &str) -> Result<Phase, String> {
    let named = Phase::ALL.into_iter().find(|phase| phase.name() == text);
    named.ok_or_else(|| format!("the phases are {}", Phase::ALL.map(Phase::name).join(", ")))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn everything_after_the_command_is_the_commands_own() {
        let arguments = Arguments::try_parse_from(["spawnscope", "record", "-q", "ls", "-a", "--json"]).unwrap();
        let Verb::Record(record) = arguments.verb else {
            panic!("not record")
        };
        assert_eq!(record.command, ["ls", "-a", "--json"]);
        assert!(record.quiet && !record.json && !record.all);
    }

    #[test]
    fn a_duration_is_a_positive_number_of_seconds() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        for text in ["0", "-1", "nan", "1e300", "soon"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
