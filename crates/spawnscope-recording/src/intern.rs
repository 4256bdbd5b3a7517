//! Assigns ids to the strings, frames and call chains of a recording and to the objects that its
//! threads waited for, so that each is stored once. A chain is stored as its innermost frame and
//! the id of the chain that called it. Memory is bounded: when a limit is reached, everything is
//! forgotten, and the same bytes may get a new id later. All strings pass through this module
//! before they are written, so it masks secrets, once per string.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use spawnscope_data::event::{Chain, Frame, Object, ObjectKind};

use super::redact::Redaction;
use super::tables::TextRow;
use spawnscope_data::rows::{FrameId, FrameRow, ObjectRef, ObjectRow, StackId, StackRow, TextId};

/// A string that is in the file, or will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InternedText {
    pub(super) id: TextId,
    /// The length of the string as stored, after masking.
    pub(super) bytes: usize,
}

#[derive(Debug)]
pub(super) struct Interner {
    redaction: Redaction,
    /// The known strings, as they are before masking.
    known: HashMap<Arc<[u8]>, InternedText>,
    known_bytes: usize,
    next: u32,
    /// The id of the oldest string that is still known.
    oldest: u32,
    new: Vec<TextRow>,
}

impl Interner {
    /// Maximum size of all known strings together, in bytes. An argv can be long: without this
    /// limit, a few thousand link commands would exhaust memory.
    const MAX_KNOWN_BYTES: usize = 16 << 20;

    pub(super) fn new(redaction: Redaction) -> Interner {
        Interner { redaction, known: HashMap::new(), known_bytes: 0, next: 0, oldest: 0, new: Vec::new() }
    }

    pub(super) fn intern(&mut self, text: &[u8]) -> TextId {
        self.intern_with(text, Redaction::apply_to_path).id
    }

    /// Returns the id of an argv, whose arguments end with NUL, and its length after masking.
    pub(super) fn intern_argv(&mut self, argv: &[u8]) -> InternedText {
        self.intern_with(argv, Redaction::apply)
    }

    fn intern_with(&mut self, text: &[u8], mask: fn(Redaction, &[u8]) -> Cow<'_, [u8]>) -> InternedText {
        if let Some(&known) = self.known.get(text) {
            return known;
        }
        if self.known.len() >= MAX_KNOWN || self.known_bytes + text.len() > Self::MAX_KNOWN_BYTES {
            self.known.clear();
            self.known_bytes = 0;
            self.oldest = self.next;
        }
        let id = TextId(self.next);
        // This does not overflow in practice: four billion distinct strings do not fit on a disk.
        self.next = self.next.saturating_add(1);
        let original: Arc<[u8]> = text.into();
        let bytes = match mask(self.redaction, text) {
            Cow::Borrowed(_) => Arc::clone(&original),
            Cow::Owned(masked) => masked.into(),
        };
        let interned = InternedText { id, bytes: bytes.len() };
        self.known_bytes += original.len();
        self.known.insert(original, interned);
        self.new.push(TextRow { id, bytes });
        interned
    }

    /// Returns the id of the oldest string that `intern` may return again.
    pub(super) fn oldest(&self) -> TextId {
        TextId(self.oldest)
    }

    pub(super) fn take_new(&mut self) -> Vec<TextRow> {
        std::mem::take(&mut self.new)
    }
}

/// Known rows with their ids, which ascend.
#[derive(Debug)]
pub(super) struct Numbered<Row, Id> {
    known: HashMap<Row, Id>,
    next: u32,
    new: Vec<(Id, Row)>,
}

impl<Row, Id> Default for Numbered<Row, Id> {
    fn default() -> Numbered<Row, Id> {
        Numbered { known: HashMap::new(), next: 0, new: Vec::new() }
    }
}

/// Maximum number of known rows of one kind, and of known paths.
const MAX_KNOWN: usize = 65_536;

impl<Row: Copy + Eq + Hash, Id: Copy> Numbered<Row, Id> {
    /// Returns the id of a row. `id` makes it from the number of the row.
    pub(super) fn intern(&mut self, row: Row, id: impl FnOnce(u32) -> Id) -> Id {
        if let Some(&known) = self.known.get(&row) {
            return known;
        }
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        let id = id(self.next);
        self.next = self.next.saturating_add(1);
        self.known.insert(row, id);
        self.new.push((id, row));
        id
    }

    /// Returns the rows that are new since the last call.
    pub(super) fn take_new(&mut self) -> Vec<(Id, Row)> {
        std::mem::take(&mut self.new)
    }
}

/// Known objects, and the paths of files.
#[derive(Debug, Default)]
pub(super) struct Objects {
    /// The reference to each object, or `None` if there are too many objects.
    rows: Numbered<ObjectRow, Option<ObjectRef>>,
    paths: HashMap<(u32, u64), TextId>,
}

impl Objects {
    /// Sets the current path of a file. This replaces the path of a deleted file that had the same
    /// inode.
    pub(super) fn set_path(&mut self, device: u32, inode: u64, path: TextId) {
        if self.paths.len() >= MAX_KNOWN {
            self.paths.clear();
        }
        self.paths.insert((device, inode), path);
    }

    pub(super) fn intern(&mut self, object: Object) -> Option<ObjectRef> {
        let Object { kind, device, inode } = object;
        let path = self.paths.get(&(device, inode)).copied().filter(|_| has_path(kind));
        self.rows.intern(ObjectRow { kind, device, inode, path }, |number| ObjectRef::new(kind, number as usize))
    }

    pub(super) fn take_new(&mut self) -> Vec<(ObjectRef, ObjectRow)> {
        self.rows.take_new().into_iter().filter_map(|(reference, row)| Some((reference?, row))).collect()
    }
}

/// Whether objects of this kind have a path or an address. Objects of other kinds have none, even
/// if a file has the same inode number.
fn has_path(kind: ObjectKind) -> bool {
    use ObjectKind::{BlockDevice, CharacterDevice, Directory, Fifo, File, Socket};
    matches!(kind, Socket | Fifo | CharacterDevice | BlockDevice | File | Directory)
}

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
    use spawnscope_data::event::Language;

    use super::*;

    #[test]
    fn masked_strings_get_the_same_id_only_if_they_were_equal_before_masking() {
        let mut interner = Interner::new(Redaction::Mask);
        let first = interner.intern_argv(b"mysql\0-phunter2\0");
        assert_eq!(interner.intern_argv(b"mysql\0-phunter2\0"), first);
        assert_ne!(interner.intern_argv(b"mysql\0-phunter3\0").id, first.id);
        interner.intern(b"/srv/https://me:hunter2@host");
        let new = interner.take_new();
        let stored: Vec<&[u8]> = new.iter().map(|text| &*text.bytes).collect();
        let masked = b"mysql\0-p***\0".as_slice();
        assert_eq!(stored, [masked, masked, b"/srv/https://me:***@host"]);
        assert_eq!(first.bytes, masked.len());
    }

    #[test]
    fn memory_stays_bounded_by_count_and_by_bytes() {
        let mut interner = Interner::new(Redaction::Mask);
        for number in 0..MAX_KNOWN + 10 {
            interner.intern(number.to_string().as_bytes());
        }
        assert!(interner.known.len() <= MAX_KNOWN);
        let new_id = interner.intern(b"0");
        assert_eq!(
            new_id,
            TextId(u32::try_from(MAX_KNOWN).unwrap() + 10),
            "the string was forgotten, so it gets a new id"
        );

        let huge = vec![b'x'; Interner::MAX_KNOWN_BYTES / 2 + 1];
        interner.intern(&huge);
        interner.intern(&[huge.as_slice(), b"y"].concat());
        assert!(interner.known_bytes <= Interner::MAX_KNOWN_BYTES);
        assert_eq!(interner.known_bytes, interner.known.keys().map(|text| text.len()).sum::<usize>());
    }

    #[test]
    fn an_object_that_repeats_is_stored_once_until_it_gets_another_path() {
        let mut objects = Objects::default();
        let fifo = Object { kind: ObjectKind::Fifo, device: 3, inode: 7 };
        let pipe = Object { kind: ObjectKind::Pipe, ..fifo };
        objects.set_path(3, 7, TextId(5));
        let first = objects.intern(fifo).unwrap();
        assert_eq!(objects.intern(fifo), Some(first));
        assert_ne!(objects.intern(pipe), Some(first));
        objects.set_path(3, 7, TextId(6));
        assert_ne!(objects.intern(fifo), Some(first));
        let paths: Vec<_> = objects.take_new().iter().map(|(_, row)| row.path).collect();
        assert_eq!(paths, [Some(TextId(5)), None, Some(TextId(6))]);
        assert!(objects.take_new().is_empty());
    }

    #[test]
    fn memory_for_objects_stays_bounded() {
        let mut objects = Objects::default();
        for inode in 0..MAX_KNOWN as u64 + 10 {
            objects.set_path(1, inode, TextId(0));
            let kind = ObjectKind::File;
            objects.intern(Object { kind, device: 1, inode });
        }
        assert!(objects.rows.known.len() <= MAX_KNOWN && objects.paths.len() <= MAX_KNOWN);
    }

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
