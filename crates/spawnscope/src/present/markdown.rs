//! Escapes text for Markdown: text from a recording must not become markup, a link, or the end of a
//! cell.

use super::text;

/// Formats escaped text as code in a cell of a table, where a bar would end the cell even within
/// code.
pub(super) fn code_cell(escaped: &str) -> String {
    code(escaped).replace('|', "\\|")
}

/// Formats escaped text as code, in which no markup is interpreted. The fence is longer than any
/// run of backticks in the text.
pub(super) fn code(escaped: &str) -> String {
    let longest = escaped.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    // A space separates backticks at the ends from the fence. Markdown removes the space.
    let space = if escaped.starts_with('`') || escaped.ends_with('`') || escaped.is_empty() { " " } else { "" };
    format!("{fence}{space}{escaped}{space}{fence}")
}

/// Escapes a sentence that quotes text from a recording.
pub(super) fn sentence(sentence: &str) -> String {
    let mut escaped = String::with_capacity(sentence.len());
    for character in text::escape(sentence.as_bytes()).chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            // An entity is displayed as the character, but does not mention a user. A zero-width
            // word joiner would remain invisibly in copied text.
            '@' => escaped.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => {
                escaped.push('\\');
                escaped.push(character);
            }
            _ => escaped.push(character),
        }
    }
    // `https://` would become a link.
    escaped.replace("://", ":&#47;/").replace("www.", "www&#46;")
}

pub(super) fn row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_recording_is_not_markup() {
        assert_eq!(code("a`b|c"), "``a`b|c``");
        assert_eq!(code_cell("b|c"), "`b\\|c`");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(
            sentence("![x](http://e.com) <img> @all | `a`"),
            "\\!\\[x\\](http:&#47;/e.com) &lt;img> &#64;all \\| \\`a\\`"
        );
    }
}
