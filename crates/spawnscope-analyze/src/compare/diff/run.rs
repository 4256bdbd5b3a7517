//! One recording, reduced to what a comparison needs: sums over its launches, by keys that are the
//! same in another run of the command.

use std::collections::{BTreeSet, HashMap};

use crate::compare::diff::normalise;
use crate::model::launch::{Command, Launch, base_name, path_below};
use crate::model::tree::Forest;
use crate::path::critical_path::CriticalPath;
use crate::path::groups::THE_RECORDER;
use crate::path::summary::Summary;
use crate::sites::callers::{CallSite, Callers, Detail};
use spawnscope_data::event::{Calibration, Loss, Nanos};
use spawnscope_data::rows::{Origin, Recording};

/// The key by which launches of different recordings are matched.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The program, `(bash)` for a fork without an exec.
    pub command: Vec<u8>,
    pub arguments: Vec<u8>,
    pub script_line: Option<ScriptLine>,
    pub parent: Vec<u8>,
}

/// A call site that is the same in another checkout: its file is named from the directory where the
/// command ran.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScriptLine {
    /// The path of the file in the directory where the command ran, or the base name of a file
    /// elsewhere; for a call site without a file, its normalised label.
    pub file: Vec<u8>,
    pub line: Option<u32>,
    pub function: Option<Vec<u8>>,
    /// The path of the file as recorded. It is not compared, because it may differ between two
    /// recordings.
    pub path: FilePath,
}

/// A path that compares as equal to every other path.
#[derive(Clone, Debug, Default)]
pub struct FilePath(pub Option<Vec<u8>>);

impl PartialEq for FilePath {
    fn eq(&self, _: &FilePath) -> bool {
        true
    }
}

impl Eq for FilePath {}

impl std::hash::Hash for FilePath {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl PartialOrd for FilePath {
    fn partial_cmp(&self, other: &FilePath) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for FilePath {
    fn cmp(&self, _: &FilePath) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl ScriptLine {
    /// `directory`: where the command ran.
    pub fn of(call_site: &CallSite, directory: Option<&[u8]>) -> ScriptLine {
        ScriptLine {
            file: match &call_site.file {
                Some(file) => path_below(directory, file).unwrap_or(base_name(file)).to_vec(),
                None => normalise::normalise(&call_site.label()),
            },
            line: call_site.line.filter(|_| call_site.file.is_some()),
            function: call_site.function.clone().filter(|_| call_site.file.is_some()),
            path: FilePath(call_site.file.clone()),
        }
    }

    /// Formats the file and the line: `unpack.sh:20`.
    pub fn label(&self) -> Vec<u8> {
        match self.line {
            Some(line) => [&self.file, format!(":{line}").as_bytes()].concat(),
            None => self.file.clone(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Run {
    pub command: Vec<Vec<u8>>,
    /// The directory where the command ran, if it is known.
    pub directory: Option<Vec<u8>>,
    /// The wall. `None` if the recorder did not finish.
    pub wall: Option<Nanos>,
    pub cpus: u32,
    /// The architecture, as `uname -m` prints it.
    pub arch: String,
    pub calibration: Vec<Calibration>,
    pub lost: u64,
    /// Whether the call site of any launch is known.
    pub has_script_lines: bool,
    pub all: Summary,
    pub launches: HashMap<Key, Summary>,
}

impl Run {
    /// Reduces a recording. `path` is its critical path, if it is known.
    pub fn of(recording: &Recording, forest: &Forest<'_>, path: Option<&CriticalPath>) -> Run {
        let callers = Callers::find(forest, Detail::Line);
        let directory = forest.command_directory();
        let mut all = Summary::default();
        let mut launches: HashMap<Key, Summary> = HashMap::new();
        for (index, launch) in forest.launches.iter().enumerate().filter(|(_, each)| each.is_launch()) {
            all.add(forest, index, path);
            let key = key(launch, callers.call_site_of(index), directory);
            launches.entry(key).or_default().add(forest, index, path);
        }
        let info = &recording.info;
        Run {
            command: info.command.clone(),
            directory: directory.map(<[u8]>::to_vec),
            wall: info.wall,
            cpus: info.cpus,
            arch: info.arch.clone(),
            calibration: recording.calibration.clone(),
            lost: Loss::total(&info.lost),
            has_script_lines: callers.has_any(),
            all,
            launches,
        }
    }
}

/// Returns the old and the new name of a renamed file. A file counts as renamed if each side has
/// exactly one file that the other side lacks.
pub(super) fn renamed_file(before: &[Run], after: &[Run]) -> Option<[Vec<u8>; 2]> {
    let files = |runs: &[Run]| {
        let lines = runs.iter().flat_map(|run| run.launches.keys()).filter_map(|key| key.script_line.as_ref());
        lines.filter(|line| line.path.0.is_some()).map(|line| line.file.clone()).collect::<BTreeSet<Vec<u8>>>()
    };
    let [older, newer] = [before, after].map(files);
    let mut only = [older.difference(&newer), newer.difference(&older)];
    let found = only.each_mut().map(|files| files.next().cloned());
    let [Some(old), Some(new)] = found else { return None };
    only.iter_mut().all(|files| files.next().is_none()).then_some([old, new])
}

/// Returns a run with another name for a file, which may also be the name of a program.
pub(super) fn with_renamed_file(run: &Run, [old, new]: &[Vec<u8>; 2]) -> Run {
    let mut run = run.clone();
    let [old_name, new_name] = [old, new].map(|file| base_name(file));
    for (mut key, summary) in std::mem::take(&mut run.launches) {
        if let Some(line) = key.script_line.as_mut().filter(|line| line.file == *old) {
            line.file.clone_from(new);
        }
        for name in [&mut key.command, &mut key.parent] {
            let is_fork = name.starts_with(b"(");
            if name.strip_prefix(b"(").and_then(|name| name.strip_suffix(b")")).unwrap_or(name) == old_name {
                *name = Command { name: new_name, forked: is_fork }.label();
            }
        }
        run.launches.entry(key).or_default().merge(&summary);
    }
    run
}

fn key(launch: &Launch<'_>, call_site: Option<&CallSite>, directory: Option<&[u8]>) -> Key {
    let arguments = launch.execs.last().map(|exec| normalise::arguments(exec.arguments()));
    Key {
        command: launch.command.label(),
        arguments: arguments.unwrap_or_default(),
        script_line: call_site.map(|call_site| ScriptLine::of(call_site, directory)),
        parent: match launch.origin {
            Origin::Command => THE_RECORDER.to_vec(),
            _ if launch.depth == 0 => b"-".to_vec(),
            _ => launch.birth_command.name.to_vec(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_name_are_told_apart_by_their_place_in_a_checkout() {
        let line = |file: &str, directory: Option<&str>| {
            let call_site = CallSite { file: Some(file.as_bytes().to_vec()), line: Some(2), ..CallSite::default() };
            ScriptLine::of(&call_site, directory.map(str::as_bytes))
        };
        let of_one = line("/build/app/doc/Makefile", Some("/build/app"));
        assert_eq!(of_one, line("/ci/app2/doc/Makefile", Some("/ci/app2")), "another checkout");
        assert_ne!(of_one, line("/build/app/Makefile", Some("/build/app")), "another directory");
        let elsewhere = line("/tmp/a/Makefile", Some("/tmp/b"));
        assert_eq!(
            elsewhere,
            line("/srv/c/Makefile", None),
            "a checkout elsewhere, such as beside the build directory"
        );
        assert_eq!(of_one.label(), b"doc/Makefile:2");
    }
}
