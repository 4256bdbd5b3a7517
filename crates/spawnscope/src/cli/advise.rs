//! `spawnscope advise`: prints what is worth changing, how to change it, and the predicted saving.

use std::env;
use std::io::{self, Write};

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;

use super::analysis::{predict_together, with_timelines_of};
use super::args::{JsonArguments, RecordingArgument, WindowArguments};
use super::source_files::SourceFiles;
use super::{output, report};
use crate::analyze::explain::advice::{Advice, AdviceList};
use crate::analyze::model::window::Part;
use crate::analyze::predict::whatif::AppliedChange;
use crate::analyze::{GroupBy, Report};
use crate::event::Nanos;
use crate::present::{advice, headline};
use crate::record::reader::RecordingFile;

pub fn run(arguments: &AdviseArguments) -> Result<()> {
    let file = &arguments.recording.file;
    let part = arguments.window.part(Part::Main);
    let mut report = report::read(file, part, GroupBy::Command)?;
    if let Some(rule) = &arguments.rule {
        report.advices.keep_rule(rule);
    }
    output::print_contradictions(file, &report.info.contradictions);
    let sources = SourceFiles::look_up(&mut report);
    if arguments.patch {
        return print_patch(&sources, &report, |changes| {
            with_timelines_of(&RecordingFile::open(file)?, part, &mut |_| {}, |input| Ok(input.saving(changes)))
        });
    }
    if arguments.rule.is_none() {
        predict_together(&mut report.advices, file, part)?;
    }
    let typed = arguments.window.with_file(output::typed_name(file));
    let all = arguments.all || arguments.rule.is_some();
    let render = |width| advice::render(&report, all, width, typed.as_deref());
    arguments.json.print("advice", || advice::json(&report), render)
}

/// Prints the diff to standard output. Standard error says what the diff leaves out, and how much
/// it saves. `predict` returns what several changes save together.
fn print_patch(
    sources: &SourceFiles,
    report: &Report,
    predict: impl FnOnce(&[AppliedChange]) -> Result<Option<[Nanos; 3]>>,
) -> Result<()> {
    let directory = env::current_dir().and_then(|directory| directory.canonicalize());
    let advices = &report.advices;
    let patch = sources.patch(&advices.worth, &directory.context("failed to find the current directory")?);
    for sentence in &patch.left_out {
        output::print_long_message(&output::escape_line(format!("not in the patch: {sentence}")));
    }
    for fix in patch.fixes.iter().filter(|fix| !fix.edit_limits.is_empty()) {
        output::print_long_message(&format!("check before you apply it: {}", fix.edit_limits));
    }
    let saving = match patch.fixes.as_slice() {
        [] => None,
        [fix] => Some(fix.saving),
        several => predict(&several.iter().flat_map(|fix| fix.finding.changes.clone()).collect::<Vec<_>>())?,
    };
    if patch.text.is_empty() {
        output::print_message("the patch is empty");
    } else if let Some(saving) = saving.map(|saving| edited_part(saving, &patch.fixes)) {
        let saving = headline::share_and_amount(saving, advices.unrecorded);
        output::print_message(&format!("the whole patch saves {saving}"));
    }
    // Not by `output::print`, which may remove escape sequences that the files contain.
    io::stdout().lock().write_all(&patch.text).context("failed to write the patch")
}

/// Returns what fixes save if only some of the lines that they concern are edited.
fn edited_part(saving: [Nanos; 3], fixes: &[&Advice]) -> [Nanos; 3] {
    let all: f64 = fixes.iter().map(|fix| fix.saving[0].0 as f64).sum();
    let edited: f64 = fixes.iter().map(|fix| fix.saving[0].0 as f64 * fix.edited_share).sum();
    let part = if all > 0.0 { edited / all } else { 1.0 };
    saving.map(|time| Nanos((time.0 as f64 * part) as u64))
}

pub(super) const EXAMPLES: &str = "\
Examples:
  spawnscope advise                       # what to change in spawnscope.db
  spawnscope advise --all ci.db           # also what is not worth fixing
  spawnscope advise --rule builtin        # what one rule found
  spawnscope advise --patch | patch -p0   # make the simple changes
  spawnscope advise --episode 2 editor.db  # one refresh of an editor";

#[derive(Debug, Args)]
pub struct AdviseArguments {
    #[command(flatten)]
    pub recording: RecordingArgument,
    /// Also print findings that are not worth fixing or are too uncertain
    #[arg(long)]
    pub all: bool,
    /// Print only what this rule found, worth fixing or not
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(AdviceList::rules()), hide_possible_values = true)]
    pub rule: Option<String>,
    /// Print the changes that need no decision, as a unified diff for `patch -p0` or `git apply
    /// -p0`. It contains files below the current directory that were not modified since the
    /// recording; standard error names what it leaves out, and why
    #[arg(long, conflicts_with_all = ["json", "all"])]
    pub patch: bool,
    #[command(flatten)]
    pub json: JsonArguments,
    #[command(flatten)]
    pub window: WindowArguments,
}
