//! The columns of an outcome with their units, and its rows, which have a value for each column.

use serde::{Deserialize, Serialize, Serializer};

use super::Outcome;
use crate::harness::Estimate;

/// A column of an experiment's rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// The key in JSON.
    pub name: String,
    /// The heading in tables.
    pub title: String,
    /// The unit of the values.
    pub unit: Unit,
    /// Whether the column identifies the case, instead of being measured.
    pub is_key: bool,
    /// Whether others have published the numbers: these have no intervals, and are from another
    /// machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_published: bool,
}

/// The unit of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Text, without a unit.
    Text,
    /// Nanoseconds.
    Nanos,
    /// Bytes.
    Bytes,
    /// A count.
    Count,
    /// A ratio.
    Ratio,
}

/// A case with its measurements: a value for each column, and the number of launches under
/// [`LAUNCHES`](super::LAUNCHES).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row(pub Vec<(String, Value)>);

/// A value in a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// The text of a key.
    Text(String),
    /// The number of a key.
    Number(#[serde(serialize_with = "integer_if_exact")] f64),
    /// A measurement.
    Estimate(Estimate),
    /// A value that was not measured, or cannot be trusted.
    Unknown,
}

/// Writes whole numbers as `16`, not `16.0`.
fn integer_if_exact<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    // 2^53: all whole numbers below it are exact.
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < MAX_EXACT {
        serializer.serialize_i64(*number as i64)
    } else {
        serializer.serialize_f64(*number)
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Row, D::Error> {
        let object = serde_json::Map::deserialize(deserializer)?;
        let values = object.into_iter().map(|(name, value)| Ok((name, serde_json::from_value(value)?)));
        values.collect::<Result<_, serde_json::Error>>().map(Row).map_err(serde::de::Error::custom)
    }
}

impl Row {
    /// Returns the value in a column; `Unknown` if the row lacks the column.
    #[must_use]
    pub fn get(&self, column: &str) -> &Value {
        let found = self.0.iter().find(|(name, _)| name == column);
        found.map_or(&Value::Unknown, |(_, value)| value)
    }
}

impl Value {
    /// Returns the number of a key, or the median of a measurement.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Estimate(estimate) => Some(estimate.median),
            Value::Text(_) | Value::Unknown => None,
        }
    }

    /// Returns the estimate, if the value is one.
    #[must_use]
    pub fn estimate(&self) -> Option<&Estimate> {
        match self {
            Value::Estimate(estimate) => Some(estimate),
            _ => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Number(number as f64)
    }
}

impl From<Option<Estimate>> for Value {
    fn from(estimate: Option<Estimate>) -> Value {
        estimate.map_or(Value::Unknown, Value::Estimate)
    }
}

/// Returns a key column.
#[must_use]
pub fn key(name: &str, title: &str, unit: Unit) -> Column {
    Column { name: name.to_owned(), title: title.to_owned(), unit, is_key: true, is_published: false }
}

/// Returns a column of measurements.
#[must_use]
pub fn measure(name: &str, title: &str, unit: Unit) -> Column {
    Column { is_key: false, ..key(name, title, unit) }
}

/// Returns a description of the row by its keys.
#[must_use]
pub fn label(outcome: &Outcome, row: &Row) -> String {
    let keys = outcome.columns.iter().filter(|column| column.is_key);
    let words = keys.filter_map(|column| match (row.get(&column.name), column.unit) {
        (Value::Text(text), _) if text.is_empty() => None,
        (Value::Text(text), _) => Some(text.clone()),
        (Value::Number(bytes), Unit::Bytes) => Some(spawnscope_data::units::bytes(*bytes as u64)),
        (Value::Number(number), _) => Some(format!("{number} {}", column.title)),
        _ => None,
    });
    words.collect::<Vec<_>>().join(", ")
}
