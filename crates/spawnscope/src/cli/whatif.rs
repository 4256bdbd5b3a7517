//! `spawnscope whatif`: predicts the wall with changes to launches.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Error, Result, anyhow, bail};
use clap::{Args, ValueHint};

use super::analysis::with_timelines;
use super::args::{DEFAULT_FILE, JsonArguments, WindowArguments};
use super::output;
use crate::analyze::model::window::Part;
use crate::analyze::predict::whatif::changes::Change;
use crate::analyze::predict::whatif::whatif_report::{
    RequestedChange, WhatIfError, WhatIfReport, of_several, whatif_report,
};
use crate::analyze::sites::select::Selector;
use crate::present::whatif;

pub fn run(arguments: &WhatifArguments) -> Result<()> {
    let requested = requested_changes(arguments)?;
    if requested.is_empty() {
        bail!(
            "nothing to change: give at least one option such as --remove SEL (`spawnscope whatif --help` lists them)"
        );
    }
    let reports: Result<Vec<WhatIfReport>> =
        arguments.files.iter().map(|file| read(file, arguments, &requested)).collect();
    let whatif_report = of_several(reports?).context("no recording")?;
    let render = |width| whatif::render(&whatif_report, width);
    arguments.json.print("prediction", || whatif::json(&whatif_report), render)
}

fn read(file: &Path, arguments: &WhatifArguments, requested: &[RequestedChange]) -> Result<WhatIfReport> {
    with_timelines(file, arguments.window.part(Part::Main), |input| {
        let report = whatif_report(input.recording, input.forest, input.timelines, requested);
        report.map_err(|error| with_hint(error, file, arguments))
    })
}

/// Adds to an error the commands that list what can be selected. They name the recording as the
/// user typed it.
fn with_hint(error: WhatIfError, file: &Path, arguments: &WhatifArguments) -> Error {
    let whole = output::typed_name(file);
    let part = arguments.window.with_file(whole.clone());
    let [whole, part] = [whole, part].map(|file| file.map_or_else(String::new, |file| format!(" {file}")));
    let hint = match &error {
        WhatIfError::NothingSelected(_) => format!(
            "`spawnscope report --by command --top 0{part}` lists the programs, and `spawnscope tree{whole}` shows their arguments"
        ),
        WhatIfError::NoLineSelected(_) => format!("`spawnscope report --by line --top 0{part}` lists the lines"),
        WhatIfError::OnlyCalls { .. } => format!("`spawnscope flame --by caller{whole}` shows the callers"),
        _ => return error.into(),
    };
    anyhow!("{error}: {hint}")
}

fn requested_changes(arguments: &WhatifArguments) -> Result<Vec<RequestedChange>> {
    let selecting = [
        ("remove", Change::Remove, &arguments.remove),
        ("builtin", Change::Builtin, &arguments.builtin),
        ("in-process", Change::InProcess, &arguments.in_process),
        ("coprocess", Change::Coprocess, &arguments.coprocess),
        ("vfork", Change::Vfork, &arguments.vfork),
        ("huge-pages", Change::HugePages, &arguments.huge_pages),
        ("no-shell", Change::NoShell, &arguments.no_shell),
        ("static", Change::Static, &arguments.static_),
        ("direct", Change::Direct, &arguments.direct),
        ("absolute", Change::Absolute, &arguments.absolute),
        ("no-search", Change::NoSearch, &arguments.no_search),
        ("steady-parent", Change::SteadyParent, &arguments.steady_parent),
        ("no-teardown", Change::NoTeardown, &arguments.no_teardown),
        ("quick-launch", Change::QuickLaunch, &arguments.quick_launch),
        ("close-range", Change::CloseRange, &arguments.close_range),
        ("reap-now", Change::ReapNow, &arguments.reap_now),
    ];
    let with_numbers = [
        ("batch", parse_batch as fn(&str) -> Result<(&str, Change)>, &arguments.batch),
        ("replace", parse_replacement, &arguments.replace),
        ("jobs", parse_jobs, &arguments.jobs),
    ];
    let mut requested = Vec::new();
    for (option, change, texts) in selecting {
        let changes = texts.iter().map(|text| change_of_selection(option, change, text));
        requested.extend(changes.collect::<Result<Vec<_>>>()?);
    }
    for (option, parse, texts) in with_numbers {
        for text in texts {
            let (selection, change) = parse(text)?;
            requested.push(change_of_selection(option, change, selection)?);
        }
    }
    requested.extend(arguments.no_scan.then(|| RequestedChange::of_all("--no-scan", Change::NoScan)));
    requested.extend(arguments.cpus.map(|cpus| RequestedChange::of_all(format!("--cpus {cpus}"), Change::Cpus(cpus))));
    Ok(requested)
}

fn change_of_selection(option: &str, change: Change, text: &str) -> Result<RequestedChange> {
    let selector = Selector::parse(text).with_context(|| format!("--{option}"))?;
    Ok(RequestedChange {
        change,
        text: match change {
            Change::Batch(size) | Change::Jobs(size) => format!("--{option} {text}={size}"),
            Change::Replace(thousandths) => format!("--{option} {text}={}", f64::from(thousandths) / 1000.0),
            _ => format!("--{option} {text}"),
        },
        selector: Some(selector),
    })
}

fn parse_batch(text: &str) -> Result<(&str, Change)> {
    parse_number(text)
        .filter(|(_, size)| *size >= 2)
        .map(|(selection, size)| (selection, Change::Batch(size)))
        .with_context(|| format!("--batch `{text}`: give SEL=K, where K launches become one, for example mv=50"))
}

fn parse_replacement(text: &str) -> Result<(&str, Change)> {
    let (selection, ratio) =
        parse_number::<f64>(text).filter(|(_, ratio)| (0.0..=1000.0).contains(ratio)).with_context(|| {
            format!("--replace `{text}`: give SEL=RATIO, where RATIO is from 0 to 1000, for example gzip=0.3")
        })?;
    Ok((selection, Change::Replace((ratio * 1000.0).round() as u32)))
}

fn parse_number<N: FromStr>(text: &str) -> Option<(&str, N)> {
    let (selection, number) = text.rsplit_once('=')?;
    Some((selection, number.parse().ok()?))
}

/// Parses `SEL=N`, or `N` for all launches.
fn parse_jobs(text: &str) -> Result<(&str, Change)> {
    let (selection, jobs) = text.rsplit_once('=').unwrap_or(("*", text));
    let jobs = jobs.parse().ok().filter(|jobs| *jobs >= 2).ok_or_else(|| {
        anyhow!("--jobs `{text}`: give N or SEL=N, where N launches run at a time, for example convert=4")
    })?;
    Ok((selection, Change::Jobs(jobs)))
}

pub(super) const EXAMPLES: &str = "\
Examples:
  spawnscope whatif --builtin dirname --builtin basename
  spawnscope whatif --remove '(bash)' --remove sed
  spawnscope whatif --batch mv=50 unpack.db
  spawnscope whatif --vfork 'parent=python3*'
  spawnscope whatif --remove git,parent=emacs --json
  spawnscope whatif --cpus 8 build.db
  spawnscope whatif --remove git --episode 2 editor.db
  spawnscope whatif --jobs convert=4 thumbnails.db
  spawnscope whatif --in-process jq --replace gzip=0.3
  spawnscope whatif --remove sed build.1.db build.2.db build.3.db

The 95 % confidence interval assumes that the model is right. The model does
not include caches, copy-on-write after a fork, or CPU frequency.";

#[derive(Debug, Args)]
pub struct WhatifArguments {
    /// The recording to read, or several of the same command (`record --runs 5`), which make the
    /// prediction more certain; - reads standard input
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE, num_args = 1.., value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Remove these launches and everything that they launch
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub remove: Vec<String>,
    /// Replace them with shell builtins; forks for $( ) and pipelines remain
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub builtin: Vec<String>,
    /// Merge launches, K at a time, into one. They must have the same parent, or each must be its
    /// parent's only launch (as in one shell per launch)
    #[arg(long, value_name = "SEL=K", value_hint = ValueHint::Other)]
    pub batch: Vec<String>,
    /// Do their work in the parent's process, by a library or a function
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub in_process: Vec<String>,
    /// Start the program once per parent, which sends it each request through a pipe
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub coprocess: Vec<String>,
    /// Replace them with another program, whose run takes RATIO of the time, for example 0.5
    #[arg(long, value_name = "SEL=RATIO", value_hint = ValueHint::Other)]
    pub replace: Vec<String>,
    /// Run serial launches of one program N at a time: in all loops, or only those that SEL selects
    #[arg(long, value_name = "[SEL=]N", value_hint = ValueHint::Other)]
    pub jobs: Vec<String>,
    /// Create them by vfork or posix_spawn
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub vfork: Vec<String>,
    /// Keep the parents' memory in huge pages
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub huge_pages: Vec<String>,
    /// Skip needless `sh -c` between parent and program: for all launches, or for those that SEL
    /// selects
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other, num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    pub no_shell: Vec<String>,
    /// Link them statically, without a dynamic loader
    #[arg(long = "static", value_name = "SEL", value_hint = ValueHint::Other)]
    pub static_: Vec<String>,
    /// Execute them directly, without wrappers (env, pyenv, npm run, timeout, scripts)
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub direct: Vec<String>,
    /// Execute them by absolute path, without failed execs along PATH
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub absolute: Vec<String>,
    /// Find each library in the first directory that the dynamic loader searches
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub no_search: Vec<String>,
    /// Keep the parent from growing, so that fork stays as fast as at first
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub steady_parent: Vec<String>,
    /// Make teardown immediate, regardless of memory size
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub no_teardown: Vec<String>,
    /// Limit the cost of each launch to 10 ms, as on a healthy machine
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub quick_launch: Vec<String>,
    /// Close file descriptors by one close_range before the exec
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other)]
    pub close_range: Vec<String>,
    /// Make parents reap at once: for all launches, or for those that SEL selects
    #[arg(long, value_name = "SEL", value_hint = ValueHint::Other, num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    pub reap_now: Vec<String>,
    /// Remove permission scanners, which delay execs and opens
    #[arg(long)]
    pub no_scan: bool,
    /// Run on this number of CPUs
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub cpus: Option<u32>,
    #[command(flatten)]
    pub json: JsonArguments,
    #[command(flatten)]
    pub window: WindowArguments,
}
