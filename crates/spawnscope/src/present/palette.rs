//! Colours and glyphs. The colours are from the 16 that every terminal maps to its own theme, so
//! both light and dark themes work. Each phase also has a glyph, so that the output is readable
//! without colour.

use anstyle::{AnsiColor, Style};

use crate::analyze::model::phases::Phase;

pub(super) const PLAIN: Style = Style::new();
pub(super) const TITLE: Style = Style::new().bold();
pub(super) const QUIET: Style = Style::new().dimmed();
pub(super) const WARNING: Style = AnsiColor::Red.on_default().bold();
pub(super) const FINDING: Style = AnsiColor::Magenta.on_default().bold();

/// Returns the colour and the glyph of a phase in bars and legends. Adjacent phases differ in both.
/// Only run is grey, as on the HTML page.
pub(super) fn phase_style(phase: Phase) -> (Style, char) {
    let (color, glyph) = match phase {
        Phase::Create => (AnsiColor::Red, '█'),
        Phase::Queue => (AnsiColor::Yellow, '░'),
        Phase::Setup => (AnsiColor::Magenta, '▓'),
        Phase::Exec => (AnsiColor::Blue, '▒'),
        Phase::Load => (AnsiColor::Cyan, '▚'),
        Phase::Run => (AnsiColor::BrightBlack, '·'),
        Phase::Teardown => (AnsiColor::BrightRed, '▄'),
        Phase::Reap => (AnsiColor::Green, '▀'),
    };
    (color.on_default(), glyph)
}
