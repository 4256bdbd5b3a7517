//! The verbs of the command line. They drive parsing, `--help`, the man pages and the shell
//! completions.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueHint};

use super::args::{self, ExportArguments, RecordArguments};
#[cfg(feature = "top")]
use super::top;
use super::{
    accel, advise, bench, check, diff, doctor, flame, fleet, hold, html, import, mcp, report, shell, tree, whatif,
};

/// Show where the time of process launches goes
///
/// Spawnscope runs a command and reports what it launched, how long each launch took, and where
/// that time went: fork, run queue, setup, exec, dynamic loader, run, teardown, reap.
#[derive(Debug, Parser)]
#[command(name = "spawnscope", version, after_help = EXAMPLES, max_term_width = 80, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  spawnscope record -- ./configure        # run a command, print a report
  spawnscope record -o ci.db -- make -j8  # keep the recording in ci.db
  spawnscope top -- make -j8              # watch launches as they happen
  spawnscope report --by parent           # which programs launch others
  spawnscope advise                       # what to change, and the saving
  spawnscope whatif --remove dirname      # the wall time without it
  spawnscope diff before.db after.db      # what a change did to launches
  spawnscope check --max-launches 500     # fail when a budget is exceeded
  spawnscope tree ci.db                   # all processes and their phases
  spawnscope flame -o build.svg ci.db     # draw a flame graph
  spawnscope html -o build.html ci.db     # write a page to share
  spawnscope export --format perfetto -o t.pftrace  # for ui.perfetto.dev
  spawnscope import strace.log            # make a recording from a log
  spawnscope shell                        # why a shell starts slowly
  spawnscope hold --match cc1 -- make     # stop cc1 so that gdb can attach
  spawnscope accel -- make                # skip shells that are not needed
  spawnscope bench --quick                # measure what launches cost
  spawnscope doctor                       # find what makes launches slow
  spawnscope mcp                          # tools for coding agents

Exit status: that of the command; if a signal killed it, spawnscope ends by
the same signal. 125 if spawnscope itself fails, 126 if the command cannot be
executed, 127 if it is not found.";

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a command, or watch processes, and record every launch
    ///
    /// The command runs as it would without spawnscope: it keeps its standard input and output,
    /// terminal, signals and exit status. The report goes to standard error. Ctrl-C goes to the
    /// command. Pressed three times within a second, it stops the recording and leaves the command
    /// running.
    #[command(after_help = args::RECORD_EXAMPLES)]
    Record(RecordArguments),
    /// Make a recording from a log that another tool wrote
    ///
    /// Reads what `strace -f`, `perf script`, `trace-cmd report`, ftrace or macOS's eslogger has
    /// logged, here or on another machine. All verbs work on the recording, such as `report`,
    /// `advise` and `tree`. A log does not contain everything that `record` sees:
    /// docs/guide/import.md says what each kind of log contains.
    #[command(after_help = import::EXAMPLES)]
    Import(import::ImportArguments),
    /// Watch launches as they happen
    ///
    /// Shows the commands that are launched, with their number, failures and launch tax, and a tree
    /// of the running processes. The screen is redrawn four times a second. Launch tax is the time
    /// of all phases but `run`; it is known once a launch has ended.
    #[cfg(feature = "top")]
    #[command(after_help = top::EXAMPLES)]
    Top(top::TopArguments),
    /// Report where the time of launches went
    ///
    /// The report fits on one screen; --full prints all sections. Start-up, or launch tax, is the
    /// time of all phases but `run`, in which the program itself runs. It is summed over launches,
    /// so it can exceed the wall time when launches overlap. `-` means unknown, not zero.
    #[command(after_help = report::REPORT_EXAMPLES)]
    Report(report::ReportArguments),
    /// List what to change, how to change it, and how much wall time it saves
    ///
    /// Each saving is predicted by replaying the recording with that fix applied. The largest
    /// saving comes first. Fixes that save less than 1 % of the wall time, or less than 5 ms, are
    /// omitted.
    #[command(after_help = advise::EXAMPLES)]
    Advise(advise::AdviseArguments),
    /// Predict the wall time if launches were changed or removed
    ///
    /// The recording is replayed with all changes applied together. SEL selects launches: a glob on
    /// the program's base name (`dirname`, `python3*`; `(bash)` for forks of bash that run no other
    /// program), argv=GLOB, parent=GLOB (base name of the parent's program), or line=FILE:N (the
    /// script line that launches, as in `report --by line`; also FILE or FILE:N-M). Terms joined by
    /// commas must all match. Options can be repeated.
    #[command(after_help = whatif::EXAMPLES)]
    Whatif(Box<whatif::WhatifArguments>),
    /// Compare recordings of two versions: launches added, removed and changed
    ///
    /// Launches are matched by program, arguments (without numbers and temporary names), script
    /// line and parent. The first sentence says how the wall time changed, and which launches
    /// caused it.
    #[command(after_help = diff::EXAMPLES, override_usage = diff::USAGE)]
    Diff(diff::DiffArguments),
    /// Fail when a command exceeds a budget for its launches
    ///
    /// Set budgets with options or in spawnscope.toml. Prints which budgets are exceeded, by which
    /// script lines, and what to change. Prefer budgets for counts: they do not depend on the
    /// machine.
    #[command(after_help = check::EXAMPLES)]
    Check(check::CheckArguments),
    /// Print the process tree with arguments, phases and exit statuses
    ///
    /// Each line shows one process: its pid, the programs that it executed, its wall time, its exit
    /// status if that is not 0, and its phases, longest first. On a terminal, lines are cut to its
    /// width. Of four or more siblings with the same program, outcome and launches, the first is
    /// printed and the others are counted.
    #[command(after_help = tree::EXAMPLES)]
    Tree(tree::TreeArguments),
    /// Draw launches as a flame graph (an interactive SVG)
    ///
    /// Each box is a program, and the boxes above it are what it launched. With --by caller, boxes
    /// are the functions that launch. The width of a box is its cost plus the cost of everything
    /// above it.
    #[command(after_help = flame::EXAMPLES)]
    Flame(flame::FlameArguments),
    /// Write the whole report as a page, to open in a browser or to share
    ///
    /// One file, which works offline: the verdict, a timeline of all launches with the critical
    /// path, advice, tables, flame graphs and waits. It contains the arguments and working
    /// directories of the recording, so share it like the recording itself.
    #[command(after_help = html::EXAMPLES)]
    Html(html::HtmlArguments),
    /// Export the launches in another format
    ///
    /// A Perfetto trace has one group of tracks: the critical path, and the processes, nested by
    /// parent in order of creation. Launches of one program by one parent share tracks where they
    /// do not overlap, so that a loop takes few tracks. Select a launch to see its arguments,
    /// working directory, exit status and call site, how long it waited for a CPU, and how long its
    /// parent waited for it.
    #[command(after_help = args::EXPORT_EXAMPLES)]
    Export(ExportArguments),
    /// Query a dataset of many recordings
    ///
    /// Runs spawnscope-fleet, which has these verbs: top, trend, regressions, machines, doctor,
    /// advice, dashboard, compact, prune, push and sql. `spawnscope fleet VERB --help` prints the
    /// options of each. It is a Python package of its own: `pipx install spawnscope-fleet`, or
    /// `make install-fleet` in a checkout.
    #[command(after_help = fleet::EXAMPLES)]
    Fleet {
        /// The verb, its options, and the dataset
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "VERB", value_hint = ValueHint::Other)]
        arguments: Vec<OsString>,
    },
    /// Find what makes a shell slow to start, and its prompt slow to appear
    ///
    /// Starts the shell as a terminal does, waits for its prompt, and presses Enter. Prints which
    /// lines of the start-up files take time, and what to change. The time of a line is that of the
    /// programs that it launches and of the shell's own work. It changes no file, and needs no
    /// privilege. The shell is killed at the end, so that it does not write its history.
    #[command(after_help = shell::EXAMPLES)]
    Shell(shell::ShellArguments),
    /// Stop a new process before its first instruction so that a debugger can attach
    ///
    /// The command, or a process that it launches, stops right after its exec, before the first
    /// instruction of its dynamic loader. Spawnscope prints its pid, and any profiler or debugger
    /// can attach. Press Enter on the terminal to continue it.
    #[command(after_help = hold::EXAMPLES, override_usage = hold::USAGE)]
    Hold(hold::HoldArguments),
    /// Run a command without needless `sh -c` shells
    ///
    /// Many programs launch others through `sh -c TEXT`. A library, loaded into the command and
    /// everything that it launches, starts TEXT without the shell if TEXT is provably one simple
    /// command. The programs themselves are unchanged.
    #[command(after_help = accel::EXAMPLES, override_usage = accel::USAGE)]
    Accel(accel::AccelArguments),
    /// Measure what a launch costs on this machine, and what makes it slow
    ///
    /// Each experiment alternates its cases for as many rounds as the noise requires and the time
    /// limit allows, and prints medians with 95 % confidence intervals. `--list` names the
    /// experiments; without names, all of them run.
    #[command(after_help = bench::EXAMPLES)]
    Bench(bench::BenchArguments),
    /// Run as a worker process of `bench`
    #[command(hide = true)]
    LabWorker {
        /// The worker's settings, as JSON
        setting: String,
    },
    /// Find what makes launches slow on this machine
    ///
    /// Measures what a launch costs, looks for permission scanners, shims, slow directories and
    /// start-up files, and prints what each costs here, how to fix it, and what the fix costs. It
    /// changes nothing.
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::DoctorArguments),
    /// Serve agents: a Model Context Protocol server on standard input and output
    ///
    /// Coding agents and other clients start it. It answers what `report`, `advise`, `whatif` and
    /// `diff` find in recordings, imports logs, and records commands if that is allowed.
    /// docs/skill/SKILL.md tells an agent when to use it.
    #[command(after_help = mcp::EXAMPLES)]
    Mcp(mcp::McpArguments),
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell to complete commands in
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a directory
    #[command(hide = true)]
    Man {
        /// Where to write the pages
        directory: PathBuf,
    },
}

impl Verb {
    pub fn recordings(&mut self) -> Vec<&mut PathBuf> {
        let recording = match self {
            Verb::Report(arguments) => &mut arguments.recording,
            Verb::Advise(arguments) => &mut arguments.recording,
            Verb::Tree(arguments) => &mut arguments.recording,
            Verb::Flame(arguments) => &mut arguments.recording,
            Verb::Html(arguments) => &mut arguments.recording,
            Verb::Export(arguments) => return arguments.files.iter_mut().collect(),
            Verb::Whatif(arguments) => return arguments.files.iter_mut().collect(),
            Verb::Diff(arguments) => return arguments.before.iter_mut().chain(&mut arguments.after).collect(),
            Verb::Check(arguments) => {
                let baseline = &mut arguments.budgets.against;
                return arguments.files.iter_mut().chain(baseline).collect();
            }
            _ => return Vec::new(),
        };
        vec![&mut recording.file]
    }
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  eval \"$(spawnscope completions bash)\"
  spawnscope completions fish > ~/.config/fish/completions/spawnscope.fish";

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn options_after_the_command_belong_to_the_command() {
        let arguments = Arguments::try_parse_from(["spawnscope", "record", "-q", "ls", "-a", "--json"]).unwrap();
        let Verb::Record(record) = arguments.verb else { panic!("not record") };
        assert_eq!(record.command, ["ls", "-a", "--json"]);
        assert!(record.quiet && record.json.is_none() && !record.all);
    }
}
