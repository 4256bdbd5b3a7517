//! Weighted stacks of launches, for a flame graph: which way led to each launch, and what it cost, or what it was seen to do.
//! `weights` says how a launch's cost is divided, `stacks` keeps the boxes. How boxes look is `present`'s.

mod stacks;
mod weights;

use std::fmt;

use super::callers::{Frame, Frames};
use super::critical_path::CriticalPath;
use super::external_wait::ExternalWait;
use super::launch::{Command, Launch};
use super::phases::Phase;
use super::samples::Sample;
use super::tree::Forest;
use super::whatif::changes::command_of;
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
    /// Nanoseconds on CPUs, by samples.
    OnCpu,
    /// Nanoseconds of waits, by samples.
    OffCpu,
}

/// What lies upon what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stacking {
    /// Process over process, the phases on top.
    Tree,
    /// Process, the functions that asked for the next one, process.
    Caller,
    /// Programs side by side, whoever launched them, the phases on top.
    Command,
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
    Frame(Frame<'a>),
    /// A line of a script that the program below was given with `-c`.
    Given(&'a [u8], Option<u32>),
    /// Frames that could not be read.
    Truncated,
    /// Everything beyond the highest level.
    Beyond,
    /// Something that is not recorded, with its name where that is known.
    ExternalWait(ExternalWait, Option<&'a [u8]>),
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
    /// Nobody asked for samples, or the recording was too short for one.
    #[error("this recording holds no samples: record with `spawnscope record --sample HZ` (such as 999)")]
    NoSamples,
    /// There are others.
    #[error(
        "no sample of this recording {0}: record with more of them (--sample), or draw its time with --weight wall"
    )]
    NoSampleThere(Unsampled),
}

/// What no sample was of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsampled {
    is_waiting: bool,
    phase: Option<Phase>,
}

impl fmt::Display for Unsampled {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doing = if self.is_waiting {
            "a wait"
        } else {
            "a thread with a CPU"
        };
        match self.phase {
            Some(phase) => write!(to, "is of {doing} in `{}`", phase.name()),
            None => write!(to, "is of {doing}"),
        }
    }
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
    stack_launches(&mut stacks, forest, wanted.stacking, |stacks, own, index| {
        if forest.launches[index].is_launch() {
            weights.put(stacks, own, index);
        }
    });
    if let Some(path) = path.filter(|_| wanted.weight == Weight::Critical && wanted.phase.is_none()) {
        for (what, time) in &path.external_wait {
            let label = Label::ExternalWait(*what, what.process().map(&names));
            let external_wait = stacks.above(None, label);
            stacks.add(external_wait, time.0);
        }
    }
    finished(stacks, wanted).ok_or(FlameError::NoWeight(Missing(wanted.phase)))
}

/// Stacks what processes were seen to do, or to wait for, upon their phases; those too that existed before the recording.
///
/// # Errors
/// When there is nothing to draw.
pub fn sampled<'a>(forest: &Forest<'a>, samples: &[Sample], wanted: Wanted) -> Result<Flame<'a>, FlameError> {
    if samples.is_empty() {
        return Err(FlameError::NoSamples);
    }
    let mut stacks = Stacks::default();
    // By launch: its own box.
    let mut boxes: Vec<Option<u32>> = vec![None; forest.launches.len()];
    stack_launches(&mut stacks, forest, wanted.stacking, |_, own, index| {
        boxes[index] = Some(own);
    });
    let is_waiting = wanted.weight == Weight::OffCpu;
    let is_wanted = |sample: &&Sample| {
        sample.is_waiting == is_waiting && wanted.phase.is_none_or(|phase| sample.phase == Some(phase))
    };
    for sample in samples.iter().filter(is_wanted) {
        let mut at = boxes[sample.launch];
        if wanted.stacking != Stacking::Caller {
            at = Some(stacks.above(at, sample.phase.map_or(Label::UnknownPhase, Label::Phase)));
        }
        for label in labels(forest.frames(Some(sample.stack))) {
            at = Some(stacks.above(at, whole_function(label)));
        }
        if let Some(at) = at {
            stacks.add(at, sample.span.0);
        }
    }
    let unsampled = Unsampled {
        is_waiting,
        phase: wanted.phase,
    };
    finished(stacks, wanted).ok_or(FlameError::NoSampleThere(unsampled))
}

/// A box for each process, which `take` is given, parents first.
fn stack_launches<'a>(
    stacks: &mut Stacks<'a>,
    forest: &Forest<'a>,
    stacking: Stacking,
    mut take: impl FnMut(&mut Stacks<'a>, u32, usize),
) {
    // By launch: its own box.
    let mut boxes: Vec<Option<u32>> = vec![None; forest.launches.len()];
    let tops = [forest.roots.as_slice(), &forest.orphans].concat();
    for step in forest.walk(&tops) {
        let index = step.index;
        let mut at = forest.parent(index).and_then(|parent| boxes[parent]);
        match stacking {
            Stacking::Tree => {}
            Stacking::Command => at = None,
            Stacking::Caller => {
                for label in chain(forest, index) {
                    at = Some(stacks.above(at, label));
                }
            }
        }
        let own = stacks.above(at, Label::Program(*forest.launches[index].command));
        boxes[index] = Some(own);
        take(stacks, own, index);
    }
}

/// `None`: there is nothing to draw.
fn finished(stacks: Stacks<'_>, wanted: Wanted) -> Option<Flame<'_>> {
    let nodes = stacks.finish();
    let total = nodes.iter().map(|node| node.own).sum();
    (total > 0).then_some(Flame { wanted, nodes, total })
}

/// The frames that asked for a launch, from the outermost inwards. What a forked copy did before it was forked is its
/// parent's chain, and stands below it already.
fn chain<'a>(forest: &Forest<'a>, index: usize) -> impl Iterator<Item = Label<'a>> + use<'a> {
    let own = frames(forest, index);
    let at = &forest.launches[index].instants;
    let copy_of = forest.parent(index).filter(|parent| {
        let born = at.create.get().or(at.created.get());
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
    let given = forest.launcher(index).and_then(command_of);
    let named = |label| match (label, given) {
        (Label::Frame(frame), Some(script)) if frame.language.is_script() && frame.file.is_none() => {
            Label::Given(script, frame.line)
        }
        _ => label,
    };
    let labels = labels(forest.frames(forest.launches[index].best_stack()));
    labels.into_iter().map(named).collect()
}

fn labels(mut frames: Frames<'_>) -> Vec<Label<'_>> {
    let mut labels: Vec<Label<'_>> = frames.by_ref().map(|frame| Label::Frame(frame_of(frame))).collect();
    if frames.is_truncated() {
        labels.push(Label::Truncated);
    }
    labels.reverse();
    labels
}

/// What a thread does is told by function: each sample of a loop may be at another of its lines.
fn whole_function(label: Label<'_>) -> Label<'_> {
    match label {
        Label::Frame(frame) if frame.function.is_some() => Label::Frame(Frame { line: None, ..frame }),
        label => label,
    }
}

/// A frame without what would only tell apart calls of one function: every call has an address of its own.
fn frame_of(frame: Frame<'_>) -> Frame<'_> {
    let is_named_code = !frame.language.is_script() && frame.function.is_some();
    Frame {
        address: frame.address.filter(|_| !is_named_code),
        is_inlined: false,
        ..frame
    }
}
