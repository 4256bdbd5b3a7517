//! The result of a check on the lines of scripts: annotations of GitHub Actions, and a code quality report of GitLab. Annotations are
//! commands on standard output, so nothing that a recording contains may look like one.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use serde_json::{Value, json};

use super::{blame, name, numbers, text as as_text};
use crate::analyze::budgets::{Check, Culprit, Verdict};
use crate::analyze::diff::Place;
use crate::present::text;

/// GitHub shows this many annotations of a step.
const MAX_ANNOTATIONS: usize = 10;
/// Columns of the text in a log.
const LOG_WIDTH: usize = 120;
/// The file of a finding without a script line. GitLab needs one.
const NO_FILE: &str = "spawnscope.toml";

/// Renders annotations, and then the text.
#[must_use]
pub fn github(check: &Check, workspace: &Path) -> String {
    let mut annotations: Vec<String> = Vec::new();
    for verdict in check.exceeded() {
        let found = annotations.len();
        for culprit in &verdict.culprits {
            if let Some((file, line)) = location(culprit, workspace) {
                annotations.push(annotation(
                    verdict,
                    Some(culprit),
                    &format!(" file={},line={line},", property(&file)),
                ));
            }
        }
        if annotations.len() == found {
            annotations.push(annotation(verdict, verdict.culprits.first(), " "));
        }
    }
    annotations.truncate(MAX_ANNOTATIONS);
    let log = anstream::adapter::strip_str(&as_text(check, LOG_WIDTH)).to_string();
    annotations.concat() + &log
}

fn annotation(verdict: &Verdict, culprit: Option<&Culprit>, properties: &str) -> String {
    let title = format!("{}: {}", name(&verdict.budget), numbers(verdict));
    let mut message = culprit
        .map(|culprit| blame(culprit, &verdict.budget))
        .unwrap_or_else(|| title.clone());
    if let Some((advice, fix)) = culprit.and_then(|culprit| culprit.advice.as_ref()) {
        let lines = std::iter::once(advice).chain(fix);
        message.extend(lines.map(|line| format!("\n{}", text::escape(line.as_bytes()))));
    }
    format!("::error{properties}title={}::{}\n", property(&title), data(&message))
}

/// Escapes the message of a command. `##[` begins commands of an older form, anywhere in a line.
fn data(text: &str) -> String {
    let escaped = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    escaped.replace("##[", "# #[")
}

/// Escapes a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Changes lines of text that would be commands in the log of a job.
#[must_use]
pub(in crate::present) fn without_commands(text: &str) -> String {
    text.lines().map(|line| harmless(line) + "\n").collect()
}

/// Changes a line that begins with `::` or contains `##[`. A style may come before the text of a line.
fn harmless(line: &str) -> String {
    let plain = anstream::adapter::strip_str(line).to_string();
    let mark = if plain.trim_start().starts_with("::") { "| " } else { "" };
    format!("{mark}{}", line.replace("##[", "# #["))
}

/// Returns the file, relative to the sources, and the line. `None` if it is outside of them.
fn location(culprit: &Culprit, workspace: &Path) -> Option<(String, u32)> {
    let place = culprit.place.as_ref()?;
    Some((relative(place, workspace)?, place.line?))
}

fn relative(place: &Place, workspace: &Path) -> Option<String> {
    let path = Path::new(std::ffi::OsStr::from_bytes(place.path.0.as_deref()?));
    let path = if path.is_absolute() {
        path.strip_prefix(workspace).ok()?
    } else {
        path
    };
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

/// Renders a code quality report of GitLab.
#[must_use]
pub fn gitlab(check: &Check, workspace: &Path) -> String {
    let mut findings: Vec<Value> = Vec::new();
    for verdict in check.exceeded() {
        if verdict.culprits.is_empty() {
            findings.push(finding(verdict, None, workspace));
        }
        let each = verdict
            .culprits
            .iter()
            .map(|culprit| finding(verdict, Some(culprit), workspace));
        findings.extend(each);
    }
    format!("{:#}\n", Value::Array(findings))
}

fn finding(verdict: &Verdict, culprit: Option<&Culprit>, workspace: &Path) -> Value {
    let location = culprit.and_then(|culprit| location(culprit, workspace));
    let (file, line) = location.unwrap_or((NO_FILE.to_owned(), 1));
    let budget = format!("{}: {}", name(&verdict.budget), numbers(verdict));
    let blamed = culprit.map(|culprit| blame(culprit, &verdict.budget));
    let command = culprit
        .map(|culprit| text::escape(&culprit.command))
        .unwrap_or_default();
    json!({
        "description": blamed.map_or(budget.clone(), |blamed| format!("{blamed} ({budget})")),
        "check_name": "spawnscope",
        // Unique and the same in the next run, as long as the line and the budget are.
        "fingerprint": format!("spawnscope/{}/{file}:{line}/{command}", name(&verdict.budget)),
        "severity": "major",
        "location": { "path": file, "lines": { "begin": line } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_arguments_are_not_commands() {
        assert_eq!(data("a%\n::error::b\r##[group]"), "a%25%0A::error::b%0D# #[group]");
        assert_eq!(property("a:b,c\n"), "a%3Ab%2Cc%0A");
        assert_eq!(harmless("   ::set-env name=A::b"), "|    ::set-env name=A::b");
        assert_eq!(harmless("x ##[add-mask]y"), "x # #[add-mask]y");
    }
}
