//! Adds to inferno's SVG a legend of the phases that the picture shows, and colours for a dark background.

use std::fmt::Write;

use super::svg::{PHASES, RUN_QUEUE};
use crate::analyze::flame::{Label, Node};
use crate::analyze::phases::Phase;
use inferno::flamegraph::color::Color;

/// Height of the legend's row, which is below inferno's last line, in pixels.
const HEIGHT: usize = 22;
/// Width of a character of inferno's font, rounded up, in pixels.
const CHARACTER_WIDTH: usize = 8;
/// Width of an entry's square and gaps, in pixels.
const SQUARE_WIDTH: usize = 36;
/// Styles that are added to inferno's. Captions are black by default, so they need another colour on a dark background; boxes stay light.
/// inferno's search button is hard to see.
const STYLE: &str = "#search { opacity:0.7; }
@media (prefers-color-scheme: dark) {
stop { stop-color:#1c2128; }
#title, #subtitle, #details, #unzoom, #search, #matched, #legend text { fill:#e6edf3; }
#frames > *:hover { stroke:white; }
}
</style>";

/// Adds the legend and the colours to a drawn flame graph. Does not change a picture that does not look like inferno's.
pub(super) fn add(drawn: Vec<u8>, nodes: &[Node<'_>]) -> Vec<u8> {
    let text = match String::from_utf8(drawn) {
        Ok(text) => text,
        Err(error) => return error.into_bytes(),
    };
    let text = text.replacen("</style>", STYLE, 1);
    let entries = entries(nodes);
    match height(&text).filter(|_| !entries.is_empty()) {
        Some(height) => with_legend(&text, height, &entries),
        None => text,
    }
    .into_bytes()
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
    let taller = height + HEIGHT;
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
    // The `<svg>` element contains the height twice (`height` and `viewBox`), the background rectangle once.
    let text = text.replacen(&format!(" height=\"{height}\""), &format!(" height=\"{taller}\""), 2);
    let text = text.replacen(&format!(" {height}\" xmlns"), &format!(" {taller}\" xmlns"), 1);
    match text.find("<text id=\"title\"") {
        Some(at) => format!("{}{legend}{}", &text[..at], &text[at..]),
        None => text,
    }
}
