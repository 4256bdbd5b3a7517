//! All tables of a recording, and their SQL statements. `schema.sql` documents the columns. The
//! rows that the analysis uses are declared in `spawnscope_data`, the other ones here.

use std::sync::Arc;

use spawnscope_data::event::{Calibration, LaunchId, Loss, Missing, Nanos};
use spawnscope_data::rows::{
    EdgeRow, ExecRow, FailedExecRow, FrameRow, Label, LaunchRow, ObjectRow, PeerRow, SampleRow, Scope, SliceRow,
    StackRow, StopRow, TextId, ThreadRow,
};
use spawnscope_data::table;
use spawnscope_data::table::{Bits, Row, Table};

use super::values::{Cpus, Sqlite, Whole};

table! {
    /// The only row of the table `recording`, which says what was recorded.
    #[derive(Debug)]
    pub(super) struct RecordingRow in recording {
        since 1 {
            id: i64,
            version: String,
            collector: String,
            scope: Scope,
            command: Vec<u8>,
            cwd: Vec<u8>,
            kernel: String,
            arch: String,
            hostname: String,
            cpus: u32 = Cpus,
            started_unix_ns: i64,
            origin: u64 = Bits as origin_ns,
            root: Option<LaunchId> as root_launch,
            last_event: Nanos as last_ns,
            wall: Option<Nanos> = Whole as wall_ns,
            ended: Option<String>,
        }
        since 9 {
            allowed_cpus: Option<f64> = Cpus,
        }
    }
}

table! {
    /// A string that other rows refer to.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(super) struct TextRow in text {
        since 1 {
            id: TextId,
            bytes: Arc<[u8]>,
        }
    }
}

table! {
    #[derive(Debug)]
    pub(super) struct ChecksumRow in checksum {
        since 8 {
            name: String,
            rows: u64 = Bits,
            sum: u64 = Bits,
        }
    }
}

/// All tables, in the order in which their checksums are stored.
pub(super) const TABLES: [&Table; 19] = [
    table_of::<RecordingRow>(),
    table_of::<Missing>(),
    table_of::<Calibration>(),
    table_of::<Loss>(),
    table_of::<TextRow>(),
    table_of::<LaunchRow>(),
    table_of::<ExecRow>(),
    table_of::<FailedExecRow>(),
    table_of::<ThreadRow>(),
    table_of::<FrameRow>(),
    table_of::<StackRow>(),
    table_of::<ObjectRow>(),
    table_of::<SliceRow>(),
    table_of::<SampleRow>(),
    table_of::<Label>(),
    table_of::<PeerRow>(),
    table_of::<EdgeRow>(),
    table_of::<StopRow>(),
    table_of::<ChecksumRow>(),
];

pub(super) const fn table_of<R: Row<Sqlite>>() -> &'static Table {
    R::TABLE
}

/// Returns the statement that selects all rows of a table in a recording of this version. The rows
/// are ordered by rowid, which is the first value. Columns that were added later are NULL.
pub(super) fn select(table: &Table, version: i32) -> String {
    format!("{} ORDER BY rowid", select_some(table, version))
}

/// Returns the statement that selects all rowids in order.
pub(super) fn select_ids(table: &Table) -> String {
    format!("SELECT rowid FROM {} ORDER BY rowid", table.name)
}

/// Returns the statement that selects one row by its rowid, which is also the first value.
pub(super) fn select_one(table: &Table) -> String {
    format!("{} WHERE rowid = ?", select_some(table, i32::MAX))
}

fn select_some(table: &Table, version: i32) -> String {
    let columns: Vec<&str> =
        table.columns.iter().map(|column| if column.since > version { "NULL" } else { column.name }).collect();
    format!("SELECT rowid, {} FROM {}", columns.join(", "), table.name)
}

pub(super) const INSERT: &str = "INSERT";
/// Ignores a row if one with the same key or rowid exists.
pub(super) const INSERT_NEW: &str = "INSERT OR IGNORE";
/// Replaces the row with the same key or rowid, if one exists.
pub(super) const REPLACE: &str = "INSERT OR REPLACE";

/// Returns a statement such as `INSERT INTO x (a, b) VALUES (?, ?)`. With `at_rowid`, the rowid is
/// bound last.
pub(super) fn write(verb: &str, table: &Table, at_rowid: bool) -> String {
    let rowid = at_rowid.then_some("rowid");
    let columns: Vec<&str> = table.columns.iter().map(|column| column.name).chain(rowid).collect();
    format!("{verb} INTO {} ({}) VALUES ({})", table.name, columns.join(", "), vec!["?"; columns.len()].join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_columns_come_last() {
        for table in TABLES {
            assert!(table.columns.is_sorted_by_key(|column| column.since), "{}", table.name);
        }
    }

    #[test]
    fn the_declarations_agree_with_the_schema() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("schema.sql")).unwrap();
        for table in TABLES {
            let sql = "SELECT name, type, NOT (\"notnull\" OR pk) FROM pragma_table_info(?)";
            let mut statement = connection.prepare(sql).unwrap();
            let columns = statement.query_map([table.name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
            let documented: Vec<(String, String, bool)> = columns.unwrap().map(Result::unwrap).collect();
            let declared = table.columns.iter().map(|column| {
                let column_type = &column.column_type;
                (column.name.to_owned(), column_type.name.to_owned(), column_type.is_optional)
            });
            assert_eq!(declared.collect::<Vec<_>>(), documented, "{}", table.name);
        }
    }
}
