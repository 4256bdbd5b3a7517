//! Lists of words, and searches in texts.

pub(crate) use spawnscope_data::words::Words;

pub(crate) fn contains(text: &[u8], part: &[u8]) -> bool {
    part.is_empty() || text.windows(part.len()).any(|window| window == part)
}
