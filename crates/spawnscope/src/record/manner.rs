//! How a recording is written: whose it is to be, and how much memory that may take.

use crate::owner::Owner;

/// How a recording is written.
#[derive(Clone, Debug, Default)]
pub struct Manner {
    /// Whose it is to be; `None`: the recorder's own.
    pub owner: Option<Owner>,
    /// What may be kept in memory.
    pub memory: Memory,
}

/// How much the writer may keep in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// A batch never spills before it is complete, and there is room for what another program's lock holds up for long.
    #[default]
    Plenty,
    /// As little as does.
    Scarce,
}

impl Memory {
    /// SQLite's cache of pages.
    pub(super) fn cache_kib(self) -> i32 {
        match self {
            Memory::Plenty => 16 * 1024,
            Memory::Scarce => 1024,
        }
    }

    /// Events that are kept while another program holds the file's lock for writing.
    pub(super) fn most_unwritten(self, batch: usize) -> usize {
        match self {
            _ if cfg!(test) => 2 * batch,
            Memory::Plenty => 25 * batch,
            Memory::Scarce => batch,
        }
    }

    /// All that the writer takes while nobody holds it up, in bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        const BATCHES: u64 = 10 << 20;
        BATCHES + (u64::from(self.cache_kib().unsigned_abs()) << 10)
    }
}
