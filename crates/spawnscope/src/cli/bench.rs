//! `spawnscope bench`: the lab's experiments, with progress, and their report in the form that was asked for.

use std::cell::Cell;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use super::args::BenchArguments;
use super::{exit, output};
use crate::lab::compare::{Change, compare};
use crate::lab::experiments::{ALL, Experiment};
use crate::lab::ground::{Ground, Watch};
use crate::lab::harness::Effort;
use crate::lab::machine::Machine;
use crate::lab::outcome::{Report, SCHEMA_VERSION};
use crate::lab::worker::serve;
use crate::present::lab as present;

/// For the rounds of an experiment.
const TIME: Duration = Duration::from_secs(15);
const QUICK_TIME: Duration = Duration::from_millis(1500);

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn interrupted(_: i32) {
    // The second one ends us at once.
    if INTERRUPTED.swap(true, Ordering::Relaxed) {
        // SAFETY: leaves at once; the workers die with us.
        unsafe { libc::_exit(i32::from(exit::INTERRUPTED)) }
    }
}

/// Runs the verb.
///
/// # Errors
/// When an experiment is unknown, nothing can be executed here, or the report cannot be written.
pub fn run(arguments: &BenchArguments) -> Result<ExitCode> {
    let width = output::width(&io::stdout());
    if arguments.list {
        print(present::list(ALL, width).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = chosen(&arguments.experiments)?;
    let old = arguments.compare.as_deref().map(read_report).transpose()?;
    catch_interrupts()?;
    let progress = Progress::new();
    let default = if arguments.quick { QUICK_TIME } else { TIME };
    let effort = Effort {
        quick: arguments.quick,
        time: arguments.seconds.unwrap_or(default),
    };
    let ground = Ground::prepare(effort, arguments.max, &progress)?;
    let as_table = !(arguments.json || arguments.markdown || arguments.csv);
    let report = measure(&chosen, &ground, &progress, as_table.then_some(width))?;
    progress.bar.finish_and_clear();
    let changes = old.map(|old| compare(&old, &report));
    tell(arguments, &report, changes.as_deref(), width)?;
    Ok(if report.interrupted {
        ExitCode::from(exit::INTERRUPTED)
    } else {
        ExitCode::SUCCESS
    })
}

/// Serves as the process that launches.
///
/// # Errors
/// When who asks has gone.
pub fn work(setting: &str) -> Result<()> {
    serve::serve(setting).context("failed to work for the lab")
}

fn chosen(names: &[String]) -> Result<Vec<&'static Experiment>> {
    if names.is_empty() {
        return Ok(ALL.iter().collect());
    }
    let find = |name: &String| match ALL.iter().find(|experiment| experiment.name == name) {
        Some(experiment) => Ok(experiment),
        None => {
            let known: Vec<&str> = ALL.iter().map(|experiment| experiment.name).collect();
            bail!("there is no experiment `{name}`; there are {}", known.join(", "))
        }
    };
    names.iter().map(find).collect()
}

fn measure(
    chosen: &[&Experiment],
    ground: &Ground<'_>,
    progress: &Progress,
    table_width: Option<usize>,
) -> Result<Report> {
    let mut report = Report {
        schema_version: SCHEMA_VERSION,
        machine: Machine::here(),
        quick: ground.effort.quick,
        interrupted: false,
        experiments: Vec::new(),
    };
    if let Some(width) = table_width {
        print(present::machine(&report.machine, width).as_bytes())?;
    }
    for (number, experiment) in chosen.iter().enumerate() {
        if INTERRUPTED.load(Ordering::Relaxed) {
            break;
        }
        progress.begin(&format!("{}/{} {}", number + 1, chosen.len(), experiment.name));
        let outcome = experiment.run(ground);
        if let Some(width) = table_width {
            progress
                .bar
                .suspend(|| print(present::experiment(&outcome, width).as_bytes()))?;
        }
        report.experiments.push(outcome);
    }
    report.interrupted = INTERRUPTED.load(Ordering::Relaxed);
    Ok(report)
}

fn tell(arguments: &BenchArguments, report: &Report, changes: Option<&[Change]>, width: usize) -> Result<()> {
    if let Some(path) = &arguments.output {
        let mut file = output::create(path)?;
        file.write_all(present::html(report).as_bytes())
            .with_context(|| format!("failed to write {}", path.display()))?;
    }
    if arguments.json {
        return print(present::json(report, changes).as_bytes());
    }
    if arguments.csv {
        return print(&present::csv(report)?);
    }
    if arguments.markdown {
        print(present::markdown(report).as_bytes())?;
    }
    match changes {
        Some(changes) => print(present::comparison(changes, width).as_bytes()),
        None => Ok(()),
    }
}

fn print(text: &[u8]) -> Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text).context("failed to write the report")?;
    stdout.flush().context("failed to write the report")
}

fn read_report(path: &std::path::Path) -> Result<Report> {
    let text = fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
    let value: serde_json::Value =
        serde_json::from_slice(&text).with_context(|| format!("{} is no report of `bench --json`", path.display()))?;
    match value["schema_version"].as_u64() {
        Some(version) if version != u64::from(SCHEMA_VERSION) => {
            bail!(
                "{} is a report of version {version}, not {SCHEMA_VERSION}",
                path.display()
            )
        }
        _ => {
            serde_json::from_value(value).with_context(|| format!("{} is no report of `bench --json`", path.display()))
        }
    }
}

fn catch_interrupts() -> Result<()> {
    let action = SigAction::new(SigHandler::Handler(interrupted), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler sets a flag, or leaves.
    unsafe { sigaction(Signal::SIGINT, &action) }.context("failed to catch Ctrl-C")?;
    Ok(())
}

/// A line with how far things are, on a terminal; nothing anywhere else.
struct Progress {
    bar: ProgressBar,
    doing: Cell<Option<String>>,
}

impl Progress {
    fn new() -> Progress {
        let bar = if io::stderr().is_terminal() {
            ProgressBar::new(100)
        } else {
            ProgressBar::hidden()
        };
        let style = ProgressStyle::with_template("{msg} [{bar:30}] {elapsed}, Ctrl-C ends with what there is");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress {
            bar,
            doing: Cell::new(None),
        }
    }

    fn begin(&self, experiment: &str) {
        self.doing.set(Some(experiment.to_owned()));
        self.bar.set_message(experiment.to_owned());
        self.bar.set_position(0);
    }
}

impl Watch for Progress {
    fn goes_on(&self, doing: &str, share: f64) -> bool {
        let experiment = self.doing.take().unwrap_or_default();
        if doing.is_empty() {
            self.bar.set_message(experiment.clone());
        } else {
            self.bar.set_message(format!("{experiment}: {doing}"));
        }
        self.doing.set(Some(experiment));
        self.bar.set_position((100.0 * share) as u64);
        !INTERRUPTED.load(Ordering::Relaxed)
    }
}
