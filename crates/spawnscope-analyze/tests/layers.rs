//! Checks the order of the folders that `src/lib.rs` documents: a folder imports only folders
//! before it. The same applies inside `explain/advice`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders of the crate, from the lowest to the highest.
const MODULES: &str = "model waits patterns sites path predict explain compare live";

/// The modules of `advice`, from the lowest to the highest. `mod.rs` itself is above all of them.
const ADVICE: &str = "tables programs small_work context phrases shared_line languages edit selection finding owner rules edits sites advice_list merge";

/// The module path of a file of the crate (`advice/rules/mod.rs` is `advice::rules`), and the text
/// of the file.
type Source = (Vec<String>, String);

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = files_below(&root);
    let mut sources = Vec::new();
    for file in files {
        let path = file.strip_prefix(&root).unwrap().with_extension("");
        let mut module: Vec<String> = path.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        module.retain(|part| part != "mod" && part != "lib");
        sources.push((module, fs::read_to_string(&file).unwrap()));
    }
    sources
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let (directories, mut files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    files.extend(directories.iter().flat_map(|directory| files_below(directory)));
    files
}

/// Returns the paths in a text that begin with `crate::` or `super::`, relative to the root of the
/// crate. Skips unit tests, which may import anything.
fn referenced_paths(text: &str, module: &[String]) -> Vec<Vec<String>> {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let words = lines.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':'));
    words.filter_map(|word| absolute_path(word, module)).collect()
}

fn absolute_path(word: &str, module: &[String]) -> Option<Vec<String>> {
    let mut path = module.to_vec();
    let (first, mut rest) = word.split_once("::")?;
    match first {
        "crate" => path.clear(),
        "super" => drop(path.pop()?),
        _ => return None,
    }
    while let Some(above) = rest.strip_prefix("super::") {
        path.pop();
        rest = above;
    }
    // After `crate::`, `{a, b}` and `*` give an empty name, which is no module: the test rejects
    // imports that hide which modules they name.
    path.extend(rest.split("::").map(str::to_owned));
    Some(path)
}

/// Returns the module directly below `parent` on a path, or `None` if the path is not below
/// `parent`.
fn child<'p>(path: &'p [String], parent: &[&str]) -> Option<&'p str> {
    let is_below = path.iter().zip(parent).all(|(part, expected)| part == expected);
    path.get(parent.len()).filter(|_| is_below).map(String::as_str)
}

/// Returns the imports between modules below `parent` that do not point downwards, and the number
/// of those that do. An item of `parent` itself counts as above all layers.
fn upward_imports(sources: &[Source], parent: &[&str], layers: &str) -> (BTreeSet<String>, usize) {
    let layers: Vec<&str> = layers.split_whitespace().collect();
    let (mut upward, mut others) = (BTreeSet::new(), 0);
    for (module, text) in sources {
        let Some(own) = child(module, parent) else { continue };
        let below = layers.split_inclusive(|layer| *layer == own).next().unwrap_or_default();
        for path in referenced_paths(text, module) {
            match child(&path, parent) {
                Some(other) if !below.contains(&other) || below.last() != Some(&own) => {
                    upward.insert(format!("{} imports {other}", module.join("::")));
                }
                Some(_) => others += 1,
                None => {}
            }
        }
    }
    (upward, others)
}

#[test]
fn modules_import_lower_modules_only() {
    let (upward, others) = upward_imports(&sources(), &[], MODULES);
    assert_eq!(upward, BTreeSet::new());
    assert!(others > 200, "{others} imports are found");
}

#[test]
fn modules_of_the_advice_import_lower_modules_only() {
    let (upward, others) = upward_imports(&sources(), &["explain", "advice"], ADVICE);
    assert_eq!(upward, BTreeSet::new());
    assert!(others > 50, "{others} imports are found");
}

/// Returns the number of upward imports of one file among the layers `low middle high`.
fn upward_in(module: &[&str], text: &str) -> usize {
    let module = module.iter().map(|part| (*part).to_owned()).collect();
    let (upward, _) = upward_imports(&[(module, text.to_owned())], &[], "low middle high");
    upward.len()
}

#[test]
fn an_import_that_points_upwards_is_found() {
    let part = ["middle", "part"];
    assert_eq!(upward_in(&part, "use crate::low::{X, Y};\nuse super::Z;\npub(super) fn f() {}"), 0);
    assert_eq!(upward_in(&part, "use super::super::{Y, Z};"), 1);
    assert_eq!(upward_in(&part, "use super::super::high::X;"), 1);
    assert_eq!(upward_in(&["middle"], "fn f() { crate::high::g() }"), 1);
    assert_eq!(upward_in(&["middle"], "use crate::Reexported;"), 1);
    assert_eq!(upward_in(&["middle"], "use crate::{low, high};"), 1);
    assert_eq!(upward_in(&["undeclared"], "use crate::low::X;"), 1);
}
