//! `--since`: the point in time at which the later runs of a comparison begin: a date, or the first run of a commit.

use anyhow::{Result, bail};

use crate::engine::Engine;

/// A point in time, as SQL and as words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Since {
    /// An SQL expression whose value is a timestamp.
    pub sql: String,
    /// The words after `since`, such as `2026-11-10` or `commit 4f2a91c`.
    pub words: String,
}

impl Since {
    /// Resolves the argument of `--since`.
    ///
    /// # Errors
    /// When the argument is not a date, and no run has a commit that begins with it.
    pub fn resolve(given: &str, engine: &Engine) -> Result<Since> {
        if is_date(given) {
            return Ok(Since { sql: format!("TIMESTAMP '{given} 00:00:00'"), words: given.to_owned() });
        }
        if !given.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            bail!("--since {given}: give a date like 2026-11-10, or a commit");
        }
        let sql = format!("(SELECT MIN(started) FROM runs WHERE commit LIKE '{given}%')");
        let found = engine.ask(&format!("SELECT {sql} AS started"))?;
        if found.rows.iter().flatten().all(serde_json::Value::is_null) {
            bail!("--since {given}: no run has such a commit, and it is not a date like 2026-11-10");
        }
        Ok(Since { sql, words: format!("commit {given}") })
    }
}

/// Whether a text is a date as in 2026-11-10.
fn is_date(text: &str) -> bool {
    let shape = text.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    shape.eq(*b"0000-00-00")
}

#[cfg(test)]
mod tests {
    use super::is_date;

    #[test]
    fn a_date_is_recognized_by_its_form() {
        assert!(is_date("2026-11-10"));
        assert!(["20261110", "2026-11-1", "4f2a91c", ""].iter().all(|text| !is_date(text)));
    }
}
