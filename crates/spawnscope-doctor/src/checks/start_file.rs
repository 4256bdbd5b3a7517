//! The file that ENV or BASH_ENV names. Shells expand the value of the variable.

use std::fmt::{self, Display, Formatter};

use super::values;
use crate::Machine;

/// The file that a value names, for display.
pub(super) enum StartFile {
    There(String),
    Missing(String),
    /// In a directory that does not answer.
    Silent(String),
    /// Only a shell can expand the value.
    Computed(String),
}

impl StartFile {
    /// `None` if the expanded value is empty: shells then read no file.
    pub(super) fn of(machine: &Machine, value: &str) -> Option<StartFile> {
        let shown = values::without_secrets(value);
        let Some(path) = expanded(machine, value) else {
            return Some(StartFile::Computed(shown));
        };
        if path.is_empty() {
            return None;
        }
        let file = machine.directory().join(path);
        Some(if machine.is_left_out(&file) {
            StartFile::Silent(shown)
        } else if machine.is_file(&file) {
            StartFile::There(shown)
        } else {
            StartFile::Missing(shown)
        })
    }
}

impl Display for StartFile {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let (StartFile::There(shown)
        | StartFile::Missing(shown)
        | StartFile::Silent(shown)
        | StartFile::Computed(shown)) = self;
        formatter.write_str(shown)
    }
}

/// Expands `$NAME` and `${NAME}`; `None` if a shell would expand more than that.
fn expanded(machine: &Machine, value: &str) -> Option<String> {
    let mut parts = value.split('$');
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let (name, rest) = match part.strip_prefix('{') {
            Some(braced) => braced.split_once('}')?,
            None => part.split_at(part.find(|c| !is_of_name(c)).unwrap_or(part.len())),
        };
        let is_name = name.starts_with(|c: char| is_of_name(c) && !c.is_ascii_digit()) && name.chars().all(is_of_name);
        text += &machine
            .variable_text(name)
            .filter(|_| is_name)
            .or_else(|| is_name.then(String::new))?;
        text += rest;
    }
    let is_plain = !text.starts_with('~') && !text.contains(['`', '\\', '"', '\'']);
    is_plain.then_some(text)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_value_that_comes_to_nothing_no_file_is_looked_for() {
        assert!(StartFile::of(&Machine::with_root("/nowhere"), "${NOPE}").is_none());
    }

    #[test]
    fn variables_are_replaced_and_what_only_a_shell_can_do_is_left_to_it() {
        let machine = Machine::with_root("/nowhere").with_variable("HOME", "/home/me");
        let result = |value: &str| expanded(&machine, value);
        assert_eq!(result("/etc/shinit").as_deref(), Some("/etc/shinit"));
        assert_eq!(result("$HOME/.rc").as_deref(), Some("/home/me/.rc"));
        assert_eq!(result("${HOME}/.rc$NONE").as_deref(), Some("/home/me/.rc"));
        for computed in ["$(pwd)/x", "${HOME:-/}/x", "~/x", "`pwd`", "$1", "${HOME"] {
            assert_eq!(result(computed), None, "{computed}");
        }
    }
}
