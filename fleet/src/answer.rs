//! The answer to a question: named columns, and rows of JSON values.

use anyhow::{Context, Result, bail};
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type, UInt64Type};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::Value;

/// Rows of values under named columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, with a value for each column; null is unknown.
    pub rows: Vec<Vec<Value>>,
}

/// A row of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    columns: &'a [String],
    values: &'a [Value],
}

impl Answer {
    /// Converts the engine's batches.
    ///
    /// # Errors
    /// When a value cannot be shown.
    pub fn from_batches(columns: Vec<String>, batches: &[RecordBatch]) -> Result<Answer> {
        let mut rows = Vec::new();
        for batch in batches {
            let columns: Vec<Vec<Value>> =
                batch.columns().iter().map(|column| values(column)).collect::<Result<_>>()?;
            rows.extend((0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()));
        }
        Ok(Answer { columns, rows })
    }

    /// Iterates over the rows, whose values can be read by column name.
    pub fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        let columns = &self.columns;
        self.rows.iter().map(move |values| Row { columns, values })
    }

    /// Adds a column, with a value for each row.
    pub fn add_column(&mut self, name: &str, values: Vec<Value>) {
        self.columns.push(name.to_owned());
        for (row, value) in self.rows.iter_mut().zip(values) {
            row.push(value);
        }
    }

    /// Returns the rows as JSON objects.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let objects = self.rows.iter().map(|row| self.columns.iter().cloned().zip(row.iter().cloned()).collect());
        Value::Array(objects.map(Value::Object).collect())
    }
}

impl<'a> Row<'a> {
    /// Returns the value in a column; null if there is no such column.
    #[must_use]
    pub fn get(&self, column: &str) -> &'a Value {
        let index = self.columns.iter().position(|name| name == column);
        index.map_or(&Value::Null, |index| &self.values[index])
    }

    /// Iterates over the names of the columns, with their values.
    pub fn columns(&self) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
        self.columns.iter().map(String::as_str).zip(self.values)
    }

    /// Returns the text in a column; `None` if the value is null or not a text.
    #[must_use]
    pub fn text(&self, column: &str) -> Option<&'a str> {
        self.get(column).as_str()
    }

    /// Returns the number in a column; `None` if the value is null or not a number.
    #[must_use]
    pub fn number(&self, column: &str) -> Option<f64> {
        self.get(column).as_f64()
    }

    /// Returns the number in a column, rounded to a whole number; `None` if the value is null or not a number.
    #[must_use]
    pub fn count(&self, column: &str) -> Option<i64> {
        let value = self.get(column);
        value.as_i64().or_else(|| value.as_f64().map(|number| number.round() as i64))
    }
}

/// Returns the values of a column: numbers and booleans as they are, all others as text.
fn values(column: &dyn Array) -> Result<Vec<Value>> {
    Ok(match column.data_type() {
        DataType::Int64 => column.as_primitive::<Int64Type>().iter().map(Value::from).collect(),
        DataType::Int32 => column.as_primitive::<Int32Type>().iter().map(Value::from).collect(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().iter().map(Value::from).collect(),
        DataType::Float64 => column.as_primitive::<Float64Type>().iter().map(Value::from).collect(),
        DataType::Boolean => column.as_boolean().iter().map(Value::from).collect(),
        DataType::Null => vec![Value::Null; column.len()],
        other if other.is_nested() => bail!("a column of type {other} cannot be shown: select its parts"),
        _ => {
            let options = FormatOptions::default();
            let formatter = ArrayFormatter::try_new(column, &options).context("failed to show a column")?;
            let rows = 0..column.len();
            rows.map(|row| column.is_valid(row).then(|| formatter.value(row).to_string()).into()).collect()
        }
    })
}
