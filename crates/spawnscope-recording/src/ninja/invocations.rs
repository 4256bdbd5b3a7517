//! Collects the invocations of ninja and the commands that they launch from events. Memory is
//! bounded. This code reads no file.

use std::collections::HashMap;
use std::mem;

use spawnscope_data::event::{Executed, LaunchId};

use super::hash::hashes;
use super::{BuildCommand, Invocation, arguments};

/// Maximum number of commands of all invocations whose logs are not read yet. They take 24 MB.
const MAX_COMMANDS: usize = 1 << 20;
/// Maximum number of simultaneous invocations.
const MAX_INVOCATIONS: usize = 4096;

/// The invocations of ninja in a recording.
#[derive(Debug, Default)]
pub(crate) struct Invocations {
    running: HashMap<LaunchId, Invocation>,
    /// Ended invocations whose log is to be read.
    ended: Vec<Invocation>,
    /// The number of commands of all these invocations.
    commands: usize,
}

impl Invocations {
    /// Starts an invocation if a process executes ninja, and adds a command if a child of ninja
    /// executes a shell.
    pub(crate) fn handle_exec(&mut self, launch: LaunchId, parent: Option<LaunchId>, executed: &Executed) {
        // If this process was ninja before, that invocation has ended.
        self.end(launch);
        if arguments::is_ninja(&executed.path) {
            let invocation = arguments::parse_invocation(executed).filter(|_| self.running.len() < MAX_INVOCATIONS);
            self.running.extend(invocation.map(|invocation| (launch, invocation)));
            return;
        }
        let invocation = parent.and_then(|parent| self.running.get_mut(&parent));
        let Some(invocation) = invocation.filter(|_| self.commands < MAX_COMMANDS) else { return };
        if let Some(command) = arguments::shell_command(executed) {
            invocation.commands.push(BuildCommand { launch, hashes: hashes(command) });
            self.commands += 1;
        }
    }

    pub(crate) fn take_ended(&mut self) -> Vec<Invocation> {
        let ended = mem::take(&mut self.ended);
        let commands = ended.iter().map(|invocation| invocation.commands.len());
        self.commands -= commands.sum::<usize>();
        ended
    }

    pub(crate) fn end_all(&mut self) {
        let launches: Vec<LaunchId> = self.running.keys().copied().collect();
        launches.into_iter().for_each(|launch| self.end(launch));
    }

    /// Ends the invocation of a process that has ended or executes another program.
    pub(crate) fn end(&mut self, launch: LaunchId) {
        let invocation = self.running.remove(&launch);
        // Invocations without commands, which only print a version or have nothing to do, need no
        // log.
        self.ended.extend(invocation.filter(|invocation| !invocation.commands.is_empty()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_events;
    use spawnscope_data::event::EventKind;

    const NINJA: LaunchId = LaunchId(2);

    fn executes(invocations: &mut Invocations, launch: LaunchId, parent: LaunchId, path: &str, arguments: &str) {
        let EventKind::Executed(mut executed) = test_events::executed(100, launch, arguments).kind else {
            unreachable!("the event is an exec")
        };
        executed.path = path.as_bytes().to_vec();
        invocations.handle_exec(launch, Some(parent), &executed);
    }

    fn commands(invocations: &mut Invocations) -> Vec<Vec<LaunchId>> {
        invocations
            .take_ended()
            .iter()
            .map(|invocation| invocation.commands.iter().map(|command| command.launch).collect())
            .collect()
    }

    #[test]
    fn the_commands_of_a_ninja_are_returned_when_it_has_ended() {
        let mut invocations = Invocations::default();
        executes(&mut invocations, NINJA, LaunchId(1), "/usr/bin/ninja", "ninja -C out");
        executes(&mut invocations, LaunchId(3), NINJA, "/bin/sh", "sh -c make-it");
        executes(&mut invocations, LaunchId(4), LaunchId(3), "/bin/sh", "sh -c below-it");
        executes(&mut invocations, LaunchId(3), NINJA, "/usr/bin/cc", "cc -c a.c");
        executes(&mut invocations, LaunchId(5), LaunchId(1), "/bin/sh", "sh -c beside-it");
        invocations.end(LaunchId(3));
        assert!(invocations.take_ended().is_empty());
        invocations.end(NINJA);
        assert_eq!(invocations.commands, 1);
        assert_eq!(commands(&mut invocations), [[LaunchId(3)]]);
        assert_eq!(invocations.commands, 0);
    }

    #[test]
    fn a_ninja_without_commands_needs_no_log() {
        let mut invocations = Invocations::default();
        executes(&mut invocations, NINJA, LaunchId(1), "/usr/bin/ninja", "ninja --version");
        invocations.end(NINJA);
        assert!(invocations.take_ended().is_empty());
    }

    #[test]
    fn all_invocations_end_with_the_recording() {
        let mut invocations = Invocations::default();
        executes(&mut invocations, NINJA, LaunchId(1), "/usr/bin/ninja", "ninja");
        executes(&mut invocations, LaunchId(3), NINJA, "/bin/sh", "sh -c make-it");
        invocations.end_all();
        assert_eq!(commands(&mut invocations), [[LaunchId(3)]]);
    }

    #[test]
    fn memory_stays_bounded() {
        let mut invocations = Invocations::default();
        for number in 0..MAX_INVOCATIONS as u64 + 10 {
            executes(&mut invocations, LaunchId(2 + number), LaunchId(1), "/usr/bin/ninja", "ninja");
        }
        assert_eq!(invocations.running.len(), MAX_INVOCATIONS);
        invocations.commands = MAX_COMMANDS;
        executes(&mut invocations, LaunchId(9_999), NINJA, "/bin/sh", "sh -c make-it");
        assert!(invocations.running[&NINJA].commands.is_empty());
    }
}
