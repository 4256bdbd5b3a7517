//! The arguments of `whatif`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{DEFAULT_FILE, JsonArguments, WindowArguments};

pub(super) const WHATIF_EXAMPLES: &str = "\
Examples:
  spawnscope whatif --builtin dirname --builtin basename
  spawnscope whatif --remove '(bash)' --remove sed
  spawnscope whatif --batch mv=50 unpack.db
  spawnscope whatif --vfork 'parent=python3*'
  spawnscope whatif --remove git,parent=emacs --json
  spawnscope whatif --cpus 8 build.db
  spawnscope whatif --remove git --episode 2 editor.db
  spawnscope whatif --jobs convert=4 thumbnails.db
  spawnscope whatif --in-process jq --replace gzip=0.3
  spawnscope whatif --remove sed build.1.db build.2.db build.3.db

The 95 % confidence interval assumes that the model is right. The model does
not include caches, copy-on-write after a fork, or CPU frequency.";

/// Arguments of `whatif`.
#[derive(Debug, Args)]
pub struct WhatifArguments {
    /// The recording to read, or several of the same command (`record --runs 5`), which make the prediction more certain; - reads standard input
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE, num_args = 1.., value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Remove these launches and everything that they launch
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub remove: Vec<String>,
    /// Replace them with shell builtins; forks for $( ) and pipelines remain
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub builtin: Vec<String>,
    /// Merge launches, K at a time, into one. They must have the same parent, or each must be its parent's only launch (as in one shell per launch)
    #[arg(long, value_name = "SEL=K", value_hint = ValueHint::Other)]
    pub batch: Vec<String>,
    /// Do their work in the parent's process, by a library or a function
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub in_process: Vec<String>,
    /// Start the program once per parent, which sends it each request through a pipe
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub coprocess: Vec<String>,
    /// Replace them with another program, whose run takes RATIO of the time, for example 0.5
    #[arg(long, value_name = "SEL=RATIO", value_hint = ValueHint::Other)]
    pub replace: Vec<String>,
    /// Run serial launches of one program N at a time: in all loops, or only those that SEL selects
    #[arg(long, value_name = "[SEL=]N", value_hint = ValueHint::Other)]
    pub jobs: Vec<String>,
    /// Create them by vfork or posix_spawn
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub vfork: Vec<String>,
    /// Keep the parents' memory in huge pages
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub huge_pages: Vec<String>,
    /// Skip needless `sh -c` between parent and program: for all launches, or for those that SEL selects
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other, num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    pub no_shell: Vec<String>,
    /// Link them statically, without a dynamic loader
    #[arg(long = "static", value_name = "SEL", value_hint = ValueHint::Other)]
    pub static_: Vec<String>,
    /// Execute them directly, without wrappers (env, pyenv, npm run, scripts)
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub direct: Vec<String>,
    /// Execute them by absolute path, without failed execs along PATH
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub absolute: Vec<String>,
    /// Find each library in the first directory that the dynamic loader searches
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub no_search: Vec<String>,
    /// Keep the parent from growing, so that fork stays as fast as at first
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub steady_parent: Vec<String>,
    /// Make teardown immediate, regardless of memory size
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub no_teardown: Vec<String>,
    /// Limit the cost of each launch to 10 ms, as on a healthy machine
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub quick_launch: Vec<String>,
    /// Close file descriptors by one close_range before the exec
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub close_range: Vec<String>,
    /// Make parents reap at once: for all launches, or for those that SEL selects
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other, num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    pub reap_now: Vec<String>,
    /// Remove permission scanners, which delay execs and opens
    #[arg(long)]
    pub no_scan: bool,
    /// Run on this number of CPUs
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub cpus: Option<u32>,
    #[command(flatten)]
    pub json: JsonArguments,
    #[command(flatten)]
    pub window: WindowArguments,
}
