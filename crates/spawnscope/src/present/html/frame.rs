//! The frame of the page: the part that can be read, printed and searched without scripts. The
//! template escapes all text from a recording.

use std::io;

use askama::Template;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::Contents;
use crate::analyze::explain::advice::{Advice, EditedLine};
use crate::analyze::explain::report::Report;
use crate::analyze::model::phases::Phase;
use crate::present::page::Page;
use crate::present::{advice, critical, findings, headline, text, units, verdict, words};

const SCRIPT: &str = include_str!("bundle/page.js");
pub(super) const STYLE: &str = include_str!("bundle/page.css");
const TITLE_COLUMNS: usize = 160;
/// Width at which notes are wrapped, in columns. It is large, because the browser wraps them.
const NOTE_COLUMNS: usize = 1000;
/// Width of the drawings in the frame, in units of their viewBox.
const DRAWING_WIDTH: f64 = 1000.0;

#[derive(Template)]
#[template(path = "report.html")]
struct Frame<'f> {
    policy: String,
    version: &'static str,
    title: String,
    verdict: Vec<String>,
    totals: String,
    notes: Vec<String>,
    phases: Vec<PhaseRow>,
    parts: Vec<[String; 3]>,
    advice: Vec<AdviceItem>,
    together: Option<String>,
    advise: String,
    style: &'static str,
    script: &'static str,
    data: &'f str,
}

/// A row of the table of phases, and the segment of the bar for this phase.
struct PhaseRow {
    name: &'static str,
    time: String,
    share: String,
    mean: String,
    causes: &'static str,
    x: String,
    width: String,
}

struct AdviceItem {
    subject: String,
    title: String,
    saving: String,
    /// The fix of the title.
    own: FixItem,
    /// Share of the wall time, and how the saving was derived.
    basis: String,
    /// Positions of the lower end, the expected value and the upper end on a line from 0 to the
    /// wall without recording overhead.
    interval: [String; 3],
    evidence: Vec<String>,
    example: String,
    limits: String,
    /// Other fixes of the same cause.
    alternatives: Vec<FixItem>,
    whatif: Option<String>,
    overlaps: String,
}

/// What to do: the lines of the user's files that change, or sentences and code.
struct FixItem {
    saving: String,
    /// The first sentence, which names the fix.
    sentence: String,
    parts: Vec<FixPart>,
    /// The changed lines as `advise --patch` prints them.
    patch: String,
    is_edited_after_others: bool,
}

/// A part of a fix: a sentence or the place of an edit, or lines to type, each with its class.
#[derive(Default)]
struct FixPart {
    text: String,
    lines: Vec<(&'static str, String)>,
}

/// The classes of lines.
const NEW: &str = "new";
const OLD: &str = "old";
const SAME: &str = "same";

pub(super) fn render(contents: &Contents<'_, '_>, data: &str) -> io::Result<String> {
    let report = contents.report;
    let file = contents.file.map_or_else(String::new, |file| format!(" {file}"));
    let frame = Frame {
        policy: policy(&[SCRIPT], &[STYLE]),
        version: env!("CARGO_PKG_VERSION"),
        title: headline::title(report, TITLE_COLUMNS),
        verdict: verdict::sentences(report).unwrap_or_default(),
        totals: headline::totals(report),
        notes: notes(report),
        phases: phases(report),
        parts: wall_parts(report),
        advice: report.advices.worth.iter().map(|advice| advice_item(advice, report, &file)).collect(),
        together: advice::combined_saving(&report.advices),
        advise: format!("spawnscope advise --all{file}"),
        style: STYLE,
        script: SCRIPT,
        data,
    };
    frame.render().map_err(io::Error::other)
}

/// Returns the Content-Security-Policy: the page may run only these scripts and use only these
/// styles. It cannot load or send anything.
pub(super) fn policy(scripts: &[&str], styles: &[&str]) -> String {
    format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        hashes(scripts),
        hashes(styles)
    )
}

fn hashes(texts: &[&str]) -> String {
    let hashes: Vec<String> =
        texts.iter().map(|text| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))).collect();
    if hashes.is_empty() { "'none'".to_owned() } else { hashes.join(" ") }
}

fn notes(report: &Report) -> Vec<String> {
    let mut page = Page::of_width(NOTE_COLUMNS);
    findings::print_limits(&mut page, report);
    let printed = anstream::adapter::strip_str(&page.finish()).to_string();
    let lines = printed.lines().map(str::trim).filter(|line| !line.is_empty());
    // The first line is the heading. The page shows it as the label of the notes.
    lines.skip(1).map(str::to_owned).collect()
}

fn phases(report: &Report) -> Vec<PhaseRow> {
    let sums = &report.all.phases;
    let total_tax: u64 =
        Phase::TAX.iter().filter_map(|phase| sums.get(*phase).time).map(|time| time.0).fold(0, u64::saturating_add);
    let (mut rows, mut x) = (Vec::new(), 0.0);
    for phase in Phase::ALL {
        let sum = sums.get(phase);
        let is_tax = phase != Phase::Run;
        let width = match sum.time {
            Some(time) if is_tax && total_tax > 0 => DRAWING_WIDTH * time.0 as f64 / total_tax as f64,
            _ => 0.0,
        };
        rows.push(PhaseRow {
            name: phase.name(),
            time: units::time(sum.time),
            share: if is_tax { units::percent(sum.time, report.all.tax) } else { String::new() },
            mean: units::time(sum.mean()),
            causes: words::phase_causes(phase),
            x: format!("{x:.2}"),
            width: format!("{width:.2}"),
        });
        x += width;
    }
    rows
}

fn wall_parts(report: &Report) -> Vec<[String; 3]> {
    let parts = report.where_the_wall_went.iter();
    parts
        .map(|(what, time)| [critical::description(what), units::time(*time), units::percent(*time, report.wall)])
        .collect()
}

fn advice_item(advice: &Advice, report: &Report, file: &str) -> AdviceItem {
    let finding = &advice.finding;
    let wall = report.advices.unrecorded.0.max(1) as f64;
    let [expected, low, high] = advice.saving;
    let interval = [low, expected, high].map(|time| (DRAWING_WIDTH * time.0 as f64 / wall).min(DRAWING_WIDTH));
    let overlaps: Vec<String> = advice.overlaps.iter().map(|index| (index + 1).to_string()).collect();
    let own = fix_item(advice, report);
    AdviceItem {
        saving: own.saving.clone(),
        own,
        subject: advice::subject(advice),
        title: escape(&finding.title),
        basis: advice::basis(advice),
        interval: interval.map(|position| format!("{position:.2}")),
        evidence: finding.evidence.iter().map(|sentence| escape(sentence)).collect(),
        example: text::command_line(finding.example.iter().map(Vec::as_slice), Some(NOTE_COLUMNS)),
        limits: escape(if advice::has_most_lines(advice) { &advice.edit_limits } else { &finding.limits }),
        alternatives: advice.alternatives.iter().map(|other| alternative(other, report)).collect(),
        whatif: (!finding.whatif.is_empty()).then(|| format!("spawnscope whatif {}{file}", escape(&finding.whatif))),
        overlaps: overlaps.join(", "),
    }
}

fn fix_item(advice: &Advice, report: &Report) -> FixItem {
    let finding = &advice.finding;
    let is_edited = advice::has_most_lines(advice);
    let edits: Vec<FixPart> = advice.edited.iter().filter(|_| is_edited).filter_map(edit_parts).flatten().collect();
    FixItem {
        saving: format!("saves {}", headline::share_and_amount(advice.saving, report.advices.unrecorded)),
        sentence: finding.fix.first().map(|sentence| escape(sentence)).unwrap_or_default(),
        parts: if edits.is_empty() { fix_parts(&finding.fix) } else { edits },
        patch: String::from_utf8_lossy(if is_edited { &advice.patch } else { b"" }).into_owned(),
        is_edited_after_others: advice.is_edited_after_others,
    }
}

/// Returns another fix. Its first sentence is its title.
fn alternative(advice: &Advice, report: &Report) -> FixItem {
    let mut item = fix_item(advice, report);
    if item.parts.first().is_some_and(|first| first.text == item.sentence) {
        item.parts.remove(0);
    }
    item.sentence.truncate(item.sentence.trim_end_matches(':').len());
    item
}

fn edit_parts(edited: &EditedLine) -> Option<[FixPart; 2]> {
    let lines = advice::signed_lines(edited)?.into_iter();
    let lines = lines.map(|line| (if line.starts_with('+') { NEW } else { OLD }, line)).collect();
    let place = FixPart { text: advice::place(edited), lines: Vec::new() };
    Some([place, FixPart { text: String::new(), lines }])
}

/// Splits a fix into sentences and blocks of consecutive lines to type. If the code to replace
/// comes before the code after it, both look like an edit.
fn fix_parts(lines: &[String]) -> Vec<FixPart> {
    let mut parts: Vec<FixPart> = Vec::new();
    for line in lines {
        let Some(code) = line.strip_prefix("  ").map(escape) else {
            parts.push(FixPart { text: escape(line), lines: Vec::new() });
            continue;
        };
        let mut lines = parts.pop_if(|last| !last.lines.is_empty()).unwrap_or_default().lines;
        match code.strip_prefix("-> ") {
            None => match code.split_once("  ->  ") {
                None => lines.push((SAME, code)),
                // After the new code comes how often it is needed.
                Some((old, new)) => {
                    let new = new.split("   (").next().unwrap_or(new);
                    lines.extend([(OLD, format!("- {old}")), (NEW, format!("+ {new}"))]);
                }
            },
            Some(new) => {
                if let Some((class, old)) = lines.last_mut().filter(|(class, _)| *class == SAME) {
                    (*class, *old) = (OLD, format!("- {old}"));
                }
                lines.push((NEW, format!("+ {}", new.trim_start())));
            }
        }
        parts.push(FixPart { text: String::new(), lines });
    }
    parts
}

fn escape(text: &str) -> String {
    text::escape(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundle_cannot_end_its_element() {
        assert!(!SCRIPT.to_lowercase().contains("</script") && !SCRIPT.contains("<!--"));
        assert!(!STYLE.to_lowercase().contains("</style"));
    }
}
