//! The look of plots: sizes in units of the SVG, colours and dashes. The elements of a plot have classes. Each SVG contains the style sheet that gives these
//! classes their colours for a light and for a dark theme, so a plot that is copied out of its page keeps its look.

use std::fmt::Write as _;

/// The width of a plot.
pub(super) const WIDTH: f64 = 860.0;
pub(super) const FONT_SIZE: f64 = 13.0;
/// The height of a line of text.
pub(super) const LINE_HEIGHT: f64 = FONT_SIZE * 1.6;

/// Estimates the width of a text, assuming a wide font.
pub(super) fn width_of(text: &str) -> f64 {
    const CHARACTER: f64 = 0.62;
    crate::present::text::width(text) as f64 * CHARACTER * FONT_SIZE
}

/// The colours of background, text and grid in the light theme.
const LIGHT: [&str; 3] = ["#ffffff", "#24292f", "#dde1e6"];
/// The colours of background, text and grid in the dark theme.
const DARK: [&str; 3] = ["#161a20", "#e3e7ec", "#3a414b"];
/// The colours of series in the light theme; the first ones are those of the report's page. A test
/// checks that readers with any colour vision deficiency can distinguish them.
const LIGHT_SERIES: [&str; 8] =
    ["#0072b2", "#d55e00", "#7a1f5c", "#3399ee", "#2200bb", "#555500", "#9000ff", "#995566"];
/// The colours of series in the dark theme.
const DARK_SERIES: [&str; 8] = ["#56b4e9", "#e69f00", "#c06090", "#aaeeff", "#8844ff", "#ffdd99", "#6688dd", "#ee0000"];
/// The marks of points, as paths relative to the point. Each colour has a different mark.
const MARKS: [&str; 8] = [
    "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
    "m-3.2-3.2h6.4v6.4h-6.4z",
    "m0-4.4l4.2 7.3h-8.4z",
    "m0-4.6l4.6 4.6l-4.6 4.6l-4.6-4.6z",
    "m0 4.4l-4.2-7.3h8.4z",
    "m-1.3-4.2h2.6v2.9h2.9v2.6h-2.9v2.9h-2.6v-2.9h-2.9v-2.6h2.9z",
    "m-1.6-4.6h3.2v9.2h-3.2z",
    "m-4.6-1.6h9.2v3.2h-9.2z",
];
const DASHES: [&str; 4] = ["none", "7 3", "2 3", "8 3 2 3"];

/// Returns the class of a colour by its index.
pub(super) fn colour(number: usize) -> String {
    format!("c{}", number % LIGHT_SERIES.len())
}

/// Returns the class of a dash pattern by its index. The first is a solid line.
pub(super) fn dash(number: usize) -> String {
    format!("d{}", number % DASHES.len())
}

/// Returns the mark of the points in this colour.
pub(super) fn mark(number: usize) -> &'static str {
    MARKS[number % MARKS.len()]
}

/// Returns the style sheet of a plot.
pub(super) fn style() -> String {
    let mut style = String::from(
        ".lab{font-family:system-ui,sans-serif}.lab .line,.lab .thin{fill:none;stroke:currentColor;stroke-width:2}.lab .thin{stroke-width:1}\
         .lab .mark{fill:currentColor}.lab .band{fill:currentColor;opacity:.25}.lab .grid{fill:none}.lab .p{stroke-dasharray:8 4}",
    );
    for (number, dash) in DASHES.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(style, ".lab .d{number}{{stroke-dasharray:{dash}}}");
    }
    style.push_str(&colours(LIGHT, &LIGHT_SERIES));
    let _ = write!(style, "@media (prefers-color-scheme:dark){{{}}}", colours(DARK, &DARK_SERIES));
    style
}

fn colours([background, ink, grid]: [&str; 3], series: &[&str]) -> String {
    let mut style = format!(
        ".lab .background{{fill:{background}}}.lab text{{fill:{ink}}}.lab .ink{{color:{ink}}}.lab .grid{{stroke:{grid}}}"
    );
    for (number, colour) in series.iter().enumerate() {
        let _ = write!(style, ".lab .c{number}{{color:{colour}}}");
    }
    style
}

#[cfg(test)]
mod tests {
    use super::*;

    type Triple = [f64; 3];

    fn product(matrix: [Triple; 3], [a, b, c]: Triple) -> Triple {
        matrix.map(|[x, y, z]| x * a + y * b + z * c)
    }

    /// Converts a colour such as `#1b6ca8` to linear light.
    fn light(colour: &str) -> Triple {
        [1, 3, 5].map(|at| {
            let share = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            match share <= 0.04045 {
                true => share / 12.92,
                false => ((share + 0.055) / 1.055).powf(2.4),
            }
        })
    }

    /// Returns the contrast ratio as WCAG defines it.
    fn contrast(one: &str, other: &str) -> f64 {
        let [one, other] = [one, other].map(|colour| {
            let [red, green, blue] = light(colour);
            0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05
        });
        one.max(other) / one.min(other)
    }

    /// Full colour vision, then vision without one kind of cones: Machado, Oliveira and Fernandes (2009), severity 1.
    const VISIONS: [[Triple; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152_286, 1.052_583, -0.204_868], [0.114_503, 0.786_281, 0.099_216], [-0.003_882, -0.048_116, 1.051_998]],
        [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_820, 0.042_940, 0.968_881]],
        [[1.255_528, -0.076_749, -0.178_779], [-0.078_411, 0.930_809, 0.147_602], [0.004_733, 0.691_367, 0.303_900]],
    ];

    /// Converts a colour, as it appears with this vision, to Oklab, in which distances correspond to perceived differences.
    fn oklab(colour: &str, vision: [Triple; 3]) -> Triple {
        let cones =
            [[0.412_221, 0.536_333, 0.051_446], [0.211_903, 0.680_700, 0.107_397], [0.088_302, 0.281_719, 0.629_979]];
        let lab = [
            [0.210_454, 0.793_618, -0.004_072],
            [1.977_998, -2.428_592, 0.450_594],
            [0.025_904, 0.782_772, -0.808_676],
        ];
        let light = product(vision, light(colour)).map(|share| share.clamp(0.0, 1.0));
        product(lab, product(cones, light).map(f64::cbrt))
    }

    #[test]
    fn colours_differ_for_every_kind_of_colour_vision_and_from_the_background() {
        const MIN_DISTANCE: f64 = 0.1;
        const MIN_CONTRAST: f64 = 3.0;
        for (background, series) in [(LIGHT[0], LIGHT_SERIES), (DARK[0], DARK_SERIES)] {
            for (number, one) in series.into_iter().enumerate() {
                assert!(contrast(one, background) >= MIN_CONTRAST, "{one} on {background}");
                for (vision, other) in
                    VISIONS.into_iter().flat_map(|vision| series[..number].iter().map(move |other| (vision, other)))
                {
                    let [a, b] = [one, other].map(|colour| oklab(colour, vision));
                    let distance = (0..3).map(|at| (a[at] - b[at]).powi(2)).sum::<f64>().sqrt();
                    assert!(distance >= MIN_DISTANCE, "{one} and {other}: {distance:.3} as in {vision:?}");
                }
            }
        }
    }

    #[test]
    fn every_class_has_a_light_and_a_dark_colour() {
        let style = style();
        let (light, dark) = style.split_once("@media").unwrap();
        for class in (0..8).map(colour).chain(["background", "ink", "grid"].map(str::to_owned)) {
            let rule = format!(".lab .{class}{{");
            assert!(light.contains(&rule) && dark.contains(&rule), "{class}");
        }
    }
}
