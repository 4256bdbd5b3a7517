//! How a recording is written: its owner, and the memory of the writer.

use spawnscope_system::owner::Owner;

#[derive(Clone, Debug, Default)]
pub struct WriterOptions {
    /// The owner of the recording; `None` means the recorder's own user.
    pub owner: Option<Owner>,
    pub memory: Memory,
    /// Whether the processes ran elsewhere, so that no file of this machine says anything about
    /// them.
    pub is_elsewhere: bool,
}

/// How much memory the writer may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// Enough to keep a batch out of the log until it is complete, and many events while another
    /// program holds the lock.
    #[default]
    Plenty,
    /// As little as possible.
    Scarce,
}

impl Memory {
    pub(super) fn cache_kib(self) -> i32 {
        match self {
            Memory::Plenty => 16 * 1024,
            Memory::Scarce => 1024,
        }
    }

    /// Returns the maximum number of events to keep while another program holds the write lock.
    pub(super) fn max_unwritten_events(self, batch_events: usize) -> usize {
        match self {
            _ if cfg!(test) => 2 * batch_events,
            Memory::Plenty => 25 * batch_events,
            Memory::Scarce => batch_events,
        }
    }

    /// Returns how many bytes the writer needs as long as no lock delays it.
    pub fn bytes(self) -> u64 {
        const BATCH_BYTES: u64 = 10 << 20;
        BATCH_BYTES + (u64::from(self.cache_kib().unsigned_abs()) << 10)
    }
}
