//! The launches of a recording as a forest, with the name that each launch is counted under.
//! Nothing here is recursive or quadratic, because chains may be 100,000 launches deep.

use std::borrow::Cow;
use std::sync::Arc;

use crate::model::frames::Frames;
use crate::model::grouped::GroupedItems;
use crate::model::join::{Joiner, index_of};
use crate::model::launch::{Command, Exec, FailedExec, Launch, MaybeKnown, base_name};
use crate::model::names::name_after;
use crate::model::phases::Phase;
use foldhash::HashMap;
use spawnscope_data::event::{LaunchId, Nanos};
use spawnscope_data::ids::Ids;
use spawnscope_data::rows::{ExecRow, LaunchRow, Origin, Recording, StackId, TextId};

/// Maximum number of nested forks that are searched for the program that they are copies of.
const MAX_NESTED_FORKS: usize = 16;

/// All launches, ordered by id, and their parents. Launches are referred to by index.
#[derive(Clone, Debug)]
pub struct Forest<'a> {
    /// Every process of the recording, ascending by id.
    pub launches: Vec<Launch<'a>>,
    /// Launches at the top of a tree: the command, and processes that existed before the recording.
    pub roots: Vec<usize>,
    /// Launches with an unknown creation or parent, each at the top of its own tree.
    pub orphans: Vec<usize>,
    /// The recorded command, or the owner of a window.
    pub root: Option<usize>,
    /// The end of the recording, which ends the phases that are still open.
    pub end: Nanos,
    /// Wall-clock time of instant zero, in nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: i64,
    ids: Ids,
    /// Children of each launch, by time of creation.
    children: GroupedItems<usize>,
    /// The position of each launch among its parent's children.
    positions: Vec<u32>,
    /// Indices of the failed execs of each launch, by time.
    failed_execs: GroupedItems<u32>,
    /// The recording that contains the rows of failed execs, frames and texts.
    recording: &'a Recording,
    parents: Vec<MaybeKnown<u32>>,
    /// When the collector stopped the first thread of each launch, by time.
    stops: GroupedItems<(Nanos, Nanos)>,
}

/// A launch on a walk from the top down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub index: usize,
    /// Depth below the top of the walk.
    pub depth: usize,
    /// Whether no further sibling follows.
    pub is_last: bool,
}

impl<'a> Forest<'a> {
    pub fn build(recording: &'a Recording) -> Forest<'a> {
        Forest::join(recording, Cow::Borrowed(&recording.launches), &recording.execs)
    }

    /// Joins rows of launches and execs. Takes owned rows to free them as early as possible.
    pub fn join(recording: &'a Recording, mut rows: Cow<'_, [LaunchRow]>, execs: &[ExecRow]) -> Forest<'a> {
        if !rows.is_sorted_by_key(|row| row.id) {
            rows.to_mut().sort_by_key(|row| row.id);
        }
        let ids = Ids::new(rows.iter().map(|row| row.id.0.cast_signed()));
        let names: Vec<MaybeKnown<TextId>> = rows.iter().map(|row| row.name.into()).collect();
        let mut parents: Vec<MaybeKnown<u32>> =
            rows.iter().map(|row| row.parent.and_then(|parent| index_of(&ids, parent)).into()).collect();
        let info = &recording.info;
        let end = info.last_event.max(info.wall.unwrap_or_default());
        let joiner = Joiner { recording, end, unnamed: Arc::default() };
        let mut joined = joiner.join(rows, execs, &ids);
        let order = parents_first(&mut parents);
        set_names_and_depths(&mut joined, &parents, &order, &names, recording);

        let children = group_children(&joined, &parents);
        let positions = positions_among_siblings(&children, joined.len());
        joiner.divide_forks(&mut joined, &children);
        let tops = (0..joined.len()).filter(|index| parents[*index].get().is_none());
        let (roots, orphans) = tops.partition(|top| matches!(joined[*top].origin, Origin::Command | Origin::Existed));
        let mut forest = Forest {
            root: root_among(&joined, info.root),
            launches: joined,
            roots,
            orphans,
            end,
            started_unix_ns: info.started_unix_ns,
            children,
            positions,
            failed_execs: joiner.failed_execs(&ids),
            recording,
            parents,
            stops: joiner.stops(&ids),
            ids,
        };
        forest.take_off_stops();
        forest
    }

    fn take_off_stops(&mut self) {
        if self.recording.stops.is_empty() {
            return;
        }
        for index in 0..self.launches.len() {
            for piece in self.launches[index].pieces(Some(self.end)) {
                let stopped = match piece.phase {
                    // The parent spends these phases.
                    Phase::Create | Phase::Reap => {
                        self.parent(index).map(|parent| self.stopped(parent, piece.start, piece.end))
                    }
                    Phase::Queue => None,
                    _ => Some(self.stopped(index, piece.start, piece.end)),
                };
                let Launch { phases, cpu_phases, .. } = &mut self.launches[index];
                // The CPU time of `setup` includes that of the creation.
                let cpu = cpu_phases.get(piece.phase).filter(|_| piece.phase != Phase::Setup);
                phases.take_off(piece.phase, stopped.unwrap_or_default(), cpu);
            }
        }
    }

    /// Returns how long the collector stopped the first thread of a launch between two instants.
    pub(crate) fn stopped(&self, index: usize, from: Nanos, to: Nanos) -> Nanos {
        let stops = self.stops.items_of(index);
        let first = stops.partition_point(|(_, until)| *until <= from);
        let within = stops[first..].iter().take_while(|(since, _)| *since < to);
        Nanos(within.map(|(since, until)| (*until).min(to).since(from.max(*since)).0).sum())
    }

    /// Returns how long the collector stopped the first threads of a launch and its descendants. It
    /// counts twice when it stopped two of them at once.
    pub(crate) fn stopped_below(&self, index: usize) -> Nanos {
        let stops = self.walk(&[index]).flat_map(|step| self.stops.items_of(step.index));
        Nanos(stops.map(|(since, until)| until.since(*since).0).sum())
    }

    pub fn index_of(&self, id: LaunchId) -> Option<usize> {
        self.ids.index_of(id.0.cast_signed())
    }

    pub fn recording(&self) -> &'a Recording {
        self.recording
    }

    /// Returns the children of the launch at `index`, in order of creation.
    pub fn children(&self, index: usize) -> &[usize] {
        self.children.items_of(index)
    }

    /// Returns the launches above a launch, innermost first.
    pub(crate) fn ancestors(&self, index: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.parent(index), |parent| self.parent(*parent))
    }

    /// Returns the children of the parent of the launch at `index`, and the position of the launch
    /// among them.
    pub(crate) fn siblings(&self, index: usize) -> Option<(&[usize], usize)> {
        Some((self.children(self.parent(index)?), self.positions[index] as usize))
    }

    /// Returns the failed `execve` calls of the launch at `index`, in order.
    pub fn failed_execs(&self, index: usize) -> impl ExactSizeIterator<Item = FailedExec<'a>> + Clone {
        let Recording { failed_execs, texts, .. } = self.recording;
        self.failed_execs.items_of(index).iter().map(|position| {
            let row = &failed_execs[*position as usize];
            FailedExec { enter: row.enter, returned: row.returned, path: texts.get(row.path), errno: row.errno }
        })
    }

    /// Returns a call chain of the recording, from the innermost frame outwards.
    pub fn frames(&self, stack: Option<StackId>) -> Frames<'a> {
        Frames::new(self.recording, stack)
    }

    pub fn text(&self, id: TextId) -> &'a [u8] {
        self.recording.texts.get(id)
    }

    /// Returns the program that the launch at `index` ran at an instant. A process may exec more
    /// than once.
    pub fn command_at(&self, index: usize, at: Nanos) -> Command<'a> {
        let launch = &self.launches[index];
        let first = launch.execs.first().and_then(Exec::entered);
        let is_copy = launch.execs.is_empty() || first.is_some_and(|first| first > at);
        Command {
            forked: is_copy && launch.is_launch() && self.parents[index].get().is_some(),
            ..command_at(launch, Some(at))
        }
    }

    pub fn parent(&self, index: usize) -> Option<usize> {
        self.parents[index].get().map(|parent| parent as usize)
    }

    /// Returns the directory in which the recorded command ran, if it is known.
    pub fn command_directory(&self) -> Option<&'a [u8]> {
        self.launches[self.root?].execs.first()?.cwd()
    }

    /// Returns the exec whose program the parent ran when it launched `index`. If the parent was a
    /// fork without an exec, returns the exec of the nearest ancestor that has one.
    pub fn launcher(&self, index: usize) -> Option<&Exec<'a>> {
        let mut child = index;
        for _ in 0..MAX_NESTED_FORKS {
            let parent = self.parent(child)?;
            let launch = &self.launches[parent];
            let before = self.launches[child].birth().map_or(&launch.execs[..], |at| launch.execs_until(at));
            if let Some(last) = before.last() {
                return Some(last);
            }
            child = parent;
        }
        None
    }

    /// Visits `tops` and all their descendants, each launch before its children.
    pub fn walk<'f>(&'f self, tops: &[usize]) -> impl Iterator<Item = Step> + use<'f, 'a> {
        let mut pending = Vec::new();
        push_siblings(&mut pending, tops, 0);
        std::iter::from_fn(move || {
            let step: Step = pending.pop()?;
            push_siblings(&mut pending, self.children(step.index), step.depth + 1);
            Some(step)
        })
    }

    pub(crate) fn walk_all<'f>(&'f self) -> impl Iterator<Item = Step> + use<'f, 'a> {
        self.walk(&[self.roots.as_slice(), &self.orphans].concat())
    }
}

/// Returns the launch that the recording names as its root; without one, its command.
fn root_among(launches: &[Launch<'_>], named: Option<LaunchId>) -> Option<usize> {
    let named = named.and_then(|id| launches.binary_search_by_key(&id, |launch| launch.id).ok());
    named.or_else(|| launches.iter().position(|launch| launch.origin == Origin::Command))
}

fn push_siblings(pending: &mut Vec<Step>, siblings: &[usize], depth: usize) {
    let last = siblings.last();
    pending.extend(siblings.iter().rev().map(|index| Step { index: *index, depth, is_last: Some(index) == last }));
}

/// Returns the launches in an order with parents first. If a damaged recording contains a cycle of
/// parents, breaks it: one launch of the cycle loses its parent.
fn parents_first(parents: &mut [MaybeKnown<u32>]) -> Vec<u32> {
    let mut state = vec![Visit::New; parents.len()];
    let mut order = Vec::with_capacity(parents.len());
    let mut climb = Vec::new();
    for start in 0..parents.len() as u32 {
        let mut at = Some(start);
        while let Some(index) = at.filter(|index| state[*index as usize] == Visit::New) {
            state[index as usize] = Visit::Climbing;
            climb.push(index);
            at = parents[index as usize].get();
        }
        if at.is_some_and(|index| state[index as usize] == Visit::Climbing) {
            // The parent of the launch visited last closes the cycle.
            if let Some(topmost) = climb.last() {
                parents[*topmost as usize] = MaybeKnown::default();
            }
        }
        while let Some(index) = climb.pop() {
            state[index as usize] = Visit::Placed;
            order.push(index);
        }
    }
    order
}

/// The state of a launch while `parents_first` orders the launches.
#[derive(Clone, Copy, PartialEq)]
enum Visit {
    New,
    Climbing,
    Placed,
}

/// Sets the depth and the names of each launch. They depend on its ancestors, so `order` must have
/// parents first.
fn set_names_and_depths<'a>(
    launches: &mut [Launch<'a>],
    parents: &[MaybeKnown<u32>],
    order: &[u32],
    names: &[MaybeKnown<TextId>],
    recording: &'a Recording,
) {
    let mut commands: HashMap<Command<'a>, Arc<Command<'a>>> = HashMap::default();
    for index in order.iter().map(|index| *index as usize) {
        let own_name = match names[index].get() {
            Some(id) => Some(recording.texts.get(id)),
            // A command that could not be executed has the name that was requested.
            None if launches[index].origin == Origin::Command => {
                recording.info.command.first().map(|file| base_name(file))
            }
            None => None,
        };
        let mut birth_command = Command { name: own_name.unwrap_or(b"?"), forked: false };
        if let Some(parent) = parents[index].get() {
            let parent = parent as usize;
            launches[index].depth = launches[parent].depth + 1;
            if launches[index].origin != Origin::Existed {
                birth_command = command_at(&launches[parent], launches[index].birth());
            }
        }
        let launch = &mut launches[index];
        let is_fork = launch.execs.is_empty() && launch.is_launch() && parents[index].get().is_some();
        let name = name_after(launch.execs.iter().rev().map(Exec::named), birth_command.name);
        let command = Command { name, forked: is_fork };
        // Most launches have the same command as others, so commands are shared.
        launch.birth_command = Arc::clone(commands.entry(birth_command).or_insert_with(|| Arc::new(birth_command)));
        launch.command = Arc::clone(commands.entry(command).or_insert_with(|| Arc::new(command)));
    }
}

/// Returns the program that `launch` ran at an instant, or its last program if the instant is
/// unknown.
fn command_at<'a>(launch: &Launch<'a>, at: Option<Nanos>) -> Command<'a> {
    let execs = at.map_or(&launch.execs[..], |at| launch.execs_until(at));
    Command { name: name_after(execs.iter().rev().map(Exec::named), launch.birth_command.name), forked: false }
}

/// Returns the position of each launch among the children of its parent.
fn positions_among_siblings(children: &GroupedItems<usize>, count: usize) -> Vec<u32> {
    let mut positions = vec![0; count];
    for siblings in (0..count).map(|parent| children.items_of(parent)) {
        (0..).zip(siblings).for_each(|(position, child)| positions[*child] = position);
    }
    positions
}

fn group_children(launches: &[Launch<'_>], parents: &[MaybeKnown<u32>]) -> GroupedItems<usize> {
    let mut owned: Vec<(u32, usize)> =
        (0..launches.len()).filter_map(|index| Some((parents[index].get()?, index))).collect();
    owned.sort_by_key(|(parent, index)| (*parent, launches[*index].birth(), launches[*index].id));
    GroupedItems::new(launches.len(), owned)
}
