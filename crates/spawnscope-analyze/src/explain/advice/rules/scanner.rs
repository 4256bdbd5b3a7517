//! Execs and opens that wait for a permission scanner (fanotify); on macOS, if the log says nothing
//! of scans, first launches of files that are slower than later ones. The fix is a security
//! decision, so the advice lists only narrow exclusions that products document (`scanners.tsv`),
//! and never suggests disabling protection.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::explain::advice::context::{RuleContext, most_at_once};
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{name, time};
use crate::explain::advice::tables::rows;
use crate::model::external_wait::{ExternalWait, external_wait_of};
use crate::model::grouped::grouped;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::syscalls::numbers;
use spawnscope_data::event::{Missing, Nanos, ObjectKind};
use spawnscope_data::rows::{SliceRow, TextId};
use spawnscope_data::statistics::median;
use spawnscope_data::units;

const PRODUCTS: &str = include_str!("../scanners.tsv");
/// The scanner of macOS.
const OF_MACOS: &str = "syspolicyd";
/// The system calls that execute a program.
const EXECS: [u16; 2] = numbers(["execve", "execveat"]);
/// Maximum number of files that are named.
const MAX_NAMED: usize = 3;
/// Maximum time on a CPU between two parts of one wait. The kernel wakes all waiting threads at
/// each answer, so a thread often runs for a moment and continues to wait for its own answer.
const MAX_WAKE_UP: Nanos = Nanos(10_000);
/// Number of files with slow first launches that are needed, each launched several times.
const MIN_FILES: usize = 3;
/// How much longer a first launch must take.
const MIN_DIFFERENCE: Nanos = Nanos(30_000_000);

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let mut objects = context.recording.objects.iter();
    if !objects.any(|object| object.kind == ObjectKind::Permission) {
        return slow_first_launches(context).into_iter().collect();
    }
    let waits = scanner_waits(context);
    let waited = sum_of(&waits);
    if waited <= context.min_saving() {
        return Vec::new();
    }
    vec![waiting(context, &waits, waited)]
}

/// Adds how to exclude files from the scans of these daemons.
fn with_exclusions(context: &RuleContext<'_, '_>, finding: Finding, daemons: &[String]) -> Finding {
    let known = exclusions(daemons);
    let case = if known.is_empty() { "" } else { "known" };
    finding.fix_lines(known).recipe(context, "scanner-after", &[case], &[])
}

fn exclusions(daemons: &[String]) -> Vec<&'static str> {
    let is_product = |name: &str| daemons.iter().any(|daemon| daemon.starts_with(name));
    let known = rows(PRODUCTS).filter(|[names, _]| names.split(' ').any(is_product));
    known.map(|[_, line]| line).collect()
}

fn waiting(context: &RuleContext<'_, '_>, waits: &[Wait], waited: Nanos) -> Finding {
    let mut launches: Vec<u32> = waits.iter().map(|wait| wait.launch).collect();
    launches.sort_unstable();
    launches.dedup();
    let daemon_of = |wait: &Wait| wait.daemon.map(|id| name(context.recording.texts.get(id)));
    let daemons = waits.iter().map(|wait| daemon_of(wait).unwrap_or_else(|| "an unknown program".to_owned()));
    let mut daemons: Vec<String> = daemons.collect();
    daemons.sort_unstable();
    daemons.dedup();
    let spans = waits.iter().map(|wait| wait.waited.0 as f64);
    let first_and_later = first_and_later_waits(context, waits);
    let [first, later] = first_and_later.map_or_else(Default::default, |spans| spans.map(time));
    let concurrent = most_at_once(waits.iter().map(|wait| (wait.from, wait.to)));
    let values = [
        ("daemons", &daemons.join(" and ")[..]),
        ("waits", &units::counted(waits.len() as u64, "wait", "waits")),
        ("processes", &units::counted(launches.len() as u64, "process", "processes")),
        ("median", &time(Nanos(median(spans).unwrap_or_default() as u64))),
        ("waited", &time(waited)),
        ("inside", &time(sum_of(waits.iter().filter(|wait| wait.in_exec)))),
        ("first", &first),
        ("later", &later),
        ("files", &slowest_files(context, waits).join(", ")),
        ("concurrent", &if concurrent > 1 { concurrent.to_string() } else { String::new() }),
    ];
    let finding = Finding::of(context, "scanner", launches, &[], &values).predicted_by(Change::NoScan, "--no-scan");
    with_exclusions(context, finding, &daemons)
}

/// One wait of a thread for a scanner's permission.
struct Wait {
    launch: u32,
    daemon: Option<TextId>,
    from: Nanos,
    to: Nanos,
    /// Sum of the off-CPU parts of the wait. The moments on a CPU between them do not count.
    waited: Nanos,
    in_exec: bool,
}

fn sum_of<'w>(waits: impl IntoIterator<Item = &'w Wait>) -> Nanos {
    Nanos(waits.into_iter().map(|wait| wait.waited.0).sum())
}

/// Returns all waits, by thread. Parts of one wait are joined.
fn scanner_waits(context: &RuleContext<'_, '_>) -> Vec<Wait> {
    let timelines = context.timelines();
    let mut waits = Vec::new();
    for (thread, each) in (0..).zip(&timelines.threads) {
        let mut current: Option<(Wait, Option<u16>)> = None;
        for slice in timelines.slices(thread).iter() {
            let part = part_of(&slice, each.launch);
            let is_continued = slice.calls == Some(0) && slice.on_span.is_some_and(|on| on < MAX_WAKE_UP);
            match (&mut current, part) {
                (Some((wait, call)), Some(part)) if is_continued && *call == slice.syscall => {
                    wait.waited.0 += part.waited.0;
                    (wait.to, wait.daemon) = (part.to, part.daemon.or(wait.daemon));
                }
                (_, part) => {
                    waits.extend(current.take().map(|(wait, _)| wait));
                    current = part.map(|part| (part, slice.syscall));
                }
            }
        }
        waits.extend(current.map(|(wait, _)| wait));
    }
    waits
}

/// Returns the wait, or the part of a wait, that one slice shows. `None` if the slice shows another
/// kind of wait, or a wait that did not end.
fn part_of(slice: &SliceRow, launch: u32) -> Option<Wait> {
    let ExternalWait::Scanner(daemon) = external_wait_of(slice) else {
        return None;
    };
    let span = slice.wake_span.or(slice.off_span)?;
    Some(Wait {
        launch,
        daemon,
        from: slice.off,
        to: Nanos(slice.off.0 + span.0),
        waited: span,
        in_exec: slice.syscall.is_some_and(|call| EXECS.contains(&call)),
    })
}

/// Names the files whose execs waited longest for a scanner.
fn slowest_files(context: &RuleContext<'_, '_>, waits: &[Wait]) -> Vec<String> {
    let mut files: HashMap<&[u8], (u64, u64)> = HashMap::new();
    for wait in waits.iter().filter(|wait| wait.in_exec) {
        let mut execs = context.launch(wait.launch).execs.iter();
        let exec = execs.find(|exec| exec.enter.get() <= Some(wait.from) && exec.returned.get() >= Some(wait.to));
        if let Some(exec) = exec {
            let (waited, count) = files.entry(exec.path()).or_default();
            *waited += wait.waited.0;
            *count += 1;
        }
    }
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by_key(|(path, (waited, _))| (Reverse(*waited), *path));
    let named = files.into_iter().take(MAX_NAMED).map(|(path, (waited, count))| {
        format!("{} ({} in {})", name(path), time(Nanos(waited)), units::counted(count, "wait", "waits"))
    });
    named.collect()
}

/// Returns the median wait of the first execs of files, and of their later execs. Only for files
/// that were executed more than once and scanned at least once. A scanner that caches its verdicts
/// does not scan again.
fn first_and_later_waits(context: &RuleContext<'_, '_>, waits: &[Wait]) -> Option<[Nanos; 2]> {
    let by_launch = grouped(waits.iter().filter(|wait| wait.in_exec).map(|wait| (wait.launch, wait)));
    let mut execs: Vec<(Nanos, &[u8], u64)> = Vec::new();
    for (index, launch) in (0..).zip(&context.forest().launches) {
        let launch_waits = by_launch.get(&index).map_or(&[][..], Vec::as_slice);
        for exec in &launch.execs {
            if let Some(returned) = exec.returned.get() {
                // An imported log may say only when an exec returned that waited for nothing.
                let enter = exec.enter.get().unwrap_or(returned);
                let inside = launch_waits.iter().filter(|wait| wait.from >= enter && wait.to <= returned);
                execs.push((enter, exec.path(), inside.map(|wait| wait.waited.0).sum()));
            }
        }
    }
    execs.sort_unstable();
    let mut by_path = grouped(execs.into_iter().map(|(_, path, waited)| (path, waited as f64)));
    by_path.retain(|_, waits| waits.len() > 1 && waits.iter().any(|waited| *waited > 0.0));
    let first = median(by_path.values().map(|waits| waits[0]))?;
    let later = median(by_path.values().flat_map(|waits| &waits[1..]).copied())?;
    Some([first, later].map(|span| Nanos(span as u64)))
}

fn slow_first_launches(context: &RuleContext<'_, '_>) -> Option<Finding> {
    if context.recording.info.missing.iter().all(|missing| missing.what != Missing::SCANS) {
        return None;
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
        return None;
    }
    firsts.retain(|(_, first, later)| first > later);
    let launches = firsts.iter().map(|(index, ..)| *index).collect();
    let values = [
        ("files", &units::counted(firsts.len() as u64, "file", "files")[..]),
        ("first", &time(Nanos(first as u64))),
        ("later", &time(Nanos(later as u64))),
    ];
    let finding = Finding::of(context, "scanner", launches, &[], &values)
        .predicted_by(Change::Replace((later / first * 1_000.0) as u32), "");
    Some(with_exclusions(context, finding, &[OF_MACOS.to_owned()]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::advice::tables::recipe;

    fn fix(daemons: &[&str], cases: &[&str]) -> String {
        let daemons: Vec<String> = daemons.iter().map(|daemon| (*daemon).to_owned()).collect();
        let exclusions = exclusions(&daemons).into_iter().map(str::to_owned);
        exclusions.chain(recipe("scanner-after", cases, &[]).fix).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn no_advice_disables_a_product() {
        let names: Vec<&str> = rows(PRODUCTS).flat_map(|[names, _]| names.split(' ')).collect();
        let all = fix(&names, &["known"]) + &recipe("scanner", &[], &[]).fix.join("\n");
        for word in ["disable", "stop ", "uninstall", "kill", "permissive", "OnAccessPrevention"] {
            assert!(!all.contains(word), "{word}");
        }
    }

    #[test]
    fn an_unknown_scanner_gets_general_advice() {
        let fix = fix(&["test-scanner"], &[]);
        assert!(fix.contains("manual") && !fix.contains("ClamAV"), "{fix}");
    }
}
