//! The lab's report as one page that needs nothing else: tables, plots, notes.

use std::fmt::Write as _;

use super::plot;
use super::values::{noise, sentence, shown, words};
use crate::lab::outcome::{Outcome, Report, Row, Unit};
use crate::present::text::escape;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;max-width:960px;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:1em 0}th,td{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd}\
.n{text-align:right;font-variant-numeric:tabular-nums}.q{color:#777;font-size:85%}svg{max-width:100%;height:auto}\
th{border-bottom:2px solid #999}h2{margin-top:2em}";

/// The whole report.
#[must_use]
pub fn html(report: &Report) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><title>spawnscope bench</title><style>{STYLE}</style></head>\n\
         <body><h1>What a launch costs here</h1>\n<p>{}</p>\n",
        escaped(&words(&report.machine))
    );
    if report.quick {
        page.push_str("<p>Measured quickly: small sizes, wide intervals.</p>\n");
    }
    for outcome in &report.experiments {
        section(outcome, &mut page);
    }
    page.push_str("</body></html>\n");
    page
}

fn section(outcome: &Outcome, page: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<h2 id=\"{0}\">{0}</h2>\n<p>{1}</p>\n",
        escaped(&outcome.name),
        escaped(&outcome.title)
    );
    if let Some(svg) = plot::svg(outcome) {
        page.push_str(&svg);
        page.push('\n');
    }
    if outcome.rows.is_empty() {
        page.push_str("<p><b>No figure that can be trusted.</b></p>\n");
    } else {
        table(outcome, page);
    }
    page.push_str("<ul>\n");
    for text in outcome.fits.iter().map(sentence).chain(outcome.notes.iter().cloned()) {
        let _ = writeln!(page, "<li>{}</li>", escaped(&text));
    }
    page.push_str("</ul>\n");
}

fn table(outcome: &Outcome, page: &mut String) {
    page.push_str("<table><tr>");
    for column in &outcome.columns {
        let _ = write!(page, "<th{}>{}</th>", class(column.unit), escaped(&column.title));
    }
    page.push_str("</tr>\n");
    for row in &outcome.rows {
        page.push_str(&line(outcome, row));
    }
    page.push_str("</table>\n");
}

fn line(outcome: &Outcome, row: &Row) -> String {
    let cells = outcome.columns.iter().map(|column| {
        let value = row.get(&column.name);
        let noise = value
            .estimate()
            .map(|found| format!(" <span class=\"q\">{}</span>", noise(found)));
        let text = escaped(&shown(value, column.unit));
        format!("<td{}>{text}{}</td>", class(column.unit), noise.unwrap_or_default())
    });
    format!("<tr>{}</tr>\n", cells.collect::<String>())
}

fn class(unit: Unit) -> &'static str {
    if unit == Unit::Text { "" } else { " class=\"n\"" }
}

fn escaped(text: &str) -> String {
    escape(text.as_bytes())
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
