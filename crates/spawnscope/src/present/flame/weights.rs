//! The weights of stacks in the recordings of two versions, and the boxes of their difference. The
//! code that draws them chooses the colours.

use std::collections::BTreeMap;

/// The mean weight of each stack, before and after.
type Weights = BTreeMap<String, [u64; 2]>;

/// A box of the flame graph of a difference. Its width is the sum, over the stacks in it, of the
/// larger of the two weights.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::present) struct DifferenceBox {
    pub(in crate::present) name: String,
    pub(in crate::present) depth: usize,
    /// Where the box begins, in the unit of the weights.
    pub(in crate::present) start: u64,
    pub(in crate::present) width: u64,
    pub(in crate::present) weights: [u64; 2],
}

/// Returns the boxes of the folded stacks of the runs of two versions, each after the box below it.
pub(in crate::present) fn difference_boxes(before: &[String], after: &[String]) -> Vec<DifferenceBox> {
    let weights = stack_weights(before, after);
    // Sorted by frames, not by text, so that the stacks in one box are adjacent.
    let stacks: BTreeMap<Vec<&str>, [u64; 2]> =
        weights.iter().map(|(stack, weights)| (stack.split(';').collect(), *weights)).collect();
    let mut boxes: Vec<DifferenceBox> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut start = 0;
    for (frames, weights) in stacks {
        let width = weights[0].max(weights[1]);
        let shared = open.iter().zip(&frames).take_while(|(index, frame)| boxes[**index].name == **frame).count();
        open.truncate(shared);
        for (depth, frame) in frames.iter().enumerate().skip(shared) {
            open.push(boxes.len());
            boxes.push(DifferenceBox { name: (*frame).to_owned(), depth, start, width: 0, weights: [0, 0] });
        }
        for index in &open {
            let open_box = &mut boxes[*index];
            open_box.width += width;
            open_box.weights = [open_box.weights[0] + weights[0], open_box.weights[1] + weights[1]];
        }
        start += width;
    }
    boxes
}

fn stack_weights(before: &[String], after: &[String]) -> Weights {
    let mut weights = Weights::new();
    add(&mut weights, before, 0);
    add(&mut weights, after, 1);
    weights
}

fn add(weights: &mut Weights, runs: &[String], side: usize) {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (stack, weight) in runs.iter().flat_map(|run| run.lines()).filter_map(|line| line.rsplit_once(' ')) {
        *sums.entry(stack).or_default() += weight.parse::<u64>().unwrap_or_default();
    }
    for (stack, sum) in sums {
        let mean = (sum as f64 / runs.len() as f64).round() as u64;
        weights.entry(stack.to_owned()).or_default()[side] = mean;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_in_one_box_are_adjacent_and_removed_stacks_keep_their_width() {
        let boxes = difference_boxes(&["a;c 2\na b 1\na;b 10".to_owned()], &["a;c 5".to_owned()]);
        let found: Vec<_> =
            boxes.iter().map(|each| (each.name.as_str(), each.depth, each.start, each.width, each.weights)).collect();
        let wanted =
            [("a", 0, 0, 15, [12, 5]), ("b", 1, 0, 10, [10, 0]), ("c", 1, 10, 5, [2, 5]), ("a b", 0, 15, 1, [1, 0])];
        assert_eq!(found, wanted);
    }
}
