//! The columns of each table, with their descriptions. A test compares them with `docs/guide/parquet.md`. New columns are added at the end. If a
//! column changes its meaning or is removed, `DATASET_VERSION` must be raised.

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

/// Converts bytes to text. Invalid UTF-8 becomes U+FFFD.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn exit_code(outcome: Outcome) -> Option<i32> {
    match outcome {
        Outcome::Code(code) => Some(code),
        _ => None,
    }
}
