//! Labels from the environment variables that CI services set for their jobs. Only the variables listed here are read, and only if the
//! marker of their service is set.

/// A CI service: how to recognize it, and which variables contain the value of each label. If several variables are listed, the first one
/// that is set is used.
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

/// The services, according to their documentation. GitLab and Jenkins have no variable for the attempt. Bazel does not pass the variables of
/// other services to its tests.
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

/// Returns the labels from the CI service that runs this process: `ci`, which is its name, and those whose variables are set.
pub(super) fn labels(variable: &dyn Fn(&str) -> Option<String>) -> Vec<(&'static str, String)> {
    let service = SERVICES.iter().find(|service| {
        let (name, expected) = service.marker;
        variable(name).is_some_and(|value| expected.is_none_or(|expected| value == expected))
    });
    let Some(service) = service else {
        return Vec::new();
    };
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

/// Converts the number of an attempt so that the first attempt is 1. `first` is the service's number for it.
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
    fn each_service_is_recognized() {
        let github = [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_SHA", "c0ffee"),
            ("GITHUB_HEAD_REF", ""),
            ("GITHUB_REF_NAME", "main"),
            ("GITHUB_JOB", "build"),
            ("GITHUB_RUN_ID", "99"),
            ("GITHUB_RUN_ATTEMPT", "2"),
        ];
        assert_eq!(labels_for(&github), "ci=github commit=c0ffee branch=main job=build run=99 attempt=2");
        let gitlab = [
            ("GITLAB_CI", "true"),
            ("CI_COMMIT_SHA", "c0ffee"),
            ("CI_COMMIT_REF_NAME", "topic"),
            ("CI_JOB_NAME", "test: [a, b]"),
            ("CI_PIPELINE_ID", "5"),
        ];
        assert_eq!(labels_for(&gitlab), "ci=gitlab commit=c0ffee branch=topic job=test: [a, b] run=5");
        let buildkite = [
            ("BUILDKITE", "true"),
            ("BUILDKITE_COMMIT", "HEAD"),
            ("BUILDKITE_BRANCH", "main"),
            ("BUILDKITE_LABEL", "unit"),
            ("BUILDKITE_BUILD_NUMBER", "7"),
            ("BUILDKITE_RETRY_COUNT", "0"),
        ];
        assert_eq!(labels_for(&buildkite), "ci=buildkite branch=main job=unit run=7 attempt=1");
        let jenkins = [
            ("JENKINS_URL", "https://ci/"),
            ("GIT_COMMIT", "c0ffee"),
            ("GIT_BRANCH", "origin/main"),
            ("JOB_NAME", "team/app"),
            ("BUILD_NUMBER", "12"),
        ];
        assert_eq!(labels_for(&jenkins), "ci=jenkins commit=c0ffee branch=main job=team/app run=12");
        let bazel = [("BAZEL_TEST", "1"), ("TEST_TARGET", "//app:test"), ("TEST_RUN_NUMBER", "3")];
        assert_eq!(labels_for(&bazel), "ci=bazel job=//app:test run=3");
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
