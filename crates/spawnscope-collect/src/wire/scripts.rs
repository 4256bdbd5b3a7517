//! The part of the wire format for interpreters: which executables are interpreters, and the call sites of launches in shell
//! scripts.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::WireHeader;

/// Maximum number of executables known at a time.
pub const EXECUTABLES: u32 = 8192;
/// Maximum number of layouts per kind of interpreter.
pub const LAYOUTS: u32 = 64;

/// Maximum number of frames in a script's chain.
pub const SCRIPT_FRAMES: u32 = 32;
/// Maximum lengths of a script's file name and of a function name, including the NUL; a longer name is unknown.
pub const SCRIPT_FILE_BYTES: u32 = 256;
pub const SCRIPT_FUNCTION_BYTES: u32 = 128;
/// Room for all names of a chain.
pub const SCRIPT_DATA_BYTES: u32 = 12288;

/// `kind` of an executable: not examined yet.
pub const INTERPRETER_PENDING: u32 = 0;
/// `kind` of an executable: not an interpreter, or one whose memory cannot be read.
pub const INTERPRETER_NONE: u32 = 1;
/// `kind` of an executable: bash, see `WireBash`.
pub const INTERPRETER_BASH: u32 = 2;
/// `kind` of an executable: dash, or busybox's ash, see `WireDash`.
pub const INTERPRETER_DASH: u32 = 3;
/// `kind` of an executable: CPython, see `WirePython`.
pub const INTERPRETER_PYTHON: u32 = 4;
/// `kind` of an executable: Perl with threads, see `perl.rs`.
pub const INTERPRETER_PERL: u32 = 5;
/// `kind` of an executable: GNU make, see `make.rs`.
pub const INTERPRETER_MAKE: u32 = 6;

/// An executable, identified as in the kernel. Used as a map key, so it has no padding.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireExecutable {
    pub inode: u64,
    /// In the kernel's encoding.
    pub device: u32,
    pub reserved: u32,
}

/// The kind of an executable (INTERPRETER_*), and its layout among those of that kind.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireInterpreter {
    pub kind: u32,
    pub layout: u32,
}

/// Where a bash stores what it executes: addresses of its variables in its ELF file, before relocation.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireBash {
    /// Start of its first executable segment.
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
    /// The command being executed, and the unwind-protect list.
    pub command: u64,
    pub unwinds: u64,
    /// Offsets in an array, of its element count and of its list.
    pub count_offset: u32,
    pub head_offset: u32,
    /// Hashes of the names BASH_SOURCE, FUNCNAME and BASH_LINENO in its tables.
    pub hashes: [u32; 3],
    /// 1: it counts the lines of `-c` from 0.
    pub counts_from_zero: u32,
}

/// A value below this is not the address of a variable, but an offset in a block that a variable points to: busybox keeps the state
/// of its ash in such blocks.
pub const DASH_BLOCK_BYTES: u64 = 1024;

/// Where a dash stores what it executes: addresses of its variables in its ELF file, before relocation, or offsets in its own block.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireDash {
    /// Start of its first executable segment.
    pub code_start: u64,
    /// The line, and the line of the function's head (0: not in a function).
    pub line: u64,
    pub function_line: u64,
    /// $0; and the builtin command, or the file being sourced.
    pub own_name: u64,
    pub command_name: u64,
    /// The input that commands are read from, and the latest job.
    pub input: u64,
    pub job: u64,
    /// $1 and so on, preceded by the name of the function. An offset refers to a separate block.
    pub parameters: u64,
    /// The variables that point to these blocks; 0: there are no blocks.
    pub own_block: u64,
    pub parameters_block: u64,
}

/// The call site of a launch in a script. `data_bytes` bytes follow: file and function of each frame, innermost first, each
/// NUL-terminated; an empty one is unknown. Without SCRIPT_OUTERMOST, bash's $0 comes last.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireScriptCalled {
    pub header: WireHeader,
    /// INTERPRETER_*.
    pub interpreter: u32,
    /// SCRIPT_* flags.
    pub flags: u32,
    pub frames: u32,
    /// Lines from this index on are unreliable.
    pub known_lines: u32,
    pub data_bytes: u32,
    /// The line of each frame, and of the caller of the outermost one; 0: unknown.
    pub lines: [u32; 33],
}

/// `flags` of a chain: further frames follow outwards.
pub const SCRIPT_TRUNCATED: u32 = 1;
/// `flags` of a chain: the outermost frame has no caller.
pub const SCRIPT_OUTERMOST: u32 = 2;
/// `flags` of a chain: a shell with a prompt, whose lines are known only in files that it reads.
pub const SCRIPT_INTERACTIVE: u32 = 4;
/// `flags` of a chain: lines of text that is not in a file may be counted from 0.
pub const SCRIPT_FROM_ZERO: u32 = 8;

/// A file name that begins with this is a call site that `callers/node/hook.js` tells. The kernel looks for no such file.
pub const NODE_PREFIX: &[u8; 32] = b"/dev/null/spawnscope-node-lines/";
/// The first eight bytes of it, as a number.
pub const NODE_PREFIX_START: u64 = 0x6c75_6e2f_7665_642f;
/// Room for such a name, as in a path.
pub const NODE_BYTES: u32 = 4096;

/// A thread of Node.js (`header.task`) is about to launch. The file name with its call chain follows, with its NUL.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireNodeAsked {
    pub header: WireHeader,
    pub bytes: u32,
    pub reserved: u32,
}

/// A process runs an executable that has not been examined yet. Emitted once per executable.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireNewExecutable {
    pub header: WireHeader,
    pub executable: WireExecutable,
    pub pid: u32,
    pub reserved: u32,
}
