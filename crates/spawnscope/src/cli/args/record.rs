//! The arguments of `record`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use super::{DEFAULT_FILE, parse_pid, parse_ring_size, parse_seconds};
use crate::cli::identity::IdentityArguments;
use crate::cli::labels;
use crate::record::reader::Label;

#[derive(Clone, Debug, Default, Args)]
pub struct RecordArguments {
    /// The recording to write; an existing one is kept as FILE.old
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE, value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// Run the command N times, one recording each: x.db becomes x.1.db to x.N.db (for `diff` and
    /// `check`)
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, requires = "command", conflicts_with_all = ["all", "pid", "json"], value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub runs: Option<u32>,
    /// Follow the process PID and the processes that it launches from now on
    #[arg(short, long, value_name = "PID", value_hint = ValueHint::Other, conflicts_with_all = ["all", "command"], allow_negative_numbers = true, value_parser = parse_pid)]
    pub pid: Option<i32>,
    /// Also follow a daemon that is already running, by its pid or its name, with its child
    /// processes and what they launch, until the command ends; can be repeated. When the command
    /// waits for the daemon, the critical path then follows what the daemon does
    #[arg(long, value_name = "PID|NAME", value_hint = ValueHint::Other, requires = "command", conflicts_with_all = ["all", "pid", "wait_for_all"])]
    pub with: Vec<String>,
    /// Follow every process on the machine until Ctrl-C, --duration, or the end of the command
    #[arg(short, long)]
    pub all: bool,
    /// Stop recording after S seconds; the command keeps running
    #[arg(long, value_name = "S", value_hint = ValueHint::Other, value_parser = parse_seconds)]
    pub duration: Option<Duration>,
    /// Record until every process that the command launched has ended, daemons included; once the
    /// command has ended, Ctrl-C ends the recording
    #[arg(long, requires = "command", conflicts_with_all = ["all", "pid"])]
    pub wait_for_all: bool,
    /// How to collect events
    #[arg(long, value_enum, default_value_t = CollectorChoice::Auto, value_name = "WHICH")]
    pub collector: CollectorChoice,
    /// With ptrace: do not trace the system calls between a fork and its exec; faster, but `setup`,
    /// `exec` and failed execs are unknown
    #[arg(long)]
    pub no_failed_execs: bool,
    /// With ptrace: also trace the system calls of programs that may launch others; slower, but
    /// `create` and `reap` are known
    #[arg(long)]
    pub launcher_calls: bool,
    /// Also record the native call stack of each launch
    #[arg(long)]
    pub stacks: bool,
    /// Also sample, HZ times a second, what each CPU runs and what processes wait for; for `flame`
    /// with --phase, --on-cpu or --off-cpu
    #[arg(long, value_name = "HZ", value_hint = ValueHint::Other, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub sample: Option<u32>,
    /// Size of the kernel ring buffer in KiB; raise it if events are lost [default: 16384; less if
    /// a control group limits memory]
    #[arg(long, value_name = "KIB", value_hint = ValueHint::Other, value_parser = clap::value_parser!(u32).range(4..=1024 * 1024))]
    pub buffer: Option<u32>,
    /// Store a label, for example of the run or the machine; can be repeated. Commit, branch, job,
    /// run and attempt of a CI service are stored automatically
    #[arg(long = "label", value_name = "NAME=VALUE", value_hint = ValueHint::Other, value_parser = labels::parse)]
    pub labels: Vec<Label>,
    /// Do not look up the script lines that request launches
    #[arg(long)]
    pub no_lines: bool,
    /// Also record the lines of Node.js programs that launch: sets NODE_OPTIONS for the command, so
    /// that each Node.js process below it loads a file that reports these lines
    #[arg(long, requires = "command", conflicts_with_all = ["all", "pid", "no_lines"])]
    pub node_lines: bool,
    /// Do not mask arguments that look like secrets
    #[arg(long)]
    pub no_redact: bool,
    /// Also write the report as JSON to FILE; /dev/fd/N writes to an open descriptor
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
    /// Write a ring of recordings, at most SIZE in total (100MB, 2GiB), instead of one: x.db
    /// becomes x.1.db, x.2.db, ...; the oldest are deleted
    #[arg(long, value_name = "SIZE", value_hint = ValueHint::Other, value_parser = parse_ring_size, conflicts_with_all = ["runs", "command", "json"])]
    pub keep: Option<u64>,
    /// Write a Prometheus textfile for node_exporter, and update it while recording: launches,
    /// failures and phases by command
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "runs")]
    pub metrics: Option<PathBuf>,
    /// Maximum number of commands in --metrics; launches of any further command are counted as
    /// `other`
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, default_value_t = 50, requires = "metrics", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub metrics_commands: u16,
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

pub const EXAMPLES: &str = "\
Examples:
  spawnscope record -- git status
  spawnscope record -o build.db -- make -j8
  spawnscope record -q -o t.db -- ./test.sh
  spawnscope record -q --json t.json -- ./test.sh
  spawnscope record --runs 5 -- ./test.sh     # five recordings, for `diff`
  spawnscope record --label runner=big -- make  # shown by `report --full`
  spawnscope record --sample 999 -- make      # for `flame --phase load`
  spawnscope record --collector ptrace -- make  # without root
  spawnscope record --collector ptrace --launcher-calls -- ./test.sh
  spawnscope record --wait-for-all -- ./start  # include its daemons
  sudo spawnscope record --with dockerd -- docker build .  # and its daemon
  spawnscope record -p $(pidof -s nagios) --duration 60
  sudo spawnscope record -a --duration 10
  sudo spawnscope record -a -q --keep 1GB -o /var/tmp/launches.db
  spawnscope record -a --metrics /var/lib/node_exporter/spawnscope.prom

With root, or the capabilities CAP_BPF and CAP_PERFMON, `auto` uses eBPF.
Without them, it uses ptrace: this records less, and -p, -a and --with do not
work.

Under sudo, the command runs as the user who called sudo, and that user owns the
recording. A sudoers entry for spawnscope still amounts to full root access (see
SECURITY.md).";

/// Which collector to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CollectorChoice {
    /// The best one that works on this machine
    #[default]
    Auto,
    /// eBPF: every phase, lowest overhead; needs root or CAP_BPF and CAP_PERFMON
    Ebpf,
    /// ptrace: needs no privilege; only for a command; does not record what ends a wait, and some
    /// phases are unknown
    Ptrace,
}
