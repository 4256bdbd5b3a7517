//! Places the rows of the timeline in lanes: children are below their parent, and share a lane if
//! they do not overlap in time.

/// A row to place. Parents precede their children.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) parent: Option<usize>,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Maximum number of lanes: a screen cannot show more. Further rows share the lowest lane.
const MAX_LANES: u32 = 512;

/// Returns the lane of each span, from 0 at the top. Each span has its own block of lanes, which
/// contains the blocks of its children.
pub(super) fn lanes(spans: &[Span]) -> Vec<u32> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); spans.len() + 1];
    // The index of the list of spans without a parent.
    let top = spans.len();
    for (index, span) in spans.iter().enumerate() {
        children[span.parent.unwrap_or(top)].push(index);
    }
    let mut blocks: Vec<Block> = spans.iter().map(Block::new).collect();
    for index in (0..=top).rev() {
        let siblings = &mut children[index];
        siblings.sort_by_key(|child| (spans[*child].start, *child));
        let height = pack(siblings, &mut blocks);
        if let Some(block) = blocks.get_mut(index) {
            block.height = (1 + height).min(MAX_LANES);
        }
        let end = siblings.iter().map(|child| blocks[*child].end).max();
        if let (Some(block), Some(end)) = (blocks.get_mut(index), end) {
            block.end = block.end.max(end);
        }
    }
    let mut lanes = vec![0; spans.len()];
    for (index, span) in spans.iter().enumerate() {
        let above = span.parent.map_or(0, |parent| lanes[parent] + 1);
        lanes[index] = (above + blocks[index].offset).min(MAX_LANES - 1);
    }
    lanes
}

/// The lanes of a span and of everything below it.
struct Block {
    start: u64,
    /// The end of the last descendant.
    end: u64,
    height: u32,
    /// The first lane, counted from the lane below the parent.
    offset: u32,
}

impl Block {
    fn new(span: &Span) -> Block {
        Block { start: span.start, end: span.end.max(span.start), height: 1, offset: 0 }
    }
}

/// Places blocks, ordered by start, in the first lanes that are free for all their height. Returns
/// the number of lanes.
fn pack(ordered: &[usize], blocks: &mut [Block]) -> u32 {
    // When each lane becomes free.
    let mut free_from: Vec<u64> = Vec::new();
    for index in ordered {
        let block = &mut blocks[*index];
        let height = block.height as usize;
        let offset = first_free(&free_from, block.start, height).min((MAX_LANES as usize).saturating_sub(height));
        let last = offset + height;
        if free_from.len() < last {
            free_from.resize(last, 0);
        }
        free_from[offset..last].iter_mut().for_each(|at| *at = (*at).max(block.end));
        block.offset = offset as u32;
    }
    free_from.len() as u32
}

fn first_free(free_from: &[u64], start: u64, height: usize) -> usize {
    let mut offset = 0;
    for (lane, at) in free_from.iter().enumerate() {
        if *at > start {
            offset = lane + 1;
        } else if lane + 1 - offset == height {
            return offset;
        }
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(parent: Option<usize>, start: u64, end: u64) -> Span {
        Span { parent, start, end }
    }

    #[test]
    fn children_are_below_their_parent_and_side_by_side_when_they_overlap() {
        let spans = [
            span(None, 0, 100),
            span(Some(0), 10, 30),
            span(Some(0), 20, 40),
            span(Some(0), 30, 50),
            span(Some(1), 12, 14),
            span(Some(2), 22, 24),
        ];
        assert_eq!(lanes(&spans), [0, 1, 3, 1, 2, 4]);
    }

    #[test]
    fn long_chains_and_many_concurrent_spans_stay_within_the_lanes() {
        let chain: Vec<Span> = (0..2000usize).map(|index| span(index.checked_sub(1), 0, 10)).collect();
        assert!(lanes(&chain).iter().all(|lane| *lane < MAX_LANES));
        let mut crowd = vec![span(None, 0, 10)];
        crowd.extend((0..2000).map(|_| span(Some(0), 0, 10)));
        assert!(lanes(&crowd).iter().all(|lane| *lane < MAX_LANES));
    }
}
