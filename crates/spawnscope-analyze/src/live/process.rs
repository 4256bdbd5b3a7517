//! A running process: its row, its execs, and the program that it started as.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::CriticalTimes;
use crate::model::launch::Command;
use crate::model::names::{NamedExec, name_after};
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::{ExecRow, LaunchRow, Origin};

/// Maximum number of execs that are kept for one process, because some programs exec themselves
/// forever. A process with more execs has unknown phases.
const MAX_EXECS: usize = 64;

#[derive(Debug)]
pub(super) struct Process {
    pub(super) row: LaunchRow,
    /// The execs, by the number of the recording and the position in it.
    pub(super) execs: BTreeMap<(u32, i64), ExecWithTexts>,
    /// Whether its phases are unknown, because execs were dropped or it lived on into another
    /// recording.
    pub(super) is_incomplete: bool,
    /// Whether it was launched in an earlier recording than the current one.
    pub(super) began_in_earlier_recording: bool,
    pub(super) launched: u64,
    /// When it last created or reaped a child before its first exec. Time until then is work.
    pub(super) worked_until: Option<Nanos>,
    pub(super) last_reaping: Option<Nanos>,
    /// Time in which it waited for launches that have ended, by the command of the launches.
    pub(super) critical: CriticalTimes,
    pub(super) birth_program: Arc<[u8]>,
}

#[derive(Debug)]
pub(super) struct ExecWithTexts {
    pub(super) row: ExecRow,
    pub(super) path: Arc<[u8]>,
    pub(super) argv: Arc<[u8]>,
}

impl ExecWithTexts {
    fn named(&self) -> NamedExec<'_> {
        NamedExec { path: &self.path, argv: &self.argv, is_script: self.row.interpreter.is_some() }
    }
}

impl Process {
    pub(super) fn new(row: LaunchRow) -> Process {
        Process {
            row,
            execs: BTreeMap::new(),
            is_incomplete: false,
            began_in_earlier_recording: false,
            launched: 0,
            worked_until: None,
            last_reaping: None,
            critical: CriticalTimes::default(),
            birth_program: Arc::from(*b"?"),
        }
    }

    /// Stores a changed row. If the process was launched in an earlier recording, uses only what
    /// the row says about its end.
    pub(super) fn update(&mut self, row: LaunchRow) {
        if !self.began_in_earlier_recording {
            self.row = row;
            return;
        }
        self.row.exit = row.exit.or(self.row.exit);
        self.row.zombie = row.zombie.or(self.row.zombie);
        self.row.wait_status = row.wait_status.or(self.row.wait_status);
    }

    /// Prepares for the next recording, in which the process existed before, and which has another
    /// time zero.
    pub(super) fn enter_next_recording(&mut self) {
        (self.is_incomplete, self.began_in_earlier_recording) = (true, true);
        self.last_reaping = None;
    }

    /// Whether it has ended and its reaping is not expected: the parent of the command is the
    /// recorder, and of a process that began in an earlier recording only the end is recorded.
    pub(super) fn has_ended_unreaped(&self) -> bool {
        let is_not_reaped = self.row.origin == Origin::Command || self.began_in_earlier_recording;
        is_not_reaped && self.row.zombie.is_some()
    }

    pub(super) fn add_exec(&mut self, ordinal: (u32, i64), path: Arc<[u8]>, argv: Arc<[u8]>, row: ExecRow) {
        self.execs.insert(ordinal, ExecWithTexts { row, path, argv });
        if self.execs.len() > MAX_EXECS {
            self.execs.pop_first();
            self.is_incomplete = true;
        }
    }

    /// Counts its time until it created or reaped a child as work, if that was before its first
    /// exec.
    pub(super) fn extend_work(&mut self, at: Nanos) {
        let first = self.execs.values().next().and_then(|exec| exec.row.enter);
        if first.is_none_or(|first| at < first) {
            self.worked_until = self.worked_until.max(Some(at));
        }
    }

    /// Returns when its parent began the fork call or, if that is unknown, when the process
    /// existed.
    pub(super) fn birth(&self) -> Option<Nanos> {
        self.row.create.or(self.row.created)
    }

    /// Returns when its parent reaped it. `None` if it was not reaped, or if it was launched in an
    /// earlier recording, which had another time zero.
    pub(super) fn reaped(&self) -> Option<Nanos> {
        let reaped = self.row.reaped.filter(|reaped| self.row.zombie != Some(*reaped));
        reaped.filter(|_| !self.began_in_earlier_recording && self.is_launch())
    }

    /// Returns the earliest time at which it can have waited for a child with this birth: the
    /// birth, or its last reaping if that is later.
    pub(super) fn earliest_wait(&self, birth: Nanos) -> Nanos {
        self.last_reaping.map_or(birth, |last| last.max(birth))
    }

    /// Whether it is a launch. A process that existed before the recording is not.
    pub(super) fn is_launch(&self) -> bool {
        self.row.origin != Origin::Existed
    }

    /// Returns the name that it is counted under: `(bash)` for a fork of bash.
    pub(super) fn label(&self) -> Vec<u8> {
        let name = name_after(self.execs.values().rev().map(ExecWithTexts::named), &self.birth_program);
        let is_fork = self.execs.is_empty() && self.is_launch() && self.row.parent.is_some();
        Command { name, forked: is_fork }.label()
    }

    /// Returns the arguments of its last exec, each terminated by NUL; empty if it has none.
    pub(super) fn argv(&self) -> &[u8] {
        self.execs.values().next_back().map_or(&[], |exec| &exec.argv)
    }

    /// Returns the program that it ran at an instant, or its last program if the instant is
    /// unknown.
    pub(super) fn program_at(&self, at: Option<Nanos>) -> Arc<[u8]> {
        let execs = self.execs.values().rev().skip_while(|exec| {
            let entered = exec.row.enter.or(exec.row.returned);
            entered.zip(at).is_some_and(|(entered, at)| entered > at)
        });
        name_after(execs.map(ExecWithTexts::named), &self.birth_program).into()
    }
}
