//! Checks of printed texts.

/// Returns a text without line breaks and repeated spaces.
pub fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks that a text contains all of these parts.
#[track_caller]
pub fn assert_contains<const N: usize>(text: &str, parts: [&str; N]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}
