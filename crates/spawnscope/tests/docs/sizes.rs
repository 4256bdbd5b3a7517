//! Limits the size of documents, because many short additions make a long one. An addition to a
//! full document must replace something.

use std::fs;

use super::pages::{pages, root};

const README_LINES: usize = 90;
/// All pages in `docs` together.
const BOOK_WORDS: usize = 45_000;
/// Each page in `docs/design`.
const DESIGN_PAGE_WORDS: usize = 800;
/// Each version in CHANGELOG.md.
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
    let design_pages: Vec<_> = pages.iter().filter(|page| page.path.starts_with("docs/design")).collect();
    assert!(!design_pages.is_empty());
    for page in design_pages {
        let words = words(&page.text);
        assert!(words <= DESIGN_PAGE_WORDS, "{}: {words} words", page.path.display());
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
