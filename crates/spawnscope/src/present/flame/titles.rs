//! Rewrites the texts that appear when the pointer is on a box. inferno writes widths in microseconds, as in its input. This replaces them with
//! times in the units of the rest of the output.

use super::svg::MICROSECONDS;
use crate::event::Nanos;
use crate::units;

const END: &str = "</title>";

/// Replaces microseconds in all titles with times in suitable units. Does not change a picture that does not look like inferno's.
pub(super) fn with_units(drawn: Vec<u8>) -> Vec<u8> {
    let text = match String::from_utf8(drawn) {
        Ok(text) => text,
        Err(error) => return error.into_bytes(),
    };
    let mut shown = String::with_capacity(text.len());
    for part in text.split_inclusive(END) {
        match part.strip_suffix(END).and_then(with_unit) {
            Some(title) => shown.extend([&title, END]),
            None => shown.push_str(part),
        }
    }
    shown.into_bytes()
}

/// Replaces the time in text that ends like `<title>load (12,345 us, 1.20%)`.
fn with_unit(text: &str) -> Option<String> {
    let (before, figures) = text.rsplit_once(" (")?;
    let (time, share) = figures.split_once(MICROSECONDS)?;
    let time: u64 = time.trim_end().replace(',', "").parse().ok()?;
    let time = units::time(Nanos(time.checked_mul(1000)?));
    Some(format!("{before} ({time}{share}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_numbers_at_the_end_of_a_title_change() {
        let drawn = "<title>a (1 us, 2%) (12,345 us, 1.20%)</title><text>b (7 us, 1%)</text><title>all (3 launches, 100%)</title>";
        let shown = "<title>a (1 us, 2%) (12.3 ms, 1.20%)</title><text>b (7 us, 1%)</text><title>all (3 launches, 100%)</title>";
        assert_eq!(with_units(drawn.into()), shown.as_bytes());
        let invalid = b"<title>\xff (1 us, 2%)</title>".to_vec();
        assert_eq!(with_units(invalid.clone()), invalid);
    }
}
