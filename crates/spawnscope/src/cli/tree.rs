//! `spawnscope tree`: prints the process tree, or the part of it that the options choose.

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueHint};

use super::analysis::{read_launches, with_timelines};
use super::args::RecordingArgument;
use super::output;
use crate::analyze::Forest;
use crate::analyze::model::tree_view::{TreeOptions, with_ancestors};
use crate::analyze::model::window::Part;
use crate::analyze::path::critical_path::CriticalPath;
use crate::analyze::sites::select::Selector;
use crate::present::tree;
use crate::record::reader::RecordingFile;

pub const EXAMPLES: &str = "\
Examples:
  spawnscope tree                     # similar siblings as one line
  spawnscope tree --unfold | less     # every process
  spawnscope tree --match git ci.db   # git, and what led to it
  spawnscope tree --depth 2           # the upper levels
  spawnscope tree --critical          # what determined the wall time";

#[derive(Debug, Args)]
pub struct TreeArguments {
    #[command(flatten)]
    pub recording: RecordingArgument,
    /// Print only these launches and those that led to them
    #[arg(long = "match", value_name = "SEL", value_hint = ValueHint::Other)]
    pub matching: Vec<String>,
    /// Print only this number of levels
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: Option<u32>,
    /// Print only launches on the critical path, each with its time on that path
    #[arg(long)]
    pub critical: bool,
    /// Print every process, even if four or more siblings are similar
    #[arg(long)]
    pub unfold: bool,
}

pub fn run(arguments: &TreeArguments) -> Result<()> {
    let file = &arguments.recording.file;
    if arguments.critical {
        return with_timelines(file, Part::Main, |input| {
            let path =
                input.path().context("the critical path is unknown: this recording contains no complete command")?;
            print(arguments, input.forest, Some(&path))
        });
    }
    let recording = read_launches(&RecordingFile::open(file)?, file)?;
    print(arguments, &Forest::build(&recording), None)
}

fn print(arguments: &TreeArguments, forest: &Forest<'_>, path: Option<&CriticalPath>) -> Result<()> {
    let chosen = choose(arguments, forest, path)?;
    let options = TreeOptions {
        shown: chosen.as_deref(),
        depth: arguments.depth.map(|depth| depth as usize),
        fold: !arguments.unfold,
    };
    let mut out = output::glyph_writer(BufWriter::new(anstream::stdout().lock()));
    tree::write(&mut out, forest, options, path, output::terminal_width(&io::stdout()))
        .and_then(|()| out.flush())
        .context("failed to write the tree")
}

/// Returns for each launch whether to show it: those that the options choose, and their ancestors.
/// `None` if all are shown.
fn choose(arguments: &TreeArguments, forest: &Forest<'_>, path: Option<&CriticalPath>) -> Result<Option<Vec<bool>>> {
    if arguments.matching.is_empty() && path.is_none() {
        return Ok(None);
    }
    let mut selected: Vec<u32> = Vec::new();
    for text in &arguments.matching {
        selected.extend(Selector::parse(text).context("--match")?.select(forest)?);
    }
    if arguments.matching.is_empty() {
        selected = (0..forest.launches.len() as u32).collect();
    } else if selected.is_empty() {
        bail!("no launch matches `--match {}`", arguments.matching.join(" --match "));
    }
    if let Some(path) = path {
        selected.retain(|launch| path.launches[*launch as usize].total().0 > 0);
    }
    Ok(Some(with_ancestors(forest, selected)))
}
