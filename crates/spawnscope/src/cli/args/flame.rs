//! Arguments of `flame`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::{RecordingArgument, phase_parser};
use crate::analyze::model::phases::Phase;
use crate::analyze::path::flame::Weight;

pub(super) const FLAME_EXAMPLES: &str = "\
Examples:
  spawnscope flame                         # writes flame.svg on a terminal
  spawnscope flame | less                  # and standard output otherwise
  spawnscope flame -o flame.svg            # always writes flame.svg
  spawnscope flame --weight critical ci.db  # what determined the wall
  spawnscope flame --phase load -o load.svg  # only the dynamic loader
  spawnscope flame --off-cpu               # what processes wait for
  spawnscope flame --by caller --weight tax  # which functions launch
  spawnscope flame --folded | grep ';load '  # text, for other programs

With --weight wall, concurrent processes each count in full, so the graph can
add up to more than the wall time. With --weight critical, it adds up to it.";

/// Arguments of `flame`.
#[derive(Debug, Args)]
pub struct FlameArguments {
    #[command(flatten)]
    pub recording: RecordingArgument,
    /// Where to write the graph; - is standard output [default: flame.svg, or standard output if that is not a terminal]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// What the width of a box shows [default: wall; with --phase, the on-CPU samples if the recording has any]
    #[arg(long, value_enum)]
    pub weight: Option<WeightChoice>,
    /// Show what processes do on CPUs: user and kernel stacks, from the samples of `record --sample`
    #[arg(long, conflicts_with_all = ["weight", "off_cpu"])]
    pub on_cpu: bool,
    /// Show what processes wait for: user and kernel stacks, from the samples of `record --sample`
    #[arg(long, conflicts_with = "weight")]
    pub off_cpu: bool,
    /// How boxes are stacked
    #[arg(long, value_enum, default_value_t = StackingChoice::Tree)]
    pub by: StackingChoice,
    /// Only this phase of launches
    #[arg(long, value_name = "PHASE", value_parser = phase_parser())]
    pub phase: Option<Phase>,
    /// Write folded stacks instead of an SVG: `make;sh;cc1;load 1234`, in microseconds
    #[arg(long)]
    pub folded: bool,
    /// The title [default: the command]
    #[arg(long, value_name = "TEXT", value_hint = ValueHint::Other, conflicts_with = "folded")]
    pub title: Option<String>,
}

/// What the width of a box shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WeightChoice {
    /// Wall time of processes, without their children
    Wall,
    /// Launch tax: all phases but run
    Tax,
    /// Launches
    Count,
    /// Time on the critical path
    Critical,
}

impl WeightChoice {
    /// Returns the weight that the user chose.
    pub(in crate::cli) fn weight(self) -> Weight {
        match self {
            WeightChoice::Wall => Weight::Wall,
            WeightChoice::Tax => Weight::Tax,
            WeightChoice::Count => Weight::Count,
            WeightChoice::Critical => Weight::Critical,
        }
    }
}

/// How boxes are stacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StackingChoice {
    /// By process, with its phases on top
    Tree,
    /// By the functions that launch
    Caller,
    /// By program, regardless of parent, with its phases on top
    Command,
}
