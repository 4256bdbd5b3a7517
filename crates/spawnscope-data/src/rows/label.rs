//! Labels of a recording: keys with values that say what the run is about, such as its commit.
//! Recorder and reader check the same limits, because labels come from command lines, from
//! environment variables, and from files that anyone may have written.

use std::fmt;

use crate::table;

table! {
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Label in label {
        since 10 {
            /// Unique in its recording.
            key: String,
            value: String,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadLabel {
    /// The key is empty, does not begin with a letter, or contains a character that is not allowed.
    Key,
    LongKey,
    LongValue,
}

impl Label {
    /// Maximum number of labels of a recording.
    pub const MAX_COUNT: usize = 64;
    pub const MAX_KEY_BYTES: usize = 64;
    /// Maximum length of a value, in bytes. Values are short because reports print them, and
    /// datasets repeat them in every row.
    pub const MAX_VALUE_BYTES: usize = 1024;

    /// Returns a label if its key and value are valid. Keys become columns and parts of file names
    /// elsewhere, so they consist of ASCII letters, digits, `_`, `-` and `.`, and begin with a
    /// letter.
    pub fn new(key: &str, value: &str) -> Result<Label, BadLabel> {
        let is_allowed = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
        if !key.starts_with(|first: char| first.is_ascii_alphabetic()) || !is_allowed {
            return Err(BadLabel::Key);
        }
        if key.len() > Label::MAX_KEY_BYTES {
            return Err(BadLabel::LongKey);
        }
        if value.len() > Label::MAX_VALUE_BYTES {
            return Err(BadLabel::LongValue);
        }
        Ok(Label { key: key.to_owned(), value: value.to_owned() })
    }
}

impl fmt::Display for BadLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadLabel::Key => f.write_str("a key begins with a letter and has only letters, digits, `_`, `-` and `.`"),
            BadLabel::LongKey => write!(f, "the key is longer than {} bytes", Label::MAX_KEY_BYTES),
            BadLabel::LongValue => write!(f, "the value is longer than {} bytes", Label::MAX_VALUE_BYTES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_checked() {
        let label = Label { key: "commit".into(), value: "f1b0168".into() };
        assert_eq!(Label::new("commit", "f1b0168"), Ok(label));
        assert!(Label::new("a.b-c_9", "").is_ok() && Label::new("x", "a = b\u{e4}").is_ok());
        for key in ["", "9x", "_x", "a b", "a=b", "a/b", "\u{e4}", "a\n"] {
            assert_eq!(Label::new(key, "x"), Err(BadLabel::Key), "{key:?}");
        }
        assert_eq!(Label::new(&"k".repeat(65), "x"), Err(BadLabel::LongKey));
        assert!(Label::new(&"k".repeat(64), &"v".repeat(1024)).is_ok());
        assert_eq!(Label::new("x", &"v".repeat(1025)), Err(BadLabel::LongValue));
    }
}
