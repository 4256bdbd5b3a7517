//! The environment of a worker and its children, which is that of bench except for variables that
//! an experiment sets or removes.

use std::ffi::OsString;

const LOADER_PREFIX: &[u8] = b"LD_";

/// Variables with new values. Those without a value are removed.
pub type Environment = Vec<(OsString, Option<OsString>)>;

/// Removes the loader's variables, for experiments whose cases themselves set the search path, the
/// preloaded libraries and the binding mode.
pub fn without_loader_variables() -> Environment {
    without_loader_variables_among(std::env::vars_os().map(|(name, _)| name))
}

fn without_loader_variables_among(names: impl Iterator<Item = OsString>) -> Environment {
    let mut removed: Vec<OsString> = names.filter(|name| name.as_encoded_bytes().starts_with(LOADER_PREFIX)).collect();
    removed.sort();
    removed.into_iter().map(|name| (name, None)).collect()
}

/// Returns a note for the reader about variables that children lack; `None` if no variable is
/// removed.
pub fn removal_note(environment: &Environment) -> Option<String> {
    let removed = environment.iter().filter(|(_, value)| value.is_none());
    let names: Vec<_> = removed.map(|(name, _)| name.to_string_lossy()).collect();
    let names = (!names.is_empty()).then(|| names.join(", "))?;
    Some(format!("removed from the environment of launched programs: {names}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loader_variables_are_removed() {
        let names = ["LD_PRELOAD", "LDFLAGS", "PATH", "LD_BIND_NOW"].map(OsString::from);
        let removed = without_loader_variables_among(names.into_iter());
        assert_eq!(removed, ["LD_BIND_NOW", "LD_PRELOAD"].map(|name| (name.into(), None)));
        let note = removal_note(&removed).unwrap();
        assert!(note.ends_with("launched programs: LD_BIND_NOW, LD_PRELOAD"), "{note}");
        assert_eq!(removal_note(&vec![("LD_LIBRARY_PATH".into(), Some("/a".into()))]), None);
    }
}
