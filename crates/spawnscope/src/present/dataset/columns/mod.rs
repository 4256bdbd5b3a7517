//! The columns of each table, with their meaning. `docs/guide/parquet.md` has the same tables, which a test compares. Columns are added at
//! the end; one that changes its meaning or goes raises `DATASET_VERSION`.

mod details;
mod doctor;
mod execs;
mod launches;
mod runs;

use std::borrow::Cow;

pub(super) use details::{advice, callers, waits};
pub(super) use doctor::doctor;
pub(super) use execs::execs;
pub(super) use launches::launches;
pub(super) use runs::runs;

use crate::analyze::launch::Outcome;
use crate::event::Nanos;

const RUN: &str = "the recording: a hash of its contents";

fn long(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn int(value: impl TryInto<i32>) -> i32 {
    value.try_into().unwrap_or(i32::MAX)
}

fn span(time: Option<Nanos>) -> Option<i64> {
    time.map(|time| long(time.0))
}

/// Names are bytes, and columns are UTF-8: other bytes become U+FFFD.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn code(outcome: Outcome) -> Option<i32> {
    match outcome {
        Outcome::Code(code) => Some(code),
        _ => None,
    }
}
