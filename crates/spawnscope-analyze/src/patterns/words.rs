//! Lists of words, tables, and searches in texts.

pub(crate) use spawnscope_data::words::Words;

/// Returns the rows of a table, whose columns are separated by tabs. Missing columns are empty.
/// Lines that begin with `#` or `@` are no rows.
pub(crate) fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    table.lines().filter(|row| !row.starts_with(['#', '@'])).map(|row| {
        let mut columns = row.split('\t');
        std::array::from_fn(|_| columns.next().unwrap_or_default())
    })
}

pub(crate) fn contains(text: &[u8], part: &[u8]) -> bool {
    part.is_empty() || text.windows(part.len()).any(|window| window == part)
}

/// Whether a path ends with all components of another path.
pub(crate) fn is_end_of(end: &[u8], path: &[u8]) -> bool {
    path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_ends_with_whole_components() {
        assert!(is_end_of(b"a.o", b"a.o") && is_end_of(b"a.o", b"x/a.o") && is_end_of(b"x/a.o", b"/b/x/a.o"));
        assert!(!is_end_of(b"a.o", b"aa.o") && !is_end_of(b"x/a.o", b"a.o") && !is_end_of(b"a.o", b"a.o/b"));
    }
}
