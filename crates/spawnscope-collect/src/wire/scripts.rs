//! The part of the wire format for interpreters: which executables are interpreters, and the call
//! sites of launches in scripts.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::WireHeader;

/// Maximum number of executables whose kind is stored at a time.
pub const EXECUTABLES: u32 = 8192;
/// Maximum number of layouts per kind of interpreter.
pub const LAYOUTS: u32 = 64;

/// Maximum number of frames in a script's chain.
pub const SCRIPT_FRAMES: u32 = 32;
/// Room for a script's file name, including the NUL. A longer name is reported as unknown.
pub const SCRIPT_FILE_BYTES: u32 = 256;
/// Room for a function name, including the NUL. A longer name is reported as unknown.
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
/// `kind` of an executable: zsh, see `WireZsh`.
pub const INTERPRETER_ZSH: u32 = 7;

/// Identifies an executable by its device and inode number. Used as a map key, so it has no
/// padding.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireExecutable {
    pub inode: u64,
    /// Device number in the kernel's encoding.
    pub device: u32,
    pub reserved: u32,
}

/// The kind of an executable.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireInterpreter {
    /// INTERPRETER_*.
    pub kind: u32,
    /// Index of its layout in the map of layouts of that kind.
    pub layout_index: u32,
}

/// Where a bash binary stores its current activity: addresses of its variables in its ELF file,
/// before relocation.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireBash {
    /// Start of the first executable segment.
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
    /// The command being executed.
    pub command: u64,
    /// The unwind-protect list.
    pub unwinds: u64,
    /// Offset of the element count in an array.
    pub count_offset: u32,
    /// Offset of the pointer to the element list in an array.
    pub head_offset: u32,
    /// Hashes of the names BASH_SOURCE, FUNCNAME and BASH_LINENO, as bash computes them.
    pub hashes: [u32; 3],
    /// 1: this bash counts the lines of `-c` from 0.
    pub counts_from_zero: u32,
}

/// A value in `WireDash` below this is not the address of a variable, but an offset in a block that
/// a variable points to: busybox's ash keeps its state in such blocks.
pub const DASH_BLOCK_BYTES: u64 = 1024;

/// Where a dash binary stores its current activity: addresses of its variables in its ELF file,
/// before relocation, or offsets in the block at `state_block`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireDash {
    /// Start of the first executable segment.
    pub code_start: u64,
    /// The variable with the current line.
    pub line: u64,
    /// The variable with the line where the current function begins; it is 0 outside functions.
    pub function_line: u64,
    /// The pointer to $0.
    pub dollar_zero: u64,
    /// The pointer to the name of the current builtin command, or of the file being sourced.
    pub command_name: u64,
    /// The pointer to the input that commands are read from.
    pub input: u64,
    /// The pointer to the latest job.
    pub job: u64,
    /// The positional parameters, $1 and so on, preceded by the name of the function. If this is an
    /// offset, it is one in the block at `parameters_block`.
    pub parameters: u64,
    /// The variables that point to the two blocks; 0: there are no blocks.
    pub state_block: u64,
    pub parameters_block: u64,
}

/// `kind` of an element of zsh's call chain (zsh.h): a function.
pub const ZSH_FUNCTION: u32 = 1;
/// `kind` of an element of zsh's call chain: the text of an `eval`.
pub const ZSH_EVALUATED: u32 = 2;
/// Maximum number of elements that are read.
pub const ZSH_MAX_CALLS: u32 = 64;

/// Where a zsh binary stores its current activity: addresses of its variables in its ELF file,
/// before relocation.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireZsh {
    /// Start of the first executable segment.
    pub code_start: u64,
    /// `lineno`
    pub line: u64,
    /// `funcstack`
    pub calls: u64,
    /// `scriptfilename`
    pub script: u64,
    /// `intrap`
    pub in_trap: u64,
    /// `trapisfunc`
    pub trap_is_function: u64,
}

/// The call site of a launch in a script. `data_bytes` bytes follow: the file and the function of
/// each frame, innermost first, each NUL-terminated. An empty string means unknown. Bash's $0
/// follows the frames, unless SCRIPT_OUTERMOST is set, and the file of zsh's outermost caller,
/// unless SCRIPT_TRUNCATED is set.
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
    /// The line of each frame, followed by that of the outermost frame's caller; 0: unknown.
    pub lines: [u32; 33],
}

/// `flags` of a chain: there are further frames outwards that were not reported.
pub const SCRIPT_TRUNCATED: u32 = 1;
/// `flags` of a chain: the outermost frame has no caller.
pub const SCRIPT_OUTERMOST: u32 = 2;
/// `flags` of a chain: the shell is interactive, so lines are known only in the files that it
/// sources.
pub const SCRIPT_INTERACTIVE: u32 = 4;
/// `flags` of a chain: lines of text that is not in a file may be counted from 0.
pub const SCRIPT_FROM_ZERO: u32 = 8;
/// `flags` of a call site in a makefile: the components of the working directory are at the end of
/// the data.
pub const SCRIPT_HAS_DIRECTORY: u32 = 32;
/// `flags` of a call site in a makefile or a dash: the process is in another mount namespace than
/// the collector.
pub const SCRIPT_IN_OTHER_MOUNTS: u32 = 64;
/// `flags` of a call site in a function of dash: a sourced file is being read, by the function or
/// by what called it. Its path follows the frame.
pub const SCRIPT_READS_FILE: u32 = 16;
/// `flags` of such a call site: the shell has read commands from no other file than the script.
pub const SCRIPT_IS_ONLY_FILE: u32 = 128;
/// Where `lines` of a call site in dash contains the line where the current function begins; 0:
/// there is none.
pub const DASH_AT_FUNCTION: u32 = 1;
/// Where `lines` of such a call site contains the pid of the process; 0: unknown.
pub const SCRIPT_AT_PROCESS: u32 = 2;

/// The start of each file name by which the hook in Node.js (`node_hook.js` of the crate
/// spawnscope) reports a call site. The lookup fails at once, because /dev/null is not a directory.
pub const NODE_PREFIX: &[u8; 32] = b"/dev/null/spawnscope-node-lines/";
/// The first eight bytes of NODE_PREFIX, as a number.
pub const NODE_PREFIX_START: u64 = 0x6c75_6e2f_7665_642f;
/// Maximum length of such a file name, including its NUL (the kernel's PATH_MAX).
pub const NODE_BYTES: u32 = 4096;

/// A thread of Node.js (`header.task`) is about to launch. The file name that contains its call
/// chain follows, NUL-terminated.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireNodeCallSite {
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
