//! `spawnscope bench`: runs the lab's experiments with progress, and prints their report in the requested form.

mod interrupt;
mod page;
mod progress;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use self::progress::Progress;
use super::args::BenchArguments;
use super::{exit, output};
use crate::cli::exit::Status;
use crate::lab::compare::{Comparison, compare};
use crate::lab::context::ExperimentContext;
use crate::lab::experiments::{ALL, Experiment};
use crate::lab::harness::Effort;
use crate::lab::keeper;
use crate::lab::machine::{self, Machine};
use crate::lab::outcome::{Report, SCHEMA_VERSION};
use crate::lab::worker::serve;
use crate::present::lab as present;

/// Default time for the rounds of one experiment.
const DEFAULT_TIME: Duration = Duration::from_secs(15);
/// Default time for the rounds of one experiment with `--quick`.
const DEFAULT_QUICK_TIME: Duration = Duration::from_millis(1500);

/// What is printed on standard output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Tables, each printed as soon as it is complete.
    Tables,
    Json,
    /// The page that `-o` would write to a file.
    Page,
}

/// Runs the verb.
///
/// # Errors
/// When nothing can be executed here, a report cannot be read, or the new report cannot be written.
pub fn run(arguments: &BenchArguments) -> Result<Status> {
    let width = output::width(&io::stdout());
    let form = form(arguments)?;
    if arguments.list {
        let listed = if arguments.json { present::list_json(ALL) } else { present::list(ALL, width) };
        return print(listed.as_bytes()).map(|()| Status::SUCCESS);
    }
    let old = arguments.compare.as_deref().map(read_report).transpose()?;
    let stored = arguments.with.as_deref().map(read_report).transpose()?;
    if let Some(old) = &old {
        require_common_experiment(old, arguments, stored.as_ref())?;
    }
    // Check that the page can be written before spending minutes on measurements.
    let page = output::file(arguments.output.as_deref());
    let page = page.map(|path| page::claim(path, &input_files(arguments))).transpose()?;
    let is_stored = stored.is_some();
    let (report, shown) = match stored {
        Some(report) => (report, Ok(())),
        None => measure(arguments, (form == Form::Tables).then_some(width))?,
    };
    let comparison = old.map(|old| compare(&old, &report));
    // If standard output fails (a closed terminal, a full disk), the page must still be written.
    let printed = shown.and_then(|()| print_report(form, &report, comparison.as_ref(), width));
    if let Some(page) = page {
        let html = present::html(&report, comparison.as_ref());
        page.replace(|out| out.write_all(html.as_bytes()))?;
    }
    printed?;
    let status = interrupt::status().filter(|_| !is_stored);
    if status.is_none() && report.experiments.iter().all(|experiment| experiment.rows.is_empty()) {
        bail!("nothing could be measured: see the notes of each experiment");
    }
    match (status, comparison) {
        (Some(status), _) => Ok(Status::Code(status)),
        (None, Some(comparison)) => comparison_status(&comparison, arguments),
        (None, None) => Ok(Status::SUCCESS),
    }
}

/// Fails if the reports have no experiment in common, before minutes are spent on measurements.
fn require_common_experiment(old: &Report, arguments: &BenchArguments, stored: Option<&Report>) -> Result<()> {
    let names: Vec<&str> = match stored {
        Some(report) => report.experiments.iter().map(|one| one.name.as_str()).collect(),
        None => choose(&arguments.experiments).iter().map(|one| one.name).collect(),
    };
    if old.experiments.iter().any(|older| names.contains(&older.name.as_str())) {
        return Ok(());
    }
    let older: Vec<&str> = old.experiments.iter().map(|one| one.name.as_str()).collect();
    bail!(
        "the reports have no experiment in common: the older one has {}, the newer {}",
        join_names(&older),
        join_names(&names)
    )
}

fn join_names(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Returns the exit status of a comparison.
fn comparison_status(comparison: &Comparison, arguments: &BenchArguments) -> Result<Status> {
    if comparison.changes.is_empty() {
        bail!("the reports have no case in common: nothing to compare");
    }
    if !arguments.exit_code {
        return Ok(Status::SUCCESS);
    }
    if comparison.common_shifts.is_empty() {
        bail!("too few common cases to distinguish a change from machine drift: --exit-code cannot decide");
    }
    let differs = comparison.changes.iter().any(|change| change.stands_out);
    Ok(if differs { Status::Code(exit::DIFFERS) } else { Status::SUCCESS })
}

/// Returns the reports that are read, which the page must not overwrite.
fn input_files(arguments: &BenchArguments) -> Vec<&Path> {
    let files = [&arguments.compare, &arguments.with];
    files.into_iter().filter_map(|file| file.as_deref()).collect()
}

/// Runs as a worker, which launches processes, or as the keeper, which removes the directory of a killed bench.
///
/// # Errors
/// When the bench process has exited, or the directory cannot be removed.
pub fn run_worker(setting: &str) -> Result<()> {
    let done = match setting.strip_prefix(keeper::ARGUMENT_PREFIX) {
        Some(directory) => keeper::remove_when_bench_ends(Path::new(directory)),
        None => serve::serve(setting),
    };
    done.context("failed to run a worker process of `bench`")
}

fn form(arguments: &BenchArguments) -> Result<Form> {
    let form = if arguments.json { Form::Json } else { Form::Tables };
    let to_stdout = arguments.output.is_some() && output::file(arguments.output.as_deref()).is_none();
    match (to_stdout, form) {
        (false, form) => Ok(form),
        (true, Form::Tables) => Ok(Form::Page),
        (true, _) => bail!("standard output can have only one format: give -o a file name"),
    }
}

/// Returns the chosen experiments, each once, in the order of their first mention.
fn choose(names: &[String]) -> Vec<&'static Experiment> {
    let mut chosen: Vec<&Experiment> = Vec::new();
    for name in names {
        let named = ALL.iter().find(|experiment| experiment.name == name);
        chosen.extend(named.filter(|named| !chosen.iter().any(|other| other.name == named.name)));
    }
    if names.is_empty() { ALL.iter().collect() } else { chosen }
}

/// Runs the experiments. Tables are printed as they are completed. If printing fails, the measurements so far are kept, but no further
/// experiment runs.
fn measure(arguments: &BenchArguments, table_width: Option<usize>) -> Result<(Report, Result<()>)> {
    let chosen = choose(&arguments.experiments);
    let default = if arguments.quick { DEFAULT_QUICK_TIME } else { DEFAULT_TIME };
    let time = arguments.seconds.unwrap_or(default);
    interrupt::catch()?;
    let quick = arguments.quick;
    let effort = Effort { quick, time };
    let progress = Progress::new(chosen.len());
    let context = ExperimentContext::prepare(effort, arguments.max, &progress)?;
    let mut report = Report::new(Machine::read(), quick);
    report.seconds = Some(time.as_secs_f64());
    report.machine.read_conditions(context.directory());
    let mut shown = show(&progress, table_width, |width| present::machine(&report.machine, width));
    for (number, experiment) in chosen.iter().enumerate() {
        if interrupt::status().is_some() || shown.is_err() {
            report.not_run.push(experiment.name.to_owned());
            continue;
        }
        progress.begin(experiment.name, number);
        let mut outcome = experiment.run(&context);
        if interrupt::status().is_some() {
            outcome.note("interrupted before all cases were measured");
        }
        shown = show(&progress, table_width, |width| present::experiment(&outcome, arguments.full, width));
        report.experiments.push(outcome);
    }
    progress.clear();
    report.machine.load_after = machine::read_load();
    report.interrupted = interrupt::status().is_some();
    Ok((report, shown))
}

fn show(progress: &Progress, table_width: Option<usize>, render: impl Fn(usize) -> String) -> Result<()> {
    match table_width {
        Some(width) => progress.suspend(|| print(output::with_glyphs(render(width)).as_bytes())),
        None => Ok(()),
    }
}

fn print_report(form: Form, report: &Report, comparison: Option<&Comparison>, width: usize) -> Result<()> {
    let text = match form {
        Form::Tables => output::with_glyphs(present::render_end(report, comparison, width)),
        Form::Json => present::json(report, comparison),
        Form::Page => present::html(report, comparison),
    };
    print(text.as_bytes())
}

fn print(text: &[u8]) -> Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text).context("failed to write the report")?;
    stdout.flush().context("failed to write the report")
}

fn read_report(path: &Path) -> Result<Report> {
    let text = fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
    let value: serde_json::Value = serde_json::from_slice(&text)
        .with_context(|| format!("{} is not a report of `bench --json`", path.display()))?;
    match value["schema_version"].as_u64() {
        Some(version) if version != u64::from(SCHEMA_VERSION) => {
            bail!("{} is a report with schema_version {version}, not {SCHEMA_VERSION}", path.display())
        }
        _ => {
            let report = serde_json::from_value(value);
            report.with_context(|| format!("{} is not a report of `bench --json`", path.display()))
        }
    }
}
