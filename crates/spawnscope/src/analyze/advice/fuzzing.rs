//! What `fuzz/` calls of the advice.

/// Looks for what a shell can do itself instead of a program: the first word, with the others as arguments.
pub fn substitute(flags: u8, words: &[&str]) {
    super::rules::fuzz_builtin(flags, words);
}
