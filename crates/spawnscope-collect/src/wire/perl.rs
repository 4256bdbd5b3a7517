//! The part of the wire format that describes where Perl keeps its data.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Number of pthread keys whose values are stored in the thread's own structure (glibc:
/// PTHREAD_KEY_2NDLEVEL_SIZE).
pub const PTHREAD_INLINE_KEYS: u32 = 32;
/// A line number at or above this is Perl's value for "none", or damaged data.
pub const PERL_LINE_LIMIT: u32 = 10_000_000;
/// Maximum number of contexts that are read: calls, and the loops and blocks around them.
pub const PERL_MAX_CONTEXTS: u32 = 256;

/// Upper bound for the size of an interpreter structure. If the address of the current statement is
/// within the structure, the statement is PL_compiling, which describes the text being compiled,
/// not the caller.
pub const PERL_MAX_INTERPRETER_BYTES: u64 = 4096;

/// Offsets in a statement (`struct cop`).
pub const PERL_STATEMENT_LINE: u64 = 36;
pub const PERL_STATEMENT_FILE: u64 = 48;
/// Offsets in a stack of contexts (PERL_SI).
pub const PERL_STACK_CONTEXTS: u64 = 8;
pub const PERL_STACK_OUTER: u64 = 16;
pub const PERL_STACK_INDEX: u64 = 32;
/// Size of a context (PERL_CONTEXT), and offsets in it: the caller's statement, and the code of a
/// called function.
pub const PERL_CONTEXT_BYTES: u64 = 104;
pub const PERL_CONTEXT_STATEMENT: u64 = 16;
pub const PERL_CONTEXT_CODE: u64 = 72;
/// The bits of a context's first byte that contain its kind.
pub const PERL_CONTEXT_KIND: u8 = 0x0f;
/// The kinds of contexts that have a caller (CXt_*).
pub const PERL_CONTEXT_SUB: u8 = 9;
pub const PERL_CONTEXT_FORMAT: u8 = 10;
pub const PERL_CONTEXT_EVAL: u8 = 11;
/// The bit of a context's first byte that marks an `eval { }` (CXp_TRYBLOCK).
pub const PERL_CONTEXT_TRY: u8 = 0x40;
/// Offsets in the body of a function's code: a pointer to its name or symbol, and its flags.
pub const PERL_CODE_NAME: u64 = 56;
pub const PERL_CODE_FLAGS: u64 = 92;
/// Flag: the pointer at PERL_CODE_NAME points to a name, not to a symbol.
pub const PERL_CODE_NAMED: u32 = 0x8000;
/// Offset of the name in the body of a symbol, and of the characters in a name.
pub const PERL_SYMBOL_NAME: u64 = 32;
pub const PERL_NAME_TEXT: u64 = 8;

/// Where a Perl binary stores its current activity. Each thread has its own interpreter, stored
/// under a pthread key.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WirePerl {
    /// Start of the first executable segment.
    pub code_start: u64,
    /// Address in the ELF file of the variable that contains the key.
    pub key: u64,
    /// Offset from the thread pointer to the values of the thread's keys, each a sequence number
    /// and a pointer.
    pub values: u32,
    /// Offsets in the interpreter of the pointers to the current statement and to the stack of
    /// contexts.
    pub statement: u32,
    pub stack: u32,
    pub reserved: u32,
}
