//! The arguments of `top`.

use std::ffi::OsString;

use clap::{Args, ValueHint};

use super::IdentityArguments;

/// Arguments of `top`.
#[derive(Debug, Args)]
pub struct TopArguments {
    /// Watch the process PID and the processes that it launches from now on
    #[arg(short, long, value_name = "PID", value_hint = ValueHint::Other, conflicts_with_all = ["all", "command"], value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: Option<i32>,
    /// Watch every process on the machine
    #[arg(short, long, conflicts_with = "command")]
    pub all: bool,
    #[command(flatten)]
    pub identity: IdentityArguments,
    /// The command to watch and its arguments; its output to the terminal is discarded
    #[arg(value_name = "CMD", trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

pub(super) const EXAMPLES: &str = "\
Examples:
  sudo spawnscope top -a
  sudo spawnscope top -p $(pidof -s nagios)
  spawnscope top -- make -j8
  spawnscope top -- make -j8 > make.log 2>&1   # keep what make prints

Keys:
  q, Ctrl-C    quit; a command keeps running
  Tab          switch between the list of commands and the tree of processes
  Enter        details of the selected row
  p            select the parent, in the tree
  /            show only rows with this text
  Space        pause the display; recording continues
  t r c f n    sort by launch tax, critical time, count, failures, name

-a and -p need eBPF: root, or CAP_BPF and CAP_PERFMON.";
