//! References from rows to other rows, and the strings that rows refer to.

use std::num::NonZeroU32;

use crate::event::ObjectKind;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub u32);

/// Refers to a frame of a recording by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// Refers to a call chain of a recording. It stores the index plus one, so that an
/// `Option<StackId>` is not larger: each launch has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(NonZeroU32);

impl StackId {
    /// Returns a reference to the chain at an index, which counts from 0.
    pub fn from_index(index: u32) -> StackId {
        StackId(NonZeroU32::MIN.saturating_add(index))
    }

    pub fn index(self) -> u32 {
        self.0.get() - 1
    }
}

/// Refers to one of a recording's objects by its index, and includes the object's kind, which is
/// needed for every slice. A recording may have millions of these references, so index and kind
/// share one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectRef(NonZeroU32);

impl ObjectRef {
    /// The number of low bits, which contain the number of the object's kind plus one.
    const KIND_BITS: u32 = 5;
    /// The maximum number of distinct objects.
    const MAX_COUNT: usize = 1 << (u32::BITS - Self::KIND_BITS);

    /// Returns the reference to the object at an index, or `None` if there are too many objects.
    pub fn new(kind: ObjectKind, index: usize) -> Option<ObjectRef> {
        let index = u32::try_from(index).ok().filter(|index| (*index as usize) < Self::MAX_COUNT)?;
        NonZeroU32::new(index << Self::KIND_BITS | (kind as u32 + 1)).map(ObjectRef)
    }

    pub fn kind(self) -> ObjectKind {
        let number = (self.0.get() & ((1 << Self::KIND_BITS) - 1)) - 1;
        ObjectKind::ALL[number as usize]
    }

    /// Returns the index among the recording's objects.
    pub fn index(self) -> usize {
        (self.0.get() >> Self::KIND_BITS) as usize
    }
}

/// The strings of a recording, concatenated in one allocation.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    pub fn push(&mut self, text: &[u8]) -> TextId {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        TextId(u32::try_from(self.ends.len() - 1).unwrap_or(u32::MAX))
    }

    /// Returns the string; empty if the reference is invalid.
    #[inline]
    pub fn get(&self, id: TextId) -> &[u8] {
        let index = id.0 as usize;
        let Some(&end) = self.ends.get(index) else { return &[] };
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..end]
    }

    /// Returns the references to all strings that begin with `prefix`.
    pub fn starting_with(&self, prefix: &[u8]) -> impl Iterator<Item = TextId> {
        (0..self.ends.len() as u32).map(TextId).filter(move |id| self.get(*id).starts_with(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_contains_index_and_kind() {
        for kind in ObjectKind::ALL {
            for index in [0, 1, ObjectRef::MAX_COUNT - 1] {
                let object = ObjectRef::new(kind, index).unwrap();
                assert_eq!((object.kind(), object.index()), (kind, index));
            }
        }
        assert_eq!(ObjectRef::new(ObjectKind::Pipe, ObjectRef::MAX_COUNT), None);
    }
}
