//! The arguments of `html`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{RecordingArgument, WindowArguments};

pub(super) const EXAMPLES: &str = "\
Examples:
  spawnscope html          # writes report.html
  spawnscope html -o build.html ci.db
  spawnscope html --open   # also opens it in the browser

The page loads nothing and sends nothing. The part of its address after #
holds the view, so a link to a part of the timeline can be shared.";

/// Arguments of `html`.
#[derive(Debug, Args)]
pub struct HtmlArguments {
    #[command(flatten)]
    pub recording: RecordingArgument,
    /// Where to write the page; - is standard output [default: report.html]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Open the page in a browser
    #[arg(long)]
    pub open: bool,
    #[command(flatten)]
    pub window: WindowArguments,
}
