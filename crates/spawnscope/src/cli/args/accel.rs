//! The arguments of `accel`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};

pub(super) const USAGE: &str = "spawnscope accel [OPTIONS] -- <CMD>...";

pub(super) const EXAMPLES: &str = "\
Examples:
  spawnscope accel -- make
  spawnscope accel --explain -- php build.php
  spawnscope accel --record -- ./build.py
  spawnscope accel --strict -- ./run-tests
  spawnscope accel --no-in-place -- ./unpack.sh
  spawnscope accel --open-files 1024 -- ./old-daemon

If /bin/sh is dash, which normally stays as a process between a program and its
command, skipping it can be noticed. The command's parent is the program itself.
If a signal kills the command or the whole group, the program can see another
status than with dash; the guide to accel lists the cases.
--strict keeps dash.

Whatever is not proven to behave the same goes to the shell. SPAWNSCOPE_ACCEL=0
in the environment of a program switches the library off.

The work of dirname, basename, mkdir, rmdir, rm, mv, ln and touch is done by the
process that would execute them, if their arguments are simple and nothing
fails. ptrace, audit and `spawnscope record` then see that process end without
an exec. --no-in-place and --strict execute these programs.

Exit status: that of the command, as with `record`.";

/// Arguments of `accel`.
#[derive(Debug, Args)]
pub struct AccelArguments {
    /// Keep the shell wherever its absence could be noticed; with dash as /bin/sh, that is everywhere
    #[arg(long)]
    pub strict: bool,
    /// Print how many shells were skipped, and why others were not
    #[arg(long)]
    pub explain: bool,
    /// Record the command twice: without accel to spawnscope-before.db, with it to spawnscope-after.db
    #[arg(long, conflicts_with = "explain")]
    pub record: bool,
    /// Do not load the library: skip no shell, and do no work in place
    #[arg(long)]
    pub no_preload: bool,
    /// Execute dirname, mv and other small programs, instead of doing their work in the process that would execute them
    #[arg(long)]
    pub no_in_place: bool,
    /// Ask for huge pages, which make forks of large programs cheaper and the start of all programs slower
    #[arg(long)]
    pub hugetlb: bool,
    /// Lower the soft limit on open files to N, for children that close every possible descriptor one by one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(16..))]
    pub open_files: Option<u64>,
    /// The file for the counts of --explain
    #[arg(long, hide = true, value_name = "FILE")]
    pub counters: Option<PathBuf>,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}
