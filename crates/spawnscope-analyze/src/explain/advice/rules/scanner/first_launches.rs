//! The first launches of files on macOS, when the log says nothing of scans: they are slower than
//! later launches of the same files.

use super::products;
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::time;
use crate::model::grouped::grouped;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::{Missing, Nanos};
use spawnscope_data::statistics::median;
use spawnscope_data::units;

/// Number of files that are needed, each launched several times.
const MIN_FILES: usize = 3;
/// How much longer a first launch must take.
const MIN_DIFFERENCE: Nanos = Nanos(30_000_000);

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    if context.recording.info.missing.iter().all(|missing| missing.what != Missing::SCANS) {
        return Vec::new();
    }
    let mut by_path = grouped(context.launched().filter_map(|(index, launch)| {
        let (start, end) = launch.start().zip(launch.end())?;
        Some((launch.execs.last()?.path(), (start, index, end.since(start).0 as f64)))
    }));
    let mut firsts = Vec::new();
    for launches in by_path.values_mut().filter(|launches| launches.len() > 1) {
        launches.sort_by_key(|(start, ..)| *start);
        let later = median(launches[1..].iter().map(|(.., span)| *span)).unwrap_or_default();
        firsts.push((launches[0].1, launches[0].2, later));
    }
    let first = median(firsts.iter().map(|(_, first, _)| *first)).unwrap_or_default();
    let later = median(firsts.iter().map(|(.., later)| *later)).unwrap_or_default();
    if firsts.len() < MIN_FILES || first < 2.0 * later + MIN_DIFFERENCE.0 as f64 {
        return Vec::new();
    }
    firsts.retain(|(_, first, later)| first > later);
    vec![finding(context, &firsts, first, later)]
}

fn finding(context: &RuleContext<'_, '_>, firsts: &[(u32, f64, f64)], first: f64, later: f64) -> Finding {
    let launches = firsts.iter().map(|(index, ..)| *index).collect();
    let files = units::counted(firsts.len() as u64, "file", "files");
    let title = "the first launch of each file is slow, as if macOS checks the file";
    let finding = Finding::modelled("scanner", title, launches)
        .fixed_elsewhere()
        .evidence(format!(
            "{files}: the first launch took a median of {}, later launches {}",
            time(Nanos(first as u64)),
            time(Nanos(later as u64))
        ))
        .with_example(context)
        .recipe("scanner-terminal", &[], &[])
        .predicted_by(Change::Replace((later / first * 1_000.0) as u32), "");
    products::with_fix(finding, &["syspolicyd".to_owned()])
}
