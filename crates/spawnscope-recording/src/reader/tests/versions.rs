//! Tests with recordings of earlier format versions.

use super::*;
use crate::sums::{RowHasher, TableSum};
use crate::tables::{self, TABLES};
use spawnscope_data::table::Table;

/// Turns a recording into one of an earlier version: removes the tables and columns that were added
/// later, and updates the checksums.
pub(super) fn downgrade(path: &Path, to: i32) {
    let connection = Connection::open(path).unwrap();
    let has_checksums = TABLES.iter().any(|table| table.name == "checksum" && table.since() <= to);
    for table in TABLES {
        if table.since() > to {
            let sql = format!("DELETE FROM checksum WHERE name = '{0}'; DROP TABLE {0}", table.name);
            connection.execute_batch(&sql).unwrap();
            continue;
        }
        for column in table.columns.iter().filter(|column| column.since > to) {
            let sql = format!("ALTER TABLE {} DROP COLUMN {}", table.name, column.name);
            connection.execute_batch(&sql).unwrap();
        }
        if has_checksums && table.columns.iter().any(|column| column.since > to) {
            store_sum(&connection, table, to);
        }
    }
    connection.pragma_update(None, "user_version", to).unwrap();
}

/// Stores the checksum of a table, computed from the columns of an earlier version.
fn store_sum(connection: &Connection, table: &Table, version: i32) {
    let known = table.columns.iter().filter(|column| column.since <= version).count();
    let mut select = connection.prepare(&tables::select(table, version)).unwrap();
    let mut rows = select.raw_query();
    let (mut sum, mut hasher) = (TableSum::default(), RowHasher::default());
    while let Some(row) = rows.next().unwrap() {
        let values: Vec<_> = (1..=known).map(|column| row.get_ref(column).unwrap()).collect();
        sum.add(hasher.hash(row.get(0).unwrap(), &values));
    }
    let sum = sum.sum.cast_signed();
    connection.execute("UPDATE checksum SET sum = ? WHERE name = ?", (sum, table.name)).unwrap();
}

#[test]
fn every_earlier_version_is_read() {
    for version in 1..version::CURRENT {
        let (_directory, path) = recording(3);
        downgrade(&path, version);
        let recording = read_all(&path).unwrap();
        assert_eq!(recording.launches.len(), 4, "{version}");
        assert_eq!(recording.info.contradictions, Contradictions::default(), "{version}");
    }
}

#[test]
fn polled_sockets_are_ignored_before_version_12() {
    let polls_and_reads = "DELETE FROM slice;
         INSERT INTO object VALUES (7, 3, 8, 4242, NULL), (8, 0, 8, 4243, NULL);
         INSERT INTO slice VALUES (1, 40, NULL, 5, NULL, 2, 7, -1, 0, NULL, 7, NULL, NULL),
             (1, 60, NULL, 5, NULL, 2, 7, -1, 0, NULL, 8, NULL, NULL), (1, 80, NULL, 5, NULL, 2, 45, -1, 0, NULL, 7, NULL, NULL)";
    for (version, expected) in [
        (12, [Some(ObjectKind::Socket), Some(ObjectKind::Pipe), Some(ObjectKind::Socket)]),
        (11, [None, Some(ObjectKind::Pipe), Some(ObjectKind::Socket)]),
    ] {
        let (_directory, path) = recording(1);
        change(&path, polls_and_reads);
        if version < version::CURRENT {
            downgrade(&path, version);
        }
        let mut kinds = Vec::new();
        let file = RecordingFile::open(&path).unwrap();
        file.slices(&mut |row| kinds.push(row.object.map(ObjectRef::kind))).unwrap();
        assert_eq!(kinds, expected, "version {version}");
    }
}
