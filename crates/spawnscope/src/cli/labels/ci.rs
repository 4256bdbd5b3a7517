//! Labels from the environment variables that CI services set for their jobs. Only the variables
//! listed here are read, and only if the marker of their service is set.

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
pub(super) fn labels(variable: &dyn Fn(&str) -> Option<String>) -> Vec<(&'static str, String)> {
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
    use super::*;

    fn labels_for(variables: &[(&str, &str)]) -> String {
        let labels = labels(&|name| {
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
