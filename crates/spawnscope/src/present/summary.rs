//! The first screen: what the wall time went into, what to change with the edit and its saving, and
//! a table that has a row for every program that the text names. If the lines of a terminal do not
//! suffice, texts are shortened, never the table. `table` has the full report.

use super::headline::{self, facts};
use super::page::{Column, Columns, PLAIN, Page, QUIET, TITLE, column, plain, styled};
use super::{advice, findings, text, units, verdict, words};
use crate::analyze::explain::advice::{Advice, AdviceList, Rejection};
use crate::analyze::explain::report::Report;
use crate::analyze::model::phases::Phase;
use crate::analyze::path::groups::Group;
use crate::event::Nanos;

/// Number of lines if the report is not for a terminal.
const LINES_OF_A_FILE: usize = 50;
/// Maximum rows of the table, except those of programs that the text names.
const MAX_ROWS: usize = 15;
/// Rows that the table has in any case. Texts are shortened for them.
const MIN_ROWS: usize = 3;
const LABEL_WIDTH: usize = 11;
const NAME_WIDTH: usize = 8;
/// Minimum width of a call site, in columns. Without this room, the table has none.
const MIN_SITE_WIDTH: usize = 8;
const MIN_COMMAND_WIDTH: usize = 24;
const MAX_EDITS: usize = 3;
/// A shortened fix has at most about this many lines.
const MAX_SHORT_LINES: usize = 2;
/// A figure that exceeds another one, of which it seems to be a part, is explained from this share
/// on.
const SURPRISING: f64 = 0.02;

const FIGURES: [Column; 4] =
    [column("started", 9, 3), column(WITHOUT, 18, 4), column("total", 9, 1), column("start-up", 10, 2)];
const WITHOUT: &str = "saved without it";
/// Explains the word, unless a sentence above does.
const LEGEND: &str = "start-up: starting and ending a program, everything but its own run";
/// Explains rows without a saving.
const NO_SAVING: &str = "-: not predicted: at most eight programs are, and never the command itself";
/// Explains totals that are longer than the command.
const NESTED_TOTALS: &str = "total: summed over launches, even if they overlap or one waits for another";
/// Explains savings that are larger than the total.
const SAVED_IN_PARENTS: &str = "saved without it: includes what the launches cost their parents";

/// Explains a start-up that is long because parents look late.
const UNNOTICED: &str = "start-up: includes the time until the parent notices that a program ended";

/// How much the text above the table says.
#[derive(Clone, Copy)]
pub(super) struct Detail {
    advice: usize,
    /// Number of pieces of advice that have the lines of their fixes.
    fixes: usize,
    /// Whether the fixes also have the finding, the line of the script, and all lines that change.
    has_findings: bool,
    has_legend: bool,
}

pub(super) const DETAILS: [Detail; 8] = [
    Detail { advice: 3, fixes: 3, has_findings: true, has_legend: true },
    Detail { advice: 3, fixes: 3, has_findings: false, has_legend: true },
    Detail { advice: 3, fixes: 2, has_findings: false, has_legend: true },
    Detail { advice: 3, fixes: 1, has_findings: false, has_legend: true },
    Detail { advice: 2, fixes: 1, has_findings: false, has_legend: true },
    Detail { advice: 1, fixes: 1, has_findings: false, has_legend: true },
    Detail { advice: 1, fixes: 1, has_findings: false, has_legend: false },
    Detail { advice: 1, fixes: 0, has_findings: false, has_legend: false },
];

/// Renders the first screen for a terminal of `height` lines, of which the last is for the prompt;
/// `None` if it is for a file. `file` is the recording as the user must type it; `None` means the
/// default file.
pub fn render(report: &Report, width: usize, height: Option<usize>, file: Option<&str>) -> String {
    let lines = height.map_or(LINES_OF_A_FILE, |height| height.saturating_sub(1));
    let screens = DETAILS.iter().map(|detail| render_with(report, *detail, width, lines, file));
    let mut last = String::new();
    for screen in screens {
        last = screen;
        if last.lines().count() <= lines {
            break;
        }
    }
    last
}

fn render_with(report: &Report, detail: Detail, width: usize, lines: usize, file: Option<&str>) -> String {
    let mut above = Page::of_width(width);
    print_headline(&mut above, report);
    let sentences = verdict::or_why_none(report);
    above.line([]);
    sentences.iter().for_each(|sentence| above.sentence(2, TITLE, sentence));
    let explained = headline::report_to_explain(report);
    let no_fix = advice::no_fix(explained);
    if no_fix.is_some() || !explained.advices.worth.is_empty() {
        above.line([]);
    }
    no_fix.into_iter().for_each(|sentence| above.sentence(2, PLAIN, sentence));
    print_advice(&mut above, report, detail);
    let has_verdict = !sentences.iter().any(|sentence| sentence.starts_with(verdict::NO_VERDICT));
    let (above, below) = (above.finish(), render_below_table(report, has_verdict, width, file));
    let plain_text = anstream::adapter::strip_str(&above).to_string();
    let named = words_of(&plain_text);
    let room = lines.saturating_sub(above.lines().count() + below.lines().count());
    let legend = if plain_text.contains(verdict::START_UP) { None } else { Some(LEGEND) };
    let legends = detail.has_legend.then_some(legend);
    let table = |rows| {
        let mut page = Page::of_width(width);
        print_table(&mut page, report, &named, rows, legends);
        page.finish()
    };
    let mut tables = (MIN_ROWS..=MAX_ROWS).rev().map(table);
    let fitting = tables.find(|table| table.lines().count() <= room);
    above + &fitting.unwrap_or_else(|| table(MIN_ROWS)) + &below
}

/// Prints the command, and at the right end the facts about the recording.
fn print_headline(page: &mut Page, report: &Report) {
    let facts = facts(report).join(", ");
    let available = page.width().saturating_sub(text::width(&facts) + 2);
    let title = headline::title(report, available.max(MIN_COMMAND_WIDTH));
    if available < MIN_COMMAND_WIDTH {
        page.line([styled(TITLE, headline::title(report, page.width()))]);
        page.sentence(2, PLAIN, &facts);
    } else {
        page.line([styled(TITLE, text::pad_right(&title, available)), plain(format!("  {facts}"))]);
    }
    if let Some(caveat) = report.info.slowed_by() {
        page.sentence(2, QUIET, &text::escape(caveat.as_bytes()));
    }
}

/// Prints the pieces of advice with the largest savings, each with the edit or a description of the
/// fix.
pub(super) fn print_advice(page: &mut Page, report: &Report, detail: Detail) {
    let advices = &headline::report_to_explain(report).advices;
    let shown = distinct_advice(&advices.worth, detail.advice);
    let saving_text = |saving| headline::share_and_amount(saving, advices.unrecorded);
    // The saving of several together is that of the first ones.
    let are_the_first = shown.len() == advices.worth.len().min(advice::MAX_IN_REPORT);
    let together = advices.together.filter(|[expected, ..]| are_the_first && expected.0 > 0);
    // Of some advice, the most that it can save is shown.
    let likely = if shown.iter().any(|advice| advice.saving[1].0 == 0) { "likely save" } else { "save " };
    let together = together.map(|together| format!("{likely} {}", saving_text(together)));
    let savings: Vec<String> = shown.iter().map(|advice| format!("saves {}", saving_text(advice.saving))).collect();
    let available = page.width().saturating_sub(2 + LABEL_WIDTH);
    let widest = savings.iter().chain(&together).map(|saving| text::width(saving)).max().unwrap_or_default();
    let room = available.saturating_sub(widest + 2);
    for (number, (advice, saving)) in shown.iter().zip(&savings).enumerate() {
        let label = if number == 0 { "Fix first" } else { "Then" };
        print_subject(page, label, &advice::subject(advice), saving, room);
        if number < detail.fixes {
            print_fix(page, advice, detail.has_findings);
        }
    }
    if let Some(saving) = together {
        let label = if shown.len() == 2 { "Both" } else { "Together" };
        print_subject(page, label, "", &saving, room);
    }
    if detail.has_legend && !shown.is_empty() {
        page.sentence(2, QUIET, &headline::savings_legend(report.wall, advices.unrecorded));
    }
}

fn label_span(label: &str) -> super::page::Span {
    styled(TITLE, format!("  {}", text::pad_right(label, LABEL_WIDTH)))
}

/// Prints what to change, and the saving in its own column after `room` for the first. What does
/// not fit beside the other has its own line.
fn print_subject(page: &mut Page, label: &str, subject: &str, saving: &str, room: usize) {
    if room < MIN_COMMAND_WIDTH && subject.is_empty() {
        page.hanging([label_span(label)], TITLE, saving);
    } else if room < MIN_COMMAND_WIDTH {
        page.hanging([label_span(label)], PLAIN, subject);
        page.sentence(2 + LABEL_WIDTH, TITLE, saving);
    } else if text::width(subject) <= room {
        let subject = plain(format!("{}  ", text::pad_right(subject, room)));
        page.line([label_span(label), subject, styled(TITLE, saving)]);
    } else {
        page.line([label_span(label), plain(subject)]);
        page.line([plain(" ".repeat(2 + LABEL_WIDTH + room + 2)), styled(TITLE, saving)]);
    }
}

/// Prints the edits; without any, the finding and what to do.
fn print_fix(page: &mut Page, advice: &Advice, has_finding: bool) {
    let indent = 2 + LABEL_WIDTH;
    let subject = advice::subject(advice);
    // A single edit at the place of the line above has no place of its own.
    let has_places =
        advice.edited.len() > 1 || !advice.edited.iter().all(|edited| subject.contains(&advice::place(edited)));
    let most = if has_finding && has_places { MAX_EDITS } else { 1 };
    let finding = &advice.finding;
    let print_limit = |page: &mut Page, limits: &str| {
        let clause = limits.split("; ").next().unwrap_or_default();
        advice::print_limits(page, indent, clause);
    };
    if advice::has_most_lines(advice) && advice::print_changed_lines(page, indent, advice, most) > 0 {
        print_limit(page, if has_finding { &advice.edit_limits } else { "" });
        return;
    }
    let mut step = first_step(&finding.fix);
    if has_finding || step.is_empty() {
        let title = text::escape(finding.title.as_bytes());
        // The line above has the place.
        let place = advice::site(&advice.callers).map(|site| format!(", at {site}")).unwrap_or_default();
        page.sentence(indent, PLAIN, title.strip_suffix(&place).unwrap_or(&title));
    }
    if has_finding && !advice.line.is_empty() && !finding.is_fixed_elsewhere {
        page.line([plain(" ".repeat(indent)), styled(QUIET, text::escape(&advice.line))]);
    }
    if !step.is_empty() {
        let arrow = format!("{:indent$}-> ", "");
        if !has_finding {
            step = text::truncate(&step, MAX_SHORT_LINES * page.width().saturating_sub(arrow.len()));
        }
        page.hanging([plain(arrow)], PLAIN, &step);
    }
    // Whether other code may take the place of the user's is in the first clause of the caveat.
    if step.contains("  ->  ") {
        print_limit(page, &finding.limits);
    }
}

/// Returns the first sentence of a fix and what continues it: a line after a colon, or code after
/// the code that it replaces.
fn first_step(fix: &[String]) -> String {
    let mut step = String::new();
    for line in fix {
        let text = text::escape(line.trim().as_bytes());
        match step.is_empty() {
            true => step = text,
            // Of a here-document, one line is of no use.
            false if step.ends_with(':') && !text.contains("<<END") => step = format!("{step} {text}"),
            false if text.starts_with("->") => step = format!("{step}  {text}"),
            false => break,
        }
    }
    step.trim_end_matches(':').to_owned()
}

/// Returns the first pieces of advice, without any that mostly covers the launches of an earlier
/// one: both together would save little more than one.
fn distinct_advice(advices: &[Advice], most: usize) -> Vec<&Advice> {
    let mut chosen: Vec<&Advice> = Vec::new();
    for advice in advices {
        if chosen.len() == most {
            break;
        }
        if !chosen.iter().any(|other| has_same_launches(other, advice)) {
            chosen.push(advice);
        }
    }
    chosen
}

/// Whether more than half of the launches of the larger one also belong to the other one.
fn has_same_launches(one: &Advice, other: &Advice) -> bool {
    let (one, other) = (&one.finding.launches, &other.finding.launches);
    let common = one.iter().filter(|launch| other.binary_search(launch).is_ok()).count();
    2 * common > one.len().max(other.len())
}

/// Returns the words of a text, with and without the punctuation around them: each may be the name
/// of a program.
fn words_of(text: &str) -> Vec<&str> {
    let is_punctuation = |each: char| matches!(each, ',' | ';' | ':' | '.' | '\'' | '"' | '`');
    let words = text.split_whitespace().map(|word| word.trim_matches(is_punctuation));
    words.flat_map(|word| [word, word.trim_matches(['(', ')']).trim_matches(is_punctuation)]).collect()
}

/// Prints the table: the programs without which most is saved, and each program that the text above
/// names. It has at most `most` rows, unless the text names more programs. `legends` are
/// explanations, of which the caller knows one.
fn print_table(page: &mut Page, report: &Report, named: &[&str], most: usize, legends: Option<Option<&str>>) {
    let labels: Vec<String> = report.groups.iter().map(|group| text::escape(&group.label)).collect();
    let is_named = |index: &usize| named.contains(&labels[*index].as_str());
    let count = (0..labels.len()).filter(is_named).count();
    let mut others = most.saturating_sub(count);
    let shown = (0..labels.len()).filter(|index| {
        is_named(index) || {
            let has_room = others > 0;
            others = others.saturating_sub(1);
            has_room
        }
    });
    let shown: Vec<&Group> = shown.map(|index| &report.groups[index]).collect();
    if shown.is_empty() {
        return;
    }
    page.line([]);
    print_rows(page, &shown, report.advices.unrecorded);
    let more = report.groups.len() - shown.len();
    if more > 0 {
        page.line([styled(QUIET, format!("  ... {} more: report --full", units::count(more as u64)))]);
    }
    if let Some(legend) = legends {
        let meanings = legend.into_iter().chain(surprises(report, &shown));
        meanings.for_each(|meaning| page.sentence(2, QUIET, meaning));
        for meaning in words::explain_parentheses(shown.iter().map(|group| group.label.as_slice())) {
            page.sentence(2, QUIET, &meaning);
        }
    }
}

/// Returns explanations of figures that look impossible without one.
fn surprises(report: &Report, groups: &[&Group]) -> Vec<&'static str> {
    let exceeds = |a: Nanos, b: Nanos| a.0 as f64 > (1.0 + SURPRISING) * b.0 as f64;
    let is_nested = groups.iter().any(|group| exceeds(group.sums.total, report.wall));
    let is_shared = groups.iter().any(|group| group.depends.is_some_and(|saved| exceeds(saved, group.sums.total)));
    let is_predicted = |group: &&Group| group.depends.is_some();
    let is_partial = groups.iter().any(is_predicted) && !groups.iter().all(is_predicted);
    let is_unnoticed = groups.iter().any(|group| {
        let [reap, tax] = [group.sums.phases.get(Phase::Reap).time, group.sums.tax].map(Option::unwrap_or_default);
        2 * reap.0 > tax.0 && tax.0 as f64 > SURPRISING * report.wall.0 as f64
    });
    let surprises =
        [(is_nested, NESTED_TOTALS), (is_shared, SAVED_IN_PARENTS), (is_unnoticed, UNNOTICED), (is_partial, NO_SAVING)];
    surprises.into_iter().filter_map(|(is_shown, text)| is_shown.then_some(text)).collect()
}

fn print_rows(page: &mut Page, groups: &[&Group], unrecorded: Nanos) {
    let has_savings = groups.iter().any(|group| group.depends.is_some());
    let columns: Vec<Column> = FIGURES.into_iter().filter(|each| each.title != WITHOUT || has_savings).collect();
    let rows: Vec<Vec<String>> = groups.iter().map(|group| figures(group, has_savings, unrecorded)).collect();
    let names: Vec<String> = groups.iter().map(|group| text::escape(&group.label)).collect();
    let sites: Vec<String> = groups.iter().map(|group| advice::site(&group.callers).unwrap_or_default()).collect();
    let columns = Columns::fit(page.width().saturating_sub(2 + NAME_WIDTH), &columns, &rows);
    let name_width = columns.name_width(page.width(), text::widest(&names, "program"));
    let site_width = page.width().saturating_sub(2 + name_width + columns.width() + 2);
    let has_sites = site_width >= MIN_SITE_WIDTH && sites.iter().any(|site| !site.is_empty());
    let line = |name: &str, figures: &str, site: &str| {
        let site = if has_sites { format!("  {}", text::abridge(site, site_width)) } else { String::new() };
        format!("  {}{figures}{site}", text::pad_right(name, name_width)).trim_end().to_owned()
    };
    page.line([styled(QUIET, line("program", &columns.titles(), "where"))]);
    for ((name, figures), site) in names.iter().zip(&rows).zip(&sites) {
        page.line([plain(line(name, &columns.row(figures), site))]);
    }
}

fn figures(group: &Group, has_savings: bool, unrecorded: Nanos) -> Vec<String> {
    let sums = &group.sums;
    let saved = |saved| format!("{}, {}", units::time(saved), units::percent(saved, unrecorded));
    let saved = has_savings.then(|| group.depends.map_or_else(|| "-".to_owned(), saved));
    let total = (sums.timed > 0).then_some(sums.total);
    let figures = [Some(units::count(sums.count)), saved, Some(units::time(total)), Some(units::time(sums.tax))];
    figures.into_iter().flatten().collect()
}

pub(super) fn print_warnings_and_note_count(page: &mut Page, report: &Report) {
    let notes = findings::print_warnings(page, report);
    if notes > 0 {
        let notes = units::counted(notes as u64, "note", "notes");
        let sentence = format!("{notes} about these figures: see --full");
        page.sentence(2, QUIET, &sentence);
    }
}

/// Prints warnings and what to run next. Without a verdict, that is what shows the programs.
fn render_below_table(report: &Report, has_verdict: bool, width: usize, file: Option<&str>) -> String {
    let mut page = Page::of_width(width);
    page.line([]);
    print_warnings_and_note_count(&mut page, report);
    if !has_verdict && report.info.command.is_empty() {
        page.sentence(
            2,
            PLAIN,
            "To explain one command: `spawnscope record -- CMD`. To watch the machine: `spawnscope top`.",
        );
    }
    let file = headline::argument(file);
    let AdviceList { worth, not_worth, .. } = &headline::report_to_explain(report).advices;
    let is_uncertain = not_worth.iter().any(|(doubt, _)| *doubt == Rejection::Uncertain);
    let advise = match worth.is_empty() {
        false => Some("advise"),
        true if is_uncertain => Some("advise --all"),
        true => None,
    };
    let programs: &[&str] = if has_verdict { &[] } else { &["report --by parent", "tree"] };
    let verbs = advise.into_iter().chain(programs.iter().copied()).chain(["report --full", "html --open"]);
    let commands: Vec<String> = verbs.map(|verb| format!("spawnscope {verb}{file}")).collect();
    page.commands("Next: ", &commands);
    page.finish()
}
