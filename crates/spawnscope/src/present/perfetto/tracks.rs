//! Decides on which track each launch is drawn. The tracks of a launch's children are nested below
//! its own, in order of creation. Launches of one program by one parent share tracks where they do
//! not overlap in time, so that a loop takes few tracks.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use crate::analyze::Forest;
use crate::analyze::model::launch::{Command, Launch};
use crate::analyze::model::pieces::Piece;
use crate::event::Nanos;

/// Maximum number of siblings of one program that each have a separate track because they launch
/// others. If there are more, they share tracks.
const MAX_LAUNCHERS: u32 = 16;
/// Maximum depth of nested tracks. The tracks of children below this depth are beside their
/// parents' tracks.
const MAX_DEPTH: u32 = 40;

#[derive(Debug)]
pub(super) struct Track {
    /// The track that it is nested in, if it is not at the top.
    pub(super) parent: Option<u32>,
    /// 1 at the top.
    depth: u32,
    pub(super) first_launch: usize,
    pub(super) launches: u64,
}

#[derive(Debug)]
pub(super) struct Tracks {
    /// All tracks. A parent precedes its children, and siblings are in order of creation.
    pub(super) all: Vec<Track>,
    /// The track of each launch. `None` for a launch whose time is unknown and that launched
    /// nothing.
    pub(super) track_of: Vec<Option<u32>>,
    /// The interval in which each launch is drawn, if known.
    pub(super) spans: Vec<Option<Span>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: Nanos,
    pub(super) end: Nanos,
}

impl Span {
    /// Returns the interval in which a launch is drawn, and its phases.
    pub(super) fn with_phases(forest: &Forest<'_>, launch: &Launch<'_>) -> Option<(Span, Vec<Piece>)> {
        let (start, end) = launch.lifetime(forest.end)?;
        let pieces = launch.pieces(Some(forest.end));
        // Phases are clipped if two CPUs disagree about the order of events; the span must still
        // enclose them all.
        let start = pieces.first().map_or(start, |first| first.start.min(start));
        let end = pieces.last().map_or(end, |last| last.end.max(end)).max(start);
        Some((Span { start, end }, pieces))
    }
}

impl Tracks {
    pub(super) fn arrange(forest: &Forest<'_>) -> Tracks {
        let spans = forest.launches.iter();
        let mut tracks = Tracks {
            all: Vec::new(),
            track_of: vec![None; forest.launches.len()],
            spans: spans.map(|launch| Span::with_phases(forest, launch).map(|(span, _)| span)).collect(),
        };
        let mut pending = VecDeque::from([(None, [&forest.roots[..], &forest.orphans].concat())]);
        while let Some((parent, siblings)) = pending.pop_front() {
            pending.extend(tracks.place_siblings(forest, parent, siblings));
        }
        tracks
    }

    /// Places launches with the same parent track on new tracks. Returns the children of the
    /// launches on each new track.
    fn place_siblings(
        &mut self,
        forest: &Forest<'_>,
        parent: Option<u32>,
        mut siblings: Vec<usize>,
    ) -> impl Iterator<Item = (Option<u32>, Vec<usize>)> + use<> {
        siblings.sort_by_key(|index| (self.spans[*index].map(|span| span.start), *index));
        let launchers = launchers_by_command(forest, &siblings);
        let mut lanes: HashMap<(Command<'_>, bool), Lanes> = HashMap::new();
        let first_new = self.all.len() as u32;
        let mut children: Vec<Vec<usize>> = Vec::new();
        for index in siblings {
            let (command, own) = (*forest.launches[index].command, forest.children(index));
            let span = self.spans[index];
            if span.is_none() && own.is_empty() {
                continue;
            }
            let can_share = own.is_empty() || launchers[&command] > MAX_LAUNCHERS;
            let lanes = lanes.entry((command, own.is_empty())).or_default();
            let track = match span.filter(|_| can_share).and_then(|span| lanes.take_free_at(span.start)) {
                Some(track) => self.add_to_track(track, index),
                None => {
                    children.push(Vec::new());
                    self.add_track(parent, index)
                }
            };
            if let Some(span) = span {
                lanes.occupy_until(span.end, track);
            }
            children[(track - first_new) as usize].extend(own);
        }
        let new = (first_new..).map(Some).zip(children);
        new.filter(|(_, children)| !children.is_empty())
    }

    fn add_to_track(&mut self, track: u32, index: usize) -> u32 {
        self.all[track as usize].launches += 1;
        self.track_of[index] = Some(track);
        track
    }

    fn add_track(&mut self, parent: Option<u32>, index: usize) -> u32 {
        let parent = parent.and_then(|track| match self.all[track as usize] {
            Track { depth: MAX_DEPTH, parent, .. } => parent,
            _ => Some(track),
        });
        let track = self.all.len() as u32;
        self.all.push(Track {
            parent,
            depth: parent.map_or(1, |parent| self.all[parent as usize].depth + 1),
            first_launch: index,
            launches: 1,
        });
        self.track_of[index] = Some(track);
        track
    }
}

/// Counts the launches that launched others, by program.
fn launchers_by_command<'a>(forest: &Forest<'a>, siblings: &[usize]) -> HashMap<Command<'a>, u32> {
    let mut counts = HashMap::new();
    for index in siblings.iter().filter(|index| !forest.children(**index).is_empty()) {
        *counts.entry(*forest.launches[*index].command).or_default() += 1;
    }
    counts
}

/// The tracks that launches of one program share.
#[derive(Default)]
struct Lanes {
    /// Tracks in use, the earliest end first.
    busy: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Tracks not in use, the topmost first.
    free: BinaryHeap<Reverse<u32>>,
}

impl Lanes {
    /// Takes the topmost track that is free at an instant, if there is one. Slices that only touch
    /// would be nested if both were empty, so a track becomes free after the end of its last slice.
    fn take_free_at(&mut self, at: Nanos) -> Option<u32> {
        while let Some(Reverse((end, track))) = self.busy.peek().copied() {
            if end >= at {
                break;
            }
            self.busy.pop();
            self.free.push(Reverse(track));
        }
        self.free.pop().map(|Reverse(track)| track)
    }

    fn occupy_until(&mut self, end: Nanos, track: u32) {
        self.busy.push(Reverse((end, track)));
    }
}
