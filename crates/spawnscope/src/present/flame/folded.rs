//! Folded stacks: a line for each stack, its boxes separated by `;`, and its weight behind a space. Times are microseconds.

use std::fmt::Write as _;

use super::{lines, text_of};
use crate::analyze::flame::Flame;

/// A flame graph as folded stacks.
#[must_use]
pub fn folded(flame: &Flame<'_>) -> String {
    let texts: Vec<String> = flame.nodes.iter().map(|node| text_of(&node.label)).collect();
    let mut folded = String::new();
    for line in lines(flame, &texts) {
        for (level, position) in line.stack.iter().enumerate() {
            if level > 0 {
                folded.push(';');
            }
            folded.push_str(&texts[*position as usize]);
        }
        // Writing to a string cannot fail.
        let _ = writeln!(folded, " {}", line.width);
    }
    folded
}
