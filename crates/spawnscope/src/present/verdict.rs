//! The verdict: the principal cause of the wall time, even if nothing can be done about it, and the
//! program without which it would be shorter. JSON and traces, which have no list of advice beside
//! it, also get the best fix as a sentence.

use super::headline::{self, share_and_amount};
use super::{critical, text, units};
use crate::analyze::explain::advice::Advice;
use crate::analyze::explain::report::{GroupBy, Report, Spent};
use crate::analyze::model::external_wait::ExternalWait;
use crate::analyze::path::groups::THE_RECORDER;
use crate::analyze::predict::dependence::{Dependence, Work, culprit};
use crate::analyze::predict::replay::{is_reliable, unreliable_text};
use crate::event::Nanos;

/// If the launch tax is at least this share of the wall, it is reported as a problem even without a
/// known fix.
const NOTABLE_TAX: f64 = 0.2;
/// A command that does at least this share of all work is named as the cause.
const DOMINANT_SHARE: f64 = 0.5;
/// The time that depends on a command is reported in addition to its own work only if it exceeds
/// that work by this share of the wall.
const MIN_DIFFERENCE: f64 = 0.05;

/// The beginning of a verdict if there is neither advice, nor a large launch tax, nor a command
/// that the wall depends on.
pub(super) const NOTHING: &str = "Nothing worth changing";

/// The overhead of recording is shown if it is at least this share of the wall without it.
const NOTABLE_OVERHEAD: f64 = 0.05;

/// A program is named as the largest part of the launch tax if it has at least this share of it.
const MOST_OF_THE_TAX: f64 = 0.5;
/// The beginning of a sentence that says why there is no verdict.
pub(super) const NO_VERDICT: &str = "No verdict";
/// What the report calls the launch tax, explained where it stands first.
pub(super) const START_UP: &str = "start-up (starting and ending programs)";
/// If at least this share of the wall time depends on a program that was started once, it is the
/// command under another name, and a sentence about it would say nothing.
const WHOLE_SHARE: f64 = 0.95;
/// Advice says enough about a program if it saves at least this share of what depends on it.
const COVERED_SHARE: f64 = 0.4;

/// The rule that finds scripts that sleep until something happens.
const POLLING: &str = "sleep-loop";

/// Returns the verdict and the best fix as one text. `None` for a recording without scheduling
/// data.
pub fn verdict(report: &Report) -> Option<String> {
    let explained = headline::report_to_explain(report);
    let best = explained.advices.worth.first().filter(|_| explained.replay_error.is_none_or(is_reliable));
    let fix = best.map(|best| best_fix_sentence(best, explained));
    Some(sentences(report)?.into_iter().chain(fix).collect::<Vec<_>>().join(" "))
}

pub(super) fn or_why_none(report: &Report) -> Vec<String> {
    sentences(report).unwrap_or_else(|| vec![format!("{NO_VERDICT}: {}.", why_none(report))])
}

/// Says why a report explains nothing.
pub(super) fn why_none(report: &Report) -> &'static str {
    if report.info.is_live && !report.info.command.is_empty() {
        "this recording is still in progress"
    } else if !report.info.sees_scheduler() {
        "this recording does not contain what processes waited for, so no saving can be predicted; record with eBPF \
         (`sudo spawnscope record -- CMD`)"
    } else {
        "this recording contains no complete command"
    }
}

/// Returns the sentences of the verdict, each with one statement. The verdict on a recording of the
/// whole machine is about its busiest episode.
pub fn sentences(report: &Report) -> Option<Vec<String>> {
    if let Some(busiest) = &report.busiest {
        let title = busiest.window.as_ref().map(headline::window_title).unwrap_or_default();
        let mut sentences = sentences(busiest)?;
        sentences[0] = format!("Busiest episode, {title}: {}", sentences[0]);
        return Some(sentences);
    }
    if report.all.count == 0 {
        return Some(vec![format!("{NO_VERDICT}: nothing was launched.")]);
    }
    if let Some(error) = report.replay_error.filter(|error| !is_reliable(*error)) {
        return Some(vec![format!("{NO_VERDICT}: {}.", unreliable_text(error))]);
    }
    let mut sentences = principal_sentences(report)?;
    let (largest, _) = report.where_the_wall_went.first()?;
    if !matches!(largest, Spent::Tax | Spent::ExternalWait(ExternalWait::Unknown, _)) {
        sentences.push(launch_tax_sentence(report));
    }
    // If it is the largest part, the principal sentence is about it.
    sentences.extend(cpu_waits_sentence(report).filter(|_| !matches!(largest, Spent::RunQueue)));
    let best = report.advices.worth.first();
    if matches!(largest, Spent::ExternalWait(ExternalWait::Timer, _))
        && best.is_none_or(|best| best.finding.rule != POLLING)
    {
        sentences.extend(polling_sentence(report));
    }
    sentences.extend(overhead_sentence(report));
    Some(sentences)
}

/// Formats `Recording made this run 1.14 times as long.`
fn overhead_sentence(report: &Report) -> Option<String> {
    let ratio = report.wall.0 as f64 / report.advices.unrecorded.0.max(1) as f64;
    let is_notable = report.advices.unrecorded > Nanos(0) && ratio >= 1.0 + NOTABLE_OVERHEAD;
    is_notable.then(|| format!("Recording made this run {ratio:.2} times as long."))
}

/// Returns the sentence about a loop that sleeps, even if the event that the loop waits for, and
/// therefore the saving, is unknown.
fn polling_sentence(report: &Report) -> Option<String> {
    let unsure = report.advices.not_worth.iter().map(|(_, advice)| advice);
    let mut all = report.advices.worth.iter().chain(unsure);
    let polling = all.find(|advice| advice.finding.rule == POLLING)?;
    let title = text::escape(polling.finding.title.as_bytes());
    Some(format!("{title}. Wait for the event itself instead, if there is one."))
}

/// Returns the sentences about the largest part of the wall and about the command that most of it
/// depends on.
fn principal_sentences(report: &Report) -> Option<Vec<String>> {
    let (largest, time) = report.where_the_wall_went.first()?;
    let culprit = culprit(&report.dependence, report.advices.unrecorded);
    let named = culprit.filter(|each| !has_advice(each, report) && !is_the_command(each, report));
    let depends = named.map(|each| depends_sentence(each, report));
    let share = units::percent(*time, report.wall);
    let nothing = if has_nothing_to_report(report) { format!("{NOTHING}: ") } else { String::new() };
    Some(match largest {
        Spent::Tax => std::iter::once(launch_tax_sentence(report)).chain(depends).collect(),
        Spent::Run => {
            let work = report.work.as_ref().filter(|most| is_dominant(most, *time));
            let most = format!("{nothing}{}", work_sentence(report, *time, work));
            let more = depends.filter(|_| depends_on_more(culprit, work, report));
            [most].into_iter().chain(more).collect()
        }
        Spent::ExternalWait(ExternalWait::Unknown, _) if depends.is_none() => {
            vec![format!("What {share} of the wall time went into is unknown.")]
        }
        _ => {
            let most = cpu_waits_sentence(report).filter(|_| matches!(largest, Spent::RunQueue));
            let most = most.unwrap_or_else(|| format!("{share} of the wall time {}.", spent_clause(largest)));
            let most = format!("{nothing}{most}");
            depends.into_iter().chain([most]).collect()
        }
    })
}

/// Returns the end of a sentence that begins with `69.0 % of the wall time`.
fn spent_clause(what: &Spent) -> String {
    match what {
        Spent::RunQueue => "was waiting for a CPU: more programs were ready to run than there are CPUs".to_owned(),
        Spent::ExternalWait(ExternalWait::Unknown, _) => "is unknown".to_owned(),
        Spent::ExternalWait(ExternalWait::Recorder, _) => format!("is {}", critical::description(what)),
        _ => format!("went into {}", critical::description(what)),
    }
}

/// Returns the sentence about programs that work most of the time. `most` is the command that does
/// most of the work.
fn work_sentence(report: &Report, all: Nanos, most: Option<&Work>) -> String {
    let Some(most) = most else {
        return format!("{} of the wall time went into running programs.", units::percent(all, report.wall));
    };
    let share = units::percent(most.time, report.wall);
    let label = text::escape(&most.label);
    let started = if most.count > 1 { format!(", {}", started(most.count)) } else { String::new() };
    format!("{share} of the wall time went into running {label}{started}.")
}

fn started(count: u64) -> String {
    match count {
        1 => "started once".to_owned(),
        2 => "started twice".to_owned(),
        _ => format!("started {} times", units::count(count)),
    }
}

fn is_dominant(most: &Work, all: Nanos) -> bool {
    most.time.0 as f64 >= DOMINANT_SHARE * all.0 as f64
}

/// Whether clearly more of the wall depends on the culprit than the dominant command works.
fn depends_on_more(culprit: Option<&Dependence>, work: Option<&Work>, report: &Report) -> bool {
    let own_work = work.map_or(0, |most| most.time.0) as f64;
    culprit.is_some_and(|each| each.saving[0].0 as f64 >= own_work + MIN_DIFFERENCE * report.wall.0 as f64)
}

/// Whether the advice on the launches of a command saves much of what depends on them.
fn has_advice(culprit: &Dependence, report: &Report) -> bool {
    let is_about_it = |advice: &&Advice| advice.launched.iter().any(|(label, _)| *label == culprit.label);
    let saved: u64 = report.advices.worth.iter().filter(is_about_it).map(|advice| advice.saving[0].0).sum();
    saved as f64 >= COVERED_SHARE * culprit.saving[0].0 as f64
}

/// Whether a program is nearly the whole run: `python3` in a script that only starts python3.
fn is_the_command(culprit: &Dependence, report: &Report) -> bool {
    culprit.count == 1 && culprit.saving[0].0 as f64 >= WHOLE_SHARE * report.advices.unrecorded.0 as f64
}

/// Whether there is neither advice, nor a large launch tax, nor a command that the wall depends on.
fn has_nothing_to_report(report: &Report) -> bool {
    let culprit = culprit(&report.dependence, report.advices.unrecorded);
    report.advices.worth.is_empty() && !is_notable(critical_tax(report), report) && culprit.is_none()
}

/// Formats `Without git, started 41 times through xargs, the wall time would be 83.0 % shorter.`
fn depends_sentence(culprit: &Dependence, report: &Report) -> String {
    // As in the table and the advice: a share of the run without recording.
    let share = units::percent(culprit.saving[0], report.advices.unrecorded);
    let forked = |label: &str| Some(label.strip_prefix('(')?.strip_suffix(')')?.to_owned());
    let wrapper = culprit.launched_through.as_ref().map(|label| text::escape(label));
    let through = wrapper.map_or_else(String::new, |label| match forked(&label) {
        Some(name) => format!(" in forks of {name}"),
        None => format!(" through {label}"),
    });
    let label = text::escape(&culprit.label);
    let what = match forked(&label) {
        Some(name) => units::counted(culprit.count, &format!("fork of {name}"), &format!("forks of {name}")),
        None => started(culprit.count),
    };
    format!("Without {label}, {what}{through}, the wall time would be {share} shorter.")
}

fn critical_tax(report: &Report) -> Nanos {
    let tax = report.where_the_wall_went.iter().find(|(what, _)| *what == Spent::Tax);
    tax.map_or(Nanos(0), |(_, tax)| *tax)
}

fn is_notable(tax: Nanos, report: &Report) -> bool {
    tax.0 as f64 >= NOTABLE_TAX * report.wall.0 as f64
}

/// Returns the sentence about the launch tax, with the program that has most of it if the tax is
/// large or the principal cause.
fn launch_tax_sentence(report: &Report) -> String {
    let tax = critical_tax(report);
    let share = units::percent(tax, report.wall);
    let is_principal = matches!(report.where_the_wall_went.first(), Some((Spent::Tax, _)));
    let is_explained = is_principal || is_notable(tax, report);
    let most = most_of(tax, report).filter(|_| is_explained);
    let most = most.map_or_else(String::new, |most| format!(", most of it {most}"));
    format!("{share} of the wall time went into {START_UP}{most}.")
}

fn best_fix_sentence(best: &Advice, report: &Report) -> String {
    let title = text::escape(best.finding.title.as_bytes());
    let saving = share_and_amount(best.saving, report.advices.unrecorded);
    format!("Fix first: {title}. Fixing this saves {saving}.")
}

/// Returns the row of the table that has most of the tax on the critical path, if there is one.
fn most_of(tax: Nanos, report: &Report) -> Option<String> {
    let least = MOST_OF_THE_TAX * tax.0 as f64;
    let groups = report.groups.iter().filter(|group| group.label != THE_RECORDER);
    let largest = groups.clone().max_by_key(|group| group.sums.critical_tax)?;
    // The table below has what is off the critical path, too.
    groups.max_by_key(|group| group.sums.tax).filter(|most| most.label == largest.label)?;
    largest.sums.critical_tax.filter(|tax| tax.0 > 0 && tax.0 as f64 >= least)?;
    let by = match report.group_by {
        GroupBy::Command | GroupBy::Arguments | GroupBy::Subcommand | GroupBy::Label(_) => "",
        GroupBy::Parent | GroupBy::Line | GroupBy::Caller => "by ",
    };
    Some(format!("{by}{}", text::escape(&largest.label)))
}

/// Waits for a CPU are reported if they are at least this share of the wall time.
const NOTABLE_CPU_WAITS: f64 = 0.2;
/// Who held the CPUs is reported as one side only, if the other held them for less than this share
/// of the waits.
const NEARLY_NONE: f64 = 0.1;

/// Returns the sentence about waits for a CPU: how much of the wall time they are, those of running
/// programs and those of new processes, and who held the CPUs. `None` if little of the wall time
/// was waiting for a CPU.
fn cpu_waits_sentence(report: &Report) -> Option<String> {
    let running = report.where_the_wall_went.iter().find(|(what, _)| *what == Spent::RunQueue);
    let running = running.map_or(Nanos(0), |(_, time)| *time);
    let new = report.critical_queue.unwrap_or_default();
    let all = Nanos(running.0 + new.0);
    if report.wall.0 == 0 || (all.0 as f64) < NOTABLE_CPU_WAITS * report.wall.0 as f64 {
        return None;
    }
    let holders = holders(report).map(|holders| format!(": {holders}")).unwrap_or_default();
    let share = |part| units::percent(part, report.wall);
    // Another sentence has the share of starting programs, which contains the waits of new
    // processes.
    let waited = "of the wall time was waiting for a CPU";
    Some(match (running, new) {
        (Nanos(0), _) | (_, Nanos(0)) => format!("{} {waited}{holders}.", share(all)),
        _ => {
            let [ran, started] = [running, new].map(share);
            format!("{ran} {waited} while programs ran, and {started} while they started (part of start-up){holders}.")
        }
    })
}

fn holders(report: &Report) -> Option<String> {
    let waits = report.cpu_waits.filter(|waits| waits.all.0 > 0)?;
    let others = waits.held_by_others.0 as f64 / waits.all.0 as f64;
    Some(if others < NEARLY_NONE {
        "the command's own processes held all CPUs".to_owned()
    } else if others > 1.0 - NEARLY_NONE {
        "unrecorded processes held the CPUs".to_owned()
    } else {
        let share = units::percent(waits.held_by_others, waits.all);
        format!("unrecorded processes held the CPUs for {share} of these waits, the command's own for the rest")
    })
}
