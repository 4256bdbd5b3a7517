//! Collects the invocations of ninja and the commands that they launch from events: parses the
//! command lines of ninja and of its shells. Memory is bounded. This code reads no file.

use std::collections::HashMap;
use std::mem;

use spawnscope_data::event::{Executed, LaunchId};

use super::log::hashes;
use super::{BuildCommand, Invocation};

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
        if is_ninja(&executed.path) {
            let invocation = parse_invocation(executed).filter(|_| self.running.len() < MAX_INVOCATIONS);
            self.running.extend(invocation.map(|invocation| (launch, invocation)));
            return;
        }
        let invocation = parent.and_then(|parent| self.running.get_mut(&parent));
        let Some(invocation) = invocation.filter(|_| self.commands < MAX_COMMANDS) else { return };
        if let Some(command) = shell_command(executed) {
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

/// The letters of the options of ninja and samurai that have a value.
const OPTIONS_WITH_VALUE: &[u8] = b"Cdfjkltw";

fn is_ninja(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next();
    matches!(name, Some(b"ninja" | b"ninja-build" | b"samu"))
}

/// Returns COMMAND if an exec has ninja's form `/bin/sh -c COMMAND` and its arguments are not
/// truncated.
fn shell_command(executed: &Executed) -> Option<&[u8]> {
    let is_whole = executed.argv_bytes == executed.argv.len() as u64;
    let arguments = executed.argv.strip_suffix(b"\0")?;
    let mut arguments = arguments.splitn(3, |byte| *byte == 0).skip(1);
    let (option, command) = (arguments.next()?, arguments.next()?);
    let is_command = executed.path == b"/bin/sh" && option == b"-c" && !command.contains(&0);
    (is_whole && is_command).then_some(command)
}

/// Returns an invocation of ninja, still without commands. `None` if the directory that it works in
/// is unknown.
fn parse_invocation(executed: &Executed) -> Option<Invocation> {
    // A directory that begins with `...` is not a complete path.
    let cwd = executed.cwd.as_deref().filter(|cwd| cwd.starts_with(b"/"));
    let mut directory = cwd.map(<[u8]>::to_vec);
    let mut file = b"build.ninja".to_vec();
    for (option, value) in options(&executed.argv) {
        match option {
            // Of several `-C`, only the last one counts.
            b'C' if value.starts_with(b"/") => directory = Some(value.to_vec()),
            b'C' => directory = cwd.map(|cwd| join(cwd, value)),
            b'f' => file = value.to_vec(),
            _ => {}
        }
    }
    Some(Invocation { directory: directory?, file, commands: Vec::new() })
}

/// Resolves a path against a directory. An absolute path is returned unchanged.
pub(super) fn join(directory: &[u8], path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") { path.to_vec() } else { [directory, b"/", path].concat() }
}

/// Returns the options that have a value, as getopt finds them: `-C x`, `-Cx`, `-vC x`.
fn options(argv: &[u8]) -> Vec<(u8, &[u8])> {
    let mut arguments = argv.split(|byte| *byte == 0).skip(1);
    let mut found = Vec::new();
    while let Some(argument) = arguments.next() {
        if argument == b"--" {
            break;
        }
        let Some(letters) = argument.strip_prefix(b"-").filter(|letters| !letters.starts_with(b"-")) else {
            continue;
        };
        let Some(at) = letters.iter().position(|letter| OPTIONS_WITH_VALUE.contains(letter)) else {
            continue;
        };
        let value = match &letters[at + 1..] {
            [] => arguments.next().unwrap_or_default(),
            value => value,
        };
        found.push((letters[at], value));
    }
    found
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

    /// Returns an exec of a path, with arguments that are separated by `|`.
    fn exec(path: &str, arguments: &str) -> Executed {
        let EventKind::Executed(mut executed) = test_events::executed(100, LaunchId(2), "x").kind else {
            unreachable!("the event is an exec")
        };
        executed.path = path.as_bytes().to_vec();
        executed.cwd = Some(b"/src".to_vec());
        executed.argv = format!("{arguments}|").replace('|', "\0").into_bytes();
        executed.argv_bytes = executed.argv.len() as u64;
        executed
    }

    #[test]
    fn a_command_of_ninja_is_the_third_argument_of_a_shell() {
        for (arguments, command) in [("/bin/sh|-c|cc -c a.c", b"cc -c a.c".as_slice()), ("/bin/sh|-c|", b"")] {
            assert_eq!(shell_command(&exec("/bin/sh", arguments)), Some(command), "{arguments}");
        }
        for (path, arguments) in [
            ("/bin/sh", "/bin/sh|-c|cc|name"),
            ("/bin/sh", "/bin/sh|-e|cc"),
            ("/bin/sh", "/bin/sh|-c"),
            ("/bin/sh", ""),
            ("/usr/bin/bash", "bash|-c|cc"),
        ] {
            assert_eq!(shell_command(&exec(path, arguments)), None, "{path} {arguments}");
        }
        let mut truncated = exec("/bin/sh", "/bin/sh|-c|cc -c a.c");
        truncated.argv_bytes += 1;
        assert_eq!(shell_command(&truncated), None, "the end of the command is unknown");
    }

    #[test]
    fn options_determine_the_directory_and_the_build_file() {
        for (arguments, directory, file) in [
            ("ninja", "/src", "build.ninja"),
            ("ninja|-C|out|all", "/src/out", "build.ninja"),
            ("ninja|-Cout|-f|x.ninja", "/src/out", "x.ninja"),
            ("ninja|-vC|/srv/x", "/srv/x", "build.ninja"),
            ("ninja|-j|-C|a|-C|b", "/src/b", "build.ninja"),
            ("ninja|--quiet|all|--|-C|out", "/src", "build.ninja"),
            ("ninja|-C", "/src/", "build.ninja"),
        ] {
            let invocation = parse_invocation(&exec("/usr/bin/ninja", arguments)).expect("a directory");
            assert_eq!(invocation.directory, directory.as_bytes(), "{arguments}");
            assert_eq!(invocation.file, file.as_bytes(), "{arguments}");
        }
    }

    #[test]
    fn a_relative_directory_is_unknown_without_the_working_directory() {
        for cwd in [None, Some(b".../src".to_vec())] {
            let mut executed = exec("/usr/bin/ninja", "ninja|-C|out");
            executed.cwd = cwd;
            assert_eq!(parse_invocation(&executed), None);
            executed.argv = b"ninja\0-C/srv\0".to_vec();
            assert!(parse_invocation(&executed).is_some());
        }
    }

    #[test]
    fn ninja_has_several_names() {
        assert!(is_ninja(b"/usr/bin/ninja") && is_ninja(b"samu") && is_ninja(b"/x/ninja-build"));
        assert!(!is_ninja(b"/usr/bin/ninja/x") && !is_ninja(b"/usr/bin/ninjas"));
    }
}
