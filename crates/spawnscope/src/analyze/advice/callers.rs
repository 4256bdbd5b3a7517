//! The lines behind a finding: where its example was asked for, and which lines asked for most of its launches.

use super::Finding;
use super::context::{RuleContext, name};
use crate::analyze::callers::{CallSite, CallerCounts, Callers};
use crate::units;

/// Sentences for the evidence; none when no line is known.
pub(super) fn evidence(context: &RuleContext<'_, '_>, callers: &Callers, finding: &Finding) -> Vec<String> {
    let counts = callers.count(&finding.launches);
    let example = context
        .example_launch(&finding.launches)
        .or(finding.launches.first().copied());
    let example = example.and_then(|launch| callers.of(launch as usize));
    match (counts.most.as_slice(), example) {
        ([], _) => Vec::new(),
        ([(only, _)], _) if counts.unknown == 0 => vec![format!("asked for at {}", name(&only.label()))],
        (_, None) => vec![from(&counts)],
        (_, Some(example)) => vec![
            format!("the example was asked for at {}", name(&example.label())),
            from(&counts),
        ],
    }
}

/// `from unpack.sh:14 (71,000) and 2 more lines`
fn from(counts: &CallerCounts) -> String {
    let told =
        |(call_site, count): &(CallSite, u64)| format!("{} ({})", name(&call_site.short_label()), units::count(*count));
    let most = counts.most.first().map(told).unwrap_or_default();
    let more = counts.most.len().saturating_sub(1) as u64 + counts.other_places;
    let mut sentence = format!("from {most}");
    if more > 0 {
        sentence.push_str(" and ");
        sentence.push_str(&units::counted(more, "more line", "more lines"));
    }
    if counts.unknown > 0 {
        let unknown = units::counted(counts.unknown, "launch", "launches");
        sentence.push_str(&format!("; of {unknown} the line is unknown"));
    }
    sentence
}
