//! Applies a template from the table of known programs (`table`) to one argument.

use std::ops::Range;

use super::names::SecretType;
use super::secret_ranges::SecretRanges;
use super::table::Template;
use super::urls::add_pair;
use super::values::{is_reference, secret_part};

/// Returns the range of the secret in an argument.
pub(super) fn secret_range(template: Template, value: &[u8]) -> Option<Range<usize>> {
    let end = value.len();
    match template {
        Template::Nothing | Template::Named => None,
        Template::Whole => is_secret(value).then_some(0..end),
        Template::Likely => secret_part(SecretType::Secret, value),
        Template::After(separator) => {
            let colon = position(value, separator)?;
            pair(value, 0..end, colon)
        }
        Template::Between(separator) => {
            let start = position(value, separator).filter(|start| !value[*start..].starts_with(b"://"))?;
            let at = value.iter().rposition(|byte| *byte == b'@').filter(|at| *at > start);
            // There is no login in `/ as sysdba`, and a proxy may have none.
            let is_login = start > 0 && (at.is_some() || separator == b'/');
            is_login.then(|| pair(value, 0..at.unwrap_or(end), start))?
        }
        Template::AfterEquals => {
            let equals = position(value, b'=')?;
            is_secret(&value[equals + 1..]).then_some(equals + 1..end)
        }
        Template::AfterPrefix(prefix) => {
            let rest = value.strip_prefix(prefix.as_bytes())?;
            is_secret(rest).then_some(prefix.len()..end)
        }
    }
}

fn pair(value: &[u8], pair: Range<usize>, separator: usize) -> Option<Range<usize>> {
    let mut found = SecretRanges::default();
    add_pair(value, pair, separator, &mut found);
    found.iter().next().cloned()
}

/// Whether a value that the table declares as secret is a literal secret. An empty value, `-` and a reference to a secret are not.
fn is_secret(value: &[u8]) -> bool {
    !value.is_empty() && value != b"-" && !is_reference(value)
}

fn position(value: &[u8], separator: u8) -> Option<usize> {
    value.iter().position(|byte| *byte == separator)
}
