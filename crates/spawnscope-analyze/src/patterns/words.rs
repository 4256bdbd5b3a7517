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

/// Whether a text may consist of these parts, in this order. `None` stands for any text.
pub(crate) fn fits<'p>(parts: impl IntoIterator<Item = Option<&'p [u8]>>, text: &[u8]) -> bool {
    let mut literals = vec![Vec::new()];
    for part in parts {
        match (part, literals.last_mut()) {
            (Some(part), Some(last)) => last.extend(part),
            _ => literals.push(Vec::new()),
        }
    }
    let [first, between @ .., last] = &literals[..] else { return text == literals[0] };
    let inside = text.strip_prefix(&first[..]).and_then(|rest| rest.strip_suffix(&last[..]));
    let Some(mut rest) = inside else { return false };
    between.iter().all(|part| {
        let found = (0..=rest.len()).find(|at| rest[*at..].starts_with(part));
        rest = found.map_or(rest, |at| &rest[at + part.len()..]);
        found.is_some()
    })
}

pub(crate) fn contains(text: &[u8], part: &[u8]) -> bool {
    part.is_empty() || text.windows(part.len()).any(|window| window == part)
}

/// Returns the length of a string up to its closing quote.
pub(crate) fn string_length(text: &[u8], quote: u8) -> Option<usize> {
    let mut at = 0;
    while *text.get(at)? != quote {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    Some(at)
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
