//! The boxes of a flame graph as a list, for the HTML page, whose script draws them.

use super::{BoxKind, box_kind, box_text, order_boxes};
use crate::analyze::flame::{Flame, Label};
use crate::analyze::phases::Phase;

/// A box to draw.
pub(in crate::present) struct DrawnBox {
    /// The index of the box below this one, which comes earlier in the list.
    pub(in crate::present) below: Option<usize>,
    /// The text on the box.
    pub(in crate::present) text: String,
    /// What the box shows.
    pub(in crate::present) kind: BoxKind,
    /// The phase, if the box shows one.
    pub(in crate::present) phase: Option<Phase>,
    /// The weight of the box with everything on top of it.
    pub(in crate::present) weight: u64,
}

/// Returns the boxes whose weight is at least `min_weight`, from left to right, each after the one below it.
pub(in crate::present) fn boxes(flame: &Flame<'_>, min_weight: u64) -> Vec<DrawnBox> {
    let mut weights: Vec<u64> = flame.nodes.iter().map(|node| node.own).collect();
    for (position, node) in flame.nodes.iter().enumerate().rev() {
        if let Some(below) = node.below {
            weights[below as usize] += weights[position];
        }
    }
    let min_weight = min_weight.max(1);
    let texts = weights
        .iter()
        .zip(&flame.nodes)
        .map(|(weight, node)| if *weight >= min_weight { box_text(&node.label) } else { String::new() });
    let texts: Vec<String> = texts.collect();
    let (bottom, boxes_above) = order_boxes(flame, &texts, |position| weights[position as usize] >= min_weight);
    let mut drawn = Vec::new();
    let mut pending: Vec<(Option<usize>, u32)> = bottom.iter().rev().map(|position| (None, *position)).collect();
    while let Some((below, position)) = pending.pop() {
        let label = &flame.nodes[position as usize].label;
        let index = drawn.len();
        drawn.push(DrawnBox {
            below,
            text: texts[position as usize].clone(),
            kind: box_kind(label),
            phase: match label {
                Label::Phase(phase) => Some(*phase),
                _ => None,
            },
            weight: weights[position as usize],
        });
        pending.extend(boxes_above[position as usize].iter().rev().map(|upper| (Some(index), *upper)));
    }
    drawn
}
