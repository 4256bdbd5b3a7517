//! The result of a check as annotations of GitHub Actions, at script lines. Annotations are
//! commands on standard output, so no text from a recording may look like such a command.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use super::{blame, name, numbers, text as as_text};
use crate::analyze::compare::budgets::{Check, Culprit, Verdict};
use crate::analyze::compare::diff::ScriptLine;
use crate::present::text;

/// Maximum number of annotations of a step that GitHub shows.
const MAX_ANNOTATIONS: usize = 10;
const LOG_WIDTH: usize = 120;

pub fn github(check: &Check, workspace: &Path) -> String {
    let mut annotations: Vec<String> = Vec::new();
    for verdict in check.exceeded() {
        let count_before = annotations.len();
        for culprit in &verdict.culprits {
            if let Some((file, line)) = location(culprit, workspace) {
                annotations.push(annotation(
                    verdict,
                    Some(culprit),
                    &format!(" file={},line={line},", escape_property(&file)),
                ));
            }
        }
        if annotations.len() == count_before {
            annotations.push(annotation(verdict, verdict.culprits.first(), " "));
        }
    }
    annotations.truncate(MAX_ANNOTATIONS);
    let log = anstream::adapter::strip_str(&as_text(check, LOG_WIDTH)).to_string();
    annotations.concat() + &log
}

fn annotation(verdict: &Verdict, culprit: Option<&Culprit>, properties: &str) -> String {
    let title = format!("{}: {}", name(&verdict.budget), numbers(verdict));
    let mut message = culprit.map(|culprit| blame(culprit, &verdict.budget)).unwrap_or_else(|| title.clone());
    if let Some((advice, fix)) = culprit.and_then(|culprit| culprit.advice.as_ref()) {
        let lines = std::iter::once(advice).chain(fix);
        message.extend(lines.map(|line| format!("\n{}", text::escape(line.as_bytes()))));
    }
    format!("::error{properties}title={}::{}\n", escape_property(&title), escape_message(&message))
}

/// Escapes the message of a command. In an older syntax, `##[` begins a command anywhere in a line.
fn escape_message(text: &str) -> String {
    let escaped = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    escaped.replace("##[", "# #[")
}

fn escape_property(text: &str) -> String {
    escape_message(text).replace(':', "%3A").replace(',', "%2C")
}

/// Returns the file, relative to the directory of the sources, and the line. `None` if the file is
/// outside of this directory.
fn location(culprit: &Culprit, workspace: &Path) -> Option<(String, u32)> {
    let script_line = culprit.script_line.as_ref()?;
    Some((relative_path(script_line, workspace)?, script_line.line?))
}

fn relative_path(script_line: &ScriptLine, workspace: &Path) -> Option<String> {
    let path = Path::new(std::ffi::OsStr::from_bytes(script_line.path.0.as_deref()?));
    let path = if path.is_absolute() { path.strip_prefix(workspace).ok()? } else { path };
    let mut components = path.components().filter(|part| *part != Component::CurDir).peekable();
    components.peek()?;
    let names: Option<Vec<String>> = components
        .map(|part| match part {
            Component::Normal(name) => Some(text::escape(name.as_bytes())),
            _ => None,
        })
        .collect();
    Some(names?.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_arguments_are_not_commands() {
        assert_eq!(escape_message("a%\n::error::b\r##[group]"), "a%25%0A::error::b%0D# #[group]");
        assert_eq!(escape_property("a:b,c\n"), "a%3Ab%2Cc%0A");
        assert_eq!(text::without_commands("   ::set-env name=A::b"), "|    ::set-env name=A::b\n");
        assert_eq!(text::without_commands("x ##[add-mask]y"), "x # #[add-mask]y\n");
    }
}
