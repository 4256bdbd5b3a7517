//! `spawnscope bench`: runs the lab's experiments with progress, and prints their report in the
//! requested form. A signal ends the measurement with the results so far. The progress line is only
//! printed on a terminal that can redraw a line.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use indicatif::{ProgressBar, ProgressStyle};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use super::args::parse_seconds;
use super::exit::Status;
use super::output;
use super::output_file::OutputFile;
use crate::lab::batches::Effort;
use crate::lab::context::{ExperimentContext, Watch};
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
    let status = interrupted_status();
    if status.is_none() && report.experiments.iter().all(|experiment| experiment.rows.is_empty()) {
        bail!("nothing could be measured: see the notes of each experiment");
    }
    Ok(status.map_or(Status::SUCCESS, Status::Code))
}

pub fn run_worker(setting: &str) -> Result<()> {
    serve::serve(setting).context("failed to run a worker process of `bench`")
}

/// Checks that a page can be written, and that its name does not suggest JSON.
fn claim_page(path: &Path) -> Result<OutputFile> {
    if path.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("json")) {
        bail!("-o writes HTML, not JSON: redirect the output of --json, or name {} otherwise", path.display());
    }
    OutputFile::claim(path)
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
    catch_signals()?;
    let effort = Effort { quick: arguments.quick, time };
    let progress = Progress::new(chosen.len());
    let context = ExperimentContext::prepare(effort, arguments.max, &progress)?;
    let mut report = BenchReport::new(Machine::read(), arguments.quick);
    report.seconds = Some(time.as_secs_f64());
    let mut shown = show(&progress, table_width, |width| present::machine(&report.machine, width));
    for (number, experiment) in chosen.iter().enumerate() {
        if interrupted_status().is_some() || shown.is_err() {
            report.not_run.push(experiment.name.to_owned());
            continue;
        }
        progress.begin(experiment.name, number);
        let mut outcome = experiment.run(&context);
        if interrupted_status().is_some() {
            outcome.note("interrupted before all cases were measured");
        }
        shown = show(&progress, table_width, |width| present::experiment(&outcome, arguments.full, width));
        report.experiments.push(outcome);
    }
    progress.clear();
    report.machine.load_after = machine::read_load();
    report.interrupted = interrupted_status().is_some();
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

pub const EXAMPLES: &str = "\
Examples:
  spawnscope bench --quick                     # rough results in 30 s
  spawnscope bench mechanisms parent-size      # run two experiments
  spawnscope bench --full                      # with all tables
  spawnscope bench --json >lab.json
  spawnscope bench -o lab.html                 # one page, tables and plots

No privilege is needed. The first Ctrl-C ends the measurement and reports the
results so far, with exit status 130. So do SIGTERM (143) and SIGHUP (129).";

#[derive(Debug, Args)]
pub struct BenchArguments {
    /// The experiments, by name [default: all]
    #[arg(
        value_name = "EXPERIMENT",
        hide_possible_values = true,
        value_parser = PossibleValuesParser::new(ALL.iter().map(|experiment| experiment.name))
    )]
    pub experiments: Vec<String>,
    /// List the experiments; with --json, as JSON
    #[arg(long)]
    pub list: bool,
    /// Print the table of each experiment, too
    #[arg(long, conflicts_with = "json")]
    pub full: bool,
    /// Use smaller sizes and accept wider intervals: half a minute in all, not three minutes
    #[arg(long)]
    pub quick: bool,
    /// Seconds per experiment [default: 15; 1.5 with --quick]
    #[arg(long, value_name = "S", value_hint = ValueHint::Other, value_parser = parse_seconds, allow_negative_numbers = true)]
    pub seconds: Option<Duration>,
    /// Memory of the largest parent, in bytes, or with suffix k, M or G
    #[arg(long, value_name = "SIZE", value_hint = ValueHint::Other, default_value = "4G", value_parser = parse_size, allow_negative_numbers = true)]
    pub max: u64,
    /// Print JSON (schema_version 2)
    #[arg(long)]
    pub json: bool,
    /// Also write an HTML page with tables and plots; with -, print it instead of the tables
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'M')) => (&text[..at], 1_000_000),
        Some((at, 'G')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    let number: Option<u64> = number.parse().ok();
    let bytes = number.and_then(|number| number.checked_mul(unit));
    bytes.ok_or_else(|| "not a number of bytes, such as 500M or 4G".to_owned())
}

const CAUGHT_SIGNALS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
static ARRIVED_SIGNAL: AtomicI32 = AtomicI32::new(0);

extern "C" fn handle(signal: i32) {
    // On the second signal, exit at once.
    if ARRIVED_SIGNAL.swap(signal, Ordering::Relaxed) != 0 {
        // SAFETY: `_exit` is async-signal-safe. The workers die with this process; the temporary
        // directory stays.
        unsafe { libc::_exit(i32::from(status_of(signal))) }
    }
}

/// Installs the handlers. Signals that were ignored when we were started, as under `nohup`, stay
/// ignored.
fn catch_signals() -> Result<()> {
    let handler = SigAction::new(SigHandler::Handler(handle), SaFlags::SA_RESTART, SigSet::empty());
    for signal in CAUGHT_SIGNALS {
        // SAFETY: the handler only stores a number or exits.
        let inherited = unsafe { sigaction(signal, &handler) }.with_context(|| format!("failed to catch {signal}"))?;
        if matches!(inherited.handler(), SigHandler::SigIgn) {
            // SAFETY: restores the inherited disposition.
            unsafe { sigaction(signal, &inherited) }.with_context(|| format!("failed to ignore {signal}"))?;
        }
    }
    Ok(())
}

/// Returns the exit status for the signal that arrived, if any.
fn interrupted_status() -> Option<u8> {
    match ARRIVED_SIGNAL.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(status_of(signal)),
    }
}

/// Returns the status that a shell reports for a program killed by `signal`.
fn status_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// The parts that are never cut come first; the message takes the rest of the line.
const TEMPLATE: &str = "{prefix} [{bar:10}] {elapsed} {wide_msg}";
const HOW_TO_END: &str = "Ctrl-C stops and keeps results";

struct Progress {
    bar: ProgressBar,
    count: usize,
}

impl Progress {
    fn new(count: usize) -> Progress {
        let is_dumb = env::var_os("TERM").is_none_or(|name| name.is_empty() || name == OsStr::new("dumb"));
        let bar = if is_dumb { ProgressBar::hidden() } else { ProgressBar::new(100) };
        let style = ProgressStyle::with_template(TEMPLATE);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress { bar, count }
    }

    /// Starts an experiment after `done` others.
    fn begin(&self, experiment: &str, done: usize) {
        self.bar.set_prefix(format!("{}/{} {experiment}", done + 1, self.count));
        self.bar.set_position(0);
        self.bar.set_message(HOW_TO_END);
        self.bar.tick();
    }

    /// Runs `act` while the line is hidden.
    fn suspend<T>(&self, act: impl FnOnce() -> T) -> T {
        self.bar.suspend(act)
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Progress {
    fn report_progress(&self, doing: &str, share: f64) -> bool {
        self.bar.set_message(if doing.is_empty() { HOW_TO_END.to_owned() } else { doing.to_owned() });
        self.bar.set_position((100.0 * share) as u64);
        interrupted_status().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_may_have_a_unit() {
        assert_eq!(["12", "3k", "250M", "4G"].map(parse_size), [12, 3_000, 250_000_000, 4_000_000_000].map(Ok));
        for text in ["", "G", "1.5G", "-1", "4GB", "99999999999G"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
