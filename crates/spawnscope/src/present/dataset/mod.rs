//! Recordings, and examinations by `doctor`, as Parquet tables of a dataset. `columns` declares the
//! columns of each table, `rows` collects the rows, and `column` writes them. The caller decides
//! where the files are and what they are called.

mod column;
mod columns;
mod rows;

use std::io::Write;

use parquet::errors::{ParquetError, Result};

use self::column::{Column, write_rows};
pub use self::rows::{Contents, Examination};
use self::rows::{DoctorRow, RecordingRows};

/// The version of the tables. It is raised when a column changes its meaning or is removed.
pub const DATASET_VERSION: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Launches,
    /// One row per exec, successful or failed.
    Execs,
    Callers,
    Waits,
    Advice,
    /// One row per recording. Written last: a recording is complete in the dataset once it has this
    /// row.
    Runs,
    /// One row per finding of the doctor on a machine. No recording has rows here.
    Doctor,
}

impl Table {
    pub const ALL: [Table; 7] =
        [Table::Launches, Table::Execs, Table::Callers, Table::Waits, Table::Advice, Table::Runs, Table::Doctor];
    /// The tables of a recording, in the order in which they are written.
    pub const FOR_RECORDINGS: [Table; 6] =
        [Table::Launches, Table::Execs, Table::Callers, Table::Waits, Table::Advice, Table::Runs];

    /// Returns its name, which is also the name of its directory.
    pub fn name(self) -> &'static str {
        match self {
            Table::Launches => "launches",
            Table::Execs => "execs",
            Table::Callers => "callers",
            Table::Waits => "waits",
            Table::Advice => "advice",
            Table::Runs => "runs",
            Table::Doctor => "doctor",
        }
    }

    /// Returns its columns as rows of a Markdown table: name, type, whether values can be NULL, and
    /// description.
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
            Table::Doctor => all(&columns::doctor()),
        }
    }
}

/// The rows of a recording or of an examination, ready to be written table by table.
pub struct Dataset<'a>(Rows<'a>);

enum Rows<'a> {
    Recording(RecordingRows<'a>),
    Examination(Vec<DoctorRow<'a>>),
}

impl<'a> Dataset<'a> {
    pub fn new(contents: &Contents<'a>) -> Dataset<'a> {
        Dataset(Rows::Recording(RecordingRows::collect(contents)))
    }

    pub fn of_examination(examination: &'a Examination<'a>) -> Dataset<'a> {
        Dataset(Rows::Examination(examination.rows()))
    }

    /// Returns the tables in the order in which they must be written.
    pub fn tables(&self) -> &'static [Table] {
        match self.0 {
            Rows::Recording(_) => &Table::FOR_RECORDINGS,
            Rows::Examination(_) => &[Table::Doctor],
        }
    }

    pub fn write<W: Write + Send>(&self, table: Table, out: W) -> Result<()> {
        match (&self.0, table) {
            (Rows::Recording(rows), Table::Launches) => write_rows(out, table, &columns::launches(), &rows.launches),
            (Rows::Recording(rows), Table::Execs) => write_rows(out, table, &columns::execs(), &rows.execs),
            (Rows::Recording(rows), Table::Callers) => write_rows(out, table, &columns::callers(), &rows.callers),
            (Rows::Recording(rows), Table::Waits) => write_rows(out, table, &columns::waits(), &rows.waits),
            (Rows::Recording(rows), Table::Advice) => write_rows(out, table, &columns::advice(), &rows.advice),
            (Rows::Recording(rows), Table::Runs) => write_rows(out, table, &columns::runs(), &rows.runs),
            (Rows::Examination(rows), Table::Doctor) => write_rows(out, table, &columns::doctor(), rows),
            _ => Err(ParquetError::General(format!("these rows do not belong to table {}", table.name()))),
        }
    }
}
