//! The labels of a recording: those from `--label`, those of a CI service, and those of the
//! machine. If a value cannot be found, there is no such label. Of the environment variables that
//! CI services set for their jobs, only those listed here are read, and only if the marker of their
//! service is set.

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
    add_found(given, ci_labels(&variable).into_iter().chain(machine_labels(root, &variable)))
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

/// A CI service: how to recognize it, and which variables contain the value of each label. If
/// several variables are listed, the first one that is set is used.
struct Service {
    name: &'static str,
    /// A variable that only this service sets, and its value if that is always the same.
    marker: (&'static str, Option<&'static str>),
    commit: &'static [&'static str],
    branch: &'static [&'static str],
    job: &'static [&'static str],
    run: &'static [&'static str],
    /// The variable with the number of the attempt, and its value in the first attempt.
    attempt: Option<(&'static str, u32)>,
}

/// The services, according to their documentation. GitLab and Jenkins have no variable for the
/// attempt. Bazel does not pass the variables of other services to its tests.
const SERVICES: [Service; 5] = [
    Service {
        name: "github",
        marker: ("GITHUB_ACTIONS", Some("true")),
        commit: &["GITHUB_SHA"],
        // In a run for a pull request, the name of the ref is `7/merge`.
        branch: &["GITHUB_HEAD_REF", "GITHUB_REF_NAME"],
        job: &["GITHUB_JOB"],
        run: &["GITHUB_RUN_ID"],
        attempt: Some(("GITHUB_RUN_ATTEMPT", 1)),
    },
    Service {
        name: "gitlab",
        marker: ("GITLAB_CI", Some("true")),
        commit: &["CI_COMMIT_SHA"],
        branch: &["CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_COMMIT_REF_NAME"],
        job: &["CI_JOB_NAME"],
        run: &["CI_PIPELINE_ID"],
        attempt: None,
    },
    Service {
        name: "buildkite",
        marker: ("BUILDKITE", Some("true")),
        commit: &["BUILDKITE_COMMIT"],
        branch: &["BUILDKITE_BRANCH"],
        job: &["BUILDKITE_STEP_KEY", "BUILDKITE_LABEL"],
        run: &["BUILDKITE_BUILD_NUMBER"],
        attempt: Some(("BUILDKITE_RETRY_COUNT", 0)),
    },
    Service {
        name: "jenkins",
        marker: ("JENKINS_URL", None),
        commit: &["GIT_COMMIT"],
        branch: &["CHANGE_BRANCH", "BRANCH_NAME", "GIT_BRANCH"],
        job: &["JOB_NAME"],
        run: &["BUILD_NUMBER"],
        attempt: None,
    },
    Service {
        name: "bazel",
        marker: ("BAZEL_TEST", Some("1")),
        commit: &[],
        branch: &[],
        job: &["TEST_TARGET"],
        run: &["TEST_RUN_NUMBER"],
        attempt: None,
    },
];

/// Returns the labels from the CI service that runs this process: `ci`, which is its name, and
/// those whose variables are set.
fn ci_labels(variable: &dyn Fn(&str) -> Option<String>) -> Vec<(&'static str, String)> {
    let service = SERVICES.iter().find(|service| {
        let (name, expected) = service.marker;
        variable(name).is_some_and(|value| expected.is_none_or(|expected| value == expected))
    });
    let Some(service) = service else { return Vec::new() };
    let first = |names: &[&str]| names.iter().find_map(|name| variable(name));
    let found = [
        ("ci", Some(service.name.to_owned())),
        // In Buildkite, the commit is `HEAD` until Buildkite has resolved it.
        ("commit", first(service.commit).filter(|commit| commit != "HEAD")),
        // Jenkins' git plugin puts the name of the remote before the branch.
        ("branch", first(service.branch).map(|branch| branch.trim_start_matches("origin/").to_owned())),
        ("job", first(service.job)),
        ("run", first(service.run)),
        ("attempt", service.attempt.and_then(|(name, first)| attempt(&variable(name)?, first))),
    ];
    found.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

/// Converts the number of an attempt so that the first attempt is 1. `first` is the service's
/// number for it.
fn attempt(text: &str, first: u32) -> Option<String> {
    let number: u32 = text.trim().parse().ok()?;
    Some((number.checked_sub(first)?.checked_add(1)?).to_string())
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

    fn labels_for(variables: &[(&str, &str)]) -> String {
        let labels = ci_labels(&|name| {
            let found = variables.iter().find(|(key, value)| *key == name && !value.is_empty());
            found.map(|(_, value)| (*value).to_owned())
        });
        let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        labels.join(" ")
    }

    #[test]
    fn each_service_is_recognized_and_its_first_attempt_is_1() {
        for service in &SERVICES {
            let names = [service.commit, service.branch, service.job, service.run];
            let mut variables: Vec<(&str, &str)> =
                names.iter().filter_map(|names| Some((*names.last()?, "x"))).collect();
            variables.push((service.marker.0, service.marker.1.unwrap_or("https://ci/")));
            let first = service.attempt.map(|(name, first)| (name, first.to_string()));
            variables.extend(first.iter().map(|(name, first)| (*name, first.as_str())));
            let labels = labels_for(&variables);
            let attempt = if first.is_some() { " attempt=1" } else { "" };
            assert!(
                labels.starts_with(&format!("ci={} ", service.name)) && labels.ends_with(&format!(" run=x{attempt}")),
                "{labels}"
            );
        }
    }

    #[test]
    fn a_commit_is_resolved_and_a_branch_has_no_remote() {
        let buildkite = [("BUILDKITE", "true"), ("BUILDKITE_COMMIT", "HEAD")];
        assert_eq!(labels_for(&buildkite), "ci=buildkite");
        let jenkins = [("JENKINS_URL", "https://ci/"), ("GIT_BRANCH", "origin/main")];
        assert_eq!(labels_for(&jenkins), "ci=jenkins branch=main");
    }

    #[test]
    fn the_branch_of_a_pull_request_is_its_source_branch() {
        let variables = [("GITHUB_ACTIONS", "true"), ("GITHUB_REF_NAME", "7/merge"), ("GITHUB_HEAD_REF", "fix")];
        assert_eq!(labels_for(&variables), "ci=github branch=fix");
    }

    #[test]
    fn variables_are_ignored_without_the_marker_of_their_service() {
        assert_eq!(labels_for(&[("GIT_COMMIT", "c0ffee"), ("CI_JOB_NAME", "x"), ("GITHUB_ACTIONS", "false")]), "");
        let odd = [("BUILDKITE", "true"), ("BUILDKITE_RETRY_COUNT", "often")];
        assert_eq!(labels_for(&odd), "ci=buildkite");
    }
}
