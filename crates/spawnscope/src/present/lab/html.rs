//! The lab's report as one self-contained page: the plot of each experiment with an x axis, and the
//! same text that a terminal shows.

use std::fmt::Write as _;

use super::plot::{self, escape_html};
use super::terminal::{experiment, render_end};
use super::values;
use crate::lab::outcome::BenchReport;

const TEXT_WIDTH: usize = 120;
const STYLE: &str = ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:1040px;margin:2em auto;padding:0 1em}\
    pre{overflow-x:auto;font-size:13px}svg{max-width:100%;height:auto}@media(prefers-color-scheme:dark){body{background:#161a20;color:#e3e7ec}}";

pub fn html(report: &BenchReport) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <title>spawnscope bench</title><style>{STYLE}</style></head>\n\
         <body><h1>What a launch costs here</h1>\n<p>{}</p>\n",
        escape_html(&values::describe_machine(&report.machine))
    );
    if report.quick {
        page.push_str("<p>quick measurement: small sizes, wide intervals</p>\n");
    }
    write_text(&render_end(report, TEXT_WIDTH), &mut page);
    for outcome in &report.experiments {
        page.push_str(&plot::svg(outcome).unwrap_or_default());
        write_text(&experiment(outcome, true, TEXT_WIDTH), &mut page);
    }
    page.push_str("</body></html>\n");
    page
}

fn write_text(text: &str, page: &mut String) {
    let plain = anstream::adapter::strip_str(text).to_string();
    let lines: Vec<String> = plain.trim().lines().map(escape_html).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(page, "<pre>{}</pre>", lines.join("\n"));
}
