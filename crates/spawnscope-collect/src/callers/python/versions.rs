//! Where each version of CPython stores its frames. Since 3.13 the interpreter itself publishes the
//! offsets, in `_Py_DebugOffsets` at the start of `_PyRuntime`. For 3.9 to 3.12 they come from the
//! headers; patch releases do not change them.

use zerocopy::FromZeros;

use crate::wire::{PYTHON_LINES_LOCATIONS, PYTHON_LINES_RANGES, PYTHON_LINES_STEPS, PYTHON_PIECE_BYTES, WirePython};

/// Number of bytes of `_PyRuntime` that are read: enough for the offsets of all versions that
/// publish them.
pub(super) const PUBLISHED_BYTES: u64 = 50 * 8;

/// Returns the offsets of the interpreter with this `Py_Version`; `None` for an unknown version, a
/// free-threaded build, or offsets that are too large. `runtime` is the beginning of `_PyRuntime`
/// in the file.
pub(super) fn offsets(version: u32, runtime: &[u8]) -> Option<WirePython> {
    let layout = match version >> 16 {
        0x309 => with_frame_objects(PYTHON_LINES_STEPS, 104),
        0x30a => with_frame_objects(PYTHON_LINES_RANGES, 96),
        0x30b => python_3_11(),
        0x30c => python_3_12(),
        0x30d => published_offsets(version, runtime, &INDICES_3_13)?,
        0x30e => published_offsets(version, runtime, &INDICES_3_14)?,
        _ => return None,
    };
    fits(&layout).then_some(layout)
}

/// Whether the copied pieces of a frame and of a code object contain all fields that are read.
fn fits(layout: &WirePython) -> bool {
    const WORD: u16 = 8;
    let within =
        |end: u16, fields: &[u16]| u32::from(end) < PYTHON_PIECE_BYTES && fields.iter().all(|at| at + WORD <= end);
    let frame = [layout.frame_code, layout.frame_caller, layout.frame_instruction];
    let code = [layout.code_first_line, layout.code_bytes, layout.code_file, layout.code_function, layout.code_lines];
    let frame_end = match layout.line_format {
        PYTHON_LINES_LOCATIONS => layout.frame_owner + 1,
        _ => layout.frame_instruction + WORD,
    };
    within(frame_end, &frame) && within(layout.code_instructions, &code)
}

/// Returns the offsets of the versions in which frames are objects. `frame_instruction` is the
/// offset of `f_lasti`.
fn with_frame_objects(line_format: u16, frame_instruction: u16) -> WirePython {
    WirePython {
        runtime_interpreters: 32,
        interpreter_next: 0,
        interpreter_threads: 8,
        thread_next: 8,
        thread_id: 176,
        holder_frame: 24,
        frame_caller: 24,
        frame_code: 32,
        frame_instruction,
        code_first_line: 40,
        code_bytes: 48,
        code_file: 104,
        code_function: 112,
        code_lines: 120,
        code_instructions: 128,
        ascii_text: 48,
        other_text: 72,
        line_format,
        ..WirePython::new_zeroed()
    }
}

fn python_3_11() -> WirePython {
    WirePython {
        runtime_interpreters: 40,
        interpreter_next: 0,
        interpreter_threads: 16,
        thread_next: 8,
        thread_id: 160,
        thread_c_frame: 56,
        holder_frame: 8,
        frame_code: 32,
        frame_caller: 48,
        frame_instruction: 56,
        frame_owner: 69,
        code_first_line: 72,
        code_file: 112,
        code_function: 128,
        code_lines: 136,
        code_instructions: 184,
        ascii_text: 48,
        other_text: 72,
        ..WirePython::new_zeroed()
    }
}

fn python_3_12() -> WirePython {
    WirePython {
        runtime_interpreters: 40,
        interpreter_next: 0,
        interpreter_threads: 72,
        thread_next: 8,
        thread_id: 144,
        thread_c_frame: 56,
        holder_frame: 0,
        frame_code: 0,
        frame_caller: 8,
        frame_instruction: 56,
        frame_owner: 70,
        code_first_line: 68,
        code_file: 112,
        code_function: 128,
        code_lines: 136,
        code_instructions: 192,
        ascii_text: 40,
        other_text: 56,
        ..WirePython::new_zeroed()
    }
}

/// For each offset, in the order in which `published_offsets` names them, the index of the word (of
/// 8 bytes) in `_Py_DebugOffsets` that contains it.
type WordIndices = [usize; 15];

const INDICES_3_13: WordIndices = [5, 8, 9, 21, 23, 25, 29, 30, 31, 33, 35, 37, 38, 39, 43];
const INDICES_3_14: WordIndices = [5, 8, 9, 24, 26, 28, 32, 33, 34, 36, 40, 42, 43, 44, 48];

/// Returns the word at an index of `_Py_DebugOffsets`. Word 0 is a cookie, word 1 the version, word
/// 2 whether the build is free-threaded. Offsets follow.
fn word(runtime: &[u8], index: usize) -> Option<u64> {
    let bytes = runtime.get(index * 8..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

fn published_offsets(version: u32, runtime: &[u8], indices: &WordIndices) -> Option<WirePython> {
    let is_known = runtime.starts_with(b"xdebugpy") && word(runtime, 1)? == u64::from(version);
    let has_global_lock = word(runtime, 2)? == 0;
    if !is_known || !has_global_lock {
        return None;
    }
    let mut offsets = [0; 15];
    for (offset, index) in offsets.iter_mut().zip(indices) {
        *offset = u16::try_from(word(runtime, *index)?).ok()?;
    }
    let [runtime_interpreters, interpreter_next, interpreter_threads, rest @ ..] = offsets;
    let [thread_next, holder_frame, thread_id, rest @ ..] = rest;
    let [frame_caller, frame_code, frame_instruction, frame_owner, rest @ ..] = rest;
    let [code_file, code_function, code_lines, code_first_line, code_instructions] = rest;
    Some(WirePython {
        runtime_interpreters,
        interpreter_next,
        interpreter_threads,
        thread_next,
        thread_id,
        holder_frame,
        frame_code,
        frame_caller,
        frame_instruction,
        frame_owner,
        code_first_line,
        code_file,
        code_function,
        code_lines,
        code_instructions,
        ascii_text: 40,
        other_text: 56,
        ..WirePython::new_zeroed()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first words of `_PyRuntime`, after the cookie, in Debian's Python 3.13.5.
    const DEBIAN_3_13: [u64; 43] = [
        0x30d_05f0, 0, 283_376, 608, 632, 194_976, 7272, 7264, 7344, 7400, 7656, 7640, 7648, 16, 7752, 0, 7768, 7760,
        304, 0, 8, 16, 72, 152, 160, 232, 32, 80, 8, 0, 56, 72, 70, 208, 112, 120, 128, 136, 68, 52, 96, 104, 200,
    ];
    /// The same words in Debian's Python 3.14.10.
    const DEBIAN_3_14: [u64; 48] = [
        0x30e_0af0, 0, 316_616, 784, 808, 225_864, 7280, 7272, 7344, 7360, 7408, 7688, 7672, 7680, 16, 7784, 0, 7800,
        7792, 7992, 0, 832, 0, 8, 16, 72, 152, 160, 232, 32, 88, 8, 0, 56, 80, 74, 64, 0, 216, 112, 120, 128, 136, 68,
        52, 96, 104, 208,
    ];

    fn runtime(words: &[u64]) -> Vec<u8> {
        let words = words.iter().flat_map(|word| word.to_ne_bytes());
        b"xdebugpy".iter().copied().chain(words).collect()
    }

    #[test]
    fn published_offsets_are_those_of_the_headers() {
        let layout = offsets(0x30d_05f0, &runtime(&DEBIAN_3_13)).unwrap();
        let threads = (layout.interpreter_threads, layout.thread_next, layout.thread_id);
        assert_eq!((layout.runtime_interpreters, layout.interpreter_next, threads), (632, 7264, (7344, 8, 160)));
        assert_eq!((layout.thread_c_frame, layout.holder_frame, layout.frame_owner), (0, 72, 70));
        assert_eq!((layout.code_first_line, layout.code_instructions), (68, 200));

        let layout = offsets(0x30e_0af0, &runtime(&DEBIAN_3_14)).unwrap();
        let threads = (layout.interpreter_threads, layout.thread_next, layout.thread_id);
        assert_eq!((layout.runtime_interpreters, layout.interpreter_next, threads), (808, 7272, (7344, 8, 160)));
        assert_eq!((layout.holder_frame, layout.frame_instruction, layout.frame_owner), (72, 56, 74));
        assert_eq!((layout.code_first_line, layout.code_lines, layout.code_instructions), (68, 136, 208));
    }

    #[test]
    fn unknown_versions_have_no_layout() {
        assert!(offsets(0x30b_02f0, &[]).is_some(), "3.11 publishes no offsets");
        assert!(offsets(0x309_00f0, &[]).is_some(), "3.9 publishes no offsets");
        assert_eq!(offsets(0x308_05f0, &[]), None);
        assert_eq!(offsets(0x30f_00f0, &runtime(&DEBIAN_3_14)), None);
    }

    /// Returns the offsets that a table with another word at an index gives.
    fn with_word(index: usize, word: u64) -> Option<WirePython> {
        let mut words = DEBIAN_3_13;
        words[index - 1] = word;
        offsets(0x30d_05f0, &runtime(&words))
    }

    #[test]
    fn an_implausible_table_of_offsets_is_not_used() {
        assert!(with_word(3, 7).is_some(), "an unused word");
        assert_eq!(with_word(1, 0x30d_00f0), None, "another version");
        assert_eq!(with_word(2, 1), None, "no global lock");
        assert_eq!(with_word(INDICES_3_13[9], 20), None, "fields beyond the piece");
        assert_eq!(with_word(INDICES_3_13[14], 4000), None, "a piece larger than allowed");
        assert_eq!(with_word(INDICES_3_13[10], 70_000), None);
        assert_eq!(offsets(0x30d_05f0, &runtime(&DEBIAN_3_13)[..100]), None, "truncated");
        assert_eq!(offsets(0x30d_05f0, &[0; 500]), None, "no cookie");
    }
}
