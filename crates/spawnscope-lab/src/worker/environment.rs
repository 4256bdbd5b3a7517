//! The environment of a worker and its children, which is that of bench except for variables that
//! an experiment sets or removes.

use std::ffi::{OsStr, OsString};
use std::process::Command;

/// The prefix of the dynamic loader's variables.
const LOADER_PREFIX: &[u8] = b"LD_";

/// How a worker's environment differs from that of bench.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    removed: Vec<OsString>,
    set: Vec<(OsString, OsString)>,
}

impl Environment {
    /// Removes the loader's variables, for experiments whose cases themselves set the search path,
    /// the preloaded libraries and the binding mode.
    pub fn without_loader_variables() -> Environment {
        Environment::without_loader_variables_among(std::env::vars_os().map(|(name, _)| name))
    }

    fn without_loader_variables_among(names: impl Iterator<Item = OsString>) -> Environment {
        let mut removed: Vec<OsString> =
            names.filter(|name| name.as_encoded_bytes().starts_with(LOADER_PREFIX)).collect();
        removed.sort();
        Environment { removed, set: Vec::new() }
    }

    /// Adds a variable, or replaces its value.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Environment {
        self.set.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Returns a note for the reader about variables that children lack; `None` if no variable is
    /// removed.
    pub fn note(&self) -> Option<String> {
        let names: Vec<_> = self.removed.iter().map(|name| name.to_string_lossy()).collect();
        let names = (!names.is_empty()).then(|| names.join(", "))?;
        Some(format!("removed from the environment of launched programs: {names}"))
    }

    pub(super) fn apply(&self, command: &mut Command) {
        for name in &self.removed {
            command.env_remove(name);
        }
        command.envs(self.set.iter().map(|(name, value)| (name, value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loader_variables_are_removed() {
        let names = ["LD_PRELOAD", "LDFLAGS", "PATH", "LD_BIND_NOW"].map(OsString::from);
        let environment = Environment::without_loader_variables_among(names.into_iter()).with("LD_LIBRARY_PATH", "/a");
        let note = environment.note().unwrap();
        assert!(note.ends_with("launched programs: LD_BIND_NOW, LD_PRELOAD"), "{note}");
        let mut command = Command::new("true");
        environment.apply(&mut command);
        let changed: Vec<_> = command.get_envs().collect();
        let path = Some(OsStr::new("/a"));
        let expected = [("LD_BIND_NOW", None), ("LD_LIBRARY_PATH", path), ("LD_PRELOAD", None)];
        assert_eq!(changed, expected.map(|(name, value)| (OsStr::new(name), value)));
        assert_eq!(Environment::default().note(), None);
    }
}
