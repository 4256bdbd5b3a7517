//! The variables of a program's environment that say to which part of a build or of a test suite it belongs. They are the only part of an environment
//! that a recording may have: collectors pass what they read through `allowed` and drop it.

/// Names of these variables. Each has the name of a package, a program or a test as its value.
pub const ALLOWED: [&[u8]; 4] = [
    // cargo, for rustc, build scripts, and the programs and tests that it runs
    b"CARGO_PKG_NAME",
    // pytest: the test that runs, and its phase
    b"PYTEST_CURRENT_TEST",
    // npm, for the scripts of a package
    b"npm_package_name",
    b"npm_lifecycle_event",
];

/// Longest value that is kept, in bytes.
const MAX_VALUE: usize = 512;

/// Returns the allowed variables of an environment, as NAME=VALUE with a NUL behind each. Strings without a NUL are cut off, so they are left out.
#[must_use]
pub fn allowed(environment: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    let whole = environment.iter().rposition(|byte| *byte == 0).unwrap_or(0);
    for variable in environment[..whole].split(|byte| *byte == 0) {
        let Some(equals) = variable.iter().position(|byte| *byte == b'=') else {
            continue;
        };
        let (name, value) = variable.split_at(equals);
        if ALLOWED.contains(&name) && (2..=MAX_VALUE + 1).contains(&value.len()) {
            kept.extend_from_slice(variable);
            kept.push(0);
        }
    }
    kept
}

/// Like `allowed`, for an environment of which only the beginning and the end are known: the first string of `end` may be part of one.
#[must_use]
pub fn allowed_of_ends(beginning: &[u8], end: &[u8]) -> Vec<u8> {
    let mut kept = allowed(beginning);
    let first_end = end.iter().position(|byte| *byte == 0);
    kept.extend(first_end.map(|nul| allowed(&end[nul + 1..])).unwrap_or_default());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_variables_are_kept_and_only_whole() {
        let environment = b"CARGO_PKG_NAME=serde\0CARGO_REGISTRY_TOKEN=cio1\0xCARGO_PKG_NAME=no\0CARGO_PKG_NAME\0\
            npm_package_name=\0PYTEST_CURRENT_TEST=t.py::a[x=1] (call)\0npm_package_name=cut";
        assert_eq!(
            allowed(environment),
            b"CARGO_PKG_NAME=serde\0PYTEST_CURRENT_TEST=t.py::a[x=1] (call)\0"
        );
        for empty in [&b""[..], b"\0", b"\0\0", b"CARGO_PKG_NAME=x"] {
            assert_eq!(allowed(empty), b"");
        }
    }

    #[test]
    fn a_long_value_is_dropped() {
        let of = |length: usize| allowed(format!("CARGO_PKG_NAME={}\0", "x".repeat(length)).as_bytes()).len();
        assert_eq!((of(512), of(513)), (512 + 16, 0));
    }

    #[test]
    fn a_string_torn_between_two_ends_is_not_read_as_a_variable() {
        let end = b"CARGO_PKG_NAME=tail of another\0npm_package_name=web\0";
        assert_eq!(
            allowed_of_ends(b"CARGO_PKG_NAME=a\0SECRET=", end),
            b"CARGO_PKG_NAME=a\0npm_package_name=web\0"
        );
        assert_eq!(allowed_of_ends(b"", b"no end"), b"");
    }
}
