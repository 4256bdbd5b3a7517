//! Lists of words, such as names of programs. One text per list is shorter than an array, and as
//! easy to extend.

/// Words that are separated by blanks.
#[derive(Clone, Copy, Debug)]
pub struct Words(pub &'static str);

impl Words {
    /// Whether the list has this word. Each launch is looked up in many lists, and most are in none
    /// of them, not even as a part of a word.
    pub fn contains(self, word: &[u8]) -> bool {
        str::from_utf8(word).is_ok_and(|word| self.0.contains(word)) && self.iter().any(|each| each.as_bytes() == word)
    }

    /// Iterates over the words.
    pub fn iter(self) -> impl Iterator<Item = &'static str> {
        self.0.split_ascii_whitespace()
    }
}
