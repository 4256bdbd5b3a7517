//! Advice: the parts that several outputs share, the full text of `spawnscope advise`, and JSON.

use serde_json::{Map, Value, json};

use super::finding_ids::FindingIds;
use super::headline::{self, argument, share_and_amount, title};
use super::json_values::{insert_arguments, insert_callers, nanos};
use super::page::{PLAIN, Page, QUIET, TITLE, plain, styled};
use super::verdict::{NOTHING, verdict, why_none};
use super::{critical, text, units};
use crate::analyze::explain::advice::{Advice, AdviceList, Basis, EditedLine, ForeignCode, Owner, Rejection};
use crate::analyze::explain::report::Report;
use crate::analyze::model::launch::base_name;
use crate::analyze::predict::replay::is_reliable;
use crate::analyze::sites::callers::CallerCounts;
use crate::event::Nanos;

/// Maximum number of findings that a report lists.
pub(super) const MAX_IN_REPORT: usize = 3;
/// Maximum number of changed lines that are shown for a finding.
const MAX_EDITS: usize = 4;
/// Maximum number of other fixes that are shown for a finding.
const MAX_ALTERNATIVES: usize = 2;
/// Maximum number of lines to type that are shown for another fix.
const MAX_RECIPE: usize = 4;
/// Edits are the whole fix if their lines request at least this part of its launches.
const ABOUT_ALL: f64 = 0.95;
/// Edits are shown as the fix if their lines request at least this part of its launches.
const MOST: f64 = 0.5;
/// Precedes lines that another fix has changed, too, or that can only be changed after it.
pub(super) const AFTER_OTHERS: &str = "with the other changes made:";
/// The text if there is no advice. `analyze::explain::advice` defines the limits.
const NO_ADVICE: &str = "No fix found that certainly saves at least 1 % of the wall time and 5 ms.";
const SCHEMA_VERSION: u32 = 1;

pub fn render(report: &Report, all: bool, width: usize, file: Option<&str>) -> String {
    let mut page = Page::of_width(width);
    page.line([styled(TITLE, title(report, width))]);
    let wall = units::time(report.wall);
    let advices = &report.advices;
    if report.replay_error.is_none() {
        let no_advice = if report.info.is_live { "no advice yet" } else { "no advice" };
        page.sentence(2, PLAIN, &format!("{no_advice}: {}", why_none(report)));
        return page.finish();
    }
    if advices.worth.is_empty() {
        let cause = verdict(report).unwrap_or_else(|| format!("{NOTHING}."));
        no_fix(report).into_iter().for_each(|sentence| page.sentence(2, PLAIN, sentence));
        page.sentence(2, PLAIN, &format!("{cause} The wall time is {wall}."));
    }
    for (number, advice) in (1..).zip(&advices.worth) {
        page.line([]);
        page.hanging([plain(format!("  {number}. "))], TITLE, &text::escape(advice.finding.title.as_bytes()));
        page.sentence(5, TITLE, &format!("{}; {}", saves(advice, advices.unrecorded), basis(advice)));
        print_details(&mut page, advice, advices.unrecorded, file);
    }
    let mentions_omitted = !all && !advices.not_worth.is_empty();
    if !advices.worth.is_empty() || mentions_omitted || report.is_reconstructed {
        page.line([]);
    }
    if let Some(saving) = combined_saving(advices) {
        page.sentence(2, PLAIN, &saving);
    }
    if !advices.worth.is_empty() {
        page.sentence(2, QUIET, &headline::savings_legend(report.wall, advices.unrecorded));
    }
    print_not_worth(&mut page, advices, all);
    if report.is_reconstructed {
        page.sentence(2, QUIET, &critical::reconstruction_note(&report.info.collector));
    }
    page.finish()
}

/// Returns the sentence for a report whose verdict has a cause, and which has no advice.
pub(super) fn no_fix(report: &Report) -> Option<&'static str> {
    let is_known = report.replay_error.is_some_and(is_reliable) && report.advices.worth.is_empty();
    (is_known && !verdict(report)?.starts_with(NOTHING)).then_some(NO_ADVICE)
}

fn saves(advice: &Advice, unrecorded: Nanos) -> String {
    format!("saves {}", share_and_amount(advice.saving, unrecorded))
}

/// Returns how the saving was found, and by which rule.
pub(super) fn basis(advice: &Advice) -> String {
    let basis = match advice.finding.basis {
        Basis::Measured => "based on measured times",
        Basis::Modelled => "estimated by a model",
    };
    format!("{basis}; rule {}", advice.finding.rule)
}

fn print_details(page: &mut Page, advice: &Advice, unrecorded: Nanos, file: Option<&str>) {
    let finding = &advice.finding;
    let heading = heading_of_code(advice).map(|place| format!("call site: {place}"));
    for sentence in finding.evidence.iter().filter(|sentence| Some(*sentence) != heading.as_ref()) {
        page.sentence(5, PLAIN, &text::escape(sentence.as_bytes()));
    }
    if !finding.example.is_empty() {
        let width = page.width().saturating_sub(18);
        let example = text::abridged_command_line(finding.example.iter().map(Vec::as_slice), width);
        page.line([styled(QUIET, "     for example: "), plain(example)]);
    }
    if let Some(foreign) = &advice.foreign {
        page.sentence(5, QUIET, &foreign_note(foreign));
    }
    let is_edited = print_edits(page, 5, advice, file);
    if let Some(place) = heading_of_code(advice).filter(|_| !is_edited) {
        page.line([plain(format!("     {place}"))]);
        print_snippet(page, 5, &format!("  {}", text::escape(&advice.line)));
    }
    print_general_form(page, advice);
    print_limits(page, 5, &limits(advice));
    for alternative in advice.alternatives.iter().take(MAX_ALTERNATIVES) {
        print_alternative(page, alternative, file);
        page.sentence(9, QUIET, &format!("{}; rule {}", saves(alternative, unrecorded), alternative.finding.rule));
    }
    let numbers: Vec<String> = advice.overlaps.iter().map(|index| (index + 1).to_string()).collect();
    if !numbers.is_empty() {
        let numbers = numbers.join(", ");
        page.sentence(5, QUIET, &format!("shares launches with {numbers}: the savings do not add up"));
    }
    if !finding.whatif.is_empty() {
        let whatif = text::escape(finding.whatif.as_bytes());
        page.command(5, &format!("try: spawnscope whatif {whatif}{}", argument(file)));
    }
}

/// Whether the lines that are shown are the whole fix.
fn has_all_lines(advice: &Advice) -> bool {
    has_most_lines(advice) && advice.edited.iter().all(|edited| edited.change.is_ok())
}

/// Returns the limits of the edits and, if that is shown, of the general form.
fn limits(advice: &Advice) -> String {
    let general = advice.finding.limits.split("; ").filter(|_| !has_all_lines(advice));
    let of_edits = advice.edit_limits.split("; ");
    let others = general.filter(|limit| !of_edits.clone().any(|other| other == *limit));
    of_edits.clone().chain(others).filter(|limit| !limit.is_empty()).collect::<Vec<_>>().join("; ")
}

pub(super) fn print_limits(page: &mut Page, indent: usize, limits: &str) {
    if !limits.is_empty() {
        page.sentence(indent, QUIET, &format!("caveat: {}", text::escape(limits.as_bytes())));
    }
}

/// Prints how to change the lines that are not shown.
fn print_general_form(page: &mut Page, advice: &Advice) {
    for line in advice.finding.fix.iter().filter(|_| !has_all_lines(advice)) {
        // A snippet must be typed exactly, so it keeps its indentation; a sentence may be wrapped.
        let escaped = text::escape(line.as_bytes());
        if line.starts_with("  ") {
            print_snippet(page, 5, &escaped);
        } else {
            page.sentence(5, PLAIN, &format!("-> {escaped}"));
        }
    }
}

/// Prints another fix of the same cause: what it saves, its first sentence, and the lines that it
/// changes or, if they are few, the first lines to type.
fn print_alternative(page: &mut Page, alternative: &Advice, file: Option<&str>) {
    let escape = |line: &String| text::escape(line.as_bytes());
    let sentence = alternative.finding.fix.iter().find(|line| !line.starts_with("  ")).map(escape).unwrap_or_default();
    // The next line ends with a colon, too.
    let is_edited = alternative.edited.iter().any(|edited| edited.change.is_ok());
    let sentence = if is_edited { sentence.trim_end_matches(':') } else { &sentence };
    page.sentence(5, PLAIN, &format!("or: {sentence}"));
    if print_edits(page, 7, alternative, file) {
        print_limits(page, 7, &alternative.edit_limits);
    } else {
        let is_code = |line: &&String| line.starts_with("  ");
        let recipe: Vec<&String> =
            alternative.finding.fix.iter().skip_while(|line| !is_code(line)).take_while(is_code).collect();
        let recipe = recipe.iter().filter(|_| recipe.len() <= MAX_RECIPE);
        recipe.for_each(|line| print_snippet(page, 7, &escape(line)));
    }
}

pub(super) fn has_most_lines(advice: &Advice) -> bool {
    !advice.edited.is_empty() && advice.edited_share >= MOST
}

/// Prints the lines that the fix changes in the user's files. Returns whether there are any.
fn print_edits(page: &mut Page, indent: usize, advice: &Advice, file: Option<&str>) -> bool {
    let is_edited = advice.edited.iter().any(|edited| edited.change.is_ok());
    if is_edited {
        let command = format!("spawnscope advise --patch{}", argument(file));
        let part = match advice.edited_share {
            share if share < ABOUT_ALL => {
                let count = (share * advice.finding.launches.len() as f64).round() as u64;
                let all = units::counted(advice.finding.launches.len() as u64, "launch", "launches");
                format!("a part of this change, for {} of {all}, ", units::count(count))
            }
            _ => "this change ".to_owned(),
        };
        page.sentence(indent, PLAIN, &format!("-> `{command}` prints {part}as a diff:"));
        print_changed_lines(page, indent, advice, MAX_EDITS);
    }
    is_edited
}

/// Prints the first changes of the fix, and returns how many there are in all. If only one is
/// printed, it is one that replaces a line, and its place is left out.
pub(super) fn print_changed_lines(page: &mut Page, indent: usize, advice: &Advice, most: usize) -> usize {
    let changes: Vec<(&EditedLine, Vec<String>)> =
        advice.edited.iter().filter_map(|edited| Some((edited, signed_lines(edited)?))).collect();
    let replaces = |(_, lines): &(&EditedLine, Vec<String>)| lines.iter().any(|line| line.starts_with('-'));
    let skipped = changes.iter().position(replaces).filter(|_| most == 1).unwrap_or_default();
    if advice.is_edited_after_others && !changes.is_empty() {
        page.sentence(indent, QUIET, AFTER_OTHERS);
    }
    for (edited, lines) in changes.iter().skip(skipped).take(most) {
        if most > 1 {
            page.line([plain(format!("{:indent$}{}", "", place(edited)))]);
        }
        for line in from_the_change(lines, page.width().saturating_sub(indent)) {
            page.line([plain(" ".repeat(indent)), plain(line)]);
        }
    }
    if changes.len() > most {
        let more = units::counted((changes.len() - most) as u64, "more line", "more lines");
        page.sentence(indent, PLAIN, &format!("and {more}"));
    }
    changes.len()
}

/// Returns the lines. Both begin shortly before they differ if they are too wide to show it.
fn from_the_change(lines: &[String], width: usize) -> Vec<String> {
    let common = match lines {
        [old, new] if lines.iter().any(|line| text::width(line) > width) => {
            old.chars().zip(new.chars()).skip(1).take_while(|(old, new)| old == new).count()
        }
        _ => 0,
    };
    // At most a third of the line is what precedes the change.
    let Some(skipped) = common.checked_sub(width / 3).filter(|skipped| *skipped > 1) else {
        return lines.to_vec();
    };
    let shortened =
        |line: &String| line.chars().take(1).chain(" …".chars()).chain(line.chars().skip(1 + skipped)).collect();
    lines.iter().map(shortened).collect()
}

/// Returns where an edit is: `unpack.sh:20`.
pub(super) fn place(edited: &EditedLine) -> String {
    format!("{}:{}", text::escape(base_name(&edited.file)), edited.line)
}

/// Returns the place above the first code that is shown: a changed line, or the line that launches.
fn heading_of_code(advice: &Advice) -> Option<String> {
    let changed = advice.edited.iter().find(|edited| edited.change.is_ok()).map(place);
    let line = advice.finding.line.as_ref().filter(|_| !advice.line.is_empty());
    changed.or_else(|| line.map(|line| format!("{}:{}", text::escape(base_name(&line.file)), line.line)))
}

/// Returns the old lines, marked by `-`, and the new ones, marked by `+`, without the indentation
/// that all have. `None` if the file is not edited.
pub(super) fn signed_lines(edited: &EditedLine) -> Option<Vec<String>> {
    let [before, after] = edited.change.as_ref().ok()?;
    let signed = before.iter().map(|line| ('-', line)).chain(after.iter().map(|line| ('+', line)));
    // Tabs have no width of their own.
    let lines: Vec<(char, String)> =
        signed.map(|(sign, line)| (sign, String::from_utf8_lossy(line).replace('\t', "    "))).collect();
    let margin = lines.iter().map(|(_, line)| line.len() - line.trim_start().len()).min().unwrap_or_default();
    Some(lines.iter().map(|(sign, line)| format!("{sign} {}", text::escape(&line.as_bytes()[margin..]))).collect())
}

/// Names the programs that the advice is about, how often they were started, and where: `mv, 40 x
/// at unpack.sh:21`. Forks are named only if the advice is about nothing else.
pub(super) fn subject(advice: &Advice) -> String {
    let (programs, forks): (Vec<_>, Vec<_>) = advice.launched.iter().partition(|(label, _)| !label.starts_with(b"("));
    let launched = if programs.is_empty() { forks } else { programs };
    let names: Vec<String> = launched.iter().take(2).map(|(label, _)| text::escape(label)).collect();
    let others = if launched.len() > 2 { " ..." } else { "" };
    let times = match launched.iter().map(|(_, count)| count).sum() {
        1 => String::new(),
        count => format!(", {} x", units::count(count)),
    };
    // A place inside of text that one of these programs was given (`sh -c TEXT`) is not named.
    let largest = advice.callers.largest.first().filter(|(site, _)| site.file.is_none());
    let inside = largest.and_then(|(site, _)| site.program.as_ref());
    let is_inside = launched.iter().any(|(label, _)| Some(label) == inside);
    let site = site(&advice.callers).filter(|_| !is_inside).map_or_else(String::new, |site| format!(" at {site}"));
    format!("{}{others}{times}{site}", names.join(" and "))
}

/// Names the line or function that requests most launches, and how many others there are.
pub(super) fn site(callers: &CallerCounts) -> Option<String> {
    let (largest, _) = callers.largest.first()?;
    let others = callers.largest.len() as u64 - 1 + callers.other_call_sites;
    let others = if others > 0 { ", ..." } else { "" };
    Some(format!("{}{others}", text::escape(&largest.short_label())))
}

/// Returns why the user should not edit this file.
fn foreign_note(foreign: &ForeignCode) -> String {
    let file = text::escape(&foreign.file);
    match foreign.owner {
        Owner::Generated => {
            let option = foreign.own_option().map(|option| format!("; {option}")).unwrap_or_default();
            format!("{file} is generated: an edit is lost when the file is generated again{option}")
        }
        Owner::Input => format!("{file} only executes these commands: whoever gives them can change them"),
        Owner::ThirdParty | Owner::User => {
            format!("{file} is not yours: an update would overwrite an edit; report this to its developers")
        }
    }
}

/// Prints a line of a snippet, indented by its own indentation after that of its section.
/// Continuation lines are indented further.
pub(super) fn print_snippet(page: &mut Page, section_indent: usize, escaped: &str) {
    let typed = escaped.trim_start();
    let indent = section_indent + escaped.len() - typed.len();
    let lines = text::wrap(typed, page.width().saturating_sub(indent + 4));
    for (number, line) in lines.into_iter().enumerate() {
        let deeper = if number == 0 { 0 } else { 4 };
        page.line([plain(" ".repeat(indent + deeper)), plain(line)]);
    }
}

/// Returns a sentence on the saving of the first findings together, if that was predicted.
pub(super) fn combined_saving(advices: &AdviceList) -> Option<String> {
    let saving = advices.together.filter(|[expected, ..]| *expected > Nanos(0))?;
    let numbers = match advices.worth.len() {
        2 => "1 and 2".to_owned(),
        several => format!("1 to {}", several.min(MAX_IN_REPORT)),
    };
    let others = if advices.worth.len() > MAX_IN_REPORT { "; the others are not included" } else { "" };
    Some(format!("{numbers} together save {}{others}", share_and_amount(saving, advices.unrecorded)))
}

fn print_not_worth(page: &mut Page, advices: &AdviceList, all: bool) {
    let count = advices.not_worth.len() as u64;
    if count == 0 {
        return;
    }
    if !all {
        let more = if advices.worth.is_empty() { "" } else { "more " };
        let findings = units::counted(count, &format!("{more}finding is"), &format!("{more}findings are"));
        page.sentence(2, QUIET, &format!("{findings} not worth fixing or too uncertain; see `--all`"));
        return;
    }
    let mut previous = None;
    for (rejection, advice) in &advices.not_worth {
        if previous.replace(rejection) != Some(rejection) {
            page.heading(match rejection {
                Rejection::Uncertain => "Too uncertain",
                Rejection::SmallSaving => "Not worth fixing: the saving is too small",
                Rejection::OffPath => "Not worth fixing: off the critical path",
            });
        }
        page.sentence(2, PLAIN, &text::escape(advice.finding.title.as_bytes()));
        let [expected, low, high] = advice.saving.map(units::time);
        let saves = match rejection {
            Rejection::Uncertain => format!("{expected} of the wall time (between {low} and {high})"),
            Rejection::SmallSaving | Rejection::OffPath if advice.saving[0].0 == 0 => {
                format!("at most {high} of the wall time")
            }
            Rejection::SmallSaving | Rejection::OffPath => format!("{expected} of the wall time (at most {high})"),
        };
        page.sentence(5, QUIET, &format!("would save {saves}"));
    }
}

pub fn json(report: &Report) -> Value {
    let advices = &report.advices;
    let ids = FindingIds::of(advices);
    json!({
        "schema_version": SCHEMA_VERSION,
        "wall_ns": report.wall.0,
        "unrecorded_ns": report.replay_error.map(|_| advices.unrecorded.0).filter(|wall| *wall > 0),
        "replay_error": report.replay_error,
        "collector": report.info.collector,
        "waits_reconstructed": report.is_reconstructed,
        "principal_cause": verdict(report),
        "advice": values(advices),
        "not_worth": advices.not_worth.iter().map(|rejected| not_worth_value(rejected, &ids)).collect::<Vec<_>>(),
        "together": advices.together.map(|[expected, low, high]| json!({
            "rules": advices.worth.iter().take(MAX_IN_REPORT).map(|advice| advice.finding.rule).collect::<Vec<_>>(),
            "saving_ns": expected.0, "saving_low_ns": low.0, "saving_high_ns": high.0,
        })),
    })
}

/// Returns the advice that is worth it as an array.
pub(super) fn values(advices: &AdviceList) -> Vec<Value> {
    let ids = FindingIds::of(advices);
    advices.worth.iter().map(|advice| object(advice, &ids).into()).collect()
}

/// Returns a finding that is not worth fixing, with the reason.
fn not_worth_value((rejection, advice): &(Rejection, Advice), ids: &FindingIds<'_>) -> Value {
    let mut object = object(advice, ids);
    let doubt = match rejection {
        Rejection::Uncertain => "uncertain",
        Rejection::SmallSaving => "little",
        Rejection::OffPath => "off-path",
    };
    object.insert("doubt".into(), doubt.into());
    object.into()
}

/// Returns who maintains the code that requests the launches.
fn owner(advice: &Advice) -> &'static str {
    match advice.foreign.as_ref().map(|foreign| foreign.owner) {
        None | Some(Owner::User) => "user",
        Some(Owner::Generated) => "generated",
        Some(Owner::ThirdParty) => "third-party",
        Some(Owner::Input) => "input",
    }
}

fn object(advice: &Advice, ids: &FindingIds<'_>) -> Map<String, Value> {
    let finding = &advice.finding;
    let [expected, low, high] = advice.saving;
    let mut object = Map::new();
    object.insert("id".into(), ids.get(advice).into());
    object.insert("rule".into(), finding.rule.into());
    object.insert("owner".into(), owner(advice).into());
    object.insert("title".into(), finding.title.as_str().into());
    object.insert("count".into(), finding.launches.len().into());
    object.insert("saving_ns".into(), nanos(Some(expected)));
    object.insert("saving_low_ns".into(), nanos(Some(low)));
    object.insert("saving_high_ns".into(), nanos(Some(high)));
    object.insert("evidence".into(), finding.evidence.join(". ").into());
    insert_arguments(&mut object, "example", finding.example.iter().map(Vec::as_slice));
    insert_callers(&mut object, &advice.callers);
    object.insert("fix".into(), finding.fix.join("\n").into());
    object.insert("limits".into(), limits(advice).into());
    object.insert("whatif".into(), finding.whatif.as_str().into());
    let basis = match finding.basis {
        Basis::Measured => "measured",
        Basis::Modelled => "modelled",
    };
    object.insert("basis".into(), basis.into());
    object.insert("overlaps".into(), advice.overlaps.as_slice().into());
    if !advice.alternatives.is_empty() {
        object.insert(
            "alternatives".into(),
            advice.alternatives.iter().map(|other| alternative_value(other, ids)).collect(),
        );
    }
    insert_edits(&mut object, advice);
    object
}

fn insert_edits(object: &mut Map<String, Value>, advice: &Advice) {
    if !advice.edited.is_empty() {
        object.insert("edits".into(), advice.edited.iter().map(edit_value).collect());
        object.insert("patch".into(), String::from_utf8_lossy(&advice.patch).into());
        if advice.is_edited_after_others {
            object.insert("needs_others".into(), true.into());
        }
    }
}

/// Returns another fix of the same cause.
fn alternative_value(alternative: &Advice, ids: &FindingIds<'_>) -> Value {
    let [expected, low, high] = alternative.saving;
    let mut object = Map::new();
    object.insert("id".into(), ids.get(alternative).into());
    object.insert("rule".into(), alternative.finding.rule.into());
    object.insert("saving_ns".into(), expected.0.into());
    object.insert("saving_low_ns".into(), low.0.into());
    object.insert("saving_high_ns".into(), high.0.into());
    object.insert("fix".into(), alternative.finding.fix.join("\n").into());
    object.insert("limits".into(), limits(alternative).into());
    insert_edits(&mut object, alternative);
    object.into()
}

/// Returns a changed line: `before` and `after`, or `refusal`, why it must be changed by hand.
fn edit_value(edited: &EditedLine) -> Value {
    let file = text::escape(&edited.file);
    match &edited.change {
        Ok([before, after]) => json!({
            "file": file,
            "line": edited.line,
            "before": String::from_utf8_lossy(&before.join(&b'\n')),
            "after": String::from_utf8_lossy(&after.join(&b'\n')),
        }),
        Err(refusal) => json!({ "file": file, "line": edited.line, "refusal": refusal }),
    }
}
