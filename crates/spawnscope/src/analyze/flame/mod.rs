//! Weighted stacks of launches, for a flame graph: which way led to each launch, and what it cost. `weights` says how a launch's
//! cost is divided, `stacks` keeps the boxes. How boxes look is `present`'s.

mod stacks;
mod weights;

use std::fmt;

use super::callers::Frame;
use super::critical_path::CriticalPath;
use super::launch::{Command, Launch};
use super::outside::Outside;
use super::phases::Phase;
use super::tree::Forest;
use crate::event::Language;
use crate::record::reader::TextId;
use stacks::Stacks;
pub use stacks::{MOST_LEVELS, Node};
use weights::Weights;

/// What the width of a box is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Nanoseconds in which a process lived and none of its children did.
    Wall,
    /// Nanoseconds of launch tax.
    Tax,
    /// Launches.
    Count,
    /// Nanoseconds on the critical path: these sum to the wall.
    Critical,
}

/// What lies upon what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stacking {
    /// Process over process, the phases on top.
    Tree,
    /// Process, the functions that asked for the next one, process.
    Caller,
}

/// Which flame graph is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The width of boxes.
    pub weight: Weight,
    /// Their order.
    pub stacking: Stacking,
    /// Only this phase.
    pub phase: Option<Phase>,
}

/// What a box stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Label<'a> {
    /// A phase of the launch below.
    Phase(Phase),
    /// The launch below could run but had no CPU.
    RunQueue,
    /// The launch below was in a phase that is not known.
    UnknownPhase,
    /// A program.
    Program(Command<'a>),
    /// A place in a program; of machine code without the address where the function is known.
    Place(Frame<'a>),
    /// Frames that could not be read.
    Truncated,
    /// Everything beyond the highest level.
    Beyond,
    /// Something that is not recorded, with its name where that is known.
    Outside(Outside, Option<&'a [u8]>),
}

/// A flame graph: a tree of boxes.
#[derive(Clone, Debug)]
pub struct Flame<'a> {
    /// What was asked for.
    pub wanted: Wanted,
    /// Boxes, each behind the one below it.
    pub nodes: Vec<Node<'a>>,
    /// What the weights of all boxes sum to.
    pub total: u64,
}

/// Why there is nothing to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlameError {
    /// Not even the command ran.
    #[error("this recording holds no launch")]
    NoLaunch,
    /// `-p`, `-a`, or a recorder that was cut off.
    #[error(
        "this recording has no command that began and ended in it, and therefore no critical path: use another --weight"
    )]
    NoPath,
    /// All weights are zero.
    #[error("nothing to draw: no launch of this recording {0}")]
    NoWeight(Missing),
}

/// What no launch has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing(Option<Phase>);

impl fmt::Display for Missing {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(phase) => write!(to, "has time in `{}` that counts here", phase.name()),
            None => write!(to, "has time that counts here"),
        }
    }
}

/// Stacks all launches. The path is needed for weights on it only; `names` gives those of processes outside.
///
/// # Errors
/// When there is nothing to draw.
pub fn flame<'a>(
    forest: &Forest<'a>,
    path: Option<&CriticalPath>,
    names: impl Fn(TextId) -> &'a [u8],
    wanted: Wanted,
) -> Result<Flame<'a>, FlameError> {
    if !forest.launches.iter().any(Launch::is_launch) {
        return Err(FlameError::NoLaunch);
    }
    if wanted.weight == Weight::Critical && path.is_none() {
        return Err(FlameError::NoPath);
    }
    let mut stacks = Stacks::default();
    let weights = Weights::new(forest, path, wanted);
    // By launch: its own box.
    let mut boxes: Vec<Option<u32>> = vec![None; forest.launches.len()];
    let tops = [forest.roots.as_slice(), &forest.orphans].concat();
    for step in forest.walk(&tops) {
        let index = step.index;
        let launch = &forest.launches[index];
        let mut at = forest.parent(index).and_then(|parent| boxes[parent]);
        if wanted.stacking == Stacking::Caller {
            for label in chain(forest, index) {
                at = Some(stacks.above(at, label));
            }
        }
        let own = stacks.above(at, Label::Program(launch.command));
        boxes[index] = Some(own);
        if launch.is_launch() {
            weights.put(&mut stacks, own, index);
        }
    }
    if let Some(path) = path.filter(|_| wanted.weight == Weight::Critical && wanted.phase.is_none()) {
        for (what, time) in &path.outside {
            let label = Label::Outside(*what, what.process().map(&names));
            let outside = stacks.above(None, label);
            stacks.add(outside, time.0);
        }
    }
    let nodes = stacks.finish();
    let total = nodes.iter().map(|node| node.own).sum();
    if total == 0 {
        return Err(FlameError::NoWeight(Missing(wanted.phase)));
    }
    Ok(Flame { wanted, nodes, total })
}

/// The frames that asked for a launch, from the outermost inwards. What a forked copy did before it was forked is its
/// parent's chain, and stands below it already.
fn chain<'a>(forest: &Forest<'a>, index: usize) -> impl Iterator<Item = Label<'a>> + use<'a> {
    let own = frames(forest, index);
    let at = &forest.launches[index].instants;
    let copy_of = forest.parent(index).filter(|parent| {
        let born = at.create.or(at.created);
        born.is_some_and(|born| forest.command_at(*parent, born).forked)
    });
    let before = copy_of.map(|parent| frames(forest, parent)).unwrap_or_default();
    let shared = own
        .iter()
        .zip(&before)
        .take_while(|(own, before)| own == before)
        .count();
    own.into_iter().skip(shared)
}

/// A launch's whole chain from the outermost frame inwards: of the script where one is known, else of machine code.
fn frames<'a>(forest: &Forest<'a>, index: usize) -> Vec<Label<'a>> {
    let mut frames = forest.frames(forest.launches[index].best_stack());
    let mut labels: Vec<Label<'a>> = frames.by_ref().map(|frame| Label::Place(place(frame))).collect();
    if frames.is_truncated() {
        labels.push(Label::Truncated);
    }
    labels.reverse();
    labels
}

/// A frame without what would only tell apart calls of one function: every call has an address of its own.
fn place(frame: Frame<'_>) -> Frame<'_> {
    let is_named_code = frame.language == Language::Native && frame.function.is_some();
    Frame {
        address: frame.address.filter(|_| !is_named_code),
        is_inlined: false,
        ..frame
    }
}
