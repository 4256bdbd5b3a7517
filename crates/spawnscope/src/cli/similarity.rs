//! Which names are similar to one that was mistyped. clap's own measure also accepts words that share only some letters.

/// A name is similar if at most one in this many of its characters is wrong.
const CHARACTERS_PER_MISTAKE: usize = 3;

/// Whether somebody who typed `typed` may have meant `name`.
pub(super) fn is_similar(typed: &str, name: &str) -> bool {
    let (typed, name): (Vec<char>, Vec<char>) = (typed.chars().collect(), name.chars().collect());
    let longer = typed.len().max(name.len());
    distance(&typed, &name) <= (longer / CHARACTERS_PER_MISTAKE).max(1)
}

/// Returns the number of characters to insert, delete, replace, or swap with the next one (the optimal string alignment distance).
fn distance(one: &[char], other: &[char]) -> usize {
    let mut before_last = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, character) in one.iter().enumerate() {
        let mut next = vec![row + 1];
        for (column, wanted) in other.iter().enumerate() {
            let replaced = last[column] + usize::from(character != wanted);
            let mut least = replaced.min(last[column + 1] + 1).min(next[column] + 1);
            let is_swapped = row > 0 && column > 0 && *character == other[column - 1] && one[row - 1] == *wanted;
            if is_swapped {
                least = least.min(before_last[column - 1] + 1);
            }
            next.push(least);
        }
        before_last = std::mem::replace(&mut last, next);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_names_are_similar_and_other_words_are_not() {
        for (typed, name) in [
            ("reprot", "report"),
            ("recrod", "record"),
            ("tpo", "top"),
            ("diffs", "diff"),
            ("expert", "export"),
        ] {
            assert!(is_similar(typed, name), "{typed} {name}");
        }
        for (typed, name) in [("nosuch", "bench"), ("make", "tree"), ("cargo", "record"), ("", "top")] {
            assert!(!is_similar(typed, name), "{typed} {name}");
        }
    }
}
