//! Commands that a program starts through a shell: the section of a full report, and JSON.

use serde_json::{Value, json};

use super::page::{PLAIN, Page, QUIET, plain, styled};
use super::{text, units};
use crate::analyze::explain::tool_calls::{Reason, ToolCalls, fixes};

/// Maximum number of kinds, and of causes of each, that are shown.
const MAX_KINDS: usize = 4;
const MAX_CAUSES: usize = 5;

pub(super) fn print_tool_calls(page: &mut Page, kinds: &[ToolCalls]) {
    if kinds.is_empty() {
        return;
    }
    page.heading("Commands through a shell, until their own exec");
    for kind in kinds.iter().take(MAX_KINDS) {
        let [median, high, max] = kind.delay.map(units::time);
        let caller = text::escape(&kind.caller);
        let shape = text::escape(kind.shape.as_bytes());
        let count = units::count(kind.count as u64);
        let sentence = format!(
            "{caller} starts {count} commands with `{shape}`; each is executed after {median} (median; 95 % within {high}, at most {max})"
        );
        page.hanging([plain("  ")], PLAIN, &sentence);
        for cause in kind.causes.iter().take(MAX_CAUSES) {
            let time = text::pad_left(&units::time(cause.time), 11);
            let others =
                if cause.calls == kind.count { String::new() } else { format!("  ({} commands)", cause.calls) };
            let before = if cause.reason == Reason::Hook { "before it: " } else { "" };
            let label = text::truncate(&text::escape(&cause.label), page.width().saturating_sub(15));
            page.line([plain(format!("  {time}  {before}{label}")), styled(QUIET, others)]);
        }
        let fixes = fixes(kind).join(", ");
        if !fixes.is_empty() {
            page.sentence(4, PLAIN, &format!("-> {fixes}"));
        }
    }
}

/// Returns all kinds for JSON.
pub(super) fn values(kinds: &[ToolCalls]) -> Vec<Value> {
    let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let values = kinds.iter().map(|kind| {
        let causes = kind.causes.iter().map(|cause| {
            let reason = match cause.reason {
                Reason::StartUp => "start-up",
                Reason::Wrapper => "wrapper",
                Reason::Shim => "shim",
                Reason::Hook => "hook",
            };
            json!({ "reason": reason, "label": name(&cause.label), "commands": cause.calls, "time_ns": cause.time.0 })
        });
        json!({
            "caller": name(&kind.caller),
            "shape": kind.shape,
            "is_login": kind.is_login,
            "commands": kind.count,
            "delay_ns": { "median": kind.delay[0].0, "p95": kind.delay[1].0, "max": kind.delay[2].0 },
            "causes": causes.collect::<Vec<_>>(),
        })
    });
    values.collect()
}
