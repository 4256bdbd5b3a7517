//! The part of the wire format with the layout of GNU make.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes of the stack in which the job being started is searched, in pieces.
pub const MAKE_STACK_BYTES: u32 = 4096;
pub const MAKE_STACK_PIECE: u32 = 512;
/// The bytes at its end that contain the arguments of posix_spawn, with the job's environment.
pub const MAKE_ENVIRONMENT_BYTES: u32 = 512;
/// The stack grows to this, unless its limit was raised.
pub const MAKE_MAX_STACK_BYTES: u64 = 1 << 23;
/// Room for a recipe's line; a longer one is truncated.
pub const MAKE_TEXT_BYTES: u32 = 256;

/// Offsets in a job (`struct child`), of which MAKE_JOB_BYTES are read.
pub const MAKE_JOB_ENVIRONMENT: u64 = 8;
pub const MAKE_JOB_FILE: u64 = 40;
pub const MAKE_JOB_LINES: u64 = 56;
pub const MAKE_JOB_LINE: u64 = 72;
pub const MAKE_JOB_BYTES: u32 = 80;
/// Offset in a target (`struct file`), whose name is first.
pub const MAKE_TARGET_RECIPE: u64 = 32;
/// Offsets in a recipe (`struct commands`). The position of its first line is first.
pub const MAKE_RECIPE_TEXTS: u64 = 32;
pub const MAKE_RECIPE_COUNT: u64 = 48;
/// Offsets in a position (`floc`), whose file name is first. In a recipe's position, `index` is the recipe's line that is expanded.
pub const MAKE_POSITION_LINE: u64 = 8;
pub const MAKE_POSITION_INDEX: u64 = 16;
pub const MAKE_POSITION_BYTES: u64 = 24;
/// Before the position of a text that make reads (`struct ebuffer`): its open file, or NULL.
pub const MAKE_BEFORE_POSITION_FILE: u64 = 8;
/// Before a variable's position (`struct variable`): its name. After the position: the name's length.
pub const MAKE_BEFORE_POSITION_NAME: u64 = 16;
/// A line from here on is damaged, and so is a recipe's line with such an index.
pub const MAKE_LINES: u64 = 10_000_000;

/// `flags` of a call site in a makefile: what make does there. It runs a line of a recipe, of which the text is known.
pub const MAKE_RUNS: u32 = 1;
/// It expands a line of a recipe, of which the text is known.
pub const MAKE_EXPANDS: u32 = 2;
/// It reads the line from a makefile.
pub const MAKE_READS: u32 = 3;
/// It reads the line from a text that it evaluates.
pub const MAKE_EVALUATES: u32 = 4;
/// It expands a variable outside of makefiles. The text is the variable's name, the line that of its definition.
pub const MAKE_VARIABLE: u32 = 5;
/// Mask of these numbers.
pub const MAKE_KIND: u32 = 7;
/// The working directory is whole.
pub const MAKE_HAS_DIRECTORY: u32 = 8;
/// The process is in another mount namespace than the collector.
pub const MAKE_ELSEWHERE: u32 = 16;

/// Indexes in `lines` of a call site in a makefile: of the line, of the index in the recipe, and of the process.
pub const MAKE_AT_LINE: u32 = 0;
pub const MAKE_AT_INDEX: u32 = 1;
pub const MAKE_AT_PROCESS: u32 = 2;

/// Where a make stores what it does: addresses as in its file.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireMake {
    /// Start of its first executable segment.
    pub code_start: u64,
    /// The variable that points to the position being read or expanded.
    pub reading: u64,
}
