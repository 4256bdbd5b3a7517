//! `spawnscope diff`: compares recordings of two versions of a command.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueHint};

use super::analysis::with_timelines;
use super::args::{JsonArguments, named};
use super::{output, output_file};
use crate::analyze::compare::diff::{Grouping, Run, compare};
use crate::analyze::model::window::Part;
use crate::analyze::path::flame::{FlameOptions, Stacking, Weight, flame};
use crate::present::flame::{WEIGHTS, folded};
use crate::present::{diff, html};

pub fn run(arguments: &DiffArguments) -> Result<()> {
    let weight = arguments.output.as_ref().map(|_| arguments.weight);
    let sides = arguments.sides()?;
    let [before, after] = [0, 1].map(|side| read_all(sides[side], weight));
    let ((before, stacks_before), (after, stacks_after)) = (before?, after?);
    let grouping = if arguments.unfold { Grouping::Arguments } else { Grouping::Lines };
    let found = compare(&before, &after, grouping);
    if let (Some(path), Some(weight)) = (&arguments.output, weight) {
        let page =
            html::difference(&found, &stacks_before, &stacks_after, weight).context("failed to make the page")?;
        output_file::write(path, page.as_bytes())?;
    }
    let top = Some(arguments.top.unwrap_or(diff::DEFAULT_TOP)).filter(|top| *top > 0);
    if arguments.markdown {
        return output::print(&diff::markdown(&found, top), "difference");
    }
    arguments.json.print("difference", || diff::json(&found), |width| diff::render(&found, width, top))
}

/// Reads recordings, and their folded stacks if a flame graph is wanted.
fn read_all(files: &[PathBuf], weight: Option<Weight>) -> Result<(Vec<Run>, Vec<String>)> {
    let read: Result<Vec<(Run, String)>> = files.iter().map(|file| read(file, weight)).collect();
    Ok(read?.into_iter().unzip())
}

/// Reads one recording for a comparison. Also returns its folded stacks, which are empty without a
/// weight.
pub fn read(file: &Path, weight: Option<Weight>) -> Result<(Run, String)> {
    with_timelines(file, Part::Whole, |input| {
        let path = input.path();
        let run = Run::of(input.recording, input.forest, path.as_ref());
        let Some(weight) = weight else { return Ok((run, String::new())) };
        let options = FlameOptions { weight, stacking: Stacking::Tree, phase: None };
        let found = flame(input.forest, path.as_ref(), |name| input.recording.texts.get(name), options);
        let found = found.with_context(|| file.display().to_string())?;
        Ok((run, folded(&found)))
    })
}

pub(super) const USAGE: &str = "\
spawnscope diff [OPTIONS] <BEFORE> <AFTER>
       spawnscope diff [OPTIONS] <BEFORE>... -- <AFTER>...";

pub(super) const EXAMPLES: &str = "\
Examples:
  spawnscope diff before.db after.db
  spawnscope diff a.1.db a.2.db a.3.db -- b.1.db b.2.db b.3.db
  spawnscope diff --markdown before.db after.db > comment.md
  spawnscope diff --json before.db after.db | jq -r .summary
  spawnscope diff -o diff.html before.db after.db
  ssh host cat before.db | spawnscope diff - after.db

With several recordings on each side (`record --runs 5`), times have 95 %
intervals. With one on each side, changes in times may be noise.";

#[derive(Debug, Args)]
pub struct DiffArguments {
    /// The older recordings, or one older and one newer recording; - is standard input
    #[arg(value_name = "BEFORE", required = true, num_args = 1.., value_hint = ValueHint::FilePath)]
    pub before: Vec<PathBuf>,
    /// The newer recordings, if there are several on a side
    #[arg(value_name = "AFTER", last = true, num_args = 1.., value_hint = ValueHint::FilePath)]
    pub after: Vec<PathBuf>,
    #[command(flatten)]
    pub json: JsonArguments,
    /// Print Markdown, for a comment on a pull request
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// How many groups of launches to print of each kind (added, removed, changed), largest change
    /// first; 0 prints all [default: 10]
    #[arg(long, value_name = "N", value_hint = ValueHint::Other)]
    pub top: Option<usize>,
    /// Group launches by program, line and arguments, not only by program and line
    #[arg(long)]
    pub unfold: bool,
    /// Also write a page for a browser: the tables and the flame graph of the difference, in one
    /// file that works offline
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// What the width of a box in the flame graph stands for
    #[arg(long, value_parser = named(WEIGHTS), default_value = "count", requires = "output")]
    pub weight: Weight,
}

impl DiffArguments {
    pub fn sides(&self) -> Result<[&[PathBuf]; 2]> {
        match (self.before.as_slice(), self.after.as_slice()) {
            ([before, after], []) => Ok([std::slice::from_ref(before), std::slice::from_ref(after)]),
            ([_], []) => bail!(
                "one recording cannot be compared: give an older and a newer one (`spawnscope diff BEFORE AFTER`)"
            ),
            (_, []) => bail!(
                "which of these recordings are the newer ones? Put -- before them (`spawnscope diff A1 A2 -- B1 B2`)"
            ),
            (_, after) if after.iter().any(|file| is_option(file)) => {
                bail!(
                    "after --, everything is a recording: options go before the first one \
                     (`spawnscope diff -o PAGE A1 A2 -- B1 B2`)"
                )
            }
            (before, after) => Ok([before, after]),
        }
    }
}

/// Whether an argument looks like an option, and no file has this name.
fn is_option(file: &Path) -> bool {
    let name = file.as_os_str().as_bytes();
    name.len() > 1 && name.starts_with(b"-") && !file.exists()
}
