//! Evidence about call sites: the line that requested the example, and the lines that requested most launches of a finding.

use crate::advice::context::RuleContext;
use crate::advice::finding::Finding;
use crate::advice::phrases::name;
use crate::callers::{CallSite, CallerCounts};
use spawnscope_data::units;

/// Returns evidence sentences. Empty when no call site is known.
pub(super) fn evidence(context: &RuleContext<'_, '_>, finding: &Finding) -> Vec<String> {
    let callers = context.callers;
    let counts = callers.count(&finding.launches);
    let example = context
        .example_launch(&finding.launches)
        .or(finding.launches.first().copied());
    let example = example.and_then(|launch| callers.of(launch as usize));
    match (counts.most.as_slice(), example) {
        ([], _) => Vec::new(),
        ([(only, _)], _) if counts.unknown == 0 => vec![format!("call site: {}", name(&only.label()))],
        (_, None) => vec![from(&counts)],
        (_, Some(example)) => vec![
            format!("call site of the example: {}", name(&example.label())),
            from(&counts),
        ],
    }
}

/// Formats `from unpack.sh:14 (71,000) and 2 more lines`.
fn from(counts: &CallerCounts) -> String {
    let entry =
        |(call_site, count): &(CallSite, u64)| format!("{} ({})", name(&call_site.short_label()), units::count(*count));
    let most = counts.most.first().map(entry).unwrap_or_default();
    let more = counts.most.len().saturating_sub(1) as u64 + counts.other_call_sites;
    let mut sentence = format!("from {most}");
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
