//! The doctor's findings, as text and as JSON.

use serde_json::{Value, json};

use super::json_values::nanos;
use super::page::{FINDING, PLAIN, Page, QUIET, TITLE, plain, styled};
use super::{text, units};
use crate::doctor::{Check, Diagnosis, Effect, Finding, Load, Severity};

const SCHEMA_VERSION: u32 = 1;
const INDENT: usize = 5;
const ID_WIDTH: usize = 20;

/// Renders the problems with their fixes; with `full`, also the evidence, what the fixes cost, and
/// notes.
pub fn render(diagnosis: &Diagnosis, full: bool, width: usize) -> String {
    let mut page = Page::of_width(width);
    let (problems, notes): (Vec<&Finding>, Vec<&Finding>) =
        diagnosis.findings.iter().partition(|finding| finding.severity == Severity::Problem);
    print_summary(&mut page, diagnosis);
    for (number, finding) in (1..).zip(problems) {
        page.line([]);
        print_finding(&mut page, &format!("  {number}. "), finding, full);
    }
    if full {
        if !notes.is_empty() {
            page.heading("Notes: not problems, but they explain the figures");
        }
        for finding in notes {
            page.line([]);
            print_finding(&mut page, "   * ", finding, full);
        }
        if !diagnosis.not_examined.is_empty() {
            page.heading("Not checked");
        }
        for not_examined in &diagnosis.not_examined {
            let what = format!("{}: {}", not_examined.check, text::escape(not_examined.what.as_bytes()));
            page.sentence(2, QUIET, &what);
        }
    } else {
        let (notes, not_examined) = (notes.len() as u64, diagnosis.not_examined.len() as u64);
        // Without problems, a second line is printed only for items that could hide one.
        if not_examined > 0 || diagnosis.has_problems() {
            page.line([]);
            page.sentence(2, QUIET, &omitted_note(notes, not_examined, diagnosis.has_problems()));
        }
    }
    page.finish()
}

fn print_summary(page: &mut Page, diagnosis: &Diagnosis) {
    let launch = diagnosis.launch;
    let times = [launch.fork, launch.exec_static, launch.exec_dynamic];
    let [fork, exec_static, exec_dynamic] = times.map(units::time);
    let cost = format!("fork {fork}, static exec {exec_static}, dynamic exec {exec_dynamic}");
    let problems = diagnosis.findings.iter().filter(|finding| finding.severity == Severity::Problem).count() as u64;
    let by_these_checks = if diagnosis.is_complete { "" } else { " by these checks" };
    let is_timed = times.iter().all(Option::is_some);
    let found = match problems {
        0 if is_timed => format!("no problems found{by_these_checks}: {cost}"),
        0 => format!("no problems found{by_these_checks}, but not all launches could be timed"),
        1 => format!("1 problem found{by_these_checks}"),
        _ => format!("{} problems found{by_these_checks}, largest effect first", units::count(problems)),
    };
    page.sentence(0, if problems == 0 { PLAIN } else { FINDING }, &found);
    if problems > 0 || !is_timed {
        page.sentence(2, PLAIN, &format!("a launch on this machine: {cost}"));
    }
    if let Some(busy) = diagnosis.load.filter(Load::is_busy) {
        let (load, cpus) = (busy.average, units::counted(busy.cpus, "CPU", "CPUs"));
        let busy = format!("the machine is busy (load {load:.1} on {cpus}): times are longer than when it is idle");
        page.sentence(2, QUIET, &busy);
    }
    if let Some(environment) = &diagnosis.environment {
        page.sentence(2, QUIET, &text::escape(environment.as_bytes()));
    }
}

fn omitted_note(notes: u64, not_examined: u64, has_problems: bool) -> String {
    let evidence = has_problems.then(|| "evidence, what each fix costs".to_owned());
    let notes = (notes > 0).then(|| units::counted(notes, "note", "notes"));
    let not_examined = (not_examined > 0).then(|| {
        let items = units::counted(not_examined, "item", "items");
        format!("{items} that could not be checked")
    });
    let all: Vec<String> = evidence.into_iter().chain(notes).chain(not_examined).collect();
    format!("`spawnscope doctor --full` also prints {}", all.join(", "))
}

fn print_finding(page: &mut Page, mark: &str, finding: &Finding, full: bool) {
    page.hanging([plain(mark)], TITLE, &text::escape(finding.title.as_bytes()));
    if let Some(effect) = finding.effect {
        page.sentence(INDENT, PLAIN, &cost(effect));
    }
    for sentence in finding.evidence.iter().filter(|_| full) {
        page.sentence(INDENT, PLAIN, &text::escape(sentence.as_bytes()));
    }
    for line in &finding.fix {
        if line.starts_with("  ") {
            page.command(INDENT, &text::escape(line.as_bytes()));
        } else {
            page.hanging([plain(format!("{:INDENT$}-> ", ""))], PLAIN, &text::escape(line.as_bytes()));
        }
    }
    if !full {
        return;
    }
    page.sentence(INDENT, QUIET, &format!("cost of the fix: {}", text::escape(finding.fix_cost.as_bytes())));
    page.sentence(INDENT, QUIET, &format!("checked ({}): {}", finding.check, finding.examined));
}

fn cost(effect: Effect) -> String {
    let more_than = if effect.is_lower_bound { "more than " } else { "" };
    let span = units::time(effect.span);
    format!("effect: {more_than}{span} for {} ({})", effect.affected, effect.basis.name())
}

pub fn list(checks: &[Check], width: usize) -> String {
    let mut page = Page::of_width(width);
    for check in checks {
        page.hanging([styled(TITLE, text::pad_right(check.id, ID_WIDTH))], PLAIN, check.examines);
    }
    page.finish()
}

pub fn list_json(checks: &[Check]) -> String {
    let value = json!({
        "schema_version": SCHEMA_VERSION,
        "checks": checks.iter().map(|check| json!({"name": check.id, "about": check.examines})).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

pub fn json(diagnosis: &Diagnosis) -> String {
    let value = json!({
        "schema_version": SCHEMA_VERSION,
        "launch_cost_ns": {
            "fork": nanos(diagnosis.launch.fork),
            "exec_static": nanos(diagnosis.launch.exec_static),
            "exec_dynamic": nanos(diagnosis.launch.exec_dynamic),
        },
        "load_average": diagnosis.load.map(|load| load.average),
        "cpus": diagnosis.load.map(|load| load.cpus),
        "findings": diagnosis.findings.iter().map(finding).collect::<Vec<_>>(),
        "unseen": diagnosis.not_examined.iter().map(|not_examined| json!({
            "check": not_examined.check,
            "what": not_examined.what,
        })).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

fn finding(finding: &Finding) -> Value {
    json!({
        "check": finding.check,
        "severity": finding.severity.name(),
        "title": finding.title,
        "looked_at": finding.examined,
        "evidence": finding.evidence.join(". "),
        "effect_ns": finding.effect.map(|effect| effect.span.0),
        "effect_is_lower_bound": finding.effect.map(|effect| effect.is_lower_bound),
        "effect_of": finding.effect.map(|effect| effect.affected),
        "effect_basis": finding.effect.map(|effect| effect.basis.name()),
        "fix": finding.fix.join("\n"),
        "fix_cost": finding.fix_cost,
    })
}
