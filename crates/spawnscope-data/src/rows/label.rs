//! Labels of a recording: what it is about, as keys with values, such as a commit. Both sides of the file have the same limits, because labels
//! come from command lines, from environment variables, and from files that anyone may have written.

use std::fmt;

use crate::table;

table! {
    /// A key and its value.
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Label in label {
        since 10 {
            /// Unique in its recording.
            key: String,
            /// Any text.
            value: String,
        }
    }
}

/// Why a label is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadLabel {
    /// The key is empty or has other characters than a key may have.
    Key,
    /// The key is too long.
    LongKey,
    /// The value is too long.
    LongValue,
}

impl Label {
    /// Maximum number of labels of a recording.
    pub const MAX_COUNT: usize = 64;
    /// Maximum bytes of a key.
    pub const MAX_KEY: usize = 64;
    /// Maximum bytes of a value: a line, not a document. Reports print it, and fleets of recordings repeat it.
    pub const MAX_VALUE: usize = 1024;

    /// Checks a key and its value. Keys become columns and parts of file names elsewhere, so they consist of ASCII letters, digits, `_`, `-`
    /// and `.`, and begin with a letter.
    ///
    /// # Errors
    /// When one of them breaks a limit.
    pub fn new(key: &str, value: &str) -> Result<Label, BadLabel> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if !key.starts_with(|first: char| first.is_ascii_alphabetic()) || !key.bytes().all(is_part) {
            return Err(BadLabel::Key);
        }
        if key.len() > Label::MAX_KEY {
            return Err(BadLabel::LongKey);
        }
        if value.len() > Label::MAX_VALUE {
            return Err(BadLabel::LongValue);
        }
        Ok(Label {
            key: key.to_owned(),
            value: value.to_owned(),
        })
    }
}

impl fmt::Display for BadLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadLabel::Key => f.write_str("a key begins with a letter and has only letters, digits, `_`, `-` and `.`"),
            BadLabel::LongKey => write!(f, "the key is longer than {} bytes", Label::MAX_KEY),
            BadLabel::LongValue => write!(f, "the value is longer than {} bytes", Label::MAX_VALUE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_have_limits() {
        let label = |key: &str, value: &str| Label::new(key, value).map(|label| (label.key, label.value));
        assert_eq!(label("commit", "f1b0168"), Ok(("commit".into(), "f1b0168".into())));
        assert!(label("a.b-c_9", "").is_ok() && label("x", "a = b\u{e4}").is_ok());
        for key in ["", "9x", "_x", "a b", "a=b", "a/b", "\u{e4}", "a\n"] {
            assert_eq!(label(key, "x"), Err(BadLabel::Key), "{key:?}");
        }
        assert_eq!(label(&"k".repeat(65), "x"), Err(BadLabel::LongKey));
        assert!(label(&"k".repeat(64), &"v".repeat(1024)).is_ok());
        assert_eq!(label("x", &"v".repeat(1025)), Err(BadLabel::LongValue));
    }
}
