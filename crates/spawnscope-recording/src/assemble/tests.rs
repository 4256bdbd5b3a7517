//! Tests of the rows that events produce, one module for each subject.

use std::collections::BTreeMap;

use super::*;
use crate::test_events::*;

mod batches;
mod lives;
mod reaping;
mod threads;

const CHILD: LaunchId = LaunchId(2);

fn assembler() -> Assembler {
    Assembler::new(ORIGIN, Redaction::Mask)
}

fn launches(events: &[Event]) -> BTreeMap<LaunchId, LaunchRow> {
    let mut assembler = assembler();
    events.iter().for_each(|event| assembler.apply(event));
    assembler.take_batch().launches.into_iter().map(|row| (row.id, row)).collect()
}

fn with_kind(mut event: Event, change: impl FnOnce(&mut EventKind)) -> Event {
    change(&mut event.kind);
    event
}
