//! The environment variables that say which part of a build or test suite a program belongs to.
//! They are the only part of an environment that a recording may contain: collectors pass each
//! environment that they read to `select_allowed` and keep only the result.

/// The names of the variables that may be recorded. Their values are names of packages, scripts or
/// tests.
const ALLOWED: [&[u8]; 4] = [
    // cargo sets it for rustc, for build scripts, and for the programs and tests that it runs.
    b"CARGO_PKG_NAME",      // pytest stores the running test and its phase here.
    b"PYTEST_CURRENT_TEST", // npm sets these for the scripts of a package.
    b"npm_package_name", b"npm_lifecycle_event",
];

/// Length in bytes of the longest value that is kept.
const MAX_VALUE_BYTES: usize = 512;

/// Returns the allowed variables of an environment, as NAME=VALUE, each NUL-terminated. A last
/// string without a NUL is incomplete and is omitted.
pub fn select_allowed(environment: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    let end = environment.iter().rposition(|byte| *byte == 0).unwrap_or(0);
    for variable in environment[..end].split(|byte| *byte == 0) {
        let Some(equals) = variable.iter().position(|byte| *byte == b'=') else { continue };
        let (name, value) = variable.split_at(equals);
        if ALLOWED.contains(&name) && (2..=MAX_VALUE_BYTES + 1).contains(&value.len()) {
            kept.extend_from_slice(variable);
            kept.push(0);
        }
    }
    kept
}

/// Like `select_allowed`, for an environment of which only the beginning and the end are known. The
/// first string of `end` is ignored, because its beginning may be missing.
pub fn select_allowed_in_parts(beginning: &[u8], end: &[u8]) -> Vec<u8> {
    let mut kept = select_allowed(beginning);
    let first_nul = end.iter().position(|byte| *byte == 0);
    kept.extend(first_nul.map(|nul| select_allowed(&end[nul + 1..])).unwrap_or_default());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_allowed_variables_are_kept() {
        let environment = b"CARGO_PKG_NAME=serde\0CARGO_REGISTRY_TOKEN=cio1\0xCARGO_PKG_NAME=no\0CARGO_PKG_NAME\0\
            npm_package_name=\0PYTEST_CURRENT_TEST=t.py::a[x=1] (call)\0npm_package_name=cut";
        assert_eq!(select_allowed(environment), b"CARGO_PKG_NAME=serde\0PYTEST_CURRENT_TEST=t.py::a[x=1] (call)\0");
        for empty in [&b""[..], b"\0", b"\0\0", b"CARGO_PKG_NAME=x"] {
            assert_eq!(select_allowed(empty), b"");
        }
    }

    #[test]
    fn a_long_value_is_dropped() {
        for (length, kept_bytes) in [(512, 512 + 16), (513, 0)] {
            let variable = format!("CARGO_PKG_NAME={}\0", "x".repeat(length));
            assert_eq!(select_allowed(variable.as_bytes()).len(), kept_bytes);
        }
    }

    #[test]
    fn the_end_of_a_cut_string_is_not_a_variable() {
        let end = b"CARGO_PKG_NAME=tail of another\0npm_package_name=web\0";
        assert_eq!(
            select_allowed_in_parts(b"CARGO_PKG_NAME=a\0SECRET=", end),
            b"CARGO_PKG_NAME=a\0npm_package_name=web\0"
        );
        assert_eq!(select_allowed_in_parts(b"", b"no end"), b"");
    }
}
