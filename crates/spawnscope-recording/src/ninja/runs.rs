//! Collects the runs of ninja and the commands that they launch from events. Memory is bounded. This code reads no file.

use std::collections::HashMap;
use std::mem;

use spawnscope_data::event::{Executed, LaunchId};

use super::hash::Hashes;
use super::{Command, Run, arguments};

/// Maximum number of commands of all runs whose logs are not read yet. They take 24 MB.
const MAX_COMMANDS: usize = 1 << 20;
/// Maximum number of simultaneous runs.
const MAX_RUNS: usize = 4096;

/// The runs of ninja in a recording.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    running: HashMap<LaunchId, Run>,
    /// Ended runs whose log is to be read.
    ended: Vec<Run>,
    /// The number of commands of all these runs.
    commands: usize,
}

impl Runs {
    /// Notes an exec.
    pub(crate) fn executed(&mut self, launch: LaunchId, parent: Option<LaunchId>, executed: &Executed) {
        // If this process was a ninja, that run has ended.
        self.end(launch);
        if arguments::is_ninja(&executed.path) {
            let run = arguments::parse_run(executed).filter(|_| self.running.len() < MAX_RUNS);
            self.running.extend(run.map(|run| (launch, run)));
            return;
        }
        let run = parent.and_then(|parent| self.running.get_mut(&parent));
        let Some(run) = run.filter(|_| self.commands < MAX_COMMANDS) else {
            return;
        };
        if let Some(command) = arguments::shell_command(executed) {
            let hashes = Hashes::new(command);
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

    /// Ends all runs, because the recording ends.
    pub(crate) fn end_all(&mut self) {
        let launches: Vec<LaunchId> = self.running.keys().copied().collect();
        launches.into_iter().for_each(|launch| self.end(launch));
    }

    fn end(&mut self, launch: LaunchId) {
        let run = self.running.remove(&launch);
        // Runs without commands, which only print a version or have nothing to do, need no log.
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
            unreachable!("the event is an exec")
        };
        executed.path = path.as_bytes().to_vec();
        runs.executed(launch, Some(parent), &executed);
    }

    fn commands(runs: &mut Runs) -> Vec<Vec<LaunchId>> {
        let launches = |run: &Run| run.commands.iter().map(|command| command.launch).collect();
        runs.take_ended().iter().map(launches).collect()
    }

    #[test]
    fn the_commands_of_a_ninja_are_returned_when_it_has_ended() {
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
    fn all_runs_end_with_the_recording() {
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
        assert_eq!(runs.running.len(), MAX_RUNS);
        runs.commands = MAX_COMMANDS;
        executes(&mut runs, LaunchId(9_999), NINJA, "/bin/sh", "sh -c make-it");
        assert!(runs.running[&NINJA].commands.is_empty());
    }
}
