//! `spawnscope flame`: draws launches as a flame graph.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueHint};

use super::analysis::{read_launches, with_timelines};
use super::args::{RecordingArgument, named};
use super::{output, output_file};
use crate::analyze::model::phases::Phase;
use crate::analyze::model::samples::assign_phases;
use crate::analyze::model::window::Part;
use crate::analyze::path::flame::{Flame, FlameError, FlameOptions, Stacking, Weight, flame, sampled};
use crate::analyze::{CriticalPath, Forest};
use crate::present::flame::{STACKINGS, WEIGHTS, folded};
use crate::record::reader::{Recording, RecordingFile, SampleRow};

/// The output file when -o is not given and standard output is a terminal.
const DEFAULT_OUTPUT: &str = "flame.svg";

pub fn run(arguments: &FlameArguments) -> Result<()> {
    let file = &arguments.recording.file;
    let mut samples = Vec::new();
    let may_be_sampled = arguments.phase.is_some() && arguments.weight.is_none();
    if arguments.on_cpu || arguments.off_cpu || may_be_sampled {
        let contradictions = RecordingFile::open(file)?.samples(&mut |row| samples.push(row))?;
        output::print_contradictions(file, &contradictions);
    }
    let options = FlameOptions {
        weight: match arguments.weight {
            _ if arguments.off_cpu => Weight::OffCpu,
            _ if arguments.on_cpu => Weight::OnCpu,
            None if !samples.is_empty() => Weight::OnCpu,
            choice => choice.unwrap_or(Weight::Wall),
        },
        stacking: arguments.by,
        phase: arguments.phase,
    };
    let drawn = match options.weight {
        Weight::OnCpu | Weight::OffCpu => draw_samples(arguments, &samples, options)?,
        // Slices are most of a recording, and only the critical path needs them.
        Weight::Critical => with_timelines(file, Part::Main, |input| {
            draw_launches(arguments, input.recording, input.forest, input.path().as_ref(), options)
        })?,
        Weight::Wall | Weight::Tax | Weight::Count => {
            let recording = read_launches(&RecordingFile::open(file)?, file)?;
            draw_launches(arguments, &recording, &Forest::build(&recording), None, options)?
        }
    };
    write(arguments, &drawn)
}

fn draw_launches(
    arguments: &FlameArguments,
    recording: &Recording,
    forest: &Forest<'_>,
    path: Option<&CriticalPath>,
    options: FlameOptions,
) -> Result<Vec<u8>> {
    let found = flame(forest, path, |name| recording.texts.get(name), options);
    draw(arguments, recording, found)
}

fn draw_samples(arguments: &FlameArguments, samples: &[SampleRow], options: FlameOptions) -> Result<Vec<u8>> {
    let file = RecordingFile::open(&arguments.recording.file)?;
    // The recording may have grown since the samples were read. Rows are only appended, so the
    // samples still refer to the same rows.
    let recording = read_launches(&file, &arguments.recording.file)?;
    let forest = Forest::build(&recording);
    let assigned = assign_phases(&forest, &file.threads()?, samples);
    draw(arguments, &recording, sampled(&forest, &assigned, options))
}

fn draw(arguments: &FlameArguments, recording: &Recording, found: Result<Flame<'_>, FlameError>) -> Result<Vec<u8>> {
    let found = found.with_context(|| arguments.recording.file.display().to_string())?;
    if arguments.folded {
        return Ok(folded(&found).into_bytes());
    }
    as_svg(arguments, recording, &found)
}

#[cfg(feature = "flame")]
fn as_svg(arguments: &FlameArguments, recording: &Recording, found: &Flame<'_>) -> Result<Vec<u8>> {
    use crate::present::flame::svg;
    use crate::present::text::command_line;

    const TITLE_COLUMNS: usize = 120;
    let command = recording.info.command.iter().map(Vec::as_slice);
    let title = match &arguments.title {
        Some(title) => title.clone(),
        None if recording.info.command.is_empty() => "launches".to_owned(),
        None => command_line(command, Some(TITLE_COLUMNS)),
    };
    svg(found, &title).context("failed to draw the flame graph")
}

#[cfg(not(feature = "flame"))]
fn as_svg(_: &FlameArguments, _: &Recording, _: &Flame<'_>) -> Result<Vec<u8>> {
    anyhow::bail!(
        "this spawnscope was built without the feature `flame`: use --folded and draw the stacks with another program"
    )
}

fn write(arguments: &FlameArguments, drawn: &[u8]) -> Result<()> {
    if arguments.output.is_none() && !arguments.folded && io::stdout().is_terminal() {
        return output_file::write_page(Path::new(DEFAULT_OUTPUT), drawn);
    }
    output_file::write_or_print(arguments.output.as_deref(), drawn, "flame graph")
}

pub(super) const EXAMPLES: &str = "\
Examples:
  spawnscope flame                         # writes flame.svg on a terminal
  spawnscope flame | less                  # and standard output otherwise
  spawnscope flame -o flame.svg            # always writes flame.svg
  spawnscope flame --weight critical ci.db  # what decided the wall time
  spawnscope flame --phase load -o load.svg  # only the dynamic loader
  spawnscope flame --off-cpu               # what processes wait for
  spawnscope flame --by caller --weight tax  # which functions launch
  spawnscope flame --folded | grep ';load '  # text, for other programs

With --weight wall, concurrent processes each count in full, so the graph can
add up to more than the wall time. With --weight critical, it adds up to it.";

#[derive(Debug, Args)]
pub struct FlameArguments {
    #[command(flatten)]
    pub recording: RecordingArgument,
    /// Where to write the graph; - is standard output [default: flame.svg, or standard output if
    /// that is not a terminal]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// What the width of a box shows [default: wall; with --phase, the on-CPU samples if the
    /// recording has any]
    #[arg(long, value_parser = named(WEIGHTS))]
    pub weight: Option<Weight>,
    /// Show what processes do on CPUs: user and kernel stacks, from the samples of `record
    /// --sample`
    #[arg(long, conflicts_with_all = ["weight", "off_cpu"])]
    pub on_cpu: bool,
    /// Show what processes wait for: user and kernel stacks, from the samples of `record --sample`
    #[arg(long, conflicts_with = "weight")]
    pub off_cpu: bool,
    /// How boxes are stacked
    #[arg(long, value_parser = named(STACKINGS), default_value = "tree")]
    pub by: Stacking,
    /// Only this phase of launches
    #[arg(long, value_name = "PHASE", value_parser = named(Phase::ALL.map(|phase| (phase.name(), "", phase))))]
    pub phase: Option<Phase>,
    /// Write folded stacks instead of an SVG: `make;sh;cc1;load 1234`, in microseconds
    #[arg(long)]
    pub folded: bool,
    /// The title [default: the command]
    #[arg(long, value_name = "TEXT", value_hint = ValueHint::Other, conflicts_with = "folded")]
    pub title: Option<String>,
}
