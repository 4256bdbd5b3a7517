//! Numbers the strings of a recording, so that what repeats is stored once. Its memory is bounded: when full it forgets
//! what it knew, and the same bytes may then occur again under a new number. It writes nothing.

use std::collections::HashMap;
use std::sync::Arc;

use super::rows::TextId;

/// A string that is not in the file yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NewText {
    /// Its number.
    pub(super) id: TextId,
    /// Its bytes.
    pub(super) bytes: Arc<[u8]>,
}

/// Strings known so far, with their numbers.
#[derive(Debug, Default)]
pub(super) struct Interner {
    known: HashMap<Arc<[u8]>, TextId>,
    known_bytes: usize,
    next: u32,
    new: Vec<NewText>,
}

impl Interner {
    const MAX_KNOWN: usize = 65_536;
    /// A second bound, since argv can be long: a few thousand link commands would fill any memory.
    const MAX_KNOWN_BYTES: usize = 16 << 20;

    /// The number of a string, old or new.
    pub(super) fn intern(&mut self, text: &[u8]) -> TextId {
        if let Some(&id) = self.known.get(text) {
            return id;
        }
        if self.known.len() >= Self::MAX_KNOWN || self.known_bytes + text.len() > Self::MAX_KNOWN_BYTES {
            self.known.clear();
            self.known_bytes = 0;
        }
        let id = TextId(self.next);
        // Four billion distinct strings would take the file past any disk first.
        self.next = self.next.saturating_add(1);
        let bytes: Arc<[u8]> = text.into();
        self.known_bytes += bytes.len();
        self.known.insert(Arc::clone(&bytes), id);
        self.new.push(NewText { id, bytes });
        id
    }

    /// Hands over the strings that were new since the last call.
    pub(super) fn take_new(&mut self) -> Vec<NewText> {
        std::mem::take(&mut self.new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_that_repeats_is_stored_once() {
        let mut interner = Interner::default();
        let first = interner.intern(b"/bin/true");
        assert_ne!(interner.intern(b"/bin/false"), first);
        assert_eq!(interner.intern(b"/bin/true"), first);
        assert_eq!(interner.take_new().len(), 2);
        assert_eq!(interner.intern(b"/bin/true"), first);
        assert!(interner.take_new().is_empty());
    }

    #[test]
    fn memory_stays_bounded_by_count_and_by_bytes() {
        let mut interner = Interner::default();
        for number in 0..Interner::MAX_KNOWN + 10 {
            interner.intern(number.to_string().as_bytes());
        }
        assert!(interner.known.len() <= Interner::MAX_KNOWN);
        let again = interner.intern(b"0");
        assert_eq!(
            again,
            TextId(u32::try_from(Interner::MAX_KNOWN).unwrap() + 10),
            "forgotten, so numbered anew"
        );

        let huge = vec![b'x'; Interner::MAX_KNOWN_BYTES / 2 + 1];
        interner.intern(&huge);
        interner.intern(&[huge.as_slice(), b"y"].concat());
        assert!(interner.known_bytes <= Interner::MAX_KNOWN_BYTES);
        assert_eq!(
            interner.known_bytes,
            interner.known.keys().map(|text| text.len()).sum::<usize>()
        );
    }
}
