//! The part of the wire format that tells which executables are interpreters, and where in scripts of shells launches were asked for.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::WireHeader;

/// Most executables that are told apart at a time.
pub const EXECUTABLES: u32 = 8192;
/// Most layouts of each kind of interpreter.
pub const LAYOUTS: u32 = 64;

/// Most frames of a script's chain.
pub const SCRIPT_FRAMES: u32 = 32;
/// Longest name of a script's file and of a function, with its NUL; a longer one is not known.
pub const SCRIPT_FILE_BYTES: u32 = 256;
pub const SCRIPT_FUNCTION_BYTES: u32 = 128;
/// Room for all of these.
pub const SCRIPT_DATA_BYTES: u32 = 12288;

/// `kind` of an executable: not looked at yet.
pub const INTERPRETER_PENDING: u32 = 0;
/// `kind` of an executable: no interpreter whose memory is understood.
pub const INTERPRETER_NONE: u32 = 1;
/// `kind` of an executable: bash, see `WireBash`.
pub const INTERPRETER_BASH: u32 = 2;
/// `kind` of an executable: dash, or busybox's ash, see `WireDash`.
pub const INTERPRETER_DASH: u32 = 3;
/// `kind` of an executable: CPython, see `WirePython`.
pub const INTERPRETER_PYTHON: u32 = 4;

/// An executable, as the kernel names the file of a process: a key without gaps.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireExecutable {
    pub inode: u64,
    /// As the kernel encodes it.
    pub device: u32,
    pub reserved: u32,
}

/// What an executable is: INTERPRETER_*, and which of the layouts of that kind.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireInterpreter {
    pub kind: u32,
    pub layout: u32,
}

/// Where a bash keeps what it executes: addresses of its variables, as in its file.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireBash {
    /// Where its first executable segment begins.
    pub code_start: u64,
    pub line_number: u64,
    pub global_variables: u64,
    pub parse_level: u64,
    pub source_level: u64,
    pub function_nesting: u64,
    pub interactive: u64,
    pub interactive_shell: u64,
    pub running_trap: u64,
    pub expanding_redirection: u64,
    pub dollar_variables: u64,
    /// The command that it executes, and what it will undo.
    pub command: u64,
    pub unwinds: u64,
    /// Of an array: how many elements it has, and their list.
    pub count_offset: u32,
    pub head_offset: u32,
    /// Of the names BASH_SOURCE, FUNCNAME and BASH_LINENO, as its tables have them.
    pub hashes: [u32; 3],
    /// 1: it counts the lines of what `-c` was given from 0.
    pub counts_from_zero: u32,
}

/// Below are no addresses of variables but offsets in a block that one of them points to: busybox keeps what its ash executes in such.
pub const DASH_BLOCK_BYTES: u64 = 1024;

/// Where a dash keeps what it executes: addresses of its variables, as in its file, or offsets in its own block.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireDash {
    /// Where its first executable segment begins.
    pub code_start: u64,
    /// The line, and that of the function's head (0: it is in none).
    pub line: u64,
    pub function_line: u64,
    /// $0; the command that is built in, or the file that is read by another.
    pub own_name: u64,
    pub command_name: u64,
    /// What it reads commands from, and its latest job.
    pub input: u64,
    pub job: u64,
    /// $1 and so on, behind the name of the function; an offset is one in a block of their own.
    pub parameters: u64,
    /// The variables that point to these blocks; 0: there are none.
    pub own_block: u64,
    pub parameters_block: u64,
}

/// Where in a script a launch was asked for. `data_bytes` bytes follow: file and function of each of the frames, the
/// innermost first, each ended by NUL; an empty one is not known. Without SCRIPT_OUTERMOST, bash's $0 is the last.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireScriptCalled {
    pub header: WireHeader,
    /// INTERPRETER_*.
    pub interpreter: u32,
    /// SCRIPT_* flags.
    pub flags: u32,
    pub frames: u32,
    /// Lines from this one on are not to be trusted.
    pub known_lines: u32,
    pub data_bytes: u32,
    /// The line of each frame, and of what called the outermost; 0: not known.
    pub lines: [u32; 33],
}

/// `flags` of a chain: more frames follow outwards.
pub const SCRIPT_TRUNCATED: u32 = 1;
/// `flags` of a chain: the outermost frame was called by nobody.
pub const SCRIPT_OUTERMOST: u32 = 2;
/// `flags` of a chain: a shell with a prompt, which has lines only for the files that it reads.
pub const SCRIPT_INTERACTIVE: u32 = 4;
/// `flags` of a chain: lines of what is in no file may be counted from 0.
pub const SCRIPT_FROM_ZERO: u32 = 8;

/// A process runs an executable that nobody has looked at yet; told once for each.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireExecutableMet {
    pub header: WireHeader,
    pub executable: WireExecutable,
    pub pid: u32,
    pub reserved: u32,
}
