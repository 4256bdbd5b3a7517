//! Formats values of environment variables for display. They may contain secrets, so only the part
//! that matters for the finding is shown.

const MASK: &str = "***";

/// Returns a list of paths, in which assigned values (`name=...`) and everything after the scheme
/// of a URL are masked.
pub(super) fn without_secrets(value: &str) -> String {
    value.split(' ').map(mask_word).collect::<Vec<_>>().join(" ")
}

fn mask_word(word: &str) -> String {
    match word.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://{MASK}"),
        None => word.split(':').map(mask_assignment).collect::<Vec<_>>().join(":"),
    }
}

fn mask_assignment(text: &str) -> String {
    match text.split_once('=') {
        Some((name, _)) => format!("{name}={MASK}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_without_assigned_values_and_url_contents() {
        assert_eq!(without_secrets("/opt/a:/opt/b /c"), "/opt/a:/opt/b /c");
        assert_eq!(without_secrets("/a.so:password=hunter2:/b"), "/a.so:password=***:/b");
        assert_eq!(without_secrets("https://me:hunter2@host/"), "https://***");
    }
}
