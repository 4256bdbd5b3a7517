//! The boxes of a flame graph. Boxes with the same label on top of the same box are merged.

use std::collections::HashMap;

use super::Label;

/// Maximum number of levels. Chains of launches may be 100,000 deep, which cannot be drawn.
pub const MAX_LEVELS: u32 = 400;

/// A box.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// Index of the box below.
    pub below: Option<u32>,
    /// The meaning of the box.
    pub label: Label<'a>,
    /// The weight of the box itself, without the boxes on top of it.
    pub own: u64,
    level: u32,
}

/// A flame graph under construction.
#[derive(Debug, Default)]
pub(super) struct Stacks<'a> {
    nodes: Vec<Node<'a>>,
    /// The index of each box, by the box below and the label.
    indexes: HashMap<(Option<u32>, Label<'a>), u32>,
}

impl<'a> Stacks<'a> {
    /// Returns the box with this label on top of another box, or at the bottom. Creates it if
    /// necessary.
    pub(super) fn box_above(&mut self, below: Option<u32>, label: Label<'a>) -> u32 {
        let level = below.map_or(0, |below| self.nodes[below as usize].level + 1);
        match below.filter(|_| level > MAX_LEVELS) {
            Some(highest) => highest,
            None if level == MAX_LEVELS => self.find_or_create(below, Label::AboveMaxLevel, level),
            None => self.find_or_create(below, label, level),
        }
    }

    fn find_or_create(&mut self, below: Option<u32>, label: Label<'a>, level: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let index = *self.indexes.entry((below, label)).or_insert(next);
        if index == next {
            self.nodes.push(Node { below, label, own: 0, level });
        }
        index
    }

    /// Adds weight to a box.
    pub(super) fn add(&mut self, node: u32, weight: u64) {
        self.nodes[node as usize].own += weight;
    }

    pub(super) fn finish(self) -> Vec<Node<'a>> {
        self.nodes
    }
}
