//! Launches that have ended, with the same names and phases as in reports. Their rows are put into
//! a small recording, which `tree` joins.

use std::sync::Arc;

use super::process::Process;
use crate::model::launch::{Launch, Outcome};
use crate::model::phases::PhaseTimes;
use crate::model::tree::Forest;
use spawnscope_data::event::{LaunchId, Missing, Nanos, Pid};
use spawnscope_data::rows::{ExecRow, Info, LaunchRow, Origin, Recording, Scope};

#[derive(Clone, Debug)]
pub struct EndedLaunch {
    pub id: LaunchId,
    pub pid: Option<Pid>,
    pub parent: Option<LaunchId>,
    /// The name that it is counted under: `(bash)` for a fork of bash.
    pub command: Vec<u8>,
    /// The arguments of its last exec, each terminated by NUL.
    pub argv: Arc<[u8]>,
    pub outcome: Outcome,
    /// Wall time by phase. `None` if its end was lost or its record is incomplete.
    pub phases: Option<PhaseTimes>,
    /// Launch tax: all phases except `run`.
    pub tax: Option<Nanos>,
    /// Wall time from the parent's call to the reaping.
    pub total: Option<Nanos>,
}

impl EndedLaunch {
    /// Whether it exited with a status other than 0 or was killed.
    pub fn has_failed(&self) -> bool {
        match self.outcome {
            Outcome::Code(code) => code != 0,
            Outcome::Signal { .. } => true,
            Outcome::Running | Outcome::Unknown => false,
        }
    }
}

pub(super) fn join_ended(processes: &[Process], missing: &[Missing]) -> Vec<EndedLaunch> {
    let mut recording = empty_recording(missing);
    for (index, process) in (0..).zip(processes) {
        add(&mut recording, index, process);
    }
    let mut forest = Forest::build(&recording);
    let end = forest.end;
    // `add` puts a stand-in for the parent before each launch.
    let launches = forest.launches.iter_mut().skip(1).step_by(2);
    let ended = launches.zip(processes).map(|(launch, process)| {
        let worked_until = process.worked_until.filter(|_| launch.may_work_before_exec());
        if let Some(worked_until) = worked_until {
            launch.divide_setup(worked_until, end);
        }
        describe(launch, process)
    });
    ended.collect()
}

fn describe(launch: &Launch<'_>, process: &Process) -> EndedLaunch {
    let is_known = !launch.is_unfinished() && !process.is_incomplete;
    let last = process.execs.values().next_back();
    EndedLaunch {
        id: process.row.id,
        pid: process.row.pid,
        parent: process.row.parent,
        command: launch.command.label(),
        argv: last.map(|exec| Arc::clone(&exec.argv)).unwrap_or_default(),
        outcome: if launch.is_unfinished() { Outcome::Unknown } else { launch.outcome },
        phases: is_known.then(|| launch.phases.clone()),
        tax: launch.tax().filter(|_| is_known),
        total: launch.start().zip(launch.end()).filter(|_| is_known).map(|(start, end)| end.since(start)),
    }
}

/// Adds a process and a stand-in for its parent. The stand-in has the name of the program that the
/// parent ran at the fork; the parent itself may have ended, or may run another program by now.
fn add(recording: &mut Recording, index: u64, process: &Process) {
    let (parent, id) = (LaunchId(2 * index + 1), LaunchId(2 * index + 2));
    let name = recording.texts.push(&process.birth_program);
    recording.launches.push(LaunchRow {
        id: parent,
        origin: Origin::Existed,
        name: Some(name),
        ..LaunchRow::default()
    });
    recording.launches.push(LaunchRow {
        id,
        parent: process.row.parent.map(|_| parent),
        name: process.row.name.map(|_| name),
        script_stack: None,
        native_stack: None,
        ..process.row.clone()
    });
    for exec in process.execs.values() {
        let path = recording.texts.push(&exec.path);
        recording.execs.push(ExecRow {
            launch: id,
            path,
            // These texts are not needed here.
            argv: path,
            interpreter: None,
            cwd: None,
            variables: None,
            ..exec.row.clone()
        });
    }
}

fn empty_recording(missing: &[Missing]) -> Recording {
    Recording {
        info: Info { scope: Scope::System, cpus: 1, is_live: true, missing: missing.to_vec(), ..Info::default() },
        ..Recording::default()
    }
}
