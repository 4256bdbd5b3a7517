//! The costs of a parent's launches, made comparable. A script that runs `cat` first and `python3` later has not become
//! slower, nor has a program that turns from vfork to fork.

use std::collections::HashMap;
use std::hash::Hash;

use super::COST;
use crate::analyze::launch::Launch;
use crate::analyze::phases::Phase;
use crate::statistics::median;

/// What one launch contributes.
pub(super) struct Sample<'f> {
    pub(super) launch: &'f Launch<'f>,
    /// Its cost, levelled.
    pub(super) cost_ns: f64,
}

/// Those of the children whose cost is known, over the same phases for all.
pub(super) fn comparable<'f>(children: &[&'f Launch<'f>]) -> Vec<Sample<'f>> {
    let is_mostly_known = |phase: &Phase| {
        let known = children.iter().filter(|child| child.phases.get(*phase).is_some());
        known.count() * 10 >= children.len() * 9
    };
    let (create, rest): (Vec<Phase>, Vec<Phase>) = COST
        .into_iter()
        .filter(is_mostly_known)
        .partition(|phase| *phase == Phase::Create);
    let sum_ns = |child: &Launch<'_>, phases: &[Phase]| {
        let spans_ns = phases
            .iter()
            .map(|phase| child.phases.get(*phase).map(|span| span.0 as f64));
        spans_ns.sum::<Option<f64>>()
    };
    let costed: Vec<(&Launch<'_>, f64, f64)> = children
        .iter()
        .filter_map(|child| Some((*child, sum_ns(child, &create)?, sum_ns(child, &rest)?)))
        .collect();
    let create_ns = level_groups(
        costed
            .iter()
            .map(|(child, create_ns, _)| (child.mechanism, Some(*create_ns))),
    );
    let rest_ns = level_groups(costed.iter().map(|(child, _, rest_ns)| (child.command, Some(*rest_ns))));
    let costs_ns = create_ns
        .into_iter()
        .zip(rest_ns)
        .map(|(create, rest)| create.zip(rest));
    let samples = costed.iter().zip(costs_ns).filter_map(|((launch, ..), cost_ns)| {
        let (create_ns, rest_ns) = cost_ns?;
        Some(Sample {
            launch,
            cost_ns: create_ns + rest_ns,
        })
    });
    samples.collect()
}

/// One phase of each sample, levelled; `None` where it is unknown.
pub(super) fn levelled(samples: &[Sample<'_>], phase: Phase) -> Vec<Option<f64>> {
    let span_ns = |sample: &Sample<'_>| sample.launch.phases.get(phase).map(|span| span.0 as f64);
    match phase {
        Phase::Create => level_groups(samples.iter().map(|sample| (sample.launch.mechanism, span_ns(sample)))),
        _ => level_groups(samples.iter().map(|sample| (sample.launch.command, span_ns(sample)))),
    }
}

/// Shifts the values of each group so that all groups have the same median: `create` differs by mechanism, the rest by
/// program.
fn level_groups<Key: Eq + Hash>(values: impl Iterator<Item = (Key, Option<f64>)> + Clone) -> Vec<Option<f64>> {
    let mut groups: HashMap<Key, Vec<f64>> = HashMap::new();
    for (key, value) in values.clone() {
        groups.entry(key).or_default().extend(value);
    }
    let shared = median(values.clone().filter_map(|(_, value)| value)).unwrap_or_default();
    let shifts: HashMap<Key, f64> = groups
        .into_iter()
        .map(|(key, group)| (key, shared - median(group).unwrap_or(shared)))
        .collect();
    values.map(|(key, value)| Some(value? + shifts[&key])).collect()
}
