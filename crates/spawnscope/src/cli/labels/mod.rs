//! The labels of a recording: those from `--label`, those of a CI service, and those of the
//! machine. If a value cannot be found, there is no such label.

mod ci;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Result, bail};

use super::variable;
use crate::record::reader::Label;

/// Maximum number of `--label` options. The remaining labels up to `Label::MAX_COUNT` are for those
/// that are found automatically.
const MAX_LABEL_OPTIONS: usize = 32;

pub fn parse(text: &str) -> Result<Label, String> {
    let (key, value) =
        text.split_once('=').ok_or_else(|| "write it as NAME=VALUE, such as commit=4f2a91c".to_owned())?;
    Label::new(key, value).map_err(|why| why.to_string())
}

/// Checks the labels from the command line together. Call this before the command starts, so that
/// no run is wasted.
pub fn check(given: &[Label]) -> Result<()> {
    if given.len() > MAX_LABEL_OPTIONS {
        bail!("at most {MAX_LABEL_OPTIONS} labels can be given, not {}", given.len());
    }
    for (index, label) in given.iter().enumerate() {
        if given[..index].iter().any(|other| other.key == label.key) {
            bail!("--label {} is given twice: give each key once", label.key);
        }
    }
    Ok(())
}

/// Returns the labels of a recording that begins now: those that were given, and those that can be
/// found automatically. A given label replaces a found one with the same key.
pub fn collect(given: &[Label]) -> Vec<Label> {
    let root = Path::new("/");
    add_found(given, ci::labels(&variable).into_iter().chain(machine_labels(root, &variable)))
}

fn add_found(given: &[Label], found: impl Iterator<Item = (&'static str, String)>) -> Vec<Label> {
    let mut labels = given.to_vec();
    for (key, value) in found {
        // A value that is too long for a label is omitted, not truncated: a truncated value would
        // be a different one.
        let label = Label::new(key, value.trim()).ok();
        let is_known = labels.iter().any(|label| label.key == key);
        labels.extend(label.filter(|label| !is_known && !label.value.is_empty()));
    }
    labels
}

/// Returns labels for the processor's model and the container's image. The machine's name, kernel
/// and architecture need no labels: every recording contains them.
fn machine_labels(root: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Vec<(&'static str, String)> {
    let image = container_image(root).or_else(|| variable("CI_JOB_IMAGE"));
    let found = [("cpu", processor_model(root)), ("image", image)];
    found.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

/// Returns the first `model name` in /proc/cpuinfo. On Arm there is none, only the numbers of the
/// implementer and the part.
fn processor_model(root: &Path) -> Option<String> {
    let text = read_beginning(&root.join("proc/cpuinfo"))?;
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    let (_, model) = fields.find(|(name, _)| name.trim() == "model name")?;
    Some(model.trim().to_owned())
}

/// Returns the image named in the file that Podman writes for privileged containers. Docker does
/// not provide the name of the image.
fn container_image(root: &Path) -> Option<String> {
    let text = read_beginning(&root.join("run/.containerenv"))?;
    let value = text.lines().find_map(|line| line.strip_prefix("image="))?;
    Some(value.trim_matches('"').to_owned())
}

/// Reads the first 64 KiB of a regular file. In a container, the path may be anything.
fn read_beginning(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok().filter(|_| path.metadata().is_ok_and(|file| file.is_file()))?;
    file.take(64 << 10).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn label(key: &str, value: &str) -> Label {
        Label::new(key, value).unwrap()
    }

    #[test]
    fn a_value_may_contain_an_equals_sign() {
        assert_eq!(parse("flags=-O2 -g=3"), Ok(label("flags", "-O2 -g=3")));
        assert_eq!(parse("empty="), Ok(label("empty", "")));
        assert!(parse("commit").unwrap_err().contains("NAME=VALUE"));
        assert!(parse("my key=x").unwrap_err().contains("only letters"));
    }

    #[test]
    fn labels_are_checked_together() {
        assert!(check(&[label("a", "1"), label("b", "1")]).is_ok());
        let twice = check(&[label("a", "1"), label("b", "1"), label("a", "2")]);
        assert!(twice.unwrap_err().to_string().contains("--label a is given twice"));
        let many: Vec<Label> = (0..33).map(|number| label(&format!("k{number}"), "x")).collect();
        assert!(check(&many[..32]).is_ok());
        assert!(check(&many).unwrap_err().to_string().contains("at most 32"));
    }

    #[test]
    fn a_given_label_replaces_a_found_one() {
        let found = [
            ("commit", "found".to_owned()),
            ("cpu", " A ".to_owned()),
            ("run", String::new()),
            ("image", "x".repeat(5_000)),
        ];
        let labels = add_found(&[label("commit", "given")], found.into_iter());
        assert_eq!(labels, [label("commit", "given"), label("cpu", "A")]);
    }

    #[test]
    fn labels_of_the_machine_are_read_from_its_files() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(machine_labels(root.path(), &|_| None), []);
        fs::create_dir_all(root.path().join("proc")).unwrap();
        fs::create_dir_all(root.path().join("run")).unwrap();
        let cpuinfo = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2.20GHz\nflags\t: a b\n";
        fs::write(root.path().join("proc/cpuinfo"), cpuinfo).unwrap();
        fs::write(root.path().join("run/.containerenv"), "engine=\"podman\"\nimage=\"docker.io/rust:1\"\n").unwrap();
        let expected = [("cpu", "Some CPU @ 2.20GHz".to_owned()), ("image", "docker.io/rust:1".to_owned())];
        assert_eq!(machine_labels(root.path(), &|_| None), expected);
        fs::remove_file(root.path().join("run/.containerenv")).unwrap();
        let labels = machine_labels(root.path(), &|name| (name == "CI_JOB_IMAGE").then(|| "ruby:3".to_owned()));
        assert_eq!(labels[1], ("image", "ruby:3".to_owned()));
    }
}
