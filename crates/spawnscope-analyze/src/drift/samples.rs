//! Makes the costs of a parent's launches comparable. A script that runs `cat` first and `python3` later has not become slower, and neither
//! has a program that switches from vfork to fork.

use std::collections::HashMap;
use std::hash::Hash;

use super::COST;
use crate::launch::Launch;
use crate::phases::Phase;
use spawnscope_data::statistics::median;

/// One launch.
pub(super) struct Sample<'f> {
    pub(super) launch: &'f Launch<'f>,
    /// Its corrected cost.
    pub(super) cost_ns: f64,
}

/// Returns the children with a known cost, over the same phases for all.
pub(super) fn comparable<'f>(children: &[&'f Launch<'f>]) -> Vec<Sample<'f>> {
    let (create, rest): (Vec<Phase>, Vec<Phase>) = COST
        .into_iter()
        .filter(|phase| is_mostly_known(children, *phase))
        .partition(|phase| *phase == Phase::Create);
    let costed: Vec<(&Launch<'_>, f64, f64)> = children
        .iter()
        .filter_map(|child| Some((*child, sum_ns(child, &create)?, sum_ns(child, &rest)?)))
        .collect();
    let of_create = costed.iter().map(|(child, create_ns, _)| (child.mechanism, *create_ns));
    let of_rest = costed.iter().map(|(child, _, rest_ns)| (*child.command, *rest_ns));
    let (create_shifts, rest_shifts) = (shifts(of_create), shifts(of_rest));
    let sample = |(launch, create_ns, rest_ns): (&'f Launch<'f>, f64, f64)| Sample {
        launch,
        cost_ns: (create_ns + create_shifts[&launch.mechanism]) + (rest_ns + rest_shifts[&*launch.command]),
    };
    costed.into_iter().map(sample).collect()
}

/// Whether a phase is known for nine of ten children.
fn is_mostly_known(children: &[&Launch<'_>], phase: Phase) -> bool {
    let known = children.iter().filter(|child| child.phases.get(phase).is_some());
    known.count() * 10 >= children.len() * 9
}

/// Returns the sum of phases. `None` when one of them is unknown.
fn sum_ns(child: &Launch<'_>, phases: &[Phase]) -> Option<f64> {
    phases
        .iter()
        .map(|phase| Some(child.phases.get(*phase)?.0 as f64))
        .sum()
}

/// Returns one corrected phase of each sample. `None` where unknown.
pub(super) fn levelled(samples: &[Sample<'_>], phase: Phase) -> Vec<Option<f64>> {
    let span_ns = |sample: &Sample<'_>| sample.launch.phases.get(phase).map(|span| span.0 as f64);
    match phase {
        Phase::Create => level_groups(samples.iter().map(|sample| (sample.launch.mechanism, span_ns(sample)))),
        _ => level_groups(samples.iter().map(|sample| (*sample.launch.command, span_ns(sample)))),
    }
}

/// Shifts the values of each group so that all groups have the same median: `create` differs by mechanism, the rest by
/// program.
fn level_groups<Key: Eq + Hash>(values: impl Iterator<Item = (Key, Option<f64>)> + Clone) -> Vec<Option<f64>> {
    let shifts = shifts(values.clone().filter_map(|(key, value)| Some((key, value?))));
    values.map(|(key, value)| Some(value? + shifts[&key])).collect()
}

/// Returns the shift for the values of each group.
fn shifts<Key: Eq + Hash>(values: impl Iterator<Item = (Key, f64)> + Clone) -> HashMap<Key, f64> {
    let shared = median(values.clone().map(|(_, value)| value)).unwrap_or_default();
    let mut groups: HashMap<Key, Vec<f64>> = HashMap::new();
    for (key, value) in values {
        groups.entry(key).or_default().push(value);
    }
    groups
        .into_iter()
        .map(|(key, group)| (key, shared - median(group).unwrap_or(shared)))
        .collect()
}
