//! Renders a page as a self-contained HTML file.

use anyhow::{Context, Result};
use askama::Template;

use super::printable;
use crate::page::{Item, Page, Section, Table};

#[derive(Template)]
#[template(path = "fleet.html")]
struct Fleet {
    page: Page,
    style: &'static str,
    version: &'static str,
}

/// Renders a page as HTML.
///
/// # Errors
/// When the template fails.
pub fn html(page: &Page) -> Result<String> {
    let fleet = Fleet {
        page: Page {
            title: printable(&page.title),
            sentences: page.sentences.iter().map(|text| printable(text)).collect(),
            tables: page.tables.iter().map(printable_table).collect(),
            sections: page.sections.iter().map(printable_section).collect(),
        },
        style: include_str!("../../templates/fleet.css"),
        version: env!("CARGO_PKG_VERSION"),
    };
    fleet.render().context("failed to render the page")
}

fn printable_section(section: &Section) -> Section {
    let items = section.items.iter().map(|item| Item {
        title: printable(&item.title),
        lines: item.lines.iter().map(|line| printable(line)).collect(),
    });
    Section { heading: printable(&section.heading), items: items.collect() }
}

fn printable_table(table: &Table) -> Table {
    Table {
        columns: table.columns.clone(),
        rows: table.rows.iter().map(|row| row.iter().map(|cell| printable(cell)).collect()).collect(),
    }
}
