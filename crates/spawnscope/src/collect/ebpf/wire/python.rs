//! The part of the wire format that tells where in Python programs launches were asked for.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::WireHeader;

/// Most frames of a Python program told of one launch, and most of its threads looked at.
pub const PYTHON_FRAMES: u32 = 48;
pub const PYTHON_THREADS: u32 = 256;
/// Longest name of a file and of a function told, and most of a table of lines, in bytes.
pub const PYTHON_FILE_BYTES: u32 = 2048;
pub const PYTHON_FUNCTION_BYTES: u32 = 512;
pub const PYTHON_TABLE_BYTES: u32 = 16384;
/// A frame of a chain that takes more is told no more.
pub const PYTHON_DATA_BYTES: u32 = 40960;
/// What the head of a frame, with the gap before it, and its names take at most; and all of it.
pub const PYTHON_HEAD_BYTES: u32 = 2600;
pub const PYTHON_FRAME_BYTES: u32 = 18984;
/// A power of two; more than the offset of each field of CPython's frames and code objects.
pub const PYTHON_PIECE_BYTES: u32 = 256;

/// Where in a Python program a launch was asked for. `bytes` bytes of frames follow, the innermost first, each a
/// `WirePythonFrame`.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WirePythonCalled {
    pub header: WireHeader,
    pub bytes: u32,
    /// Whether it was called by more frames.
    pub is_truncated: u32,
}

/// A frame of a Python program. File and function follow (0 bytes: not known), as characters of the given width, then
/// the code's table of lines as far as there was room; then there is a gap up to a multiple of eight bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WirePythonFrame {
    pub first_line: u32,
    /// How far into its code it is; NOT_COUNTED when that is not within it.
    pub code_offset: u32,
    pub file_bytes: u32,
    pub file_width: u32,
    pub function_bytes: u32,
    pub function_width: u32,
    pub table_bytes: u32,
    /// PYTHON_LINES_*.
    pub line_format: u32,
}

/// `line_format`: `co_linetable` since 3.11.
pub const PYTHON_LINES_LOCATIONS: u16 = 0;
/// `line_format`: `co_linetable` of 3.10. In this version and the one before, frames and instructions are objects.
pub const PYTHON_LINES_RANGES: u16 = 1;
/// `line_format`: `co_lnotab` of 3.9.
pub const PYTHON_LINES_STEPS: u16 = 2;

/// Where an interpreter of Python keeps its frames: addresses as in its file, and offsets in its structures.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WirePython {
    /// Where the program's first executable segment begins.
    pub code_start: u64,
    /// When the interpreter is a library that the program is linked with: the program's slot for the address of one of
    /// the library's functions, and that function's address in the library; else 0.
    pub slot: u64,
    pub slot_function: u64,
    /// `_PyRuntime` and `PyCode_Type`.
    pub runtime: u64,
    pub code_type: u64,
    /// Of `_PyRuntimeState`, PyInterpreterState and PyThreadState.
    pub runtime_interpreters: u16,
    pub interpreter_next: u16,
    pub interpreter_threads: u16,
    pub thread_next: u16,
    /// The kernel's id of the thread; up to 3.10 libc's, which is where libc keeps the thread's own data.
    pub thread_id: u16,
    /// The structure on the C stack that holds the innermost frame; 0: the thread's own holds it.
    pub thread_c_frame: u16,
    pub holder_frame: u16,
    /// Of `_PyInterpreterFrame`; the owner is the last of these. Up to 3.10 of PyFrameObject, which has none (0).
    pub frame_code: u16,
    pub frame_caller: u16,
    pub frame_instruction: u16,
    pub frame_owner: u16,
    /// Of PyCodeObject; the instructions are the last of these. Up to 3.10 it only refers to them, elsewhere.
    pub code_first_line: u16,
    pub code_file: u16,
    pub code_function: u16,
    pub code_lines: u16,
    pub code_instructions: u16,
    /// Where characters of a string begin that has only ASCII ones, and of another.
    pub ascii_text: u16,
    pub other_text: u16,
    /// PYTHON_LINES_*.
    pub line_format: u16,
    /// Where the code object has the reference to its instructions, up to 3.10.
    pub code_bytes: u16,
}
