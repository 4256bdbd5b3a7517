//! The documents, and the code blocks in them. Understands the part of Markdown that they use:
//! fenced and indented blocks, but no blocks in lists.

use std::fs;
use std::path::{Path, PathBuf};

/// Documents outside of `docs/` and of the crates.
const ROOT_DOCUMENTS: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"];
const INDENT: &str = "    ";

/// A document.
pub struct Page {
    /// The path below the root of the repository.
    pub path: PathBuf,
    pub text: String,
}

/// A code block.
#[derive(Default)]
pub struct Block {
    /// The number of its first line in the document, from 1.
    pub line: usize,
    /// The HTML comment directly before it, without its delimiters.
    pub comment: Option<String>,
    pub lines: Vec<String>,
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns all documents except CHANGELOG.md, which also names files and options that no longer
/// exist.
pub fn pages() -> Vec<Page> {
    let root = root();
    let mut paths: Vec<PathBuf> = ROOT_DOCUMENTS.iter().map(|name| root.join(name)).collect();
    for krate in fs::read_dir(root.join("crates")).unwrap() {
        let readme = krate.unwrap().path().join("README.md");
        paths.extend(readme.exists().then_some(readme));
    }
    for directory in ["docs", "docs/guide", "docs/design", "docs/skill"] {
        let entries = fs::read_dir(root.join(directory)).unwrap();
        let entries = entries.map(|entry| entry.unwrap().path());
        paths.extend(entries.filter(|path| path.extension().is_some_and(|suffix| suffix == "md")));
    }
    paths.sort();
    paths
        .into_iter()
        .map(|path| Page {
            text: fs::read_to_string(&path).unwrap(),
            path: path.strip_prefix(&root).unwrap().to_owned(),
        })
        .collect()
}

impl Page {
    /// Returns a position in the document for messages, as `FILE:LINE`.
    pub fn position(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }

    pub fn blocks(&self) -> Vec<Block> {
        self.split().0
    }

    /// Returns the lines outside of code blocks, with their numbers.
    pub fn prose(&self) -> Vec<(usize, &str)> {
        self.split().1
    }

    fn split(&self) -> (Vec<Block>, Vec<(usize, &str)>) {
        let (mut blocks, mut prose): (Vec<Block>, Vec<(usize, &str)>) = Default::default();
        let mut lines = self.text.lines().zip(1..).peekable();
        while let Some((text, line)) = lines.next() {
            let follows_text = prose.last().is_some_and(|(_, before)| !before.trim().is_empty());
            let mut block = Block { line, comment: comment_above(&prose), lines: Vec::new() };
            if text.starts_with("```") {
                block.line += 1;
                let inside = lines.by_ref().map_while(|(text, _)| (!text.starts_with("```")).then_some(text));
                block.lines.extend(inside.map(str::to_owned));
                blocks.push(block);
            } else if text.starts_with(INDENT) && !follows_text {
                block.lines.push(text[INDENT.len()..].to_owned());
                while let Some((text, _)) = lines.next_if(|(text, _)| text.starts_with(INDENT) || text.is_empty()) {
                    block.lines.push(text.strip_prefix(INDENT).unwrap_or(text).to_owned());
                }
                while block.lines.last().is_some_and(String::is_empty) {
                    block.lines.pop();
                }
                blocks.push(block);
                // The empty line at the end of the block was consumed with it.
                prose.push((line, ""));
            } else {
                prose.push((line, text));
            }
        }
        (blocks, prose)
    }
}

/// Returns the HTML comment that is the last line so far, apart from empty lines.
fn comment_above(prose: &[(usize, &str)]) -> Option<String> {
    let (_, last) = prose.iter().rev().find(|(_, line)| !line.trim().is_empty())?;
    let inside = last.strip_prefix("<!--")?.strip_suffix("-->")?;
    Some(inside.trim().to_owned())
}
