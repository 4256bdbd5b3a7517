//! Finds for each group of launches of the older recordings the group of the newer ones that does the same. First by the whole key; then
//! the remaining groups by arguments and file, since an edit above a line moves it; then by line, since arguments change as well; last by
//! file, for a loop that was rewritten.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::diff::run::{Key, Place, Run};
use crate::summary::Summary;

/// Launches of both sides that do the same. One side may have none.
#[derive(Clone, Debug)]
pub(super) struct Pair<'r> {
    /// The keys of each side.
    pub(super) keys: [Vec<&'r Key>; 2],
    /// The sums of each run of each side. `None` where a run has no such launch.
    pub(super) sums: [Vec<Option<Summary>>; 2],
}

impl<'r> Pair<'r> {
    fn new(runs: [&'r [Run]; 2], keys: [Vec<&'r Key>; 2]) -> Pair<'r> {
        let sums = [0, 1].map(|side| {
            let of_run = |run: &'r Run| sum_of(keys[side].iter().filter_map(|key| run.launches.get(*key)));
            runs[side].iter().map(of_run).collect()
        });
        Pair { keys, sums }
    }
}

fn sum_of<'r>(mut sums: impl Iterator<Item = &'r Summary>) -> Option<Summary> {
    let mut sum = sums.next()?.clone();
    for more in sums {
        sum.merge(more);
    }
    Some(sum)
}

/// Matches the launches of two sides. The result is in the order of the keys.
pub(super) fn pairs<'r>(before: &'r [Run], after: &'r [Run]) -> Vec<Pair<'r>> {
    let keys = |runs: &'r [Run]| -> BTreeSet<&'r Key> { runs.iter().flat_map(|run| run.launches.keys()).collect() };
    let (older, newer) = (keys(before), keys(after));
    let mut matched: Vec<[Vec<&Key>; 2]> = older.intersection(&newer).map(|key| [vec![*key], vec![*key]]).collect();
    let mut left: [Vec<&Key>; 2] = [
        older.difference(&newer).copied().collect(),
        newer.difference(&older).copied().collect(),
    ];
    one_by_one(&mut left, &mut matched);
    all_together(&mut left, &mut matched, |key| {
        let place = key.place.as_ref()?;
        Some((place.file.as_slice(), place.line))
    });
    all_together(&mut left, &mut matched, |key| Some((file(key.place.as_ref()?), None)));
    let [removed, added] = left;
    matched.extend(removed.into_iter().map(|key| [vec![key], Vec::new()]));
    matched.extend(added.into_iter().map(|key| [Vec::new(), vec![key]]));
    let runs = [before, after];
    matched.into_iter().map(|keys| Pair::new(runs, keys)).collect()
}

/// Matches lines that moved, in their order: the same program with the same arguments, requested by the same file.
fn one_by_one<'r>(left: &mut [Vec<&'r Key>; 2], matched: &mut Vec<[Vec<&'r Key>; 2]>) {
    let alike = |key: &'r Key| {
        let file = key.place.as_ref().map(|place| &place.file);
        (&key.command, &key.arguments, file, &key.parent)
    };
    let mut newer: HashMap<_, VecDeque<&Key>> = HashMap::new();
    for key in &left[1] {
        newer.entry(alike(key)).or_default().push_back(key);
    }
    let mut taken: BTreeSet<&Key> = BTreeSet::new();
    left[0].retain(|key| match newer.get_mut(&alike(key)).and_then(VecDeque::pop_front) {
        Some(other) => {
            taken.insert(other);
            matched.push([vec![*key], vec![other]]);
            false
        }
        None => true,
    });
    left[1].retain(|key| !taken.contains(key));
}

/// Returns the file of a place. Scripts given with `-c` have no file and differ in their texts, so all of them count as one file.
fn file(place: &Place) -> &[u8] {
    place.path.0.as_ref().map_or(b"", |_| &place.file)
}

/// Matches launches of one program that one parent requests at the same place, whatever their arguments are.
fn all_together<'r>(
    left: &mut [Vec<&'r Key>; 2],
    matched: &mut Vec<[Vec<&'r Key>; 2]>,
    place: impl Fn(&'r Key) -> Option<(&'r [u8], Option<u32>)>,
) {
    let mut groups: BTreeMap<_, [Vec<&Key>; 2]> = BTreeMap::new();
    for (side, keys) in left.iter_mut().enumerate() {
        for key in keys.drain(..) {
            let group = groups.entry((&key.command, place(key), &key.parent)).or_default();
            group[side].push(key);
        }
    }
    for group in groups.into_values() {
        if group.iter().all(|keys| !keys.is_empty()) {
            matched.push(group);
        } else {
            let [removed, added] = group;
            left[0].extend(removed);
            left[1].extend(added);
        }
    }
}
