//! The file that ENV or BASH_ENV names. Shells expand the value of the variable.

use std::fmt::{self, Display, Formatter};

use super::values;
use crate::Machine;

/// The file that a value names. Each variant contains the value, for display without secrets.
pub(super) enum StartFile {
    Exists(String),
    Missing(String),
    /// The file is in a directory that does not answer.
    Unresponsive(String),
    /// Only a shell can expand the value.
    Computed(String),
}

impl StartFile {
    /// Finds the file that a value names. Returns `None` if the expanded value is empty, because shells then read no file.
    pub(super) fn find(machine: &Machine, value: &str) -> Option<StartFile> {
        let shown = values::without_secrets(value);
        let Some(path) = expand(machine, value) else {
            return Some(StartFile::Computed(shown));
        };
        if path.is_empty() {
            return None;
        }
        let file = machine.working_directory().join(path);
        Some(if machine.is_left_out(&file) {
            StartFile::Unresponsive(shown)
        } else if machine.is_file(&file) {
            StartFile::Exists(shown)
        } else {
            StartFile::Missing(shown)
        })
    }
}

impl Display for StartFile {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let (StartFile::Exists(shown)
        | StartFile::Missing(shown)
        | StartFile::Unresponsive(shown)
        | StartFile::Computed(shown)) = self;
        formatter.write_str(shown)
    }
}

/// Expands `$NAME` and `${NAME}`; returns `None` if a shell would expand anything else.
fn expand(machine: &Machine, value: &str) -> Option<String> {
    let mut parts = value.split('$');
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let (name, rest) = match part.strip_prefix('{') {
            Some(braced) => braced.split_once('}')?,
            None => part.split_at(part.find(|c| !is_name_character(c)).unwrap_or(part.len())),
        };
        let is_name = name.starts_with(|c: char| is_name_character(c) && !c.is_ascii_digit())
            && name.chars().all(is_name_character);
        text += &machine.variable_text(name).filter(|_| is_name).or_else(|| is_name.then(String::new))?;
        text += rest;
    }
    let is_plain = !text.starts_with('~') && !text.contains(['`', '\\', '"', '\'']);
    is_plain.then_some(text)
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_expanded_value_names_no_file() {
        assert!(StartFile::find(&Machine::with_root("/nowhere"), "${NOPE}").is_none());
    }

    #[test]
    fn plain_variables_are_expanded_and_other_expansions_are_left_to_the_shell() {
        let machine = Machine::with_root("/nowhere").with_variable("HOME", "/home/me");
        assert_eq!(expand(&machine, "/etc/shinit").as_deref(), Some("/etc/shinit"));
        assert_eq!(expand(&machine, "$HOME/.rc").as_deref(), Some("/home/me/.rc"));
        assert_eq!(expand(&machine, "${HOME}/.rc$NONE").as_deref(), Some("/home/me/.rc"));
        for computed in ["$(pwd)/x", "${HOME:-/}/x", "~/x", "`pwd`", "$1", "${HOME"] {
            assert_eq!(expand(&machine, computed), None, "{computed}");
        }
    }
}
