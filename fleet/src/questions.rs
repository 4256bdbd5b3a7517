//! The questions: SQL files that any engine runs, and the values of their parameters.
//!
//! The files use only what DataFusion, ClickHouse and Spark have in common:
//! - `1e0` is a floating-point number everywhere. `1.0` is a decimal in Spark, and `/` of integers
//!   is an integer division in DataFusion.
//! - `NULLS LAST` is always written, because the default differs.
//! - Columns in subqueries have an explicit `AS`. Otherwise, ClickHouse names `m.job` with its
//!   qualifier.
//! - No alias is the name of another column in the same SELECT. ClickHouse would use the alias.
//! - There are no quantiles, since each engine computes them differently.
//! - A query on launches is referred to once, because an engine may compute a `WITH` query again
//!   for each reference. `runs` is the left side of a join, from which DataFusion builds its hash
//!   table.

use anyhow::{Result, bail};

/// A question, which is defined by a file in `sql/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    Totals,
    Lines,
    Commands,
    Labels,
    Trend,
    Regressions,
    Machines,
    Advice,
    Doctor,
}

impl Question {
    fn template(self) -> &'static str {
        match self {
            Question::Totals => include_str!("../sql/totals.sql"),
            Question::Lines => include_str!("../sql/lines.sql"),
            Question::Commands => include_str!("../sql/commands.sql"),
            Question::Labels => include_str!("../sql/labels.sql"),
            Question::Trend => include_str!("../sql/trend.sql"),
            Question::Regressions => include_str!("../sql/regressions.sql"),
            Question::Machines => include_str!("../sql/machines.sql"),
            Question::Advice => include_str!("../sql/advice.sql"),
            Question::Doctor => include_str!("../sql/doctor.sql"),
        }
    }

    /// Returns the SQL, with a value for each `${parameter}`.
    ///
    /// # Errors
    /// When a parameter has no value.
    pub fn sql(self, parameters: &[(&str, &str)]) -> Result<String> {
        let mut sql = without_comments(self.template());
        for (name, value) in parameters {
            sql = sql.replace(&format!("${{{name}}}"), value);
        }
        if let Some(left) = sql.find("${") {
            bail!("{self:?}: no value for {}", &sql[left..].chars().take(20).collect::<String>());
        }
        Ok(sql)
    }
}

/// Removes comments: the parameters that they mention must not be replaced.
fn without_comments(sql: &str) -> String {
    sql.lines().filter(|line| !line.trim_start().starts_with("--")).collect::<Vec<_>>().join("\n")
}
