//! Evidence about call sites: the line that requested the most launches of a finding, and the line
//! that requested the example.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::name;
use crate::patterns::runtimes::shell_between;
use crate::sites::callers::CallerCounts;
use spawnscope_data::units;

/// Adds the evidence about call sites. A finding without a known call site is returned unchanged.
pub(super) fn add_evidence(context: &RuleContext<'_, '_>, mut finding: Finding) -> Finding {
    let callers = context.sites;
    let counts = callers.count(&finding.launches);
    match counts.largest.as_slice() {
        [] => return finding,
        // The text of a line that code of another language passes to a shell.
        [(only, _)] if only.file.is_none() && shell_between(context.forest(), finding.launches[0]).is_some() => {
            return finding;
        }
        [(only, _)] if counts.unknown == 0 => return finding.evidence(format!("call site: {}", name(&only.label()))),
        _ => {}
    }
    let example = context.example_launch(&finding.launches).or(finding.launches.first().copied());
    let call_site = example.and_then(|launch| callers.call_site_of(launch as usize));
    let label = call_site.map(|call_site| name(&call_site.label()));
    if finding.example.is_empty() {
        finding = finding.evidence_lines(label.map(|label| format!("call site of the first: {label}")));
    } else {
        finding.example_call_site = label;
    }
    finding.evidence(launched_from(&counts))
}

/// Formats `launched from unpack.sh:14 (71,000 times) and 2 more lines`.
fn launched_from(counts: &CallerCounts) -> String {
    let largest = counts.largest.first().map(|(call_site, count)| {
        let times = units::counted(*count, "time", "times");
        format!("{} ({times})", name(&call_site.short_label()))
    });
    let more = counts.largest.len().saturating_sub(1) as u64 + counts.other_call_sites;
    let mut sentence = format!("launched from {}", largest.unwrap_or_default());
    if more > 0 {
        sentence.push_str(" and ");
        sentence.push_str(&units::counted(more, "more line", "more lines"));
    }
    if counts.unknown > 0 {
        let unknown = units::counted(counts.unknown, "launch", "launches");
        sentence.push_str(&format!("; the line is unknown for {unknown}"));
    }
    sentence
}
