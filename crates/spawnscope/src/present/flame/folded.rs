//! Folded stacks: one line per stack, with boxes separated by `;` and the weight after a space. Times are in microseconds.

use super::{box_text, folded_line, for_each_stack};
use crate::analyze::flame::Flame;

/// Renders a flame graph as folded stacks.
#[must_use]
pub fn folded(flame: &Flame<'_>) -> String {
    let texts: Vec<String> = flame.nodes.iter().map(|node| box_text(&node.label)).collect();
    let mut folded = String::new();
    for_each_stack(flame, &texts, |stack, width| {
        folded.push_str(&folded_line(stack, width, &texts));
        folded.push('\n');
    });
    folded
}
