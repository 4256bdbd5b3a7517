//! Predicts, for each of the most expensive programs and script lines, what removing its launches
//! saves.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::callers::Callers;
use crate::critical_path::CriticalPath;
use crate::dependence::{Dependence, savings_without};
use crate::groups::{GroupBy, label_of};
use crate::whatif::WhatIf;
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::Origin;

/// Launches of one program, or from one line, and the saving without them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// What the launches have in common: `Command` or `Line`.
    pub by: GroupBy,
    /// The label of the launches in a table that is grouped by `by`.
    pub label: Vec<u8>,
    /// Number of launches.
    pub launches: u64,
    /// Wall time saved: expected value, lower and upper end of the confidence interval.
    pub saving: [Nanos; 3],
}

/// Predicts the saving without the launches of a program or of a script line, for the `max_rows`
/// programs and the `max_rows` lines with the most time on the critical path. The recorded command
/// itself is not removed. Predictions that `dependence` already contains are reused.
#[must_use]
pub fn removals(
    whatif: &WhatIf<'_, '_>,
    path: &CriticalPath,
    callers: &Callers,
    dependence: &[Dependence],
    max_rows: usize,
) -> Vec<Removal> {
    let mut removed = candidates(whatif, path, callers, GroupBy::Command);
    removed.truncate(max_rows);
    if callers.has_any() {
        let lines = candidates(whatif, path, callers, GroupBy::Line);
        removed.extend(lines.into_iter().take(max_rows));
    }
    let known: Vec<Option<[Nanos; 3]>> = removed.iter().map(|each| known_saving(each, dependence)).collect();
    let unknown = removed.iter().zip(&known).filter(|(_, known)| known.is_none());
    let unknown: Vec<&[u32]> = unknown.map(|((_, _, launches), _)| launches.as_slice()).collect();
    let mut predicted = savings_without(whatif, &unknown).into_iter();
    let savings = known.into_iter().map_while(|known| known.or_else(|| predicted.next()));
    let mut removals = Vec::with_capacity(removed.len());
    for ((by, label, launches), saving) in removed.iter().zip(savings) {
        removals.push(Removal { by: *by, label: label.clone(), launches: launches.len() as u64, saving });
    }
    removals
}

/// Returns the saving without a command if `dependence` contains it. A row with the same label and
/// number of launches is about the same launches.
fn known_saving((by, label, launches): &Candidate, dependence: &[Dependence]) -> Option<[Nanos; 3]> {
    let found = dependence
        .iter()
        .find(|each| each.label == *label && each.count == launches.len() as u64)
        .filter(|_| *by == GroupBy::Command);
    found.map(|each| each.saving)
}

/// What the launches have in common, their label, and the launches.
type Candidate = (GroupBy, Vec<u8>, Vec<u32>);

fn candidates(whatif: &WhatIf<'_, '_>, path: &CriticalPath, callers: &Callers, by: GroupBy) -> Vec<Candidate> {
    let mut groups: HashMap<Vec<u8>, (Nanos, Vec<u32>)> = HashMap::new();
    for (index, launch) in whatif.forest.launches.iter().enumerate() {
        if launch.origin != Origin::Launched {
            continue;
        }
        let group = groups.entry(label_of(launch, callers.call_site_of(index), by)).or_default();
        group.0.0 += path.launches[index].total().0;
        group.1.push(index as u32);
    }
    let mut groups: Vec<_> = groups.into_iter().filter(|(_, (critical, _))| critical.0 > 0).collect();
    groups.sort_by_key(|(label, (critical, _))| (Reverse(*critical), label.clone()));
    groups.into_iter().map(|(label, (_, launches))| (by, label, launches)).collect()
}
