//! Decides which names are similar to a mistyped one. clap's own measure also accepts words that share only a few letters.

/// A name is similar if at most one in CHARACTERS_PER_MISTAKE of its characters is wrong.
const CHARACTERS_PER_MISTAKE: usize = 3;

/// Whether a user who typed `typed` may have meant `name`.
pub(super) fn is_similar(typed: &str, name: &str) -> bool {
    let longer = typed.chars().count().max(name.chars().count());
    strsim::osa_distance(typed, name) <= (longer / CHARACTERS_PER_MISTAKE).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_names_are_similar_and_other_words_are_not() {
        for (typed, name) in
            [("reprot", "report"), ("recrod", "record"), ("tpo", "top"), ("diffs", "diff"), ("expert", "export")]
        {
            assert!(is_similar(typed, name), "{typed} {name}");
        }
        for (typed, name) in [("nosuch", "bench"), ("make", "tree"), ("cargo", "record"), ("", "top")] {
            assert!(!is_similar(typed, name), "{typed} {name}");
        }
    }
}
