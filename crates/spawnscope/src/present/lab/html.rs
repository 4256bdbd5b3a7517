//! The lab's report as one self-contained page: a summary, tables, plots and notes, with a light and a dark theme, for
//! wide and narrow screens.

use std::fmt::Write as _;

use super::comparison;
use super::grid::{Grid, grid};
use super::headline::{Headline, headline};
use super::plot;
use super::values::{
    WIDE_MARK, caveats, cell_text, columns, conditions, describe_fit, describe_machine, format_estimate, noise,
    table_legend, wide_mark_legend,
};
use crate::lab::compare::Comparison;
use crate::lab::harness::Estimate;
use crate::lab::outcome::{Outcome, Report, Unit};
use crate::present::text::escape;

const STYLE: &str = ":root{color-scheme:light dark;--ground:#fff;--ink:#24292f;--quiet:#656d77;--line:#dde1e6}\
@media (prefers-color-scheme:dark){:root{--ground:#161a20;--ink:#e3e7ec;--quiet:#9aa3af;--line:#3a414b}}\
body{font:15px/1.5 system-ui,sans-serif;max-width:1040px;margin:2em auto;padding:0 1em;overflow-wrap:break-word;background:var(--ground);color:var(--ink)}\
h1,h2{line-height:1.25}h2{margin-top:2.4em}h2 code{font-size:65%;font-weight:normal;color:var(--quiet);white-space:nowrap}a{color:inherit}\
.t{overflow-x:auto;margin:1em 0}table{border-collapse:collapse;font-size:14px}th,td{padding:.25em .6em;text-align:left;border-bottom:1px solid var(--line)}th{border-bottom:2px solid var(--quiet)}\
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.q{color:var(--quiet);font-size:85%}td .q{display:inline-block;min-width:3.6em}\
li{margin:.2em 0}ul.summary{padding:0;list-style:none}.summary li{margin:.5em 0}summary{color:var(--quiet);cursor:pointer}svg{max-width:100%;height:auto}.narrow{display:none}\
@media screen and (max-width:799px){body{margin:1em auto;padding:0 10px}.wide{display:none}.narrow{display:block;width:100%;max-width:430px}ul{padding-left:1.2em}th:first-child,td:first-child{position:sticky;left:0;background:var(--ground)}}";
const NO_RESULTS: &str = "No reliable results.";
/// Maximum x values per table on a page.
const MAX_X_VALUES: usize = 9;

/// Renders the whole report.
#[must_use]
pub fn html(report: &Report, comparison: Option<&Comparison>) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <title>spawnscope bench</title><style>{STYLE}</style></head>\n\
         <body><h1>What a launch costs here</h1>\n"
    );
    write_summary(report, &mut page);
    if let Some(comparison) = comparison {
        write_comparison(comparison, &mut page);
    }
    for outcome in &report.experiments {
        write_section(outcome, &mut page);
    }
    page.push_str("</body></html>\n");
    page
}

/// Writes a sentence for each experiment, with a link to its section, and how the experiments were measured.
fn write_summary(report: &Report, page: &mut String) {
    page.push_str("<ul class=\"summary\">\n");
    let mut is_marked = false;
    for outcome in &report.experiments {
        let sentence = match headline(outcome) {
            Some(Headline { before, figure, after }) => {
                let parts = [before, figure, after].map(|part| escape_html(&part));
                is_marked |= parts.iter().any(|part| part.contains(WIDE_MARK));
                format!("{} <strong>{}</strong> {}", parts[0], parts[1], parts[2])
            }
            None => NO_RESULTS.to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(page, "<li><a href=\"#{0}\">{0}</a>: {sentence}</li>", escape_html(&outcome.name));
    }
    page.push_str("</ul>\n");
    for caveat in caveats(report) {
        let _ = writeln!(page, "<p><b>{}</b></p>", escape_html(&caveat));
    }
    let marks = is_marked.then(wide_mark_legend);
    for line in [describe_machine(&report.machine), conditions(report)].into_iter().chain(marks) {
        let _ = writeln!(page, "<p class=\"q\">{}</p>", escape_html(&line));
    }
}

fn write_section(outcome: &Outcome, page: &mut String) {
    let _ = writeln!(
        page,
        "<h2 id=\"{0}\">{1} <code>{0}</code></h2>",
        escape_html(&outcome.name),
        escape_html(&outcome.title)
    );
    for svg in plot::svgs(outcome).iter().flatten() {
        page.push_str(svg);
    }
    match grid(outcome, MAX_X_VALUES) {
        _ if outcome.rows.is_empty() => {
            let _ = writeln!(page, "<p><b>{NO_RESULTS}</b></p>");
        }
        Some(grid) => {
            write_series(grid, page);
            page.push_str("<details><summary>every case</summary>\n");
            write_cases(outcome, page);
            page.push_str("</details>\n");
        }
        None => write_cases(outcome, page),
    }
    let marks = table_legend(outcome, &columns(outcome)).into_iter();
    let sentences = outcome.fits.iter().map(describe_fit).chain(outcome.notes.iter().cloned());
    write_list(marks.chain(sentences), page);
}

/// Writes the comparison with an older report.
fn write_comparison(comparison: &Comparison, page: &mut String) {
    let _ = writeln!(page, "<h2>{}</h2>", comparison::HEADING);
    if !comparison.conditions.is_empty() {
        let _ = writeln!(page, "<p><b>{}</b></p>", escape_html(&comparison::describe_differing_conditions(comparison)));
    }
    let shifts = comparison::common_shifts(comparison);
    if !shifts.is_empty() {
        let _ = writeln!(page, "<p>{}</p>", comparison::COMMON_SHIFT_TEXT);
        write_list(shifts.iter().map(|(experiment, what)| format!("{experiment}: {what}")), page);
    }
    let standouts = comparison::standout_changes(comparison);
    if !standouts.is_empty() {
        let _ = writeln!(page, "<p>{}</p>", comparison::OTHER_CHANGES_TEXT);
        let titles = [("new / old", true), ("interval", true), ("old and new", true), ("case", false)];
        let rows =
            standouts.into_iter().map(|change| comparison::cells(change).map(|cell| escape_html(&cell)).to_vec());
        write_table(&titles.map(|(title, is_figure)| (title.to_owned(), is_figure)), rows, page);
    }
    let rest = std::iter::once(comparison::summarize_others(comparison)).chain(comparison::describe_gone(comparison));
    for text in rest {
        let _ = writeln!(page, "<p>{}</p>", escape_html(&text));
    }
}

fn write_list(sentences: impl Iterator<Item = String>, page: &mut String) {
    page.push_str("<ul>\n");
    for text in sentences {
        let _ = writeln!(page, "<li>{}</li>", escape_html(&text));
    }
    page.push_str("</ul>\n");
}

/// Writes a table with one line per series.
fn write_series(grid: Grid<'_>, page: &mut String) {
    let titles: Vec<(String, bool)> =
        std::iter::once((grid.corner, false)).chain(grid.x.into_iter().map(|x| (x, true))).collect();
    let rows = grid.series.into_iter().map(|(name, cells)| {
        let shown = cells.into_iter().map(|cell| {
            cell.map_or(String::new(), |estimate| with_noise(&format_estimate(estimate, grid.unit), Some(estimate)))
        });
        std::iter::once(escape_html(&name)).chain(shown).collect()
    });
    write_table(&titles, rows, page);
    if let Some(left_out) = grid.left_out {
        let _ = writeln!(page, "<p class=\"q\">{}</p>", escape_html(&left_out));
    }
}

/// Writes a table with one line per case.
fn write_cases(outcome: &Outcome, page: &mut String) {
    let columns = columns(outcome);
    let titles: Vec<(String, bool)> =
        columns.iter().map(|column| (column.title.clone(), column.unit != Unit::Text)).collect();
    let rows = outcome.rows.iter().map(|row| {
        columns.iter().map(|column| with_noise(&cell_text(row, column), row.get(&column.name).estimate())).collect()
    });
    write_table(&titles, rows, page);
}

/// Formats a cell as HTML.
fn with_noise(text: &str, estimate: Option<&Estimate>) -> String {
    let noise = estimate.map(|found| format!(" <span class=\"q\">{}</span>", noise(found)));
    format!("{}{}", escape_html(text), noise.unwrap_or_default())
}

/// Writes a table. Each column has a title and a flag for figures; cells are HTML.
fn write_table(titles: &[(String, bool)], rows: impl Iterator<Item = Vec<String>>, page: &mut String) {
    page.push_str("<div class=\"t\"><table><tr>");
    for (title, is_figure) in titles {
        let _ = write!(page, "<th{}>{}</th>", class_attribute(*is_figure), escape_html(title));
    }
    page.push_str("</tr>\n");
    for row in rows {
        page.push_str("<tr>");
        for (cell, (_, is_figure)) in row.iter().zip(titles) {
            let _ = write!(page, "<td{}>{cell}</td>", class_attribute(*is_figure));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
}

fn class_attribute(is_figure: bool) -> &'static str {
    if is_figure { " class=\"n\"" } else { "" }
}

pub(super) fn escape_html(text: &str) -> String {
    escape(text.as_bytes()).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
