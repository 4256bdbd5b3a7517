//! Limits on the size of documents, since each addition is short and their sum is not: what is
//! added to a full document replaces something.

use std::fs;

use super::pages::{pages, root};

const README_LINES: usize = 90;
/// Of all pages in `docs`.
const BOOK_WORDS: usize = 45_000;
/// Of each record of decisions.
const RECORD_WORDS: usize = 800;
/// Of each version in CHANGELOG.md.
const VERSION_LINES: usize = 40;

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

#[test]
fn pages_are_short() {
    let pages = pages();
    let readme = pages.iter().find(|page| page.path.to_str() == Some("README.md")).unwrap();
    assert!(readme.text.lines().count() <= README_LINES, "README.md: {} lines", readme.text.lines().count());
    let book = pages.iter().filter(|page| page.path.starts_with("docs"));
    let all: usize = book.map(|page| words(&page.text)).sum();
    assert!((1..=BOOK_WORDS).contains(&all), "docs: {all} words");
    let records: Vec<_> = pages.iter().filter(|page| page.path.starts_with("docs/design")).collect();
    assert!(!records.is_empty());
    for record in records {
        let words = words(&record.text);
        assert!(words <= RECORD_WORDS, "{}: {words} words", record.path.display());
    }
}

#[test]
fn the_changes_of_a_version_are_few() {
    let changelog = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let versions: Vec<&str> = changelog.split("\n## ").skip(1).collect();
    assert!(versions.len() >= 2);
    for version in versions {
        let lines = version.trim_end().lines().count();
        assert!(lines <= VERSION_LINES, "{}: {lines} lines", version.lines().next().unwrap_or_default());
    }
}
