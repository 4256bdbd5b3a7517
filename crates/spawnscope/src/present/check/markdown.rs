//! The result of a check as Markdown, for job summaries and comments.

use super::{blame, limit, measured, name, note, result_sentence};
use crate::analyze::budgets::{Check, Culprit, Verdict};
use crate::present::markdown::{code, row, sentence};
use crate::present::text;

/// Renders the result.
#[must_use]
pub fn markdown(check: &Check) -> String {
    let mut text =
        format!("**{}**\n\n| | budget | limit | measured |\n|---|---|---:|---:|\n", sentence(&result_sentence(check)));
    for verdict in &check.verdicts {
        let word = if verdict.is_exceeded { "**exceeded**" } else { "met" };
        let cells = [name(&verdict.budget), limit(&verdict.budget), measured(verdict)];
        let cells = cells.iter().map(|cell| sentence(cell));
        text.push_str(&row(&std::iter::once(word.to_owned()).chain(cells).collect::<Vec<_>>()));
    }
    for verdict in check.exceeded().filter(|verdict| !verdict.culprits.is_empty()) {
        culprits(&mut text, verdict);
    }
    if let Some(note) = note(check) {
        text.push_str(&format!("\n{}\n", sentence(&note)));
    }
    text
}

fn culprits(text: &mut String, verdict: &Verdict) {
    text.push_str(&format!("\n### {}\n\n", sentence(&name(&verdict.budget))));
    for culprit in &verdict.culprits {
        text.push_str(&format!("- {}\n", code(&blame(culprit, &verdict.budget))));
        advice(text, culprit);
    }
}

fn advice(markdown: &mut String, culprit: &Culprit) {
    let Some((title, fix)) = &culprit.advice else { return };
    markdown.push_str(&format!("  - {}\n", sentence(title)));
    for line in fix {
        // Snippets must be typed exactly as they are.
        let shown = match line.strip_prefix("  ") {
            Some(snippet) => code(&text::escape(snippet.as_bytes())),
            None => sentence(line),
        };
        markdown.push_str(&format!("  - {shown}\n"));
    }
}

/// Cuts Markdown that is longer than `bytes` at the end of a line.
#[must_use]
pub fn truncate_markdown(mut markdown: String, bytes: usize) -> String {
    if markdown.len() > bytes {
        let end = markdown.as_bytes()[..bytes].iter().rposition(|byte| *byte == b'\n');
        markdown.truncate(end.map_or(0, |end| end + 1));
        markdown.push_str("\n(cut)\n");
    }
    markdown
}
