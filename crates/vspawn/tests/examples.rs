//! Checks that every public item has an example, or refers to the example of another item (``See
//! [`X`]``). `cargo test --doc` runs the examples.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

/// Items of these kinds need an example. A field is shown by the example of its struct.
const KINDS: [&str; 8] = ["fn ", "unsafe fn ", "async fn ", "const fn ", "struct ", "enum ", "trait ", "type "];

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the lines of public items without an example in their documentation, and the number of
/// public items.
fn without_example(text: &str) -> (Vec<&str>, usize) {
    let (mut without, mut items, mut has_example) = (Vec::new(), 0, false);
    for line in text.lines().map(str::trim_start) {
        match line.strip_prefix("pub ") {
            Some(item) if KINDS.iter().any(|kind| item.starts_with(kind)) => {
                items += 1;
                if !has_example {
                    without.push(line);
                }
                has_example = false;
            }
            _ if line.starts_with("///") => has_example |= line.contains("```") || line.contains("See [`"),
            _ if line.starts_with('#') => {}
            _ => has_example = false,
        }
    }
    (without, items)
}

#[test]
fn every_public_item_has_an_example() {
    let mut paths = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut paths);
    let mut items = 0;
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let (without, count) = without_example(&text);
        assert!(without.is_empty(), "{}: no example for {without:?}", path.display());
        items += count;
    }
    assert!(items > 100, "{items} public items");
}

#[test]
fn an_item_without_an_example_is_found() {
    let text = "/// One.\n/// ```\n/// ```\n#[must_use]\npub fn one() {}\n\n/// Two.\npub struct Two;\n";
    assert_eq!(without_example(text), (vec!["pub struct Two;"], 2));
}
