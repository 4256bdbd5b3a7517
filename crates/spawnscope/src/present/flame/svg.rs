//! Flame graphs as interactive SVG: a click zooms, Ctrl-F searches. inferno draws them; this file
//! chooses colours and captions, adds a legend of the phases and colours for a dark background, and
//! replaces inferno's microseconds with times in the units of the rest of the output.

use std::fmt::Write;
use std::io;

use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use inferno::flamegraph::{Options, TextTruncateDirection, from_lines};

use super::{BoxKind, box_kind, box_text, folded_line, for_each_stack, without_noncharacters};
use crate::analyze::model::phases::Phase;
use crate::analyze::path::flame::{Flame, Label, Node, Stacking, Weight};
use crate::event::{Language, Nanos};
use crate::present::text;
use crate::units;

/// The background, which is part of the SVG. Texts are black, so the colours of boxes are light,
/// but distinct from the background.
const BACKGROUND: Color = rgb(0xf6f6f4);
/// The colours of the phases: those of the HTML page, light enough for black texts.
const PHASES: [Color; 8] = [
    rgb(0xe8884f), // create
    rgb(0xf0e442), // queue
    rgb(0xd795b8), // setup
    rgb(0x5b9fd6), // exec
    rgb(0x9fd6f2), // load
    rgb(0xc4c7cc), // run
    rgb(0xefb64a), // teardown
    rgb(0x5fc0a0), // reap
];
const RUN_QUEUE: Color = rgb(0xf6f0a6);
const UNKNOWN: Color = rgb(0xbcbcbc);
/// The unit of the widths that inferno reads.
const MICROSECONDS: &str = "us";
/// The colour of the bottom box. inferno identifies this box by an empty name.
const ROOT_BOX: Color = rgb(0xd8d8d2);
/// The tints of programs. Boxes with the same name have the same tint, and neighbours rarely share
/// one.
const PROGRAMS: [Color; 7] =
    [rgb(0xdcd6c6), rgb(0xe3ddcf), rgb(0xd3ccb9), rgb(0xd9d2c4), rgb(0xcfc8b4), rgb(0xe0d8c6), rgb(0xe8e2d4)];
const SCRIPTS: [Color; 7] =
    [rgb(0xcbd5c4), rgb(0xbfccb6), rgb(0xd6dfcf), rgb(0xc5d0c0), rgb(0xd0dac8), rgb(0xb8c7b0), rgb(0xdfe6d9)];
const MACHINE_CODE: [Color; 7] =
    [rgb(0xd3d4dd), rgb(0xc7c8d4), rgb(0xdcdde5), rgb(0xcbccd9), rgb(0xd7d8e2), rgb(0xc0c2cf), rgb(0xe2e3ea)];
const KERNEL: [Color; 7] =
    [rgb(0xd5cfdf), rgb(0xc9c2d6), rgb(0xdfdae8), rgb(0xcdc5da), rgb(0xd9d3e4), rgb(0xbfb7cd), rgb(0xe6e1ee)];

const fn rgb(value: u32) -> Color {
    Color { r: (value >> 16) as u8, g: (value >> 8) as u8, b: value as u8 }
}

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
    // Keeps our order instead of sorting alphabetically; equal neighbours are still merged. This
    // mode reads the lines backwards.
    options.flame_chart = true;
    let mut lines = Vec::new();
    for_each_stack(flame, &texts, |stack, width| {
        lines.push(folded_line(stack, width, &marked));
    });
    lines.reverse();
    let mut drawn = Vec::new();
    from_lines(&mut options, lines.iter().map(String::as_str), &mut drawn)?;
    Ok(match String::from_utf8(name_root_box(drawn)) {
        Ok(drawn) => add_legend(&with_units(&drawn), &flame.nodes).into_bytes(),
        Err(other) => other.into_bytes(),
    })
}

/// Writes the name `all` on the bottom box. inferno's script does this too, but viewers that do not
/// run scripts would show no name.
fn name_root_box(mut drawn: Vec<u8>) -> Vec<u8> {
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

/// Appends a mark for the kind of the box to its text, because a program may be called `load`
/// without being a phase. inferno does not draw the mark.
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
        Weight::Tax => "start-up",
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

const TITLE_END: &str = "</title>";

/// Replaces microseconds in all titles with times in suitable units. Does not change a picture that
/// does not look like inferno's.
fn with_units(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for part in text.split_inclusive(TITLE_END) {
        match part.strip_suffix(TITLE_END).and_then(with_unit) {
            Some(title) => shown.extend([&title, TITLE_END]),
            None => shown.push_str(part),
        }
    }
    shown
}

/// Replaces the time in text that ends like `<title>load (12,345 us, 1.20%)`.
fn with_unit(text: &str) -> Option<String> {
    let (before, figures) = text.rsplit_once(" (")?;
    let (time, share) = figures.split_once(MICROSECONDS)?;
    let time: u64 = time.trim_end().replace(',', "").parse().ok()?;
    let time = units::time(Nanos(time.checked_mul(1000)?));
    Some(format!("{before} ({time}{share}"))
}

/// Height of the legend's row, which is below inferno's last line, in pixels.
const LEGEND_HEIGHT: usize = 22;
/// Width of a character of inferno's font, rounded up, in pixels.
const CHARACTER_WIDTH: usize = 8;
/// Width of an entry's square and gaps, in pixels.
const SQUARE_WIDTH: usize = 36;
/// Styles that are added to inferno's. Captions are black by default, so they need another colour
/// on a dark background; boxes stay light. inferno's search button is hard to see.
const STYLE: &str = "#search { opacity:0.7; }
@media (prefers-color-scheme: dark) {
stop { stop-color:#1c2128; }
#title, #subtitle, #details, #unzoom, #search, #matched, #legend text { fill:#e6edf3; }
#frames > *:hover { stroke:white; }
}
</style>";

/// Adds the legend and the colours to a drawn flame graph. Does not change a picture that does not
/// look like inferno's.
fn add_legend(text: &str, nodes: &[Node<'_>]) -> String {
    let text = text.replacen("</style>", STYLE, 1);
    let entries = entries(nodes);
    match height(&text).filter(|_| !entries.is_empty()) {
        Some(height) => with_legend(&text, height, &entries),
        None => text,
    }
}

/// Returns the names and colours of the phases in the picture, in the order of a launch's life.
fn entries(nodes: &[Node<'_>]) -> Vec<(&'static str, Color)> {
    let phases = Phase::ALL
        .into_iter()
        .filter(|phase| nodes.iter().any(|node| matches!(node.label, Label::Phase(shown) if shown == *phase)));
    let mut entries: Vec<_> = phases.map(|phase| (phase.name(), PHASES[phase as usize])).collect();
    if nodes.iter().any(|node| matches!(node.label, Label::RunQueue)) {
        entries.push(("waiting for a CPU", RUN_QUEUE));
    }
    entries
}

/// Returns the height of the picture's `<svg>` element, in pixels.
fn height(text: &str) -> Option<usize> {
    let (_, after) = text.split_once(" height=\"")?;
    after.split_once('"')?.0.parse().ok()
}

fn with_legend(text: &str, height: usize, entries: &[(&str, Color)]) -> String {
    let taller = height + LEGEND_HEIGHT;
    let mut legend = String::from("<g id=\"legend\">");
    let mut x = 10;
    for (name, colour) in entries {
        let (y, rgb) = (height, format!("rgb({},{},{})", colour.r, colour.g, colour.b));
        // Writing to a string cannot fail.
        let _ = write!(legend, "<rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{rgb}\"/>");
        let _ = write!(legend, "<text x=\"{}\" y=\"{}\">{name}</text>", x + 17, y + 10);
        x += name.len() * CHARACTER_WIDTH + SQUARE_WIDTH;
    }
    legend.push_str("</g>");
    // The `<svg>` element contains the height twice (`height` and `viewBox`), the background
    // rectangle once.
    let text = text.replacen(&format!(" height=\"{height}\""), &format!(" height=\"{taller}\""), 2);
    let text = text.replacen(&format!(" {height}\" xmlns"), &format!(" {taller}\" xmlns"), 1);
    match text.find("<text id=\"title\"") {
        Some(at) => format!("{}{legend}{}", &text[..at], &text[at..]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_numbers_at_the_end_of_a_title_change() {
        let drawn = "<title>a (1 us, 2%) (12,345 us, 1.20%)</title><text>b (7 us, 1%)</text><title>all (3 launches, 100%)</title>";
        let shown = "<title>a (1 us, 2%) (12.3 ms, 1.20%)</title><text>b (7 us, 1%)</text><title>all (3 launches, 100%)</title>";
        assert_eq!(with_units(drawn), shown);
    }
}
