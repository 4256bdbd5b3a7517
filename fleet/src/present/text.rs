//! Renders a page as text: title, sentences, and aligned columns that fit the terminal.

use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

use super::printable;
use crate::page::{Page, Section, Table};

/// The width of a page, in columns, if there is no terminal.
const DEFAULT_WIDTH: usize = 100;
/// Minimum width of a column of names, in columns of the terminal, even if the table does not fit.
const MIN_NAME_WIDTH: usize = 20;
const GAP: usize = 2;

/// Renders a page for the terminal.
pub fn text(page: &Page) -> String {
    let width = terminal_size::terminal_size().map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0));
    text_of_width(page, width)
}

fn text_of_width(page: &Page, width: usize) -> String {
    let mut text = format!("{}\n", printable(&page.title));
    for sentence in &page.sentences {
        for line in textwrap::wrap(&printable(sentence), width.saturating_sub(2).max(20)) {
            let _ = writeln!(text, "  {line}");
        }
    }
    for table in page.tables.iter().filter(|table| !table.rows.is_empty()) {
        text.push('\n');
        add_table(&mut text, table, width);
    }
    for section in &page.sections {
        text.push('\n');
        add_section(&mut text, section, width);
    }
    text
}

/// Adds numbered items below a heading. Commands are not wrapped, so that they can be copied.
fn add_section(text: &mut String, section: &Section, width: usize) {
    add_wrapped(text, "  ", "  ", &section.heading, width);
    for (number, item) in (1..).zip(&section.items) {
        add_wrapped(text, &format!("  {number}. "), "     ", &item.title, width);
        for line in &item.lines {
            if line.starts_with("  ") {
                let _ = writeln!(text, "       {}", printable(line.trim()));
            } else {
                let hanging = if line.starts_with("-> ") { "        " } else { "     " };
                add_wrapped(text, "     ", hanging, line, width);
            }
        }
    }
}

fn add_wrapped(text: &mut String, first: &str, next: &str, line: &str, width: usize) {
    let options = textwrap::Options::new(width.max(20)).initial_indent(first).subsequent_indent(next);
    for line in textwrap::wrap(&printable(line), options) {
        let _ = writeln!(text, "{line}");
    }
}

fn add_table(text: &mut String, table: &Table, width: usize) {
    let titles: Vec<String> = table.columns.iter().map(|column| column.title.clone()).collect();
    let rows: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.iter().map(|cell| printable(cell)).collect()).collect();
    let mut widths: Vec<usize> = (0..titles.len())
        .map(|column| rows.iter().chain([&titles]).map(|row| row[column].width()).max().unwrap_or(0))
        .collect();
    shrink_names(&mut widths, table, width);
    for row in [&titles].into_iter().chain(&rows) {
        let cells = row.iter().zip(&widths).zip(&table.columns);
        let line: Vec<String> = cells
            .map(|((cell, width), column)| {
                let cell = shortened(cell, *width);
                let pad = " ".repeat(width - cell.width());
                if column.is_figure { format!("{pad}{cell}") } else { format!("{cell}{pad}") }
            })
            .collect();
        let _ = writeln!(text, "  {}", line.join(&" ".repeat(GAP)).trim_end());
    }
}

/// Makes the widest columns of names narrower until the table fits.
fn shrink_names(widths: &mut [usize], table: &Table, width: usize) {
    let gaps = 2 + GAP * widths.len().saturating_sub(1);
    while gaps + widths.iter().sum::<usize>() > width {
        let names = (0..widths.len()).filter(|column| !table.columns[*column].is_figure);
        let Some(widest) = names.max_by_key(|column| widths[*column]).filter(|column| widths[*column] > MIN_NAME_WIDTH)
        else {
            return;
        };
        widths[widest] -= 1;
    }
}

/// Shortens a text that is wider than `width`: keeps its beginning or, if it is a path, its end, which says more.
fn shortened(cell: &str, width: usize) -> String {
    if cell.width() <= width {
        return cell.to_owned();
    }
    if cell.starts_with('/') {
        let mut ends = cell.char_indices().map(|(index, _)| &cell[index..]);
        return ends.find(|part| part.width() < width).map(|part| format!("…{part}")).unwrap_or_default();
    }
    let mut beginnings = cell.char_indices().rev().map(|(index, _)| &cell[..index]);
    beginnings.find(|part| part.width() < width).map(|part| format!("{part}…")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Column, Item};

    fn page(name: &str) -> Page {
        Page {
            title: "Lines".to_owned(),
            sentences: vec!["One run.".to_owned()],
            tables: vec![Table {
                columns: vec![Column::name("line"), Column::figure("runs")],
                rows: vec![vec![name.to_owned(), "12".to_owned()]],
            }],
            sections: Vec::new(),
        }
    }

    #[test]
    fn figures_are_aligned_to_the_right() {
        assert_eq!(text_of_width(&page("a.sh:1"), 80), "Lines\n  One run.\n\n  line    runs\n  a.sh:1    12\n");
    }

    #[test]
    fn a_long_path_is_shortened_to_its_end() {
        let text = text_of_width(&page("/a/very/long/path/that/does/not/fit/build.sh:41"), 40);
        assert!(text.contains("build.sh:41"), "{text}");
        assert!(text.lines().all(|line| line.width() <= 40), "{text}");
    }

    #[test]
    fn items_are_numbered_and_commands_are_not_wrapped() {
        let mut page = page("a.sh:1");
        let command = "  sudo auditctl -d always,exit -F arch=b64 -S execve -k run-of-all-programs";
        page.sections = vec![Section {
            heading: "build-07: 1 problem".to_owned(),
            items: vec![Item {
                title: "an audit rule logs each exec\u{7}".to_owned(),
                lines: vec!["-> delete the rule, or narrow it:".to_owned(), command.to_owned()],
            }],
        }];
        let text = text_of_width(&page, 30);
        let (_, section) = text.split_once("\n\n  build-07: 1 problem\n").unwrap();
        let lines: Vec<&str> = section.lines().collect();
        assert_eq!(lines[0], "  1. an audit rule logs each");
        assert_eq!(lines[1], "     exec\\u{7}");
        assert_eq!(lines[2], "     -> delete the rule, or");
        assert_eq!(lines[3], "        narrow it:");
        assert_eq!(lines.last().unwrap().trim(), command.trim());
    }

    #[test]
    fn control_characters_are_escaped() {
        assert!(text_of_width(&page("a\u{1b}[31m"), 80).contains("a\\u{1b}[31m"));
    }
}
