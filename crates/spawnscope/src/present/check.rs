//! The result of `spawnscope check`: for the terminal, as Markdown, as JSON, and as annotations of
//! GitHub Actions at script lines. Annotations are commands on standard output, so no text from a
//! recording may look like such a command.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use serde_json::{Map, Value, json};

use super::advice::print_snippet;
use super::json_values::{insert_or_null, insert_text};
use super::markdown::{code, row, sentence};
use super::page::{FINDING, PLAIN, Page, QUIET, TITLE, WARNING, plain, styled};
use super::{diff, text, units};
use crate::analyze::compare::budgets::{Budget, Check, Culprit, Grown, Measured, Verdict};
use crate::analyze::compare::diff::ScriptLine;
use crate::event::Nanos;

const MAX_NAME_WIDTH: usize = 36;

pub fn text(check: &Check, width: usize) -> String {
    let mut page = Page::of_width(width);
    page.sentence(0, TITLE, &result_sentence(check));
    page.line([]);
    let name_widths = check.verdicts.iter().map(|verdict| text::width(&name(&verdict.budget)));
    let name_width = name_widths.max().unwrap_or_default().min(MAX_NAME_WIDTH);
    let mut printed = Vec::new();
    for verdict in &check.verdicts {
        let (style, word) = if verdict.is_exceeded { (WARNING, "exceeded") } else { (QUIET, "met") };
        let name = text::pad_right(&name(&verdict.budget), name_width);
        let beginning = [styled(style, format!("  {word:<10}")), plain(format!("{name}  "))];
        page.hanging(beginning, PLAIN, &numbers(verdict));
        for culprit in &verdict.culprits {
            page.sentence(12, FINDING, &blame(culprit, &verdict.budget));
            if let Some(advice) = &culprit.advice {
                print_advice(&mut page, advice, printed.contains(&advice));
                printed.push(advice);
            }
        }
    }
    if let Some(note) = note(check) {
        page.line([]);
        page.sentence(2, QUIET, &note);
    }
    text::without_commands(&page.finish())
}

/// Prints a finding and its fix, unless they were printed for another budget.
fn print_advice(page: &mut Page, (title, fix): &(String, Vec<String>), is_printed: bool) {
    if is_printed {
        page.sentence(14, QUIET, "-> as above");
        return;
    }
    page.sentence(14, QUIET, &text::escape(title.as_bytes()));
    for line in fix {
        let escaped = text::escape(line.as_bytes());
        if line.starts_with("  ") {
            print_snippet(page, 14, &escaped);
        } else {
            page.sentence(14, QUIET, &format!("-> {escaped}"));
        }
    }
}

fn result_sentence(check: &Check) -> String {
    let command = text::command_line(check.command.iter().map(Vec::as_slice), Some(60));
    let (exceeded, all) = (check.exceeded().count() as u64, check.verdicts.len() as u64);
    let budgets = units::counted(all, "budget", "budgets");
    match exceeded {
        0 if all == 1 => format!("The budget is met: {command}"),
        0 => format!("All {budgets} are met: {command}"),
        _ if all == 1 => format!("{command} exceeds the budget"),
        1 => format!("{command} exceeds 1 of {budgets}"),
        _ => format!("{command} exceeds {exceeded} of {budgets}"),
    }
}

/// Returns a note on what makes the result less certain, if anything does.
fn note(check: &Check) -> Option<String> {
    let mut notes = Vec::new();
    if check.lost > 0 {
        let events = units::counted(check.lost, "event was lost", "events were lost");
        notes.push(format!("{events}: counts are lower limits."));
    }
    let has_times = check.verdicts.iter().any(|verdict| matches!(verdict.measured, Measured::Interval(_)));
    if has_times && check.runs == 1 {
        notes.push(
            "One run: times are assumed to vary by 5 %. Use `record --runs 5` to measure the variation.".to_owned(),
        );
    }
    (!notes.is_empty()).then(|| notes.join(" "))
}

/// Names a budget: `launches`, `launches of git`.
fn name(budget: &Budget) -> String {
    match budget {
        Budget::Launches(_) => "launches".to_owned(),
        Budget::ForksWithoutExec(_) => "forks without exec".to_owned(),
        Budget::FailedExecs(_) => "failed execs".to_owned(),
        Budget::Command(glob, _) => format!("launches of {}", text::escape(glob.as_bytes())),
        Budget::Line(_) => "launches from one line".to_owned(),
        Budget::CriticalTax(_) => "critical start-up".to_owned(),
        Budget::Wall(_) => "wall".to_owned(),
        Budget::Growth(grown, _) => format!("{} against baseline", growth_name(*grown)),
    }
}

fn growth_name(grown: Grown) -> &'static str {
    match grown {
        Grown::Launches => "launches",
        Grown::ForksWithoutExec => "forks without exec",
        Grown::FailedExecs => "failed execs",
        Grown::Wall => "wall",
    }
}

fn numbers(verdict: &Verdict) -> String {
    format!("{}, budget {}", measured(verdict), limit(&verdict.budget))
}

fn measured(verdict: &Verdict) -> String {
    let is_share = matches!(verdict.budget, Budget::CriticalTax(_));
    match verdict.measured {
        Measured::Count(count) => diff::count(count),
        Measured::Interval(interval) if is_share => {
            let [value, low, high] = [interval.value, interval.low, interval.high].map(|share| 100.0 * share);
            format!("{value:.1} % ({low:.1} to {high:.1})")
        }
        Measured::Interval(interval) => {
            let [value, low, high] =
                [interval.value, interval.low, interval.high].map(|time| diff::span(time.max(0.0)));
            format!("{value} ({low} to {high})")
        }
    }
}

fn limit(budget: &Budget) -> String {
    match budget {
        Budget::Launches(max)
        | Budget::ForksWithoutExec(max)
        | Budget::FailedExecs(max)
        | Budget::Line(max)
        | Budget::Command(_, max) => units::count(*max),
        Budget::CriticalTax(share) => format!("{} %", (share * 1e4).round() / 1e2),
        Budget::Wall(max) => units::time(*max),
        Budget::Growth(Grown::Wall, max) => units::time(Nanos(*max as u64)),
        Budget::Growth(_, max) => units::count(max.floor() as u64),
    }
}

/// Describes which launches exceed the budget: `dirname: 10 launches at relocate.sh:5`.
fn blame(culprit: &Culprit, budget: &Budget) -> String {
    let count = culprit.count;
    let what = match budget {
        Budget::CriticalTax(_) | Budget::Wall(_) | Budget::Growth(Grown::Wall, _) => {
            format!("{} of critical start-up", units::time(Nanos(count)))
        }
        Budget::FailedExecs(_) => units::counted(count, "failed exec", "failed execs"),
        Budget::Growth(Grown::FailedExecs, _) => units::counted(count, "more failed exec", "more failed execs"),
        Budget::Growth(..) => units::counted(count, "more launch", "more launches"),
        Budget::ForksWithoutExec(_) => units::counted(count, "fork", "forks"),
        _ => units::counted(count, "launch", "launches"),
    };
    let script_line = culprit.script_line.as_ref();
    let at = script_line.map(|script_line| format!(" at {}", text::escape(&script_line.label()))).unwrap_or_default();
    format!("{}: {what}{at}", programs(culprit))
}

/// Formats `wc`, or `wc and 2 other programs`.
fn programs(culprit: &Culprit) -> String {
    let command = text::escape(&culprit.command);
    match culprit.others {
        0 => command,
        others => format!("{command} and {}", units::counted(others, "other program", "other programs")),
    }
}

/// Renders the result as Markdown, for job summaries and comments.
pub fn markdown(check: &Check) -> String {
    let mut text =
        format!("**{}**\n\n| | budget | limit | measured |\n|---|---|---:|---:|\n", sentence(&result_sentence(check)));
    for verdict in &check.verdicts {
        let word = if verdict.is_exceeded { "**exceeded**" } else { "met" };
        let cells = [name(&verdict.budget), limit(&verdict.budget), measured(verdict)];
        let cells = cells.iter().map(|cell| sentence(cell));
        text.push_str(&row(&std::iter::once(word.to_owned()).chain(cells).collect::<Vec<_>>()));
    }
    for verdict in check.exceeded().filter(|verdict| !verdict.culprits.is_empty()) {
        culprit_list(&mut text, verdict);
    }
    if let Some(note) = note(check) {
        text.push_str(&format!("\n{}\n", sentence(&note)));
    }
    text
}

fn culprit_list(text: &mut String, verdict: &Verdict) {
    text.push_str(&format!("\n### {}\n\n", sentence(&name(&verdict.budget))));
    for culprit in &verdict.culprits {
        text.push_str(&format!("- {}\n", code(&blame(culprit, &verdict.budget))));
        advice_list(text, culprit);
    }
}

fn advice_list(markdown: &mut String, culprit: &Culprit) {
    let Some((title, fix)) = &culprit.advice else { return };
    markdown.push_str(&format!("  - {}\n", sentence(title)));
    for line in fix {
        // Snippets must be typed exactly as they are.
        let shown = match line.strip_prefix("  ") {
            Some(snippet) => code(&text::escape(snippet.as_bytes())),
            None => sentence(line),
        };
        markdown.push_str(&format!("  - {shown}\n"));
    }
}

/// Cuts Markdown that is longer than `bytes` at the end of a line.
pub fn truncate_markdown(mut markdown: String, bytes: usize) -> String {
    if markdown.len() > bytes {
        let end = markdown.as_bytes()[..bytes].iter().rposition(|byte| *byte == b'\n');
        markdown.truncate(end.map_or(0, |end| end + 1));
        markdown.push_str("\n(cut)\n");
    }
    markdown
}

const SCHEMA_VERSION: u32 = 1;

pub fn json(check: &Check) -> String {
    let value = json!({
        "schema_version": SCHEMA_VERSION,
        "command": text::command_line(check.command.iter().map(Vec::as_slice), None),
        "runs": check.runs,
        "lost_events": check.lost,
        "is_kept": check.is_kept(),
        "budgets": check.verdicts.iter().map(verdict).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

fn verdict(verdict: &Verdict) -> Value {
    let (value, low, high) = match verdict.measured {
        Measured::Count(count) => (json!(count.median), json!(count.low), json!(count.high)),
        Measured::Interval(interval) => (json!(interval.value), json!(interval.low), json!(interval.high)),
    };
    json!({
        "budget": name(&verdict.budget),
        "limit": limit(&verdict.budget),
        "measured": measured(verdict),
        "value": value,
        "low": low,
        "high": high,
        "is_exceeded": verdict.is_exceeded,
        "culprits": verdict.culprits.iter().map(|each| culprit(each, verdict)).collect::<Vec<_>>(),
    })
}

fn culprit(culprit: &Culprit, verdict: &Verdict) -> Value {
    let mut object = Map::new();
    insert_text(&mut object, "command", &culprit.command);
    let script_line = culprit.script_line.as_ref();
    insert_or_null(&mut object, "file", script_line.and_then(|script_line| script_line.path.0.as_deref()));
    object.insert("line".into(), script_line.and_then(|script_line| script_line.line).into());
    object.insert("count".into(), culprit.count.into());
    object.insert("text".into(), blame(culprit, &verdict.budget).into());
    let advice = culprit.advice.as_ref().map(|(title, fix)| json!({ "title": title, "fix": fix }));
    object.insert("advice".into(), advice.into());
    Value::Object(object)
}

/// Maximum number of annotations of a step that GitHub shows.
const MAX_ANNOTATIONS: usize = 10;
const LOG_WIDTH: usize = 120;

pub fn github(check: &Check, workspace: &Path) -> String {
    let mut annotations: Vec<String> = Vec::new();
    for verdict in check.exceeded() {
        let count_before = annotations.len();
        for culprit in &verdict.culprits {
            if let Some((file, line)) = location(culprit, workspace) {
                annotations.push(annotation(
                    verdict,
                    Some(culprit),
                    &format!(" file={},line={line},", escape_property(&file)),
                ));
            }
        }
        if annotations.len() == count_before {
            annotations.push(annotation(verdict, verdict.culprits.first(), " "));
        }
    }
    annotations.truncate(MAX_ANNOTATIONS);
    let log = anstream::adapter::strip_str(&text(check, LOG_WIDTH)).to_string();
    annotations.concat() + &log
}

fn annotation(verdict: &Verdict, culprit: Option<&Culprit>, properties: &str) -> String {
    let title = format!("{}: {}", name(&verdict.budget), numbers(verdict));
    let mut message = culprit.map(|culprit| blame(culprit, &verdict.budget)).unwrap_or_else(|| title.clone());
    if let Some((advice, fix)) = culprit.and_then(|culprit| culprit.advice.as_ref()) {
        let lines = std::iter::once(advice).chain(fix);
        message.extend(lines.map(|line| format!("\n{}", text::escape(line.as_bytes()))));
    }
    format!("::error{properties}title={}::{}\n", escape_property(&title), escape_message(&message))
}

/// Escapes the message of a command. In an older syntax, `##[` begins a command anywhere in a line.
fn escape_message(text: &str) -> String {
    let escaped = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    escaped.replace("##[", "# #[")
}

fn escape_property(text: &str) -> String {
    escape_message(text).replace(':', "%3A").replace(',', "%2C")
}

/// Returns the file, relative to the directory of the sources, and the line. `None` if the file is
/// outside of this directory.
fn location(culprit: &Culprit, workspace: &Path) -> Option<(String, u32)> {
    let script_line = culprit.script_line.as_ref()?;
    Some((relative_path(script_line, workspace)?, script_line.line?))
}

fn relative_path(script_line: &ScriptLine, workspace: &Path) -> Option<String> {
    let path = Path::new(std::ffi::OsStr::from_bytes(script_line.path.0.as_deref()?));
    let path = if path.is_absolute() { path.strip_prefix(workspace).ok()? } else { path };
    let mut components = path.components().filter(|part| *part != Component::CurDir).peekable();
    components.peek()?;
    let names: Option<Vec<String>> = components
        .map(|part| match part {
            Component::Normal(name) => Some(text::escape(name.as_bytes())),
            _ => None,
        })
        .collect();
    Some(names?.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_arguments_are_not_commands() {
        assert_eq!(escape_message("a%\n::error::b\r##[group]"), "a%25%0A::error::b%0D# #[group]");
        assert_eq!(escape_property("a:b,c\n"), "a%3Ab%2Cc%0A");
        assert_eq!(text::without_commands("   ::set-env name=A::b"), "|    ::set-env name=A::b\n");
        assert_eq!(text::without_commands("x ##[add-mask]y"), "x # #[add-mask]y\n");
    }
}
