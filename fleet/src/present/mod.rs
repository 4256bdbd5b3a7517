//! Renders pages as text and as HTML. Texts come from recordings of unknown origin: control characters are escaped.

mod html;
mod text;

pub use self::html::html;
pub use self::text::text;

/// Escapes control characters, including those that change the direction of text.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for each in text.chars() {
        if each.is_control() || ('\u{202a}'..='\u{202e}').contains(&each) || ('\u{2066}'..='\u{2069}').contains(&each) {
            shown.extend(each.escape_default());
        } else {
            shown.push(each);
        }
    }
    shown
}
