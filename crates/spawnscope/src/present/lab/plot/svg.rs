//! A plot under construction, as SVG.

use std::fmt::Write as _;

use super::theme::{FONT_SIZE, WIDTH, style};
use crate::present::lab::html::escape_html;

/// Which part of a text is at its position.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

pub(super) struct Svg {
    elements: String,
}

impl Svg {
    pub(super) fn new() -> Svg {
        Svg { elements: String::new() }
    }

    /// Adds text; `y` is its baseline.
    pub(super) fn text(&mut self, at: (f64, f64), anchor: Anchor, text: &str) {
        self.text_with("", at, anchor, text);
    }

    /// Adds the title of a picture.
    pub(super) fn title(&mut self, at: (f64, f64), text: &str) {
        self.text_with(" font-weight=\"bold\"", at, Anchor::Start, text);
    }

    fn text_with(&mut self, attribute: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        // Writing to a string cannot fail.
        let _ =
            writeln!(self.elements, "<text x=\"{x:.1}\" y=\"{y:.1}\"{anchor}{attribute}>{}</text>", escape_html(text));
    }

    /// Adds a path with these classes.
    pub(super) fn path(&mut self, classes: &str, path: &str) {
        let _ = writeln!(self.elements, "<path class=\"{classes}\" d=\"{path}\"/>");
    }

    /// Returns the SVG, with a description for screen readers.
    pub(super) fn finish(self, height: f64, description: &str) -> String {
        format!(
            "<svg class=\"lab\" role=\"img\" aria-label=\"{}\" width=\"{WIDTH}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {WIDTH} {height:.0}\" font-size=\"{FONT_SIZE}\" xmlns=\"http://www.w3.org/2000/svg\">\n<style>{}</style>\n\
             <path class=\"background\" d=\"M0 0H{WIDTH}V{height:.0}H0z\"/>\n{}</svg>\n",
            escape_html(description),
            style(),
            self.elements
        )
    }
}
