//! Execs and opens that wait for a permission scanner (fanotify). The fix is a security decision,
//! so the advice lists only narrow exclusions that products document, and never suggests disabling
//! protection.

mod first_launches;
mod products;
mod waits;

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{name, time};
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::{Nanos, ObjectKind};
use spawnscope_data::statistics::median;
use spawnscope_data::units;
use waits::{Wait, first_and_later_waits, max_concurrent, slowest_files};

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let mut objects = context.recording.objects.iter();
    if !objects.any(|object| object.kind == ObjectKind::Permission) {
        return first_launches::find(context);
    }
    let waits = waits::scanner_waits(context);
    let waited = Nanos(waits.iter().map(|wait| wait.waited.0).sum());
    if waited <= context.min_saving() {
        return Vec::new();
    }
    vec![finding(context, &waits, waited)]
}

fn finding(context: &RuleContext<'_, '_>, waits: &[Wait], waited: Nanos) -> Finding {
    let mut launches: Vec<u32> = waits.iter().map(|wait| wait.launch).collect();
    launches.sort_unstable();
    launches.dedup();
    let mut daemons: Vec<String> = waits.iter().map(|wait| daemon_name(context, wait)).collect();
    daemons.sort_unstable();
    daemons.dedup();
    let title = format!("execs and opens wait for a permission scanner: {}", daemons.join(" and "));
    let evidence = evidence(context, waits, waited, &launches);
    let finding = Finding::measured("scanner", title, launches)
        .fixed_elsewhere()
        .evidence_lines(evidence)
        .with_example(context)
        .recipe("scanner-exclusions", &[], &[])
        .predicted_by(Change::NoScan, "--no-scan");
    products::with_fix(finding, &daemons)
}

fn daemon_name(context: &RuleContext<'_, '_>, wait: &Wait) -> String {
    let known = wait.daemon.map(|id| name(context.recording.texts.get(id)));
    known.unwrap_or_else(|| "an unknown program".to_owned())
}

fn evidence(context: &RuleContext<'_, '_>, waits: &[Wait], waited: Nanos, launches: &[u32]) -> Vec<String> {
    let in_exec: u64 = waits.iter().filter(|wait| wait.in_exec).map(|wait| wait.waited.0).sum();
    let spans = waits.iter().map(|wait| wait.waited.0 as f64);
    let mut evidence = vec![format!(
        "{} by {}: a median of {}, {} in all, {} of it inside execve",
        units::counted(waits.len() as u64, "wait", "waits"),
        units::counted(launches.len() as u64, "process", "processes"),
        time(Nanos(median(spans).unwrap_or_default() as u64)),
        time(waited),
        time(Nanos(in_exec)),
    )];
    if let Some((first, later)) = first_and_later_waits(context, waits) {
        evidence.push(format!(
            "the first exec of each file waited a median of {}, later execs {}",
            time(first),
            time(later)
        ));
    }
    evidence.extend(slowest_files_text(context, waits));
    let concurrent = max_concurrent(waits);
    if concurrent > 1 {
        evidence.push(format!(
            "up to {concurrent} processes waited at once: a scanner that answers one request at a time makes all of them wait for the slowest"
        ));
    }
    evidence
}

/// Names the files whose execs waited longest. `None` if no wait was inside an exec.
fn slowest_files_text(context: &RuleContext<'_, '_>, waits: &[Wait]) -> Option<String> {
    const MAX_NAMED: usize = 3;
    let files = slowest_files(context, waits);
    let named = files.iter().take(MAX_NAMED).map(|(path, waited, count)| {
        let waits = units::counted(*count, "wait", "waits");
        format!("{} ({} in {waits})", name(path), time(*waited))
    });
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| format!("the execs of these files waited longest: {}", named.join(", ")))
}
