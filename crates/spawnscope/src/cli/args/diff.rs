//! The arguments of `diff`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{ArgGroup, Args, ValueHint};

use super::WeightChoice;

pub(super) const USAGE: &str = "\
spawnscope diff [OPTIONS] <BEFORE> <AFTER>
       spawnscope diff [OPTIONS] <BEFORE>... -- <AFTER>...";

pub(super) const EXAMPLES: &str = "\
Examples:
  spawnscope diff before.db after.db
  spawnscope diff a.1.db a.2.db a.3.db -- b.1.db b.2.db b.3.db
  spawnscope diff --markdown before.db after.db > comment.md
  spawnscope diff --json before.db after.db | jq -r .summary
  spawnscope diff --flame diff.svg before.db after.db
  spawnscope diff -o diff.html before.db after.db
  ssh host cat before.db | spawnscope diff - after.db

With several recordings on each side (`record --runs 5`), times have 95 %
intervals. With one on each side, changes in times may be noise.";

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("drawn").args(["flame", "output"]).multiple(true)))]
pub struct DiffArguments {
    /// The older recordings; without `--`, one older and one newer recording; - is standard input
    #[arg(value_name = "BEFORE", required = true, num_args = 1.., value_hint = ValueHint::FilePath)]
    pub before: Vec<PathBuf>,
    /// The newer recordings
    #[arg(value_name = "AFTER", last = true, num_args = 1.., value_hint = ValueHint::FilePath)]
    pub after: Vec<PathBuf>,
    /// Print JSON (schema_version 1)
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print Markdown, for a comment on a pull request
    #[arg(long)]
    pub markdown: bool,
    /// How many groups of launches to print of each kind (added, removed, changed), largest change first; 0 prints all [default: 10]
    #[arg(long, value_name = "N", value_hint = ValueHint::Other)]
    pub top: Option<usize>,
    /// Also draw a flame graph of the difference (an SVG; red: more after, blue: less)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub flame: Option<PathBuf>,
    /// Also write a page for a browser: the tables and the flame graph of the difference, in one file that works offline
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// What the width of a box in the flame graph stands for
    #[arg(long, value_enum, default_value_t = WeightChoice::Count, requires = "drawn")]
    pub weight: WeightChoice,
}

impl DiffArguments {
    /// Returns the recordings of both sides.
    ///
    /// # Errors
    /// When only one recording was given, or more than two without `--`.
    pub fn sides(&self) -> Result<[&[PathBuf]; 2]> {
        match (self.before.as_slice(), self.after.as_slice()) {
            ([before, after], []) => Ok([std::slice::from_ref(before), std::slice::from_ref(after)]),
            ([_], []) => bail!(
                "one recording cannot be compared: give an older and a newer one (`spawnscope diff BEFORE AFTER`)"
            ),
            (_, []) => bail!(
                "which of these recordings are the newer ones? Put -- before them (`spawnscope diff A1 A2 -- B1 B2`)"
            ),
            (before, after) => Ok([before, after]),
        }
    }
}
