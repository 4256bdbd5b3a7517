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
use crate::present::table::DEFAULT_TOP;

/// File that holds a recording unless another is named.
pub const DEFAULT_FILE: &str = "spawnscope.db";

/// Where does the time of process launches go?
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
  spawnscope doctor                         what makes launches dear here

Exit status: the command's own (128+n on signal n); 125 when spawnscope itself
fails, 126 when the command cannot be executed, 127 when it is not found.";

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a command, or watch processes, and record every launch
    ///
    /// The command runs as it would by itself: its input, output, terminal, signals and exit status are its own. The
    /// report goes to standard error. Ctrl-C goes to the command; three within a second stop recording and leave it running.
    #[command(after_help = RECORD_EXAMPLES)]
    Record(RecordArguments),
    /// Say where launch time went
    ///
    /// Launch tax is all the time of launches but `run`, the program's own: fork, queue, set-up, exec, loader, exit and
    /// reaping. It is summed over launches, so with several at once it can exceed the wall. `-` is unknown, never zero.
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArguments),
    /// Say what is worth changing, how, and what that would save
    ///
    /// Each advice is a fix that was tried on the recording: the largest saving of wall time comes first, and what would
    /// save less than 1 % of the wall, or less than 5 ms, is not told. A command that launches well gets none.
    Advise(AdviseArguments),
    /// Predict the wall time with changes, from a recording
    ///
    /// The recording is played again with all changes together. SEL selects launches: a glob on the program's base name
    /// (`dirname`, `python3*`; `(bash)` for forks of bash that run no other program), argv=GLOB, parent=GLOB (base name of the
    /// parent's program), or line=FILE:N (the line of a script that asked for it, as `report --by line` tells it, and not one that
    /// calls its function; also FILE or FILE:N-M); several terms joined by commas must all hold. Options may be given more than once.
    #[command(after_help = WHATIF_EXAMPLES)]
    Whatif(Box<WhatifArguments>),
    /// Print the process tree with arguments, phases and exit statuses
    ///
    /// Each line is a process: its pid, the chain of programs it executed, its wall time, how it ended unless with
    /// exit status 0, and its phases, the longest first. On a terminal, lines are cut to its width.
    Tree(TreeArguments),
    /// Draw launches as a flame graph: an SVG to click into and to search
    ///
    /// A box is a program, and upon it stands what it launched; or, --by caller, the functions that asked for it. Its width is
    /// what it cost together with all that stands upon it.
    #[command(after_help = FLAME_EXAMPLES)]
    Flame(FlameArguments),
    /// Write the launches in another program's format
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArguments),
    /// Stop a new process before its first instruction, so that a debugger can attach
    ///
    /// The command, or a process that it launches, stops right after its exec: no instruction of the program, not even
    /// of its dynamic loader, has run. Its pid is printed, and any profiler or debugger can attach. Enter, on the
    /// terminal, continues it.
    #[command(after_help = hold::EXAMPLES)]
    Hold(HoldArguments),
    /// Measure what a launch costs on this machine, and what makes it dear
    ///
    /// Experiments, each with its mechanisms in turns, as many rounds as the noise asks for and the time allows: medians with
    /// intervals of 95 %. Every child proves that it ran. `--list` names the experiments; without names, all are run.
    #[command(after_help = bench::EXAMPLES)]
    Bench(BenchArguments),
    /// Launch for `bench`
    #[command(hide = true)]
    LabWorker {
        /// What the process is to be, as JSON
        setting: String,
    },
    /// Look for what makes launches dear on this machine
    ///
    /// Measures what a launch costs here, looks for scanners, shims, slow directories, start-up files and the like, and says of
    /// each what it costs here, where that can be measured, what can be done, and what that costs. Nothing is changed.
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
    /// Go on after the end of the command until all that it launched has ended, daemons too; Ctrl-C then ends the recording
    #[arg(long, requires = "command", conflicts_with_all = ["all", "pid"])]
    pub wait_for_all: bool,
    /// How to collect
    #[arg(long, value_enum, default_value_t = CollectorChoice::Auto, value_name = "WHICH")]
    pub collector: CollectorChoice,
    /// Also record where in its code a process launches another: its native call chain
    #[arg(long)]
    pub stacks: bool,
    /// Also look HZ times a second what each CPU does, and what processes wait for: for `flame --phase`, --on-cpu, --off-cpu
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
    /// Print which BPF programs this kernel refuses, and the end of its verifier's log for each
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
    /// Print one table only: launches by command, parent, line or function; with --full or --json, what the table's rows are
    #[arg(long, value_enum)]
    pub by: Option<Grouping>,
    /// Rows of the table to print, the most expensive first; 0 prints all
    #[arg(long, value_name = "N", default_value_t = DEFAULT_TOP, allow_negative_numbers = true)]
    pub top: usize,
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
    /// Also what costs much, but is not worth fixing or too uncertain
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
    /// The launches, and all that they launch, do not happen
    #[arg(long, value_name = "SEL")]
    pub remove: Vec<String>,
    /// The shell does it itself; a fork for $( ) or a pipeline stays
    #[arg(long, value_name = "SEL")]
    pub builtin: Vec<String>,
    /// K launches of one parent become one
    #[arg(long, value_name = "SEL=K")]
    pub batch: Vec<String>,
    /// They are created by vfork or posix_spawn
    #[arg(long, value_name = "SEL")]
    pub vfork: Vec<String>,
    /// Their parents' memory is in huge pages
    #[arg(long, value_name = "SEL")]
    pub huge_pages: Vec<String>,
    /// No needless `sh -c` between the parent and the program; all there are, or those of SEL
    #[arg(long, value_name = "SEL", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    pub no_shell: Vec<String>,
    /// They are linked statically: no dynamic loader
    #[arg(long = "static", value_name = "SEL")]
    pub static_: Vec<String>,
    /// The program itself is executed, without the wrappers (env, pyenv, scripts) before it
    #[arg(long, value_name = "SEL")]
    pub direct: Vec<String>,
    /// The program's file is given: no failed execs along PATH
    #[arg(long, value_name = "SEL")]
    pub absolute: Vec<String>,
    /// The dynamic loader finds each library where it looks first
    #[arg(long, value_name = "SEL")]
    pub no_search: Vec<String>,
    /// Their parent never grows: creation stays as cheap as at first
    #[arg(long, value_name = "SEL")]
    pub steady_parent: Vec<String>,
    /// They end at once, whatever memory they hold
    #[arg(long, value_name = "SEL")]
    pub no_teardown: Vec<String>,
    /// Launching them takes as long as on a machine that launches quickly
    #[arg(long, value_name = "SEL")]
    pub quick_launch: Vec<String>,
    /// Descriptors are closed before the exec by one close_range
    #[arg(long, value_name = "SEL")]
    pub close_range: Vec<String>,
    /// No parent sleeps through a child's end: all launches, or those of SEL
    #[arg(long, value_name = "SEL", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    pub reap_now: Vec<String>,
    /// No permission scanner holds up execs and opens
    #[arg(long)]
    pub no_scan: bool,
    /// So many CPUs
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
    /// What processes wait for, likewise
    #[arg(long, conflicts_with = "weight")]
    pub off_cpu: bool,
    /// What stands upon what
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

/// What stands upon what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StackingChoice {
    /// Process upon process, its phases on top
    Tree,
    /// What was launched upon the functions that asked for it
    Caller,
    /// Programs side by side, whoever launched them, phases on top
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
    /// A Perfetto trace (protobuf): a track a process, phases as slices
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
