//! A process that runs: its row, its execs, and the program that it started as.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::launch::base_name;
use spawnscope_data::event::{LaunchId, Nanos, Pid};
use spawnscope_data::rows::{ExecRow, LaunchRow, Origin};

/// Execs that are kept of one process. One with more has unknown phases: some programs exec themselves forever.
const MOST_EXECS: usize = 64;

/// A process that runs.
#[derive(Debug)]
pub struct Process {
    pub(super) row: LaunchRow,
    pub(super) execs: BTreeMap<i64, KeptExec>,
    /// Whether execs were dropped.
    pub(super) is_cut: bool,
    /// The name of the program that it is a copy of.
    pub(super) born_as: Arc<[u8]>,
}

/// A successful exec with its strings.
#[derive(Debug)]
pub(super) struct KeptExec {
    pub(super) row: ExecRow,
    pub(super) path: Arc<[u8]>,
    pub(super) argv: Arc<[u8]>,
}

impl Process {
    pub(super) fn new(row: LaunchRow) -> Process {
        Process {
            row,
            execs: BTreeMap::new(),
            is_cut: false,
            born_as: Arc::from(*b"?"),
        }
    }

    pub(super) fn take_exec(&mut self, ordinal: i64, path: Arc<[u8]>, argv: Arc<[u8]>, row: ExecRow) {
        self.execs.insert(ordinal, KeptExec { row, path, argv });
        if self.execs.len() > MOST_EXECS {
            self.execs.pop_first();
            self.is_cut = true;
        }
    }

    /// Returns its number in the recording.
    #[must_use]
    pub fn id(&self) -> LaunchId {
        self.row.id
    }

    /// Returns its pid.
    #[must_use]
    pub fn pid(&self) -> Option<Pid> {
        self.row.pid
    }

    /// Returns the process that launched it, even if that one has ended.
    #[must_use]
    pub fn parent(&self) -> Option<LaunchId> {
        self.row.parent
    }

    /// Returns when its parent called for it, or else when it existed.
    #[must_use]
    pub fn birth(&self) -> Option<Nanos> {
        self.row.create.or(self.row.created)
    }

    /// Whether it is a launch. A process that existed before the recording is not.
    #[must_use]
    pub fn is_launch(&self) -> bool {
        self.row.origin != Origin::Existed
    }

    /// Returns the name it is counted under: `(bash)` for a fork of bash.
    #[must_use]
    pub fn label(&self) -> Vec<u8> {
        match self.execs.values().next_back() {
            Some(exec) => base_name(&exec.path).to_vec(),
            None if self.is_launch() && self.row.parent.is_some() => [b"(", &*self.born_as, b")"].concat(),
            None => self.born_as.to_vec(),
        }
    }

    /// Returns the arguments of its last exec, each terminated by NUL; empty if it has none.
    #[must_use]
    pub fn argv(&self) -> &[u8] {
        self.execs.values().next_back().map_or(&[], |exec| &exec.argv)
    }

    /// Returns the program that it ran at an instant, or its last one when the instant is unknown.
    pub(super) fn program_at(&self, at: Option<Nanos>) -> Arc<[u8]> {
        let is_entered = |exec: &&KeptExec| {
            let entered = exec.row.enter.or(exec.row.returned);
            entered.zip(at).is_none_or(|(entered, at)| entered <= at)
        };
        let program = self.execs.values().rfind(is_entered);
        program.map_or_else(|| Arc::clone(&self.born_as), |exec| base_name(&exec.path).into())
    }
}
