//! Notes which ninjas run, and the commands that they launch. Memory is bounded. This code reads no file.

use std::collections::HashMap;
use std::mem;

use spawnscope_data::event::{Executed, LaunchId};

use super::hash::Hashes;
use super::{Command, Run, arguments};

/// Commands of all runs that are not read yet, at most: 24 MB.
const MAX_COMMANDS: usize = 1 << 20;
/// Ninjas that run at the same time, at most.
const MAX_RUNS: usize = 4096;

/// The ninjas of a recording.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    going: HashMap<LaunchId, Run>,
    /// Those whose log is to be read.
    ended: Vec<Run>,
    /// The number of commands of all these.
    commands: usize,
}

impl Runs {
    /// Notes an exec.
    pub(crate) fn executed(&mut self, launch: LaunchId, parent: Option<LaunchId>, executed: &Executed) {
        // If it was a ninja, it is none any more, or begins anew.
        self.end(launch);
        if arguments::is_ninja(&executed.path) {
            let run = arguments::run(executed).filter(|_| self.going.len() < MAX_RUNS);
            self.going.extend(run.map(|run| (launch, run)));
            return;
        }
        let run = parent.and_then(|parent| self.going.get_mut(&parent));
        let Some(run) = run.filter(|_| self.commands < MAX_COMMANDS) else {
            return;
        };
        if let Some(command) = arguments::command(executed) {
            let hashes = Hashes::of(command);
            run.commands.push(Command { launch, hashes });
            self.commands += 1;
        }
    }

    /// Notes the end of a process.
    pub(crate) fn exited(&mut self, launch: LaunchId) {
        self.end(launch);
    }

    /// Returns the runs that have ended since the last call.
    pub(crate) fn take_ended(&mut self) -> Vec<Run> {
        let ended = mem::take(&mut self.ended);
        let commands = ended.iter().map(|run| run.commands.len());
        self.commands -= commands.sum::<usize>();
        ended
    }

    /// Ends all runs, since the recording ends.
    pub(crate) fn end_all(&mut self) {
        let going: Vec<LaunchId> = self.going.keys().copied().collect();
        going.into_iter().for_each(|launch| self.end(launch));
    }

    fn end(&mut self, launch: LaunchId) {
        let run = self.going.remove(&launch);
        // Most of them only print their version, or have nothing to do.
        self.ended.extend(run.filter(|run| !run.commands.is_empty()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use spawnscope_data::event::EventKind;

    const NINJA: LaunchId = LaunchId(2);

    fn executes(runs: &mut Runs, launch: LaunchId, parent: LaunchId, path: &str, arguments: &str) {
        let EventKind::Executed(mut executed) = sample::executed(100, launch, arguments).kind else {
            unreachable!("it is an exec")
        };
        executed.path = path.as_bytes().to_vec();
        runs.executed(launch, Some(parent), &executed);
    }

    fn commands(runs: &mut Runs) -> Vec<Vec<LaunchId>> {
        let launches = |run: &Run| run.commands.iter().map(|command| command.launch).collect();
        runs.take_ended().iter().map(launches).collect()
    }

    #[test]
    fn the_commands_of_a_ninja_are_known_when_it_has_ended() {
        let mut runs = Runs::default();
        executes(&mut runs, NINJA, LaunchId(1), "/usr/bin/ninja", "ninja -C out");
        executes(&mut runs, LaunchId(3), NINJA, "/bin/sh", "sh -c make-it");
        executes(&mut runs, LaunchId(4), LaunchId(3), "/bin/sh", "sh -c below-it");
        executes(&mut runs, LaunchId(3), NINJA, "/usr/bin/cc", "cc -c a.c");
        executes(&mut runs, LaunchId(5), LaunchId(1), "/bin/sh", "sh -c beside-it");
        runs.exited(LaunchId(3));
        assert!(runs.take_ended().is_empty());
        runs.exited(NINJA);
        assert_eq!(runs.commands, 1);
        assert_eq!(commands(&mut runs), [[LaunchId(3)]]);
        assert_eq!(runs.commands, 0);
    }

    #[test]
    fn a_ninja_without_commands_needs_no_log() {
        let mut runs = Runs::default();
        executes(&mut runs, NINJA, LaunchId(1), "/usr/bin/ninja", "ninja --version");
        runs.exited(NINJA);
        assert!(runs.take_ended().is_empty());
    }

    #[test]
    fn at_the_end_of_the_recording_all_have_ended() {
        let mut runs = Runs::default();
        executes(&mut runs, NINJA, LaunchId(1), "/usr/bin/ninja", "ninja");
        executes(&mut runs, LaunchId(3), NINJA, "/bin/sh", "sh -c make-it");
        runs.end_all();
        assert_eq!(commands(&mut runs), [[LaunchId(3)]]);
    }

    #[test]
    fn memory_stays_bounded() {
        let mut runs = Runs::default();
        for number in 0..MAX_RUNS as u64 + 10 {
            executes(&mut runs, LaunchId(2 + number), LaunchId(1), "/usr/bin/ninja", "ninja");
        }
        assert_eq!(runs.going.len(), MAX_RUNS);
        runs.commands = MAX_COMMANDS;
        executes(&mut runs, LaunchId(9_999), NINJA, "/bin/sh", "sh -c make-it");
        assert!(runs.going[&NINJA].commands.is_empty());
    }
}
