//! `spawnscope html`: writes a page about a recording. A browser can open the page without a
//! server.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueHint};

use super::analysis::{Input, with_timelines};
use super::args::{RecordingArgument, WindowArguments};
use super::source_files::SourceFiles;
use super::{identity, output, output_file};
use crate::analyze::explain::advice::RuleContext;
use crate::analyze::model::window::Part;
use crate::analyze::path::concurrency::concurrency;
use crate::analyze::path::flame::{Flame, FlameOptions, Stacking, Weight, flame};
use crate::analyze::path::groups::groups;
use crate::analyze::predict::dependence::{Dependence, Removal, removals};
use crate::analyze::sites::callers::{Callers, Detail};
use crate::analyze::waits::attribution::{attributed_waits, waits_of_parents};
use crate::analyze::{self, Causes, CriticalPath, Forest, GroupBy};
use crate::parallel;
use crate::present::html;
use crate::record::reader::Recording;

/// The output file when -o is not given.
const DEFAULT_OUTPUT: &str = "report.html";
/// Number of points in the concurrency curve: more than a screen has columns.
const CURVE_POINTS: usize = 4000;
/// Maximum number of programs, and of script lines, whose removal is predicted.
const MAX_REMOVALS: usize = 12;
/// Maximum number of launches that the predictions for programs may replay in total; those for
/// script lines may replay as many. A large recording therefore gets fewer predictions, but at
/// least one of each kind.
const MAX_REPLAYED_LAUNCHES: usize = 200_000;
const GROUPINGS: [GroupBy; 4] = [GroupBy::Command, GroupBy::Line, GroupBy::Arguments, GroupBy::Parent];

pub fn run(arguments: &HtmlArguments) -> Result<()> {
    if arguments.open && arguments.output.as_deref().is_some_and(|path| output::file(Some(path)).is_none()) {
        bail!("--open needs a file: name one with -o");
    }
    let file = &arguments.recording.file;
    let part = arguments.window.part(Part::Whole);
    let page = with_timelines(file, part, |input| {
        let typed = arguments.window.with_file(output::typed_name(file));
        render(input, part, typed.as_deref())
    })?;
    let path = match &arguments.output {
        Some(path) => path.clone(),
        // A page that is only looked at leaves nothing in the user's directory.
        None if arguments.open => identity::temporary_directory()?.keep().join(DEFAULT_OUTPUT),
        None => return output_file::write_page(Path::new(DEFAULT_OUTPUT), page.as_bytes()),
    };
    output_file::write_or_print(Some(&path), page.as_bytes(), "page")?;
    if arguments.open { open_in_browser(&path) } else { Ok(()) }
}

/// Computes everything that the page shows, and renders it. `file` is the recording as typed on a
/// command line.
fn render(input: Input<'_, '_>, part: Part, file: Option<&str>) -> Result<String> {
    let Input { recording, forest, timelines, .. } = input;
    let ((stretches, waits, waits_of_parents), causes) = parallel::join(
        || {
            let waits = attributed_waits(recording, forest, timelines);
            (input.stretches(), waits, waits_of_parents(recording, forest, timelines))
        },
        || Causes::find_with(recording, forest, timelines, predict_removals),
    );
    let (causes, removals) = causes.unzip();
    let path = causes.as_ref().map(|causes| &causes.path);
    let (tables, (flames, mut report)) = parallel::join(
        || GROUPINGS.map(|by| (by, groups(forest, path, by))),
        || (flames(recording, forest, path), analyze::report_on(recording, forest, causes.as_ref(), GroupBy::Command)),
    );
    SourceFiles::look_up(&mut report);
    if let Some(changes) = report.advices.unpredicted() {
        report.advices.together = input.saving(&changes);
    }
    report.waits = waits;
    report.info.contradictions = input.contradictions;
    report.window = input.window.filter(|_| part != Part::Whole);
    let page = html::render(&html::Contents {
        report: &report,
        forest,
        callers: &Callers::find(forest, Detail::Line),
        path,
        stretches: &stretches.unwrap_or_default(),
        tables: &tables.into_iter().filter(|(_, groups)| !groups.is_empty()).collect::<Vec<_>>(),
        waits_of_parents: &waits_of_parents,
        run_queue: &timelines.run_queue_times(),
        // The curve compares threads with the CPUs that they have.
        concurrency: concurrency(timelines, forest.end, CURVE_POINTS).filter(|_| recording.info.cpus > 0).as_ref(),
        removals: &removals.unwrap_or_default(),
        flames: &flames,
        file,
    });
    page.context("failed to make the page")
}

fn predict_removals(context: &RuleContext<'_, '_>, dependence: &[Dependence]) -> Vec<Removal> {
    let launches = context.whatif.forest.launches.len().max(1);
    let count = (MAX_REPLAYED_LAUNCHES / launches).clamp(1, MAX_REMOVALS);
    removals(&context.whatif, context.path, context.callers, dependence, count)
}

/// Computes the flame graphs that the recording has data for.
fn flames<'a>(recording: &'a Recording, forest: &Forest<'a>, path: Option<&CriticalPath>) -> Vec<Flame<'a>> {
    let mut flames = Vec::new();
    for stacking in [Stacking::Tree, Stacking::Caller] {
        for weight in [Weight::Critical, Weight::Wall, Weight::Tax] {
            let options = FlameOptions { weight, stacking, phase: None };
            flames.extend(flame(forest, path, |name| recording.texts.get(name), options));
        }
    }
    flames
}

pub(super) const EXAMPLES: &str = "\
Examples:
  spawnscope html          # writes report.html
  spawnscope html -o build.html ci.db
  spawnscope html --open   # opens a temporary page in the browser

The page loads nothing and sends nothing. The part of its address after #
holds the view, so a link to a part of the timeline can be shared.";

#[derive(Debug, Args)]
pub struct HtmlArguments {
    #[command(flatten)]
    pub recording: RecordingArgument,
    /// Where to write the page; - is standard output [default: report.html; with --open, a
    /// temporary directory]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Open the page in a browser
    #[arg(long)]
    pub open: bool,
    #[command(flatten)]
    pub window: WindowArguments,
}

/// The program that opens a file as the user's desktop would.
const OPENER: &str = "xdg-open";

/// Opens the file. Under sudo this is refused: a browser must not run as root, and the desktop
/// belongs to the user who called sudo. The page is written in any case, so no browser is no
/// failure.
fn open_in_browser(path: &Path) -> Result<()> {
    // A name that begins with a hyphen would be parsed as an option.
    let path = path.canonicalize().with_context(|| format!("failed to find {}", path.display()))?;
    let why = match identity::caller()? {
        Some(_) => Some("a browser is not started as root"),
        None => {
            // The opener prints a line for each browser that it does not find.
            let opener = Command::new(OPENER).arg(&path).stdin(Stdio::null()).stderr(Stdio::null()).status();
            (!opener.is_ok_and(|status| status.success())).then_some("found no browser")
        }
    };
    if let Some(why) = why {
        output::print_message(&format!("{why}: open {} yourself", output::escape_line(path.display())));
    }
    Ok(())
}
