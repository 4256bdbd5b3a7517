//! Assigns ids to the frames and call chains of a recording, so that each is stored once. A chain
//! is stored as its innermost frame and the id of the chain that called it. Memory is bounded as in
//! `intern`.

use spawnscope_data::event::{Chain, Frame};

use super::intern::{Interner, Numbered};
use spawnscope_data::rows::{FrameId, FrameRow, StackId, StackRow};

/// Frames and chains that are not in the file yet, with ascending ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NewStacks {
    pub(super) frames: Vec<(FrameId, FrameRow)>,
    /// Chains, each after its caller.
    pub(super) stacks: Vec<(StackId, StackRow)>,
}

/// Known frames and chains.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    frames: Numbered<FrameRow, FrameId>,
    stacks: Numbered<StackRow, StackId>,
}

impl Stacks {
    pub(super) fn intern(&mut self, chain: &Chain, texts: &mut Interner) -> Option<StackId> {
        let mut caller = None;
        for frame in chain.frames.iter().rev() {
            let row = StackRow {
                frame: self.frame(frame, texts),
                caller,
                is_truncated: caller.is_none() && chain.is_truncated,
            };
            caller = Some(self.stacks.intern(row, StackId::from_index));
        }
        caller
    }

    /// Returns the frames and chains that are new since the last call.
    pub(super) fn take_new(&mut self) -> NewStacks {
        NewStacks { frames: self.frames.take_new(), stacks: self.stacks.take_new() }
    }

    fn frame(&mut self, frame: &Frame, texts: &mut Interner) -> FrameId {
        let [function, file, module] =
            [&frame.function, &frame.file, &frame.module].map(|text| text.as_deref().map(|text| texts.intern(text)));
        let row = FrameRow {
            language: frame.language,
            function,
            file,
            line: frame.line,
            module,
            address: frame.address,
            is_inlined: frame.is_inlined,
        };
        self.frames.intern(row, FrameId)
    }
}

#[cfg(test)]
mod tests {
    use crate::Redaction;
    use spawnscope_data::event::Language;

    use super::*;

    fn chain(lines: &[u32], is_truncated: bool) -> Chain {
        let frames = lines.iter().map(|line| Frame {
            file: Some(b"unpack.sh".to_vec()),
            line: Some(*line),
            ..Frame::unknown(Language::Bash)
        });
        Chain { frames: frames.collect(), is_truncated }
    }

    #[test]
    fn equal_chains_and_common_callers_are_stored_once() {
        let (mut stacks, mut texts) = (Stacks::default(), Interner::new(Redaction::Mask));
        let first = stacks.intern(&chain(&[14, 3], false), &mut texts);
        assert_eq!(stacks.intern(&chain(&[14, 3], false), &mut texts), first);
        assert_ne!(stacks.intern(&chain(&[15, 3], false), &mut texts), first);
        let new = stacks.take_new();
        assert_eq!((new.frames.len(), new.stacks.len()), (3, 3));
        let callers: Vec<_> = new.stacks.iter().map(|(_, row)| row.caller).collect();
        assert_eq!(callers, [None, Some(StackId::from_index(0)), Some(StackId::from_index(0))]);
        assert_eq!(stacks.take_new(), NewStacks::default());
    }

    #[test]
    fn a_truncated_chain_differs_from_a_complete_one() {
        let (mut stacks, mut texts) = (Stacks::default(), Interner::new(Redaction::Mask));
        let complete = stacks.intern(&chain(&[3], false), &mut texts);
        assert_ne!(stacks.intern(&chain(&[3], true), &mut texts), complete);
        assert_eq!(stacks.intern(&chain(&[], true), &mut texts), None);
    }
}
