//! A flame graph as an interactive SVG: a click zooms, Ctrl-F searches. inferno draws it; this file chooses colours and captions.

use std::io;

use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use inferno::flamegraph::{Options, TextTruncateDirection, from_lines};

use super::{BoxKind, box_kind, box_text, folded_line, for_each_stack, legend, titles, without_noncharacters};
use crate::analyze::flame::{Flame, Label, Stacking, Weight};
use crate::event::{Language, Nanos};
use crate::present::text;
use crate::units;

/// The background, which is part of the SVG. Texts are black, so the colours of boxes are light, but distinct from the background.
const BACKGROUND: Color = rgb(0xf6f6f4);
/// The colours of the phases.
pub(super) const PHASES: [Color; 8] = [
    rgb(0xf0837a), // create
    rgb(0xf2c84b), // queue
    rgb(0xd490d6), // setup
    rgb(0x82a9ec), // exec
    rgb(0x5fc4c9), // load
    rgb(0x93c47d), // run
    rgb(0xd69a86), // teardown
    rgb(0xcbb46a), // reap
];
pub(super) const RUN_QUEUE: Color = rgb(0xf5dc92);
const UNKNOWN: Color = rgb(0xbcbcbc);
/// The unit of the widths that inferno reads.
pub(super) const MICROSECONDS: &str = "us";
/// The colour of the bottom box. inferno identifies this box by an empty name.
const ROOT_BOX: Color = rgb(0xd8d8d2);
/// The tints of programs. Boxes with the same name have the same tint, and neighbours rarely share one.
const PROGRAMS: [Color; 7] =
    [rgb(0xf3b27a), rgb(0xf5cb8c), rgb(0xee9f78), rgb(0xe8c39e), rgb(0xf7ad52), rgb(0xe9b9a0), rgb(0xf0d8a4)];
const SCRIPTS: [Color; 7] =
    [rgb(0xa8cf9b), rgb(0x8cc3a0), rgb(0xc4dd95), rgb(0x9fd3b8), rgb(0xb9d4a2), rgb(0x84bf8a), rgb(0xcfe3ab)];
const MACHINE_CODE: [Color; 7] =
    [rgb(0xa9bfd9), rgb(0x8fb0d8), rgb(0xc3d0e6), rgb(0x9cc4d6), rgb(0xb3b8e0), rgb(0x86a5cc), rgb(0xcbd8e0)];
const KERNEL: [Color; 7] =
    [rgb(0xc9b6e4), rgb(0xb7a0dc), rgb(0xd8c9ee), rgb(0xbfa9d2), rgb(0xcdbcf0), rgb(0xae9ace), rgb(0xdcd0ea)];

const fn rgb(value: u32) -> Color {
    Color { r: (value >> 16) as u8, g: (value >> 8) as u8, b: value as u8 }
}

/// Draws a flame graph.
///
/// # Errors
/// Errors of inferno, which do not depend on the recording.
pub fn svg(flame: &Flame<'_>, title: &str) -> io::Result<Vec<u8>> {
    let texts: Vec<String> = flame.nodes.iter().map(|node| box_text(&node.label)).collect();
    let marked: Vec<String> = flame.nodes.iter().zip(&texts).map(|(node, text)| mark_kind(&node.label, text)).collect();
    let mut colours = PaletteMap::default();
    colours.insert("", ROOT_BOX);
    for ((node, marked), text) in flame.nodes.iter().zip(&marked).zip(&texts) {
        colours.insert(marked, colour(&node.label, text));
    }
    let mut options = Options::default();
    options.title = without_noncharacters(&text::escape(title.as_bytes()));
    options.subtitle = Some(subtitle(flame));
    unit(flame.options.weight).clone_into(&mut options.count_name);
    options.name_type = "Box:".to_owned();
    options.bgcolors = Some(BackgroundColor::Flat(BACKGROUND));
    options.text_truncate_direction = TextTruncateDirection::Right;
    options.palette_map = Some(&mut colours);
    // Keeps our order instead of sorting alphabetically; equal neighbours are still merged. This mode reads the lines backwards.
    options.flame_chart = true;
    let mut lines = Vec::new();
    for_each_stack(flame, &texts, |stack, width| {
        lines.push(folded_line(stack, width, &marked));
    });
    lines.reverse();
    let mut drawn = Vec::new();
    from_lines(&mut options, lines.iter().map(String::as_str), &mut drawn)?;
    Ok(legend::add(titles::with_units(name_root_box(drawn)), &flame.nodes))
}

/// Writes the name `all` on the bottom box. inferno's script does this too, but viewers that do not run scripts would show no name.
pub(super) fn name_root_box(mut drawn: Vec<u8>) -> Vec<u8> {
    let title = find(&drawn, b"<title>all (", 0);
    let text = title.and_then(|title| find(&drawn, b"</text>", title));
    // If a program is called `all`, its box has a name already.
    if let Some(end) = text.filter(|end| drawn[..*end].ends_with(b">")) {
        drawn.splice(end..end, *b"all");
    }
    drawn
}

fn find(drawn: &[u8], text: &[u8], from: usize) -> Option<usize> {
    let found = drawn[from..].windows(text.len()).position(|window| window == text);
    found.map(|at| from + at)
}

/// Appends a mark for the kind of the box to its text, because a program may be called `load` without being a phase. inferno does not draw
/// the mark.
fn mark_kind(label: &Label<'_>, text: &str) -> String {
    let mark = match box_kind(label) {
        BoxKind::Phase => 'k',
        BoxKind::Program => 'w',
        BoxKind::Script => 'i',
        BoxKind::MachineCode => 'j',
    };
    format!("{text}_[{mark}]")
}

fn colour(label: &Label<'_>, text: &str) -> Color {
    let colours = match label {
        Label::Phase(phase) => return PHASES[*phase as usize],
        Label::RunQueue => return RUN_QUEUE,
        Label::UnknownPhase | Label::ExternalWait(..) | Label::Truncated | Label::AboveMaxLevel => return UNKNOWN,
        Label::Program(_) => PROGRAMS,
        Label::InlineScript(..) => SCRIPTS,
        Label::Frame(_) if box_kind(label) == BoxKind::Script => SCRIPTS,
        Label::Frame(frame) if frame.language == Language::Kernel => KERNEL,
        Label::Frame(_) => MACHINE_CODE,
    };
    colours[hash(text) % colours.len()]
}

/// Returns the FNV-1a hash of a text.
fn hash(text: &str) -> usize {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)) as usize
}

fn unit(weight: Weight) -> &'static str {
    match weight {
        Weight::Count => "launches",
        Weight::Wall | Weight::Tax | Weight::Critical | Weight::OnCpu | Weight::OffCpu => MICROSECONDS,
    }
}

fn subtitle(flame: &Flame<'_>) -> String {
    let wanted = &flame.options;
    let width = match wanted.weight {
        Weight::Wall => "wall time of processes, without their children",
        Weight::Tax => "launch tax",
        Weight::Count => "launches",
        Weight::Critical => "time on the critical path",
        Weight::OnCpu => "on-CPU time, from samples",
        Weight::OffCpu => "wait time, from samples",
    };
    let boxes = match wanted.stacking {
        Stacking::Tree => "boxes: processes and their children",
        Stacking::Caller => "boxes: functions that launch, and what they launched",
        Stacking::Command => "boxes: programs",
    };
    let phase = wanted.phase.map(|phase| format!(", {} only", phase.name())).unwrap_or_default();
    let total = match wanted.weight {
        Weight::Count => units::count(flame.total),
        _ => units::time(Nanos(flame.total)),
    };
    format!("width: {width}{phase}, {total} in total; {boxes}")
}
