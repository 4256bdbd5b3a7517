//! The look of plots: light and dark colours, text sizes. Elements are drawn in the light colours. A style sheet in each SVG replaces them
//! with the dark ones if the viewer prefers a dark theme.

use std::fmt::Write as _;

use plotters::prelude::*;

pub(super) const WIDTH: u32 = 960;
/// Plotters draws text at 1/1.24 of the requested size: 13 pixels.
pub(super) const TEXT: i32 = 16;
/// Approximate maximum width of a character.
pub(super) const CHARACTER: usize = 7;
pub(super) const GROUND: RGBColor = RGBColor(0xff, 0xff, 0xff);
pub(super) const INK: RGBColor = RGBColor(0x24, 0x29, 0x2f);
pub(super) const GRID: RGBColor = RGBColor(0xdd, 0xe1, 0xe6);
const DARK_GROUND: RGBColor = RGBColor(0x16, 0x1a, 0x20);
const DARK_INK: RGBColor = RGBColor(0xe3, 0xe7, 0xec);
const DARK_GRID: RGBColor = RGBColor(0x3a, 0x41, 0x4b);
/// Colours of series, for light and dark themes. Most readers with colour vision deficiency can distinguish them.
const SERIES: [(RGBColor, RGBColor); 10] = [
    (RGBColor(0x1b, 0x6c, 0xa8), RGBColor(0x6c, 0xb6, 0xf0)),
    (RGBColor(0xc9, 0x3c, 0x50), RGBColor(0xff, 0x8a, 0x98)),
    (RGBColor(0x2a, 0x7f, 0x52), RGBColor(0x67, 0xd1, 0x9a)),
    (RGBColor(0xc7, 0x74, 0x0a), RGBColor(0xff, 0xb8, 0x5c)),
    (RGBColor(0x6a, 0x4c, 0x93), RGBColor(0xbb, 0x9c, 0xf2)),
    (RGBColor(0x00, 0x85, 0x8a), RGBColor(0x4f, 0xd6, 0xda)),
    (RGBColor(0x8d, 0x5a, 0x34), RGBColor(0xd9, 0xa8, 0x80)),
    (RGBColor(0xb8, 0x18, 0x86), RGBColor(0xf7, 0x82, 0xd0)),
    (RGBColor(0x5b, 0x61, 0x6b), RGBColor(0xb4, 0xbc, 0xc8)),
    (RGBColor(0x7c, 0x89, 0x12), RGBColor(0xcf, 0xdc, 0x5e)),
];

/// Returns the colour of a series by its index.
pub(super) fn colour(number: usize) -> RGBColor {
    SERIES[number % SERIES.len()].0
}

/// Whether the colour of this index was used before.
pub(super) fn comes_again(number: usize) -> bool {
    number >= SERIES.len()
}

/// Adds a title for screen readers and the dark colours.
pub(super) fn dressed(drawn: &str, title: &str) -> String {
    let Some((head, body)) = drawn.split_once('>') else {
        return String::new();
    };
    let head = head.replacen("<svg", "<svg class=\"lab\" role=\"img\"", 1);
    format!("{head}>\n<title>{title}</title>\n<style>{}</style>{body}", dark_style())
}

fn dark_style() -> String {
    let pairs = [(GROUND, DARK_GROUND), (INK, DARK_INK), (GRID, DARK_GRID)];
    let mut style = String::from("@media (prefers-color-scheme:dark){");
    for (light, dark) in pairs.into_iter().chain(SERIES) {
        let (light, dark) = (hexadecimal(light), hexadecimal(dark));
        for attribute in ["fill", "stroke"] {
            // Writing to a string cannot fail.
            let _ = write!(style, ".lab [{attribute}=\"{light}\"]{{{attribute}:{dark}}}");
        }
    }
    style.push('}');
    style
}

/// Formats a colour as plotters writes it.
fn hexadecimal(colour: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_is_what_the_dark_style_replaces() {
        let mut drawn = String::new();
        {
            let area = SVGBackend::with_string(&mut drawn, (10, 10)).into_drawing_area();
            area.fill(&GROUND).unwrap();
            area.draw(&PathElement::new([(0, 0), (5, 5)], colour(3))).unwrap();
            area.present().unwrap();
        }
        let context = format!("fill=\"{}\"", hexadecimal(GROUND));
        let line = format!("stroke=\"{}\"", hexadecimal(colour(3)));
        assert!(drawn.contains(&context) && drawn.contains(&line), "{drawn}");
        let dressed = dressed(&drawn, "A title");
        assert!(dressed.contains(&format!("[{context}]")) && dressed.contains(&format!("[{line}]")));
        assert!(dressed.contains("<title>A title</title>"));
    }
}
