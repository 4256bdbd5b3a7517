//! What CI services tell their jobs in environment variables. Only these variables are read, and only if the service's own marker is set.

/// A CI service: how to recognize it, and which variables hold what. Of several variables, the first that is set counts.
struct Service {
    name: &'static str,
    /// The variable that only this service sets, and its value if that is fixed.
    marker: (&'static str, Option<&'static str>),
    commit: &'static [&'static str],
    branch: &'static [&'static str],
    job: &'static [&'static str],
    run: &'static [&'static str],
    /// The number of earlier tries, and the number of the first.
    attempt: Option<(&'static str, u32)>,
}

/// The services, by the documentation of each. GitLab and Jenkins do not tell how often a job was tried. Bazel passes on no variables of other
/// services to its tests.
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

/// Returns the labels of the CI service that runs this process: `ci`, its name, and what it tells.
pub(super) fn labels(variable: &dyn Fn(&str) -> Option<String>) -> Vec<(&'static str, String)> {
    let is_here = |service: &&Service| {
        let (name, expected) = service.marker;
        variable(name).is_some_and(|value| expected.is_none_or(|expected| value == expected))
    };
    let Some(service) = SERVICES.iter().find(is_here) else {
        return Vec::new();
    };
    let first = |names: &[&str]| names.iter().find_map(|name| variable(name));
    let found = [
        ("ci", Some(service.name.to_owned())),
        // Buildkite says HEAD until it has resolved it.
        ("commit", first(service.commit).filter(|commit| commit != "HEAD")),
        // Jenkins' git plugin puts the name of the remote before the branch.
        (
            "branch",
            first(service.branch).map(|branch| branch.trim_start_matches("origin/").to_owned()),
        ),
        ("job", first(service.job)),
        ("run", first(service.run)),
        (
            "attempt",
            service.attempt.and_then(|(name, from)| attempt(&variable(name)?, from)),
        ),
    ];
    found
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
}

/// Counts attempts from 1.
fn attempt(text: &str, from: u32) -> Option<String> {
    let number: u32 = text.trim().parse().ok()?;
    Some((number.checked_sub(from)?.checked_add(1)?).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> String {
        let variable = |name: &str| {
            let found = variables.iter().find(|(key, value)| *key == name && !value.is_empty());
            found.map(|(_, value)| (*value).to_owned())
        };
        let labels = labels(&variable);
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
        assert_eq!(
            of(&github),
            "ci=github commit=c0ffee branch=main job=build run=99 attempt=2"
        );
        let gitlab = [
            ("GITLAB_CI", "true"),
            ("CI_COMMIT_SHA", "c0ffee"),
            ("CI_COMMIT_REF_NAME", "topic"),
            ("CI_JOB_NAME", "test: [a, b]"),
            ("CI_PIPELINE_ID", "5"),
        ];
        assert_eq!(
            of(&gitlab),
            "ci=gitlab commit=c0ffee branch=topic job=test: [a, b] run=5"
        );
        let buildkite = [
            ("BUILDKITE", "true"),
            ("BUILDKITE_COMMIT", "HEAD"),
            ("BUILDKITE_BRANCH", "main"),
            ("BUILDKITE_LABEL", "unit"),
            ("BUILDKITE_BUILD_NUMBER", "7"),
            ("BUILDKITE_RETRY_COUNT", "0"),
        ];
        assert_eq!(of(&buildkite), "ci=buildkite branch=main job=unit run=7 attempt=1");
        let jenkins = [
            ("JENKINS_URL", "https://ci/"),
            ("GIT_COMMIT", "c0ffee"),
            ("GIT_BRANCH", "origin/main"),
            ("JOB_NAME", "team/app"),
            ("BUILD_NUMBER", "12"),
        ];
        assert_eq!(of(&jenkins), "ci=jenkins commit=c0ffee branch=main job=team/app run=12");
        let bazel = [
            ("BAZEL_TEST", "1"),
            ("TEST_TARGET", "//app:test"),
            ("TEST_RUN_NUMBER", "3"),
        ];
        assert_eq!(of(&bazel), "ci=bazel job=//app:test run=3");
    }

    #[test]
    fn a_pull_request_is_known_by_its_branch() {
        let variables = [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_REF_NAME", "7/merge"),
            ("GITHUB_HEAD_REF", "fix"),
        ];
        assert_eq!(of(&variables), "ci=github branch=fix");
    }

    #[test]
    fn variables_without_their_service_say_nothing() {
        assert_eq!(
            of(&[
                ("GIT_COMMIT", "c0ffee"),
                ("CI_JOB_NAME", "x"),
                ("GITHUB_ACTIONS", "false")
            ]),
            ""
        );
        let odd = [("BUILDKITE", "true"), ("BUILDKITE_RETRY_COUNT", "often")];
        assert_eq!(of(&odd), "ci=buildkite");
    }
}
