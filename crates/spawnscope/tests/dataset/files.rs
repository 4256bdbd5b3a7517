//! Reads the files of a dataset, and compares them with the guide.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use parquet::basic::{LogicalType, Repetition, Type};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use spawnscope::present::dataset::{DATASET_VERSION, Table};

pub const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/parquet.md");
/// The heading of a table that documents columns.
pub const HEAD: &str = "| column | type | NULL | meaning |\n|---|---|---|---|\n";

/// Returns the rows that document this table's columns in the guide, without the heading.
pub fn documented(guide: &str, table: Table) -> String {
    let title = format!("### `{}`\n", table.name());
    let (_, section) = guide.split_once(&title).unwrap_or_else(|| panic!("no section {title}"));
    let (_, rows) = section.split_once(HEAD).unwrap();
    let rows = rows.lines().take_while(|line| line.starts_with('|'));
    rows.map(|line| format!("{line}\n")).collect()
}

/// Returns all files below a directory.
pub fn files(directory: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { [path].into() }).collect()
}

pub fn rows(file: &Path) -> Vec<BTreeMap<String, Field>> {
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| row.unwrap().into_columns().into_iter().collect()).collect()
}

pub fn number(field: &Field) -> Option<i64> {
    match field {
        Field::Long(value) => Some(*value),
        Field::Int(value) => Some(i64::from(*value)),
        Field::Null => None,
        other => panic!("{other:?}"),
    }
}

pub fn text(field: &Field) -> Option<&str> {
    match field {
        Field::Str(value) => Some(value),
        Field::Null => None,
        other => panic!("{other:?}"),
    }
}

/// Checks that a file has the columns of the guide, the current version, compression and
/// statistics.
pub fn check_schema(file: &Path, table: Table) {
    let guide = fs::read_to_string(GUIDE).unwrap();
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    let metadata = reader.metadata();
    let pairs = metadata.file_metadata().key_value_metadata().unwrap();
    for (key, expected) in
        [("spawnscope.dataset_version", DATASET_VERSION.to_string()), ("spawnscope.table", table.name().to_owned())]
    {
        let pair = pairs.iter().find(|pair| pair.key == key);
        assert_eq!(pair.and_then(|pair| pair.value.as_ref()), Some(&expected));
    }
    let schema = metadata.file_metadata().schema();
    let written = schema.get_fields().iter().map(|field| {
        let kind = match (field.get_physical_type(), field.get_basic_info().logical_type_ref()) {
            (Type::INT64, Some(LogicalType::Timestamp { .. })) => "timestamp",
            (Type::INT64, None) => "int64",
            (Type::INT32, None) => "int32",
            (Type::DOUBLE, None) => "double",
            (Type::BOOLEAN, None) => "bool",
            (Type::BYTE_ARRAY, Some(LogicalType::String)) => "string",
            other => panic!("{}: {other:?}", field.name()),
        };
        let is_optional = field.get_basic_info().repetition() == Repetition::OPTIONAL;
        let optional = if is_optional { "yes" } else { "" };
        format!("| `{}` | {kind} | {optional} |", field.name())
    });
    let documented = documented(&guide, table);
    let documented = documented.lines().map(|line| {
        let parts: Vec<&str> = line.splitn(5, '|').collect();
        parts[..4].join("|") + "|"
    });
    let [written, documented]: [Vec<_>; 2] = [written.collect(), documented.collect()];
    assert_eq!(written, documented, "{}", table.name());
    for group in metadata.row_groups() {
        for column in group.columns() {
            let is_compressed = column.compression().to_string().contains("ZSTD");
            let is_complete = is_compressed && column.statistics().is_some();
            assert!(is_complete, "{}", column.column_path());
        }
    }
}
