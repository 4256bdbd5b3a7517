//! Folded stacks: one line per stack, with boxes separated by `;` and the weight after a space. Times are in microseconds.

use super::{each_line, folded_line, text_of};
use crate::analyze::flame::Flame;

/// Renders a flame graph as folded stacks.
#[must_use]
pub fn folded(flame: &Flame<'_>) -> String {
    let texts: Vec<String> = flame.nodes.iter().map(|node| text_of(&node.label)).collect();
    let mut folded = String::new();
    each_line(flame, &texts, |stack, width| {
        folded.push_str(&folded_line(stack, width, &texts));
        folded.push('\n');
    });
    folded
}
