//! `spawnscope whatif`: predicts the wall with changes to launches.

use std::io::{self, Write};
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Error, Result, anyhow, bail};

use super::analysis::with_timelines;
use super::args::WhatifArguments;
use super::output;
use crate::analyze::model::window::Part;
use crate::analyze::predict::whatif::changes::Change;
use crate::analyze::predict::whatif::whatif_report::{
    RequestedChange, WhatIfError, WhatIfReport, of_several, whatif_report,
};
use crate::analyze::sites::select::Selector;
use crate::present::whatif;

/// Runs the verb.
///
/// # Errors
/// When a selection is invalid or selects nothing, or when the recording cannot be read or is incomplete.
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
    let text = if arguments.json.json {
        arguments.json.text(&whatif::json(&whatif_report))?
    } else {
        output::with_glyphs(whatif::render(&whatif_report, output::width(&io::stdout())))
    };
    anstream::stdout().lock().write_all(text.as_bytes()).context("failed to write the prediction")
}

/// Predicts the wall from one recording.
fn read(file: &Path, arguments: &WhatifArguments, requested: &[RequestedChange]) -> Result<WhatIfReport> {
    with_timelines(file, arguments.window.part(Part::Main), |input| {
        output::print_contradictions(file, &input.contradictions);
        let report = whatif_report(input.recording, input.forest, input.timelines, requested);
        report.map_err(|error| with_hint(error, file, arguments))
    })
}

/// Adds to an error the commands that list what can be selected. They name the recording as the user typed it.
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

/// Returns the changes that the options request.
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
    let mut requested = Vec::new();
    for (option, change, texts) in selecting {
        for text in texts {
            requested.push(change_of_selection(option, change, text)?);
        }
    }
    for text in &arguments.batch {
        let (selection, size) = parse_batch(text)?;
        requested.push(change_of_selection("batch", Change::Batch(size), selection)?);
    }
    for text in &arguments.replace {
        let (selection, thousandths) = parse_replacement(text)?;
        requested.push(change_of_selection("replace", Change::Replace(thousandths), selection)?);
    }
    for text in &arguments.jobs {
        let (selection, jobs) = parse_jobs(text)?;
        requested.push(change_of_selection("jobs", Change::Jobs(jobs), selection)?);
    }
    if arguments.no_scan {
        requested.push(RequestedChange::of_all("--no-scan", Change::NoScan));
    }
    if let Some(cpus) = arguments.cpus {
        requested.push(RequestedChange::of_all(format!("--cpus {cpus}"), Change::Cpus(cpus)));
    }
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

fn parse_batch(text: &str) -> Result<(&str, u32)> {
    parse_number(text)
        .filter(|(_, size)| *size >= 2)
        .with_context(|| format!("--batch `{text}`: give SEL=K, where K launches become one, for example mv=50"))
}

fn parse_replacement(text: &str) -> Result<(&str, u32)> {
    let (selection, ratio) =
        parse_number::<f64>(text).filter(|(_, ratio)| (0.0..=1000.0).contains(ratio)).with_context(|| {
            format!("--replace `{text}`: give SEL=RATIO, where RATIO is from 0 to 1000, for example gzip=0.3")
        })?;
    Ok((selection, (ratio * 1000.0).round() as u32))
}

/// Parses `SEL=NUMBER`.
fn parse_number<N: FromStr>(text: &str) -> Option<(&str, N)> {
    let (selection, number) = text.rsplit_once('=')?;
    Some((selection, number.parse().ok()?))
}

/// Parses `SEL=N`, or `N` for all launches.
fn parse_jobs(text: &str) -> Result<(&str, u32)> {
    let (selection, jobs) = text.rsplit_once('=').unwrap_or(("*", text));
    let jobs = jobs.parse().ok().filter(|jobs| *jobs >= 2).ok_or_else(|| {
        anyhow!("--jobs `{text}`: give N or SEL=N, where N launches run at a time, for example convert=4")
    })?;
    Ok((selection, jobs))
}
