//! Columns of Parquet tables: each has a name, a type, a description, and a function that gets its
//! value from a row. The file's schema and the documentation both follow from this one declaration.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};

use super::{DATASET_VERSION, Table};

/// Number of rows in a row group. Query engines skip whole groups by their statistics, and read
/// groups in parallel; larger groups compress a little better.
const ROWS_PER_GROUP: usize = 250_000;
/// The level of zstd: higher levels take several times as long and save only a few percent.
const ZSTD_LEVEL: i32 = 3;

/// Gets the value of a column from a row. The variants are the types of the value.
pub(super) enum Getter<R> {
    Long(fn(&R) -> Option<i64>),
    Int(fn(&R) -> Option<i32>),
    Real(fn(&R) -> Option<f64>),
    Bool(fn(&R) -> Option<bool>),
    Text(for<'r> fn(&'r R) -> Option<Cow<'r, str>>),
    /// Microseconds since 1970-01-01 UTC. Spark cannot read timestamps with a finer unit.
    Instant(fn(&R) -> Option<i64>),
}

/// A column of a table with rows of type `R`.
pub(super) struct Column<R> {
    pub(super) name: &'static str,
    pub(super) get: Getter<R>,
    pub(super) is_optional: bool,
    /// What the column contains, as in docs/guide/parquet.md.
    pub(super) description: &'static str,
}

impl<R> Column<R> {
    pub(super) fn optional(name: &'static str, get: Getter<R>, description: &'static str) -> Column<R> {
        Column { name, get, is_optional: true, description }
    }

    pub(super) fn required(name: &'static str, get: Getter<R>, description: &'static str) -> Column<R> {
        Column { is_optional: false, ..Column::optional(name, get, description) }
    }

    /// Returns the row for this column in the table of docs/guide/parquet.md.
    pub(super) fn documentation(&self) -> String {
        let kind = match self.get {
            Getter::Long(_) => "int64",
            Getter::Int(_) => "int32",
            Getter::Real(_) => "double",
            Getter::Bool(_) => "bool",
            Getter::Text(_) => "string",
            Getter::Instant(_) => "timestamp",
        };
        let null = if self.is_optional { "yes" } else { "" };
        format!("| `{}` | {kind} | {null} | {} |", self.name, self.description)
    }

    fn physical_type(&self) -> PhysicalType {
        match self.get {
            Getter::Long(_) | Getter::Instant(_) => PhysicalType::INT64,
            Getter::Int(_) => PhysicalType::INT32,
            Getter::Real(_) => PhysicalType::DOUBLE,
            Getter::Bool(_) => PhysicalType::BOOLEAN,
            Getter::Text(_) => PhysicalType::BYTE_ARRAY,
        }
    }

    fn schema(&self) -> Result<Type> {
        let logical = match self.get {
            Getter::Text(_) => Some(LogicalType::String),
            Getter::Instant(_) => Some(LogicalType::timestamp(true, TimeUnit::MICROS)),
            _ => None,
        };
        let repetition = if self.is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(self.name, self.physical_type())
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()
    }

    fn write(&self, rows: &[R], writer: &mut SerializedColumnWriter<'_>) -> Result<()> {
        match self.get {
            Getter::Long(get) | Getter::Instant(get) => {
                let (values, levels) = self.values(rows, get)?;
                let writer = writer.typed::<Int64Type>();
                writer.write_batch(&values, levels.as_deref(), None)
            }
            Getter::Int(get) => {
                let (values, levels) = self.values(rows, get)?;
                let writer = writer.typed::<Int32Type>();
                writer.write_batch(&values, levels.as_deref(), None)
            }
            Getter::Real(get) => {
                let (values, levels) = self.values(rows, get)?;
                let writer = writer.typed::<DoubleType>();
                writer.write_batch(&values, levels.as_deref(), None)
            }
            Getter::Bool(get) => {
                let (values, levels) = self.values(rows, get)?;
                let writer = writer.typed::<BoolType>();
                writer.write_batch(&values, levels.as_deref(), None)
            }
            Getter::Text(get) => {
                let mut sharing = TextSharing::default();
                let (values, levels) = self.values(rows, |row| get(row).map(|text| sharing.share(text)))?;
                let writer = writer.typed::<ByteArrayType>();
                writer.write_batch(&values, levels.as_deref(), None)
            }
        }?;
        Ok(())
    }

    /// Returns the known values and, for an optional column, Parquet's definition levels: 1 for
    /// each row that has a value, else 0.
    fn values<T>(&self, rows: &[R], mut get: impl FnMut(&R) -> Option<T>) -> Result<(Vec<T>, Option<Vec<i16>>)> {
        let mut values = Vec::with_capacity(rows.len());
        if !self.is_optional {
            values.extend(rows.iter().filter_map(&mut get));
            if values.len() < rows.len() {
                return Err(ParquetError::General(format!(
                    "the required column {} has no value in some row",
                    self.name
                )));
            }
            return Ok((values, None));
        }
        let mut levels = Vec::with_capacity(rows.len());
        for row in rows {
            let value = get(row);
            levels.push(i16::from(value.is_some()));
            values.extend(value);
        }
        Ok((values, Some(levels)))
    }
}

/// Shares the bytes of a text between adjacent rows: many have the same one.
#[derive(Default)]
struct TextSharing {
    last: Option<ByteArray>,
}

impl TextSharing {
    fn share(&mut self, text: Cow<'_, str>) -> ByteArray {
        let last = self.last.take().filter(|last| last.data() == text.as_bytes());
        let bytes = last.unwrap_or_else(|| ByteArray::from(text.into_owned().into_bytes()));
        self.last.insert(bytes).clone()
    }
}

pub(super) fn write_rows<R, W: Write + Send>(out: W, table: Table, columns: &[Column<R>], rows: &[R]) -> Result<()> {
    let fields: Result<Vec<_>> = columns.iter().map(|column| Ok(Arc::new(column.schema()?))).collect();
    let schema = Type::group_type_builder(table.name()).with_fields(fields?).build()?;
    let properties = properties(table, columns)?;
    let mut writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
    for group in rows.chunks(ROWS_PER_GROUP) {
        let mut written = writer.next_row_group()?;
        for column in columns {
            let next = written.next_column()?;
            let mut next = next.ok_or_else(|| ParquetError::General("the schema has fewer columns".to_owned()))?;
            column.write(group, &mut next)?;
            next.close()?;
        }
        written.close()?;
    }
    writer.close().map(drop)
}

/// Returns the properties of the file. Times differ in each row, so numbers are stored as
/// differences; texts repeat, so they are stored in a dictionary.
fn properties<R>(table: Table, columns: &[Column<R>]) -> Result<WriterProperties> {
    let metadata = [
        ("spawnscope.dataset_version", DATASET_VERSION.to_string()),
        ("spawnscope.table", table.name().to_owned()),
        ("spawnscope.version", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value)).to_vec();
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("spawnscope version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(metadata));
    for column in columns {
        if matches!(column.get, Getter::Long(_) | Getter::Int(_) | Getter::Instant(_)) {
            let path = ColumnPath::from(column.name);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(properties.build())
}
