//! Flame graphs, as folded stacks for other programs and as SVG. This file decides the text on each
//! box and the order of boxes.

#[cfg(feature = "flame")]
mod svg;

use std::cmp::Ordering;

use super::{critical, text};
use crate::analyze::explain::report::Spent;
use crate::analyze::model::frames::Frame;
use crate::analyze::model::launch::base_name;
use crate::analyze::model::phases::Phase;
use crate::analyze::path::flame::{Flame, Label, Stacking, Weight};
use crate::event::Language;

#[cfg(feature = "flame")]
pub use svg::svg;

/// What the width of a box can show: the value of `--weight`, which is also the name on the HTML
/// page, and what `--help` says about it.
pub const WEIGHTS: [(&str, &str, Weight); 4] = [
    ("wall", "Wall time of processes, without their children", Weight::Wall),
    ("tax", "Start-up: all phases but run", Weight::Tax),
    ("count", "Launches", Weight::Count),
    ("critical", "Time on the critical path", Weight::Critical),
];

/// How boxes can be stacked: the values of `--by`, as above.
pub const STACKINGS: [(&str, &str, Stacking); 3] = [
    ("tree", "By process, with its phases on top", Stacking::Tree),
    ("caller", "By the functions that launch", Stacking::Caller),
    ("command", "By program, regardless of parent, with its phases on top", Stacking::Command),
];

/// The text of a box without a known name.
const UNKNOWN: &str = "-";
/// Maximum width of the text of a box, in columns.
const MAX_COLUMNS: usize = 160;

/// Returns the text of a box. It is not empty and contains neither `;`, which separates boxes in
/// folded stacks, nor characters that XML does not allow.
fn box_text(label: &Label<'_>) -> String {
    let shown = match label {
        Label::Phase(phase) => phase.name().to_owned(),
        Label::RunQueue => "waiting for a CPU".to_owned(),
        Label::UnknownPhase => "(unknown phase)".to_owned(),
        Label::Program(command) => text::escape(&command.label()),
        Label::Frame(frame) => frame_text(frame),
        Label::InlineScript(script, line) => script_text(script, *line),
        Label::Truncated => "(callers unknown)".to_owned(),
        Label::AboveMaxLevel => "(more)".to_owned(),
        Label::ExternalWait(what, name) => {
            let words = critical::description(&Spent::ExternalWait(*what, name.map(<[u8]>::to_vec)));
            format!("({words})")
        }
    };
    make_safe(&shown)
}

/// Formats a frame: its function, and its file and line or its module and address.
pub(super) fn frame_text(frame: &Frame<'_>) -> String {
    let file = frame.file.map(|file| text::escape(base_name(file)));
    let at = match (file, frame.line) {
        (Some(file), Some(line)) => Some(format!("{file}:{line}")),
        (None, Some(line)) => Some(format!("line:{line}")),
        (file, None) => file,
    };
    let module = frame.module.map(|module| text::escape(base_name(module)));
    match (frame.function.map(text::escape), at, module, frame.address) {
        // Other programs that write folded stacks mark kernel functions in the same way.
        (Some(function), ..) if frame.language == Language::Kernel => format!("{function}_[k]"),
        (None, _, _, Some(address)) if frame.language == Language::Kernel => format!("{address:#x}_[k]"),
        (Some(function), Some(at), ..) => format!("{function} {at}"),
        (None, Some(at), ..) => at,
        (Some(function), None, ..) => function,
        (None, None, Some(module), Some(address)) => format!("{module}+{address:#x}"),
        (None, None, None, Some(address)) => format!("{address:#x}"),
        (None, None, module, None) => module.unwrap_or_else(|| UNKNOWN.to_owned()),
    }
}

/// Formats a line of a script given with -c: `-c 'mkdir -p a'`, or `-c:3 'mv a b'` if it is not the
/// first.
fn script_text(script: &[u8], line: Option<u32>) -> String {
    let number = line.unwrap_or(1);
    let text = script.split(|byte| *byte == b'\n').nth(number.saturating_sub(1) as usize);
    let text = text::escape(text.unwrap_or_default().trim_ascii());
    if number > 1 { format!("-c:{number} '{text}'") } else { format!("-c '{text}'") }
}

/// Makes escaped text safe for folded stacks and SVG.
fn make_safe(escaped: &str) -> String {
    let cut = text::truncate(escaped.trim(), MAX_COLUMNS);
    let mut shown = String::with_capacity(cut.len());
    for character in without_noncharacters(&cut).chars() {
        match character {
            // In folded stacks, `;` separates boxes.
            ';' => shown.push(':'),
            // Some programs treat a line that begins with `#` as a comment.
            '#' if shown.is_empty() => shown.push_str("\\#"),
            _ => shown.push(character),
        }
    }
    match shown.rsplit_once(' ') {
        // A number after a space would be parsed as a weight.
        Some((before, number)) if number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {
            format!("{before}_{number}")
        }
        _ if shown.is_empty() => UNKNOWN.to_owned(),
        _ => shown,
    }
}

/// Escapes the two characters that are valid Unicode but that XML does not allow.
fn without_noncharacters(text: &str) -> String {
    text.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff")
}

/// Calls `visit` for every box that is wider than the boxes on top of it, from left to right in the
/// order of `compare_boxes`. `visit` gets the whole stack as node positions from the bottom up, and
/// the width of the uncovered part in microseconds or launches. `texts` are the texts of the nodes.
fn for_each_stack(flame: &Flame<'_>, texts: &[String], mut visit: impl FnMut(&[u32], u64)) {
    let (bottom, boxes_above) = order_boxes(flame, texts, |_| true);
    let mut stack: Vec<u32> = Vec::new();
    let mut pending: Vec<(usize, u32)> = bottom.iter().rev().map(|position| (0, *position)).collect();
    let mut rounding = Rounding::default();
    while let Some((level, position)) = pending.pop() {
        stack.truncate(level);
        stack.push(position);
        let own = flame.nodes[position as usize].own;
        let width = match flame.options.weight {
            Weight::Count => own,
            Weight::Wall | Weight::Tax | Weight::Critical | Weight::OnCpu | Weight::OffCpu => {
                rounding.microseconds(own)
            }
        };
        if width > 0 {
            visit(&stack, width);
        }
        pending.extend(boxes_above[position as usize].iter().rev().map(|upper| (level + 1, *upper)));
    }
}

/// Returns the bottom boxes, and the boxes directly above each box, all from left to right. Omits
/// boxes that are not `visible`.
fn order_boxes(flame: &Flame<'_>, texts: &[String], visible: impl Fn(u32) -> bool) -> (Vec<u32>, Vec<Vec<u32>>) {
    let mut boxes_above: Vec<Vec<u32>> = vec![Vec::new(); flame.nodes.len()];
    let mut bottom = Vec::new();
    for (position, node) in (0u32..).zip(&flame.nodes).filter(|(position, _)| visible(*position)) {
        match node.below {
            Some(below) => boxes_above[below as usize].push(position),
            None => bottom.push(position),
        }
    }
    for boxes in boxes_above.iter_mut().chain([&mut bottom]) {
        boxes.sort_by(|a, b| compare_boxes(flame, texts, *a, *b));
    }
    (bottom, boxes_above)
}

pub fn folded(flame: &Flame<'_>) -> String {
    let texts: Vec<String> = flame.nodes.iter().map(|node| box_text(&node.label)).collect();
    let mut folded = String::new();
    for_each_stack(flame, &texts, |stack, width| {
        folded.push_str(&folded_line(stack, width, &texts));
        folded.push('\n');
    });
    folded
}

fn folded_line(stack: &[u32], width: u64, texts: &[String]) -> String {
    let names: Vec<&str> = stack.iter().map(|position| texts[*position as usize].as_str()).collect();
    format!("{} {width}", names.join(";"))
}

/// Compares two boxes: phases come first, in their order in a launch, then the other boxes by kind
/// and name, so that equal names are adjacent.
fn compare_boxes(flame: &Flame<'_>, texts: &[String], a: u32, b: u32) -> Ordering {
    let [a, b] = [a, b].map(|position| position as usize);
    match (&flame.nodes[a].label, &flame.nodes[b].label) {
        (Label::Phase(a), Label::Phase(b)) => a.cmp(b),
        (Label::Phase(_), _) => Ordering::Less,
        (_, Label::Phase(_)) => Ordering::Greater,
        (one, other) => box_kind(one).cmp(&box_kind(other)).then_with(|| texts[a].cmp(&texts[b])),
    }
}

/// The kind of a box. Each kind has its own colours. The script of the HTML page has the kinds in
/// the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BoxKind {
    Phase,
    Program,
    Script,
    MachineCode,
}

fn box_kind(label: &Label<'_>) -> BoxKind {
    match label {
        Label::Phase(_) | Label::RunQueue | Label::UnknownPhase | Label::ExternalWait(..) => BoxKind::Phase,
        Label::Program(_) => BoxKind::Program,
        Label::Frame(frame) if frame.language.is_script() => BoxKind::Script,
        Label::InlineScript(..) => BoxKind::Script,
        Label::Frame(_) | Label::Truncated | Label::AboveMaxLevel => BoxKind::MachineCode,
    }
}

/// Rounds to microseconds without accumulating errors: the remainder of each number is added to the
/// next one.
#[derive(Default)]
struct Rounding {
    sum_ns: u64,
    /// The sum of the rounded numbers, in microseconds.
    rounded_us: u64,
}

impl Rounding {
    fn microseconds(&mut self, nanos: u64) -> u64 {
        self.sum_ns += nanos;
        let microseconds = (self.sum_ns + 500) / 1000 - self.rounded_us;
        self.rounded_us += microseconds;
        microseconds
    }
}

pub(in crate::present) struct DrawnBox {
    /// The index of the box below this one, which comes earlier in the list.
    pub(in crate::present) below: Option<usize>,
    pub(in crate::present) text: String,
    pub(in crate::present) kind: BoxKind,
    pub(in crate::present) phase: Option<Phase>,
    /// The weight of the box with everything on top of it.
    pub(in crate::present) weight: u64,
}

/// Returns the boxes whose weight is at least `min_weight`, from left to right, each after the one
/// below it.
pub(in crate::present) fn boxes(flame: &Flame<'_>, min_weight: u64) -> Vec<DrawnBox> {
    let mut weights: Vec<u64> = flame.nodes.iter().map(|node| node.own).collect();
    for (position, node) in flame.nodes.iter().enumerate().rev() {
        if let Some(below) = node.below {
            weights[below as usize] += weights[position];
        }
    }
    let min_weight = min_weight.max(1);
    let texts = weights
        .iter()
        .zip(&flame.nodes)
        .map(|(weight, node)| if *weight >= min_weight { box_text(&node.label) } else { String::new() });
    let texts: Vec<String> = texts.collect();
    let (bottom, boxes_above) = order_boxes(flame, &texts, |position| weights[position as usize] >= min_weight);
    let mut drawn = Vec::new();
    let mut pending: Vec<(Option<usize>, u32)> = bottom.iter().rev().map(|position| (None, *position)).collect();
    while let Some((below, position)) = pending.pop() {
        let label = &flame.nodes[position as usize].label;
        let index = drawn.len();
        drawn.push(DrawnBox {
            below,
            text: texts[position as usize].clone(),
            kind: box_kind(label),
            phase: match label {
                Label::Phase(phase) => Some(*phase),
                _ => None,
            },
            weight: weights[position as usize],
        });
        pending.extend(boxes_above[position as usize].iter().rev().map(|upper| (Some(index), *upper)));
    }
    drawn
}
