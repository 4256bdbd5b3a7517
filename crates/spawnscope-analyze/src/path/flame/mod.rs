//! Weighted stacks of launches for a flame graph: the path to each launch, with its cost or its
//! samples. `weights` divides the cost of a launch among boxes; `present` draws them.

mod weights;

use weights::Weights;

use crate::model::external_wait::ExternalWait;
use crate::model::frames::{Frame, Frames};
use crate::model::launch::{Command, Launch};
use crate::model::phases::Phase;
use crate::model::samples::Sample;
use crate::model::tree::Forest;
use crate::path::critical_path::CriticalPath;
use crate::patterns::shells::command_of;
use foldhash::HashMap;
use spawnscope_data::rows::TextId;

/// The meaning of the width of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Nanoseconds in which a process existed but none of its children did.
    Wall,
    /// Nanoseconds of start-up: all phases but run.
    Tax,
    Count,
    /// Nanoseconds on the critical path, which sum to the wall.
    Critical,
    /// Nanoseconds on CPUs, from samples.
    OnCpu,
    /// Nanoseconds of waits, from samples.
    OffCpu,
}

/// What the boxes stand for, from the bottom up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stacking {
    /// Processes by ancestry, with the phases on top.
    Tree,
    /// A process, then the functions that requested the next launch, then that process, and so on.
    Caller,
    /// Programs side by side regardless of their parents, with the phases on top.
    Command,
}

#[derive(Clone, Copy, Debug)]
pub struct FlameOptions {
    pub weight: Weight,
    pub stacking: Stacking,
    /// The only phase to draw. `None` draws all phases.
    pub phase: Option<Phase>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Label<'a> {
    /// A phase of the launch in the box below.
    Phase(Phase),
    /// Time in which the launch in the box below was runnable but had no CPU.
    RunQueue,
    /// Time in which the phase of the launch in the box below is unknown.
    UnknownPhase,
    Program(Command<'a>),
    /// A frame of a call chain. A frame of machine code has no address if its function is known, so
    /// that all calls in one function share a box.
    Frame(Frame<'a>),
    /// A script that was given with `-c` to the program in the box below, and the line in it.
    InlineScript(&'a [u8], Option<u32>),
    /// Outer frames that could not be read.
    Truncated,
    /// Everything above the highest level that is drawn.
    AboveMaxLevel,
    /// An external wait, with the name of the process if known.
    ExternalWait(ExternalWait, Option<&'a [u8]>),
}

/// A flame graph: a tree of boxes.
#[derive(Clone, Debug)]
pub struct Flame<'a> {
    pub options: FlameOptions,
    /// The boxes, each after the box below it.
    pub nodes: Vec<Node<'a>>,
    /// Sum of the weights of all boxes.
    pub total: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlameError {
    #[error("this recording contains no launch")]
    NoLaunch,
    /// The recording was made with `-p` or `-a`, or the recorder was killed.
    #[error("this recording contains no complete command, so it has no critical path: use another --weight")]
    NoPath,
    /// All weights are zero.
    #[error("nothing to draw: the weight of every launch is zero{}", in_phase(*.0))]
    NoWeight(Option<Phase>),
    /// Sampling was not requested, or the recording was too short for a sample.
    #[error("this recording contains no samples: record with `spawnscope record --sample HZ` (for example 999)")]
    NoSamples,
    /// The recording has samples, but none of the requested kind and phase.
    #[error(
        "this recording contains no sample of {}{}: record at a higher sampling frequency (--sample), or draw wall time with --weight wall",
        if *is_waiting { "a wait" } else { "a thread on a CPU" },
        in_phase(*phase)
    )]
    NoMatchingSample { is_waiting: bool, phase: Option<Phase> },
}

fn in_phase(phase: Option<Phase>) -> String {
    phase.map(|phase| format!(" in `{}`", phase.name())).unwrap_or_default()
}

/// Stacks all launches. `path` is only needed for the critical weight; `names` returns the names of
/// external processes.
pub fn flame<'a>(
    forest: &Forest<'a>,
    path: Option<&CriticalPath>,
    names: impl Fn(TextId) -> &'a [u8],
    options: FlameOptions,
) -> Result<Flame<'a>, FlameError> {
    if !forest.launches.iter().any(Launch::is_launch) {
        return Err(FlameError::NoLaunch);
    }
    if options.weight == Weight::Critical && path.is_none() {
        return Err(FlameError::NoPath);
    }
    let mut stacks = Stacks::default();
    let weights = Weights { forest, path, options };
    stack_launches(&mut stacks, forest, options.stacking, |stacks, own, index| {
        if forest.launches[index].is_launch() {
            weights.add_launch(stacks, own, index);
        }
    });
    if let Some(path) = path.filter(|_| options.weight == Weight::Critical && options.phase.is_none()) {
        for (what, time) in &path.external_wait {
            let label = Label::ExternalWait(*what, what.process().map(&names));
            let external_wait = stacks.box_above(None, label);
            stacks.add(external_wait, time.0);
        }
    }
    finish(stacks, options).ok_or(FlameError::NoWeight(options.phase))
}

/// Stacks the samples of processes on top of their phases, including processes that existed before
/// the recording.
pub fn sampled<'a>(forest: &Forest<'a>, samples: &[Sample], options: FlameOptions) -> Result<Flame<'a>, FlameError> {
    if samples.is_empty() {
        return Err(FlameError::NoSamples);
    }
    let mut stacks = Stacks::default();
    let boxes = stack_launches(&mut stacks, forest, options.stacking, |_, _, _| {});
    let is_waiting = options.weight == Weight::OffCpu;
    for sample in samples.iter().filter(|sample| sample.is_waiting == is_waiting) {
        if options.phase.is_some_and(|phase| sample.phase != Some(phase)) {
            continue;
        }
        let mut at = boxes[sample.launch];
        if options.stacking != Stacking::Caller {
            at = Some(stacks.box_above(at, sample.phase.map_or(Label::UnknownPhase, Label::Phase)));
        }
        for label in labels(forest.frames(Some(sample.stack))) {
            at = Some(stacks.box_above(at, without_line(label)));
        }
        if let Some(at) = at {
            stacks.add(at, sample.span.0);
        }
    }
    finish(stacks, options).ok_or(FlameError::NoMatchingSample { is_waiting, phase: options.phase })
}

/// Creates a box for each process, parents first, and calls `visit` with it. Returns the box of
/// each launch.
fn stack_launches<'a>(
    stacks: &mut Stacks<'a>,
    forest: &Forest<'a>,
    stacking: Stacking,
    mut visit: impl FnMut(&mut Stacks<'a>, u32, usize),
) -> Vec<Option<u32>> {
    let mut boxes: Vec<Option<u32>> = vec![None; forest.launches.len()];
    for step in forest.walk_all() {
        let index = step.index;
        let mut at = forest.parent(index).and_then(|parent| boxes[parent]);
        match stacking {
            Stacking::Tree => {}
            Stacking::Command => at = None,
            Stacking::Caller => {
                for label in requesting_frames(forest, index) {
                    at = Some(stacks.box_above(at, label));
                }
            }
        }
        let own = stacks.box_above(at, Label::Program(*forest.launches[index].command));
        boxes[index] = Some(own);
        visit(stacks, own, index);
    }
    boxes
}

/// Returns the flame graph. `None` when there is nothing to draw.
fn finish(stacks: Stacks<'_>, options: FlameOptions) -> Option<Flame<'_>> {
    let nodes = stacks.nodes;
    let total = nodes.iter().map(|node| node.own).sum();
    (total > 0).then_some(Flame { options, nodes, total })
}

/// Returns the frames that requested a launch, from the outermost inwards. A parent that is a fork
/// without an exec has a call chain of its own, which begins like that of the launch. The common
/// frames are left out, because their boxes already exist below.
fn requesting_frames<'a>(forest: &Forest<'a>, index: usize) -> impl Iterator<Item = Label<'a>> + use<'a> {
    let own = call_chain(forest, index);
    let birth = forest.launches[index].birth();
    let forked_parent =
        forest.parent(index).filter(|parent| birth.is_some_and(|birth| forest.command_at(*parent, birth).forked));
    let before = forked_parent.map(|parent| call_chain(forest, parent)).unwrap_or_default();
    let shared = own.iter().zip(&before).take_while(|(own, before)| own == before).count();
    own.into_iter().skip(shared)
}

/// Returns the whole call chain of a launch from the outermost frame inwards. It is the chain of
/// the script if known, otherwise that of the machine code.
fn call_chain<'a>(forest: &Forest<'a>, index: usize) -> Vec<Label<'a>> {
    let inline_script = forest.launcher(index).and_then(command_of);
    let mut labels = labels(forest.frames(forest.launches[index].best_stack()));
    for label in &mut labels {
        if let (Label::Frame(frame), Some(script)) = (&*label, inline_script)
            && frame.language.is_script()
            && frame.file.is_none()
        {
            *label = Label::InlineScript(script, frame.line);
        }
    }
    labels
}

fn labels(mut frames: Frames<'_>) -> Vec<Label<'_>> {
    let mut labels: Vec<Label<'_>> = frames.by_ref().map(|frame| Label::Frame(merge_calls(frame))).collect();
    if frames.is_truncated() {
        labels.push(Label::Truncated);
    }
    labels.reverse();
    labels
}

/// Removes the line from a label with a function, because the samples of one function have
/// different lines.
fn without_line(label: Label<'_>) -> Label<'_> {
    match label {
        Label::Frame(frame) if frame.function.is_some() => Label::Frame(Frame { line: None, ..frame }),
        label => label,
    }
}

/// Removes what distinguishes several calls in one function: the address of the call, and whether
/// the function was inlined.
fn merge_calls(frame: Frame<'_>) -> Frame<'_> {
    let is_named_code = !frame.language.is_script() && frame.function.is_some();
    Frame { address: frame.address.filter(|_| !is_named_code), is_inlined: false, ..frame }
}

/// Maximum number of levels. Chains of launches may be 100,000 deep, which cannot be drawn.
pub const MAX_LEVELS: u32 = 400;

/// A box.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    pub below: Option<u32>,
    pub label: Label<'a>,
    /// The weight of the box itself, without the boxes on top of it.
    pub own: u64,
    level: u32,
}

#[derive(Debug, Default)]
struct Stacks<'a> {
    nodes: Vec<Node<'a>>,
    /// The index of each box, by the box below and the label.
    indexes: HashMap<(Option<u32>, Label<'a>), u32>,
}

impl<'a> Stacks<'a> {
    /// Returns the box with this label on top of another box, or at the bottom. Creates it if
    /// necessary.
    fn box_above(&mut self, below: Option<u32>, label: Label<'a>) -> u32 {
        let level = below.map_or(0, |below| self.nodes[below as usize].level + 1);
        match below.filter(|_| level > MAX_LEVELS) {
            Some(highest) => highest,
            None if level == MAX_LEVELS => self.find_or_create(below, Label::AboveMaxLevel, level),
            None => self.find_or_create(below, label, level),
        }
    }

    fn find_or_create(&mut self, below: Option<u32>, label: Label<'a>, level: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let index = *self.indexes.entry((below, label)).or_insert(next);
        if index == next {
            self.nodes.push(Node { below, label, own: 0, level });
        }
        index
    }

    fn add(&mut self, node: u32, weight: u64) {
        self.nodes[node as usize].own += weight;
    }
}
