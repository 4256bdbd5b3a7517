//! The rows of the report's table: launches grouped by program, call site, or another `GroupBy`.
//! Also command lines that were launched repeatedly with the same arguments in the same working
//! directory.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::model::launch::{Command, Launch};
use crate::model::tree::Forest;
use crate::path::critical_path::CriticalPath;
use crate::path::summary::Summary;
use crate::patterns::programs::{self, subcommand_of};
use crate::sites::build_labels::{BuildLabel, BuildLabels};
use crate::sites::callers::{CallSite, CallerCounts, Callers, Detail};
use foldhash::HashMap;
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::Origin;

/// What the launches in one row of the table have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupBy {
    #[default]
    Command,
    Arguments,
    /// Launches of one program with the same subcommand, such as `git log` or `python3 -m pip`.
    Subcommand,
    /// Launches whose parent runs one program.
    Parent,
    /// Launches from one line of a script, or from one call site in a program.
    Line,
    Caller,
    /// Launches for one part of a build.
    Label(BuildLabel),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Display name of the group: `dirname`, `(bash)` for forks of bash without an exec,
    /// `unpack.sh:14 in relocate()`.
    pub label: Vec<u8>,
    pub call_site: Option<CallSite>,
    pub sums: Summary,
    /// What was launched, and how often: programs first, then forks; in both parts the most
    /// frequent first.
    pub launched: Vec<(Vec<u8>, u64)>,
    pub callers: CallerCounts,
    /// Times of the launches including all descendants.
    pub inclusive: InclusiveTimes,
    /// The part of the wall that depends on the group: the expected saving without its launches.
    /// `None` if no replay computed it.
    pub depends: Option<Nanos>,
}

/// Times of a group's launches including all descendants, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InclusiveTimes {
    /// Wall time, summed over launches without an ancestor in the group.
    pub total: Nanos,
    /// Time on the critical path. `None` when the path is unknown.
    pub critical: Option<Nanos>,
}

/// Shown as the parent of the command, because no recorded process launched it.
pub const THE_RECORDER: &[u8] = b"(recorder)";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key<'a> {
    Program(Command<'a>),
    /// The arguments, each ended by NUL, and whether they are truncated.
    Arguments(&'a [u8], bool),
    Subcommand(Command<'a>, &'a [u8]),
    CallSite(u32),
    Label(Option<&'a [u8]>),
    /// The program of the parent, for launches without a known call site.
    UnknownCallSite(Command<'a>),
}

/// Groups all launches, the most expensive group first.
pub fn groups(forest: &Forest<'_>, path: Option<&CriticalPath>, group_by: GroupBy) -> Vec<Group> {
    let lines = Callers::find(forest, Detail::Line);
    let functions = (group_by == GroupBy::Caller).then(|| Callers::find(forest, Detail::Function));
    let labels = if let GroupBy::Label(label) = group_by { Some(BuildLabels::find(forest, label)) } else { None };
    let call_sites = functions.as_ref().unwrap_or(&lines);
    let mut numbers: HashMap<Key<'_>, usize> = HashMap::default();
    let mut members: Vec<(Key<'_>, Vec<u32>)> = Vec::new();
    let mut group_of: Vec<Option<usize>> = vec![None; forest.launches.len()];
    for (index, launch) in forest.launches.iter().enumerate().filter(|(_, each)| each.is_launch()) {
        let build_label = labels.as_ref().and_then(|labels| labels.label_of(index));
        let key = key_of(launch, call_sites.number_of(index), build_label, group_by);
        let number = *numbers.entry(key).or_insert(members.len());
        if number == members.len() {
            members.push((key, Vec::new()));
        }
        members[number].1.push(index as u32);
        group_of[index] = Some(number);
    }
    let inclusive = inclusive(forest, path, &group_of, members.len());
    let mut groups = Vec::with_capacity(members.len());
    for ((key, launches), inclusive) in members.iter().zip(inclusive) {
        let call_site =
            if let Key::CallSite(number) = key { Some(call_sites.call_site(*number).clone()) } else { None };
        groups.push(Group {
            label: label(*key, call_site.as_ref(), group_by),
            call_site,
            sums: sums(forest, path, launches),
            launched: launched(forest, launches),
            callers: lines.count(launches),
            inclusive,
            depends: None,
        });
    }
    groups.sort_by(|a, b| (Reverse(rank(a, group_by)), &a.label).cmp(&(Reverse(rank(b, group_by)), &b.label)));
    groups
}

fn key_of<'a>(
    launch: &Launch<'a>,
    call_site: Option<u32>,
    build_label: Option<&'a [u8]>,
    group_by: GroupBy,
) -> Key<'a> {
    match (group_by, call_site) {
        (GroupBy::Label(_), _) => Key::Label(build_label),
        (GroupBy::Command, _) => Key::Program(*launch.command),
        (GroupBy::Arguments, _) => arguments_key(launch),
        (GroupBy::Subcommand, _) => subcommand_key(launch),
        (GroupBy::Parent, _) => Key::Program(parent_command(launch)),
        (GroupBy::Line | GroupBy::Caller, Some(call_site)) => Key::CallSite(call_site),
        (GroupBy::Line | GroupBy::Caller, None) => match launch.origin {
            Origin::Command => Key::Program(parent_command(launch)),
            _ => Key::UnknownCallSite(parent_command(launch)),
        },
    }
}

/// Returns the arguments of the last program; for a fork without an exec, the forked program.
fn arguments_key<'a>(launch: &Launch<'a>) -> Key<'a> {
    let last = launch.execs.last();
    last.map_or(Key::Program(*launch.command), |exec| Key::Arguments(exec.argv(), exec.argv_cut))
}

fn subcommand_key<'a>(launch: &Launch<'a>) -> Key<'a> {
    let word = launch.execs.last().and_then(subcommand_of);
    word.map_or(Key::Program(*launch.command), |word| Key::Subcommand(*launch.command, word))
}

/// Returns the program of the parent, or a placeholder if the parent was not recorded.
fn parent_command<'a>(launch: &Launch<'a>) -> Command<'a> {
    let name = match launch.origin {
        Origin::Command => THE_RECORDER,
        _ if launch.depth == 0 => b"-",
        _ => return *launch.birth_command,
    };
    Command { name, forked: false }
}

fn label(key: Key<'_>, call_site: Option<&CallSite>, group_by: GroupBy) -> Vec<u8> {
    match (key, call_site) {
        (_, Some(call_site)) => call_site.label(),
        (Key::UnknownCallSite(parent), None) => {
            let site_kind: &[u8] = if group_by == GroupBy::Caller { b"function" } else { b"line" };
            [b"(", parent.name, b": unknown ", site_kind, b")"].concat()
        }
        (Key::Program(command), None) => command.label(),
        (Key::Subcommand(command, word), None) => programs::label(command.name, word),
        (Key::Arguments(argv, is_cut), None) => argument_list(argv, is_cut),
        (Key::Label(Some(value)), None) => value.to_vec(),
        (Key::Label(None), None) => b"-".to_vec(),
        (Key::CallSite(_), None) => Vec::new(),
    }
}

/// Returns the label of the group that a launch belongs to. With `GroupBy::Label` that is `-`,
/// because build labels are not computed here.
pub fn label_of(launch: &Launch<'_>, call_site: Option<&CallSite>, group_by: GroupBy) -> Vec<u8> {
    // The number of the call site only distinguishes groups.
    let key = key_of(launch, call_site.map(|_| 0), None, group_by);
    let is_by_call_site = matches!(group_by, GroupBy::Line | GroupBy::Caller);
    label(key, call_site.filter(|_| is_by_call_site), group_by)
}

pub(crate) fn argument_list(argv: &[u8], is_cut: bool) -> Vec<u8> {
    let mut label = argv.strip_suffix(b"\0").unwrap_or(argv).to_vec();
    label.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    if is_cut {
        label.extend_from_slice(" …".as_bytes());
    }
    label
}

fn sums(forest: &Forest<'_>, path: Option<&CriticalPath>, launches: &[u32]) -> Summary {
    let mut sums = Summary::default();
    for index in launches {
        sums.add(forest, *index as usize, path);
    }
    sums
}

/// Returns what was launched, and how often, in the order of `Group::launched`.
pub(crate) fn launched(forest: &Forest<'_>, launches: &[u32]) -> Vec<(Vec<u8>, u64)> {
    let mut counts: HashMap<Command<'_>, u64> = HashMap::default();
    let command_of = |index: &u32| &forest.launches[*index as usize].command;
    for run in launches.chunk_by(|one, next| Arc::ptr_eq(command_of(one), command_of(next))) {
        *counts.entry(**command_of(&run[0])).or_default() += run.len() as u64;
    }
    let mut counts: Vec<(Command<'_>, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(command, count)| (command.forked, Reverse(*count), command.name));
    counts.into_iter().map(|(command, count)| (command.label(), count)).collect()
}

/// Returns the inclusive times of each group. A launch with an ancestor in the same group is not
/// counted again.
fn inclusive(
    forest: &Forest<'_>,
    path: Option<&CriticalPath>,
    group_of: &[Option<usize>],
    groups: usize,
) -> Vec<InclusiveTimes> {
    let below = path.map(|path| path.with_descendants(forest));
    let nothing = InclusiveTimes { critical: path.map(|_| Nanos(0)), ..InclusiveTimes::default() };
    let mut sums = vec![nothing; groups];
    // For each group, the number of its launches among the ancestors of the current launch.
    let mut open_launches = vec![0u32; groups];
    let mut ancestors: Vec<Option<usize>> = Vec::new();
    for step in forest.walk_all() {
        for closed in ancestors.drain(step.depth..).flatten() {
            open_launches[closed] -= 1;
        }
        ancestors.push(group_of[step.index]);
        let Some(group) = group_of[step.index] else { continue };
        if open_launches[group] == 0 {
            let total = forest.launches[step.index].total(forest.end).unwrap_or_default();
            sums[group].total.0 += total.0;
            if let (Some(sum), Some(below)) = (&mut sums[group].critical, &below) {
                sum.0 += below[step.index];
            }
        }
        open_launches[group] += 1;
    }
    sums
}

/// Returns the sort key: for call sites, the inclusive time on the critical path; for all other
/// groups, the launch tax.
fn rank(group: &Group, group_by: GroupBy) -> (Option<Nanos>, Nanos, u64) {
    let sums = &group.sums;
    match group_by {
        GroupBy::Command | GroupBy::Arguments | GroupBy::Subcommand | GroupBy::Parent | GroupBy::Label(_) => {
            (sums.tax, sums.total, sums.count)
        }
        // The command includes the whole wall, so it would always come first.
        GroupBy::Line | GroupBy::Caller if group.label == THE_RECORDER => (None, Nanos(0), 0),
        GroupBy::Line | GroupBy::Caller => (group.inclusive.critical, group.inclusive.total, sums.count),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// The arguments with spaces between them.
    pub label: Vec<u8>,
    pub count: u64,
    /// Summed wall time of the launches.
    pub total: Nanos,
}

/// Arguments and working directory.
type CommandLine<'a> = (&'a [u8], Option<&'a [u8]>);
/// Number of launches and their summed wall time, in nanoseconds.
type Sums = (u64, u64);

/// Minimum number of launches of a repeated command line.
const MIN_REPEATS: u64 = 5;
const MAX_REPEATED_LINES: usize = 10;

/// Returns the repeated command lines with the longest total time.
pub(crate) fn repeats(forest: &Forest<'_>) -> Vec<Repeat> {
    let mut lines: HashMap<CommandLine<'_>, Sums> = HashMap::default();
    for launch in forest.launches.iter().filter(|launch| launch.is_launch()) {
        if let Some(exec) = launch.execs.last().filter(|exec| !exec.argv_cut) {
            let (count, total) = lines.entry((exec.argv(), exec.cwd())).or_default();
            *count += 1;
            *total += launch.total(forest.end).unwrap_or_default().0;
        }
    }
    let mut lines: Vec<_> = lines.into_iter().filter(|(_, (count, _))| *count >= MIN_REPEATS).collect();
    lines.sort_by_key(|(key, (count, total))| (Reverse(*total), Reverse(*count), *key));
    lines.truncate(MAX_REPEATED_LINES);
    lines
        .into_iter()
        .map(|((argv, _), (count, total))| Repeat { label: argument_list(argv, false), count, total: Nanos(total) })
        .collect()
}
