//! A recording as tables of a dataset of many recordings, in Parquet: `columns` declares the columns of each table, `lines` the rows that
//! they are read from, and `column` writes. Where files are and what they are called is decided by the caller.

mod column;
mod columns;
mod lines;

use std::io::Write;

use parquet::errors::Result;

use self::column::{Column, write_rows};
pub use self::lines::Contents;
use self::lines::Lines;

/// The version of the tables. It is raised when a column changes its meaning or is removed.
pub const DATASET_VERSION: u32 = 1;

/// A table of the dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// One row per launch.
    Launches,
    /// One row an exec, failed or not.
    Execs,
    /// One row per call site.
    Callers,
    /// One row per sum of waits.
    Waits,
    /// One row per finding.
    Advice,
    /// One row per recording. Written last: a recording is in the dataset once its row is.
    Runs,
}

impl Table {
    /// All tables, in the order in which they are written.
    pub const ALL: [Table; 6] = [
        Table::Launches,
        Table::Execs,
        Table::Callers,
        Table::Waits,
        Table::Advice,
        Table::Runs,
    ];

    /// Its name, which is that of its folder.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Table::Launches => "launches",
            Table::Execs => "execs",
            Table::Callers => "callers",
            Table::Waits => "waits",
            Table::Advice => "advice",
            Table::Runs => "runs",
        }
    }

    /// Returns its columns as rows of Markdown: name, type, whether values can be NULL, and meaning.
    #[must_use]
    pub fn documentation(self) -> Vec<String> {
        fn all<R>(columns: &[Column<R>]) -> Vec<String> {
            columns.iter().map(Column::documentation).collect()
        }
        match self {
            Table::Launches => all(&columns::launches()),
            Table::Execs => all(&columns::execs()),
            Table::Callers => all(&columns::callers()),
            Table::Waits => all(&columns::waits()),
            Table::Advice => all(&columns::advice()),
            Table::Runs => all(&columns::runs()),
        }
    }
}

/// The rows of a recording, of which each table can be written.
pub struct Dataset<'a>(Lines<'a>);

impl<'a> Dataset<'a> {
    /// Collects the rows.
    #[must_use]
    pub fn new(contents: &Contents<'a>) -> Dataset<'a> {
        Dataset(Lines::of(contents))
    }

    /// Writes a table as one Parquet file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write<W: Write + Send>(&self, table: Table, out: W) -> Result<()> {
        let lines = &self.0;
        match table {
            Table::Launches => write_rows(out, table, &columns::launches(), &lines.launches),
            Table::Execs => write_rows(out, table, &columns::execs(), &lines.execs),
            Table::Callers => write_rows(out, table, &columns::callers(), &lines.callers),
            Table::Waits => write_rows(out, table, &columns::waits(), &lines.waits),
            Table::Advice => write_rows(out, table, &columns::advice(), &lines.advice),
            Table::Runs => write_rows(out, table, &columns::runs(), &lines.runs),
        }
    }
}
