//! Makes the costs of a parent's launches comparable. A script that runs `cat` first and `python3`
//! later has not become slower. A program that switches from vfork to fork has not, either.

use std::collections::HashMap;
use std::hash::Hash;

use super::COST_PHASES;
use crate::model::launch::Launch;
use crate::model::phases::Phase;
use spawnscope_data::statistics::median;

/// A launch with a comparable cost.
pub(super) struct Sample<'f> {
    pub(super) launch: &'f Launch<'f>,
    /// The cost of the launch, corrected for its program and mechanism.
    pub(super) cost_ns: f64,
}

/// Returns the children with a known cost. All costs are sums over the same phases.
pub(super) fn comparable<'f>(children: &[&'f Launch<'f>]) -> Vec<Sample<'f>> {
    let (create, rest): (Vec<Phase>, Vec<Phase>) = COST_PHASES
        .into_iter()
        .filter(|phase| is_mostly_known(children, *phase))
        .partition(|phase| *phase == Phase::Create);
    let costed: Vec<(&Launch<'_>, f64, f64)> =
        children.iter().filter_map(|child| Some((*child, sum_ns(child, &create)?, sum_ns(child, &rest)?))).collect();
    let create_by_mechanism = costed.iter().map(|(child, create_ns, _)| (child.mechanism, *create_ns));
    let rest_by_program = costed.iter().map(|(child, _, rest_ns)| (*child.command, *rest_ns));
    let (create_shifts, rest_shifts) = (shifts(create_by_mechanism), shifts(rest_by_program));
    let samples = costed.into_iter().map(|(launch, create_ns, rest_ns)| Sample {
        launch,
        cost_ns: (create_ns + create_shifts[&launch.mechanism]) + (rest_ns + rest_shifts[&*launch.command]),
    });
    samples.collect()
}

/// Whether a phase is known for at least nine of ten children.
fn is_mostly_known(children: &[&Launch<'_>], phase: Phase) -> bool {
    let known = children.iter().filter(|child| child.phases.get(phase).is_some());
    known.count() * 10 >= children.len() * 9
}

/// Returns the sum of phases. `None` when one of them is unknown.
fn sum_ns(child: &Launch<'_>, phases: &[Phase]) -> Option<f64> {
    phases.iter().map(|phase| Some(child.phases.get(*phase)?.0 as f64)).sum()
}

/// Returns the corrected duration of one phase of each sample. `None` if it is unknown.
pub(super) fn corrected_phase(samples: &[Sample<'_>], phase: Phase) -> Vec<Option<f64>> {
    let spans_ns = samples.iter().map(|sample| {
        let span_ns = sample.launch.phases.get(phase).map(|span| span.0 as f64);
        (sample.launch, span_ns)
    });
    match phase {
        Phase::Create => equalize_medians(spans_ns.map(|(launch, span_ns)| (launch.mechanism, span_ns))),
        _ => equalize_medians(spans_ns.map(|(launch, span_ns)| (*launch.command, span_ns))),
    }
}

/// Shifts the values of each group so that all groups have the same median.
fn equalize_medians<Key: Eq + Hash>(values: impl Iterator<Item = (Key, Option<f64>)> + Clone) -> Vec<Option<f64>> {
    let shifts = shifts(values.clone().filter_map(|(key, value)| Some((key, value?))));
    values.map(|(key, value)| Some(value? + shifts[&key])).collect()
}

/// Returns, for each group, the shift of its values that gives it the median of all values.
fn shifts<Key: Eq + Hash>(values: impl Iterator<Item = (Key, f64)> + Clone) -> HashMap<Key, f64> {
    let overall = median(values.clone().map(|(_, value)| value)).unwrap_or_default();
    let mut groups: HashMap<Key, Vec<f64>> = HashMap::new();
    for (key, value) in values {
        groups.entry(key).or_default().push(value);
    }
    groups.into_iter().map(|(key, group)| (key, overall - median(group).unwrap_or(overall))).collect()
}
