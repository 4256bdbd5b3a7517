//! `spawnscope bench`: runs the lab's experiments with progress, and prints their report in the
//! requested form.

mod interrupt;
mod progress;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use self::progress::Progress;
use super::args::BenchArguments;
use super::output;
use crate::cli::exit::Status;
use crate::cli::output_file::OutputFile;
use crate::lab::batches::Effort;
use crate::lab::context::ExperimentContext;
use crate::lab::experiments::{ALL, Experiment};
use crate::lab::machine::{self, Machine};
use crate::lab::outcome::BenchReport;
use crate::lab::worker::serve;
use crate::present::lab as present;

/// Default time for the rounds of one experiment.
const DEFAULT_TIME: Duration = Duration::from_secs(15);
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

pub fn run(arguments: &BenchArguments) -> Result<Status> {
    let width = output::width(&io::stdout());
    let form = form(arguments)?;
    if arguments.list {
        let listed = if arguments.json { present::list_json(ALL) } else { present::list(ALL, width) };
        return print(listed.as_bytes()).map(|()| Status::SUCCESS);
    }
    // Check that the page can be written before spending minutes on measurements.
    let page = output::file(arguments.output.as_deref());
    let page = page.map(claim_page).transpose()?;
    let (report, shown) = measure(arguments, (form == Form::Tables).then_some(width))?;
    // If standard output fails (a closed terminal, a full disk), the page must still be written.
    let printed = shown.and_then(|()| print_report(form, &report, width));
    if let Some(page) = page {
        let html = present::html(&report);
        page.replace(|out| out.write_all(html.as_bytes()))?;
    }
    printed?;
    let status = interrupt::status();
    if status.is_none() && report.experiments.iter().all(|experiment| experiment.rows.is_empty()) {
        bail!("nothing could be measured: see the notes of each experiment");
    }
    Ok(status.map_or(Status::SUCCESS, Status::Code))
}

pub fn run_worker(setting: &str) -> Result<()> {
    serve::serve(setting).context("failed to run a worker process of `bench`")
}

/// Checks that a page can be written, and that it does not replace a JSON report.
fn claim_page(path: &Path) -> Result<OutputFile> {
    let suggests_json = path.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("json"));
    if suggests_json || is_json(path) {
        bail!(
            "-o writes HTML, and {} is for JSON: redirect the output of --json, or name another file",
            path.display()
        );
    }
    OutputFile::claim(path)
}

/// Whether a file contains a JSON object. A pipe or a device is not read.
fn is_json(path: &Path) -> bool {
    path.is_file() && fs::read(path).is_ok_and(|text| serde_json::from_slice::<Map<String, Value>>(&text).is_ok())
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

/// Runs the experiments. Tables are printed as they are completed. If printing fails, the
/// measurements so far are kept, but no further experiment runs.
fn measure(arguments: &BenchArguments, table_width: Option<usize>) -> Result<(BenchReport, Result<()>)> {
    let chosen = choose(&arguments.experiments);
    let default = if arguments.quick { DEFAULT_QUICK_TIME } else { DEFAULT_TIME };
    let time = arguments.seconds.unwrap_or(default);
    interrupt::catch()?;
    let effort = Effort { quick: arguments.quick, time };
    let progress = Progress::new(chosen.len());
    let context = ExperimentContext::prepare(effort, arguments.max, &progress)?;
    let mut report = BenchReport::new(Machine::read(), arguments.quick);
    report.seconds = Some(time.as_secs_f64());
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

fn print_report(form: Form, report: &BenchReport, width: usize) -> Result<()> {
    let text = match form {
        Form::Tables => output::with_glyphs(present::render_end(report, width)),
        Form::Json => present::json(report),
        Form::Page => present::html(report),
    };
    print(text.as_bytes())
}

fn print(text: &[u8]) -> Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text).context("failed to write the report")?;
    stdout.flush().context("failed to write the report")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_does_not_replace_json() {
        let directory = tempfile::tempdir().unwrap();
        let [report, page, new, json] =
            ["report", "page.html", "new.html", "a.JSON"].map(|name| directory.path().join(name));
        fs::write(&report, "{\"schema_version\": 2}").unwrap();
        fs::write(&page, "<!doctype html>").unwrap();
        for path in [&report, &json] {
            let error = claim_page(path).err().unwrap().to_string();
            assert!(error.contains("redirect the output of --json"), "{error}");
        }
        assert!(claim_page(&page).is_ok() && claim_page(&new).is_ok() && !new.exists());
        assert_eq!(fs::read_to_string(report).unwrap(), "{\"schema_version\": 2}");
    }
}
