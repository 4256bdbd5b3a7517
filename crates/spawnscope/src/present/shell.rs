//! The report of `spawnscope shell`, as text and as JSON.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::page::{Column, Columns, PLAIN, Page, QUIET, TITLE, column, plain, styled};
use super::{text, units};
use crate::analyze::explain::start_up::{LineAdvice, Place, Spent, StartUp};
use crate::event::Nanos;

const SCHEMA_VERSION: u32 = 1;
const MAX_ROWS: usize = 14;
const MAX_ADVICE: usize = 6;
const MAX_PROGRAMS: usize = 3;
/// Maximum width of these names.
const MAX_PROGRAMS_WIDTH: usize = 22;
const COLUMNS: [Column; 3] = [column("time", 9, 2), column("own work", 10, 1), column("launched", 10, 1)];

/// Renders the report as text. Paths below `home` are shown with `~`.
pub fn render(report: &StartUp, width: usize, home: Option<&str>) -> String {
    let mut page = Page::of_width(width);
    let further =
        report.prompt.map_or_else(String::new, |prompt| format!(", {} to each further one", units::time(prompt)));
    let command = text::escape(report.command.join(" ").as_bytes());
    page.sentence(0, TITLE, &format!("{command}: {} to the first prompt{further}", units::time(report.first_prompt)));
    let starts = units::counted(report.starts as u64, "start", "starts");
    let prompts = match report.prompts {
        0 => String::new(),
        count => format!(" and {}", units::counted(count as u64, "prompt", "prompts")),
    };
    let observing = match report.observing {
        Nanos(0) => String::new(),
        added => format!("; observing a start added {}, which is taken off below", units::time(added)),
    };
    page.sentence(2, QUIET, &format!("median of {starts}{prompts}{observing}"));
    print_table(&mut page, "Until the first prompt", &report.before_prompt, report, home);
    if report.prompt.is_some() {
        print_table(&mut page, "For each further prompt", &report.at_prompt, report, home);
    }
    if !report.advice.is_empty() {
        page.heading("What to change");
    }
    for (number, advice) in (1..).zip(report.advice.iter().take(MAX_ADVICE)) {
        print_advice(&mut page, number, advice, report, home);
    }
    if report.advice.iter().any(|advice| !advice.patch.is_empty()) {
        page.line([]);
        let shell = report.command.first().map(|shell| text::quote(shell.as_bytes())).unwrap_or_default();
        let login = if report.command.iter().any(|word| word == "-l") { " --login" } else { "" };
        page.command(
            2,
            &format!("cd; spawnscope shell {shell}{login} --patch | patch -p0   # the changes with + lines"),
        );
    }
    page.finish()
}

/// One row: the place with the text of its line, indented by its depth in the tree.
struct Row<'r> {
    name: String,
    spent: Cow<'r, Spent>,
}

impl Row<'_> {
    /// Returns the programs, unless the only row below this one names them.
    fn programs(&self) -> String {
        if self.spent.inner.len() == 1 { String::new() } else { programs(&self.spent) }
    }
}

fn print_table(page: &mut Page, title: &str, root: &Spent, report: &StartUp, home: Option<&str>) {
    let mut rows = Vec::new();
    for line in &root.inner {
        add_rows(&mut rows, line, 0, report, home);
    }
    rows.truncate(MAX_ROWS);
    let shell = "the shell itself, and what is left out above";
    rows.push(Row { name: shell.to_owned(), spent: Cow::Owned(root.outside_of_lines()) });
    let figures: Vec<Vec<String>> = rows.iter().map(|row| figures(&row.spent)).collect();
    let columns = Columns::fit(page.width().saturating_sub(20), &COLUMNS, &figures);
    let names = rows.iter().map(|row| text::width(&row.name)).max().unwrap_or_default();
    let named = rows.iter().map(|row| text::width(&row.programs())).max().unwrap_or_default();
    let name_width = columns.name_width(page.width().saturating_sub(named.min(MAX_PROGRAMS_WIDTH)), names);
    page.line([]);
    page.line([styled(TITLE, format!("  {}{}", text::pad_right(title, name_width), columns.titles()))]);
    for (number, (row, figures)) in (1..).zip(rows.iter().zip(&figures)) {
        let name = text::pad_right(&text::truncate(&row.name, name_width), name_width);
        let style = if number == rows.len() { QUIET } else { PLAIN };
        page.line([styled(style, format!("  {name}{}", columns.row(figures))), styled(QUIET, row.programs())]);
    }
}

fn figures(spent: &Spent) -> Vec<String> {
    [spent.total(), spent.own, spent.launched]
        .iter()
        .map(|time| if time.0 == 0 { "-".to_owned() } else { units::time(*time) })
        .collect()
}

fn add_rows<'r>(rows: &mut Vec<Row<'r>>, spent: &'r Spent, depth: usize, report: &StartUp, home: Option<&str>) {
    let place = place_name(&spent.place, home);
    let line = report.texts.get(&spent.place).map_or("", |line| line.trim());
    let name = format!("{}{place}  {}", "  ".repeat(depth), text::escape(line.as_bytes()));
    rows.push(Row { name: name.trim_end().to_owned(), spent: Cow::Borrowed(spent) });
    for inner in &spent.inner {
        add_rows(rows, inner, depth + 1, report, home);
    }
}

fn place_name(place: &Place, home: Option<&str>) -> String {
    let file = place.file.as_ref().map(|file| text::escape(file));
    let file =
        file.map(|file| match home.and_then(|home| file.strip_prefix(home)).filter(|rest| rest.starts_with('/')) {
            Some(rest) => format!("~{rest}"),
            None => file,
        });
    let function = place.function.as_ref().map(|function| format!("{}()", text::escape(function)));
    match (file, place.line, function) {
        (Some(file), Some(line), Some(function)) => format!("{file}:{line} {function}"),
        (Some(file), Some(line), None) => format!("{file}:{line}"),
        (_, None, Some(function)) => function,
        (file, _, function) => file.or(function).unwrap_or_default(),
    }
}

fn programs(spent: &Spent) -> String {
    let named = spent.programs.iter().take(MAX_PROGRAMS);
    let named: Vec<String> = named
        .map(|program| {
            let name = text::escape(&program.name);
            if program.count > 1 { format!("{name} x{}", program.count) } else { name }
        })
        .collect();
    if named.is_empty() { String::new() } else { format!("  {}", named.join(", ")) }
}

fn print_advice(page: &mut Page, number: usize, advice: &LineAdvice, report: &StartUp, home: Option<&str>) {
    page.line([]);
    let each = if advice.at_prompt { " at each prompt" } else { "" };
    let title = text::escape(advice.cure.title.as_bytes());
    let title = format!("{title}: saves up to {}{each}", units::time(advice.cure.saving));
    page.hanging([plain(format!("  {number}. "))], TITLE, &title);
    page.line([plain(format!("     {}", place_name(&advice.place, home)))]);
    let lines = advice.patch.split(|byte| *byte == b'\n').skip(2);
    let changed = lines.filter(|line| line.starts_with(b"-") || line.starts_with(b"+"));
    let mut is_shown = false;
    for line in changed {
        is_shown = true;
        page.command(5, &text::escape(line));
    }
    if let Some(line) = report.texts.get(&advice.place).filter(|_| !is_shown) {
        page.command(7, &text::escape(line.trim().as_bytes()));
    }
    if let Some(refusal) = &advice.refusal {
        page.sentence(5, QUIET, refusal);
    }
    page.sentence(5, PLAIN, &text::escape(advice.cure.limits.as_bytes()));
}

pub fn json(report: &StartUp) -> String {
    let advice = report.advice.iter().map(|advice| {
        let mut value = place_json(&advice.place);
        value["at_prompt"] = json!(advice.at_prompt);
        value["title"] = json!(advice.cure.title);
        value["saving_high_ns"] = json!(advice.cure.saving.0);
        value["limits"] = json!(advice.cure.limits);
        value["patch"] = json!(String::from_utf8_lossy(&advice.patch));
        value
    });
    let value = json!({
        "schema_version": SCHEMA_VERSION,
        "command": report.command,
        "first_prompt_ns": report.first_prompt.0,
        "starts": report.starts,
        "prompt_ns": report.prompt.map(|time| time.0),
        "prompts": report.prompts,
        "observing_ns": report.observing.0,
        "before_prompt": spent_json(&report.before_prompt, report),
        "at_prompt": report.prompt.map(|_| spent_json(&report.at_prompt, report)),
        "advice": advice.collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

fn place_json(place: &Place) -> Value {
    let text = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    json!({ "file": text(&place.file), "line": place.line, "function": text(&place.function) })
}

fn spent_json(spent: &Spent, report: &StartUp) -> Value {
    let programs = spent.programs.iter().map(|program| {
        json!({ "name": String::from_utf8_lossy(&program.name), "count": program.count, "time_ns": program.time.0 })
    });
    let mut value = place_json(&spent.place);
    value["text"] = json!(report.texts.get(&spent.place));
    value["own_ns"] = json!(spent.own.0);
    value["launched_ns"] = json!(spent.launched.0);
    value["programs"] = programs.collect();
    value["inner"] = spent.inner.iter().map(|inner| spent_json(inner, report)).collect();
    value
}
