//! The part of the wire format with the call chains of Python programs.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::WireHeader;

/// Maximum number of Python frames reported per launch.
pub const PYTHON_FRAMES: u32 = 48;
/// Maximum number of threads among which the launching thread is searched for.
pub const PYTHON_THREADS: u32 = 256;
/// Maximum length of a reported file name, in bytes.
pub const PYTHON_FILE_BYTES: u32 = 2048;
/// Maximum length of a reported function name, in bytes.
pub const PYTHON_FUNCTION_BYTES: u32 = 512;
/// Maximum length of a reported line table, in bytes.
pub const PYTHON_TABLE_BYTES: u32 = 16384;
/// Room for the frames of a chain. A frame that would begin beyond this is omitted.
pub const PYTHON_DATA_BYTES: u32 = 40960;
/// Maximum size of a frame's `WirePythonFrame` and names, with the gap before it.
pub const PYTHON_HEAD_BYTES: u32 = 2600;
/// Maximum size of a frame with its line table, and with the gap before it.
pub const PYTHON_FRAME_BYTES: u32 = 18984;
/// Bytes read of a CPython frame or code object: a power of two that is larger than the offset of
/// each field in use.
pub const PYTHON_PIECE_BYTES: u32 = 256;

/// The Python call site of a launch. `bytes` bytes of frames follow, innermost first, each a
/// `WirePythonFrame`.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WirePythonCalled {
    pub header: WireHeader,
    pub bytes: u32,
    /// 1: there are further frames outwards that were not reported.
    pub is_truncated: u32,
}

/// A frame of a Python program. File and function follow (0 bytes: unknown), in characters of the
/// given width, then the code's line table, truncated to PYTHON_TABLE_BYTES, and a gap up to a
/// multiple of eight bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WirePythonFrame {
    pub first_line: u32,
    /// Offset of the current instruction in the code, in bytes; UNKNOWN_COUNT if it is not within
    /// the code.
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

/// Where a Python interpreter stores its frames: addresses in its ELF file, and offsets in its
/// structures.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WirePython {
    /// Start of the program's first executable segment.
    pub code_start: u64,
    /// If the interpreter is a shared library: address of the program's slot that gets the address
    /// of one of the library's functions; otherwise 0.
    pub slot: u64,
    /// The address of that function in the library's file; 0 without a library.
    pub slot_function: u64,
    /// Addresses of `_PyRuntime` and `PyCode_Type`.
    pub runtime: u64,
    pub code_type: u64,
    /// Offsets in `_PyRuntimeState`, PyInterpreterState and PyThreadState.
    pub runtime_interpreters: u16,
    pub interpreter_next: u16,
    pub interpreter_threads: u16,
    pub thread_next: u16,
    /// Offset of the kernel's thread id; up to 3.10, of libc's thread id (pthread_t).
    pub thread_id: u16,
    /// Offset of the pointer to the structure on the C stack that points to the innermost frame; 0:
    /// the thread state itself does.
    pub thread_c_frame: u16,
    /// Offset, in that structure or in the thread state, of the pointer to the innermost frame.
    pub holder_frame: u16,
    /// Offsets in `_PyInterpreterFrame`; the owner has the largest. Up to 3.10 in PyFrameObject,
    /// which has no owner (0).
    pub frame_code: u16,
    pub frame_caller: u16,
    pub frame_instruction: u16,
    pub frame_owner: u16,
    /// Offsets in PyCodeObject; the instructions have the largest. Up to 3.10, the instructions are
    /// a separate object.
    pub code_first_line: u16,
    pub code_file: u16,
    pub code_function: u16,
    pub code_lines: u16,
    pub code_instructions: u16,
    /// Offsets of the characters in an ASCII string and in any other string.
    pub ascii_text: u16,
    pub other_text: u16,
    /// PYTHON_LINES_*.
    pub line_format: u16,
    /// Up to 3.10, the offset of the code object's pointer to its instructions.
    pub code_bytes: u16,
}
