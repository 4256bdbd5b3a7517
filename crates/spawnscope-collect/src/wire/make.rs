//! The part of the wire format that describes GNU make: the layout of its data, and the call sites
//! in makefiles.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes of the stack, from the stack pointer upwards, that are searched for the job being started.
pub const MAKE_STACK_BYTES: u32 = 4096;
/// The stack is copied in pieces of this many bytes.
pub const MAKE_STACK_PIECE: u32 = 512;
/// Bytes from the stack pointer upwards that contain the arguments of posix_spawn, with the job's
/// environment.
pub const MAKE_ENVIRONMENT_BYTES: u32 = 512;
/// Maximum size of the stack, unless its limit was raised.
pub const MAKE_MAX_STACK_BYTES: u64 = 1 << 23;
/// Room for a line of a recipe; a longer line is truncated.
pub const MAKE_TEXT_BYTES: u32 = 256;

/// Offsets in a job (`struct child`). The first MAKE_JOB_BYTES bytes of a job are read.
pub const MAKE_JOB_ENVIRONMENT: u64 = 8;
pub const MAKE_JOB_FILE: u64 = 40;
pub const MAKE_JOB_LINES: u64 = 56;
pub const MAKE_JOB_LINE: u64 = 72;
pub const MAKE_JOB_BYTES: u32 = 80;
/// Offset in a target (`struct file`), whose name is at offset 0.
pub const MAKE_TARGET_RECIPE: u64 = 32;
/// Offsets in a recipe (`struct commands`). The position of the recipe's first line is at offset 0.
pub const MAKE_RECIPE_TEXTS: u64 = 32;
pub const MAKE_RECIPE_COUNT: u64 = 48;
/// Offsets in a position (`floc`), whose file name is at offset 0. In a recipe's position, the
/// index is that of the line being expanded.
pub const MAKE_POSITION_LINE: u64 = 8;
pub const MAKE_POSITION_INDEX: u64 = 16;
pub const MAKE_POSITION_BYTES: u64 = 24;
/// Distance in bytes from the pointer to the open file (NULL: none) to the position of a text that
/// make reads (`struct ebuffer`).
pub const MAKE_FILE_TO_POSITION: u64 = 8;
/// Distance in bytes from the name of a variable to its position (`struct variable`). The name's
/// length follows the position.
pub const MAKE_NAME_TO_POSITION: u64 = 16;
/// A line number or recipe index at or above this is damaged data.
pub const MAKE_LINE_LIMIT: u64 = 10_000_000;

/// Activity in `flags` of a call site in a makefile: make runs a line of a recipe. The text of the
/// line is known.
pub const MAKE_RUNS: u32 = 1;
/// Activity in `flags`: make expands a line of a recipe. The text of the line is known.
pub const MAKE_EXPANDS: u32 = 2;
/// Activity in `flags`: make reads the line from a makefile.
pub const MAKE_READS: u32 = 3;
/// Activity in `flags`: make reads the line from a text that it evaluates.
pub const MAKE_EVALUATES: u32 = 4;
/// Activity in `flags`: make expands a variable while it reads no makefile. The text is the
/// variable's name, the line that of its definition.
pub const MAKE_VARIABLE: u32 = 5;
/// The bits of `flags` that contain the activity.
pub const MAKE_KIND: u32 = 7;

/// Where `lines` of a call site in a makefile contains the line number.
pub const MAKE_AT_LINE: u32 = 0;
/// Where `lines` contains the index of the recipe's line.
pub const MAKE_AT_INDEX: u32 = 1;

/// Where a make binary stores its current activity. Addresses are those in its ELF file.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireMake {
    /// Start of the first executable segment.
    pub code_start: u64,
    /// The variable that points to the position being read or expanded.
    pub reading: u64,
}
