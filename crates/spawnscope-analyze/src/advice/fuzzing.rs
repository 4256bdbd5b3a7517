//! Entry points of the advice for `fuzz/`.

/// Looks up the shell substitute for each known program, called with `words` as its arguments.
pub fn substitute(flags: u8, words: &[&str]) {
    crate::advice::rules::fuzz_builtin(flags, words);
}
