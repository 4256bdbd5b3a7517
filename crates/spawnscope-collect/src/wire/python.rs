//! The part of the wire format with the call chains of Python programs.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::WireHeader;

/// Maximum number of Python frames reported per launch, and of threads searched.
pub const PYTHON_FRAMES: u32 = 48;
pub const PYTHON_THREADS: u32 = 256;
/// Maximum lengths of a file name, a function name and a line table that are reported, in bytes.
pub const PYTHON_FILE_BYTES: u32 = 2048;
pub const PYTHON_FUNCTION_BYTES: u32 = 512;
pub const PYTHON_TABLE_BYTES: u32 = 16384;
/// Room for the frames of a chain. A frame that begins beyond it is omitted.
pub const PYTHON_DATA_BYTES: u32 = 40960;
/// Maximum size of a frame's head and names, with the gap before it; and of a whole frame.
pub const PYTHON_HEAD_BYTES: u32 = 2600;
pub const PYTHON_FRAME_BYTES: u32 = 18984;
/// A power of two, larger than the offset of each field of CPython's frames and code objects.
pub const PYTHON_PIECE_BYTES: u32 = 256;

/// The Python call site of a launch. `bytes` bytes of frames follow, innermost first, each a `WirePythonFrame`.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WirePythonCalled {
    pub header: WireHeader,
    pub bytes: u32,
    /// Whether further frames follow outwards.
    pub is_truncated: u32,
}

/// A frame of a Python program. File and function follow (0 bytes: unknown), in characters of the given width, then the code's line
/// table, truncated to PYTHON_TABLE_BYTES, and a gap up to a multiple of eight bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WirePythonFrame {
    pub first_line: u32,
    /// Its offset in the code; UNKNOWN_COUNT if it is outside.
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
/// `line_format`: `co_linetable` of 3.10. In 3.9 and 3.10, frames and instructions are objects.
pub const PYTHON_LINES_RANGES: u16 = 1;
/// `line_format`: `co_lnotab` of 3.9.
pub const PYTHON_LINES_STEPS: u16 = 2;

/// Where a Python interpreter stores its frames: addresses as in its file, and offsets in its structures.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WirePython {
    /// Start of the program's first executable segment.
    pub code_start: u64,
    /// If the interpreter is a library that the program is linked with: the program's slot for the address of one of the library's
    /// functions, and the function's address in the library; otherwise 0.
    pub slot: u64,
    pub slot_function: u64,
    /// Addresses of `_PyRuntime` and `PyCode_Type`.
    pub runtime: u64,
    pub code_type: u64,
    /// Offsets in `_PyRuntimeState`, PyInterpreterState and PyThreadState.
    pub runtime_interpreters: u16,
    pub interpreter_next: u16,
    pub interpreter_threads: u16,
    pub thread_next: u16,
    /// The kernel's thread id; up to 3.10 that of libc, the address where libc keeps the thread's own data.
    pub thread_id: u16,
    /// The structure on the C stack that holds the innermost frame; 0: the thread state itself holds it.
    pub thread_c_frame: u16,
    pub holder_frame: u16,
    /// Offsets in `_PyInterpreterFrame`, of which the owner is the last. Up to 3.10 in PyFrameObject, which has no owner (0).
    pub frame_code: u16,
    pub frame_caller: u16,
    pub frame_instruction: u16,
    pub frame_owner: u16,
    /// Offsets in PyCodeObject, of which the instructions are the last. Up to 3.10, they are a separate object.
    pub code_first_line: u16,
    pub code_file: u16,
    pub code_function: u16,
    pub code_lines: u16,
    pub code_instructions: u16,
    /// Where the characters of a string begin, if it is all ASCII and if it is not.
    pub ascii_text: u16,
    pub other_text: u16,
    /// PYTHON_LINES_*.
    pub line_format: u16,
    /// Up to 3.10, the offset of the code object's reference to its instructions.
    pub code_bytes: u16,
}
