//! Reduces the detail of drawings of many launches by merging similar siblings into one row.
//! Siblings are similar if they run the same program, the same call site requested them, and their
//! children are similar, in the same order. Nothing is dropped: a row lists all its launches.

use std::collections::HashMap;

use crate::model::launch::Command;
use crate::model::tree::Forest;
use crate::sites::callers::Callers;

/// Rows that stand for one launch or for several similar ones: their parents' rows, and their
/// launches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows(Vec<(Option<usize>, Vec<u32>)>);

impl Rows {
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the launches of a row by index in the forest: at least one, in order of creation.
    #[must_use]
    pub fn members(&self, row: usize) -> &[u32] {
        &self.0[row].1
    }

    /// Returns the row of the parents of a row's launches. It precedes the rows of their children.
    #[must_use]
    pub fn parent(&self, row: usize) -> Option<usize> {
        self.0[row].0
    }
}

/// Returns at most `limit` rows if possible. Merges siblings only if there are more launches than
/// `limit`, and then only as many as necessary. Different launches are never merged, so a recording
/// of many different launches can exceed the limit.
#[must_use]
pub fn rows(forest: &Forest<'_>, callers: &Callers, limit: usize) -> Rows {
    let launches = forest.launches.len();
    let shapes = shapes(forest, callers);
    let mut max_merged = launches.div_ceil(limit.max(1)).next_power_of_two();
    loop {
        let rows = merge_siblings(forest, &shapes, max_merged);
        if rows.len() <= limit || max_merged >= launches {
            return rows;
        }
        max_merged *= 2;
    }
}

/// What launches must have in common to be similar: program, call site, and the shapes of their
/// children in order.
type Shape<'f, 'a> = (&'f Command<'a>, Option<u32>, Vec<u32>);

/// Returns a number for each launch. Similar launches get the same number.
fn shapes(forest: &Forest<'_>, callers: &Callers) -> Vec<u32> {
    let mut numbers: HashMap<Shape<'_, '_>, u32> = HashMap::new();
    let mut shapes = vec![0; forest.launches.len()];
    let parents_first: Vec<usize> = forest.walk_all().map(|step| step.index).collect();
    for index in parents_first.into_iter().rev() {
        let children = forest.children(index).iter().map(|child| shapes[*child]).collect();
        let shape = (forest.launches[index].command.as_ref(), callers.number_of(index), children);
        let next = numbers.len() as u32;
        shapes[index] = *numbers.entry(shape).or_insert(next);
    }
    shapes
}

/// Merges similar children: at most `max_merged` per row if their parents' row has one launch,
/// otherwise all.
fn merge_siblings(forest: &Forest<'_>, shapes: &[u32], max_merged: usize) -> Rows {
    let mut rows = Rows::default();
    for top in forest.roots.iter().chain(&forest.orphans) {
        rows.0.push((None, vec![*top as u32]));
    }
    let mut row = 0;
    while row < rows.len() {
        let parents: Vec<u32> = rows.members(row).to_vec();
        let max_members = if parents.len() == 1 { max_merged } else { usize::MAX };
        let children = similar_children(forest, shapes, &parents, max_members);
        rows.0.extend(children.into_iter().map(|members| (Some(row), members)));
        row += 1;
    }
    rows
}

fn similar_children(forest: &Forest<'_>, shapes: &[u32], parents: &[u32], max_members: usize) -> Vec<Vec<u32>> {
    let mut groups: Vec<Vec<u32>> = Vec::new();
    let mut open: HashMap<u32, usize> = HashMap::new();
    for child in parents.iter().flat_map(|parent| forest.children(*parent as usize)) {
        let shape = shapes[*child];
        match open.get(&shape).map(|group| &mut groups[*group]) {
            Some(group) if group.len() < max_members => group.push(*child as u32),
            _ => {
                open.insert(shape, groups.len());
                groups.push(vec![*child as u32]);
            }
        }
    }
    groups
}
