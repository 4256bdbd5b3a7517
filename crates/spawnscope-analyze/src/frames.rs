//! Call chains of a recording: their frames, from the innermost outwards.

use spawnscope_data::event::Language;
use spawnscope_data::rows::{FrameRow, Recording, StackId, StackRow};

/// A frame of a call chain. Unknown fields are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame<'a> {
    /// The language of the code.
    pub language: Language,
    /// The function. `None` if it is unknown, and outside of all functions of a script.
    pub function: Option<&'a [u8]>,
    /// The source file.
    pub file: Option<&'a [u8]>,
    /// The line in it, from 1.
    pub line: Option<u32>,
    /// The ELF file that contains the machine code.
    pub module: Option<&'a [u8]>,
    /// The address in that file; without `module`, the address in the memory of the process.
    pub address: Option<u64>,
    /// Whether the compiler inlined it into its caller.
    pub is_inlined: bool,
}

/// A call chain from the innermost frame outwards.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    recording: &'a Recording,
    next: Option<StackId>,
    is_truncated: bool,
}

impl<'a> Frames<'a> {
    /// Returns the frames of a call chain of the recording.
    #[must_use]
    pub fn of(recording: &'a Recording, stack: Option<StackId>) -> Frames<'a> {
        Frames {
            recording,
            next: stack,
            is_truncated: false,
        }
    }

    /// Whether the last returned frame is one with unreadable callers.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let row: &StackRow = self.recording.stacks.get(self.next?.place() as usize)?;
        let frame = self.recording.frames.get(row.frame.0 as usize)?;
        self.next = row.caller;
        self.is_truncated = row.is_truncated;
        Some(named(self.recording, frame))
    }
}

fn named<'a>(recording: &'a Recording, row: &FrameRow) -> Frame<'a> {
    let text = |id: Option<_>| id.map(|id| recording.texts.get(id));
    Frame {
        language: row.language,
        function: text(row.function),
        file: text(row.file),
        line: row.line,
        module: text(row.module),
        address: row.address,
        is_inlined: row.is_inlined,
    }
}

/// Whether a frame is in a module that comes with Python: below `lib/python3.11`, but not in an installed package.
pub(crate) fn is_standard_library(frame: &Frame<'_>) -> bool {
    let Some(file) = frame.file.filter(|_| frame.language == Language::Python) else {
        return false;
    };
    if file.starts_with(b"<frozen ") {
        return true;
    }
    let parts: Vec<&[u8]> = file.split(|byte| *byte == b'/').collect();
    let is_installed = [b"site-packages", b"dist-packages"]
        .iter()
        .any(|folder| parts.contains(&&folder[..]));
    let mut pairs = parts.windows(2);
    !is_installed && pairs.any(|pair| pair[0].starts_with(b"lib") && pair[1].starts_with(b"python3"))
}
