//! The arguments of verbs that can print JSON, and the text that they print.

use std::io;

use anyhow::{Result, anyhow};
use clap::{Args, ValueHint};
use serde_json::Value;

use crate::cli::output;
use crate::present::bounded::bounded;
use crate::present::json_values;

#[derive(Clone, Copy, Debug, Default, Args)]
pub struct JsonArguments {
    /// Print JSON (schema_version 1)
    #[arg(long)]
    pub json: bool,
    /// Print at most N bytes of JSON, in one line: the ends of lists are left out, and `left_out`
    /// counts what is missing
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, requires = "json")]
    pub max_bytes: Option<usize>,
}

impl JsonArguments {
    /// Prints the JSON, or the text that `render` returns for the width of standard output. `what`
    /// names it in an error.
    pub fn print(self, what: &str, json: impl FnOnce() -> Value, render: impl FnOnce(usize) -> String) -> Result<()> {
        let text = match self.json {
            true => self.text(&json())?,
            false => output::with_glyphs(render(output::width(&io::stdout()))),
        };
        output::print(&text, what)
    }

    pub fn text(self, value: &Value) -> Result<String> {
        let Some(max_bytes) = self.max_bytes else { return Ok(json_values::text(value)) };
        bounded(value, max_bytes).map_err(|error| {
            anyhow!("--max-bytes {max_bytes} is too small: the shortest answer has {} bytes", error.least_bytes)
        })
    }
}
