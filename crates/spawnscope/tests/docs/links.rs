//! Checks that the targets of relative links exist, and that the book has every page.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use super::pages::{Page, pages, root};

/// Returns the targets of a line's links: `[text](target)` and `![text](target)`, outside of code
/// spans.
fn targets(line: &str) -> Vec<String> {
    let outside: Vec<&str> = line.split('`').step_by(2).collect();
    let line = outside.join("``");
    let links = line.split("](").skip(1);
    links.filter_map(|rest| rest.split_once(')').map(|(target, _)| target.to_owned())).collect()
}

/// Returns the anchors of a page, as forges and mdBook derive them from headings.
fn anchors(page: &Page) -> HashSet<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    let headings = page.prose().into_iter().filter(|(_, line)| line.starts_with('#'));
    headings
        .map(|(_, line)| {
            let anchor = anchor(line);
            let count = counts.entry(anchor.clone()).or_default();
            *count += 1;
            if *count == 1 { anchor } else { format!("{anchor}-{}", *count - 1) }
        })
        .collect()
}

fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Joins paths and resolves `..`, without the file system.
fn joined(directory: &Path, target: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in directory.join(target).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{target} leaves the tree"),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

/// Returns what is wrong with a link of a page.
fn problem(page: &Page, target: &str, anchors: &HashMap<PathBuf, HashSet<String>>) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let path = match file {
        "" => page.path.clone(),
        file => joined(page.path.parent().unwrap(), file),
    };
    if !root().join(&path).exists() {
        return Some("no such file".to_owned());
    }
    let anchor = anchor?;
    match anchors.get(&path) {
        Some(headings) if headings.contains(anchor) => None,
        _ => Some("no such heading".to_owned()),
    }
}

#[test]
fn relative_links_lead_to_existing_files_and_headings() {
    let pages = pages();
    let anchors: HashMap<_, _> = pages.iter().map(|page| (page.path.clone(), anchors(page))).collect();
    let (mut checked, mut wrong) = (0, Vec::new());
    for page in &pages {
        for (number, line) in page.prose() {
            for target in targets(line) {
                checked += 1;
                if let Some(problem) = problem(page, &target, &anchors) {
                    wrong.push(format!("{}: {target}: {problem}", page.position(number)));
                }
            }
        }
    }
    assert!(checked > 150, "links are found: {checked}");
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn the_book_has_every_page_once() {
    let pages = pages();
    let summary = pages.iter().find(|page| page.path.ends_with("SUMMARY.md")).unwrap();
    let mut listed: Vec<PathBuf> = summary
        .prose()
        .iter()
        .flat_map(|(_, line)| targets(line))
        .map(|target| Path::new("docs").join(target))
        .collect();
    listed.sort();
    let mut chapters: Vec<PathBuf> = pages
        .iter()
        .filter(|page| page.path.starts_with("docs") && !page.path.ends_with("SUMMARY.md"))
        // For agents, with a head that is not Markdown.
        .filter(|page| !page.path.ends_with("SKILL.md"))
        .map(|page| page.path.clone())
        .collect();
    chapters.sort();
    assert_eq!(listed, chapters);
}

#[test]
fn wrong_links_and_anchors_are_rejected() {
    let text = "# One: `two`, three_4\n\n# Same\n\n# Same\n\n    # code\n";
    let here = Page { path: "docs/guide/lab.md".into(), text: text.to_owned() };
    let anchors = anchors(&here);
    assert_eq!(anchors, ["one-two-three_4", "same", "same-1"].map(str::to_owned).into(), "headings");
    let all = HashMap::from([(here.path.clone(), anchors)]);
    for right in ["#same-1", "lab.md#same", "../../README.md", "https://example.org/x", "../images"] {
        assert_eq!(problem(&here, right, &all), None, "{right}");
    }
    for wrong in ["#other", "lab.md#same-2", "README.md", "../../README.md#x"] {
        assert!(problem(&here, wrong, &all).is_some(), "{wrong}");
    }
    assert_eq!(targets("[a](b) `[c](d)` ![e](f#g), [`h`](i)"), ["b", "f#g", "i"]);
}
