//! Waits for a scanner's permission: lists them, compares the first exec of a file with later ones, and counts concurrent waits.

use std::collections::HashMap;

use crate::advice::context::RuleContext;
use crate::external_wait::{ExternalWait, external_wait_of};
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::TextId;
use spawnscope_data::statistics::median;

/// System call numbers of x86-64: execve, execveat.
const EXECS: [u16; 2] = [59, 322];

pub(super) struct Wait {
    pub(super) launch: u32,
    pub(super) daemon: Option<TextId>,
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    pub(super) in_exec: bool,
}

impl Wait {
    pub(super) fn span(&self) -> Nanos {
        self.to.since(self.from)
    }
}

/// Returns all waits, grouped by thread.
pub(super) fn of_launches(context: &RuleContext<'_, '_>) -> Vec<Wait> {
    let timelines = context.timelines();
    let mut waits = Vec::new();
    for (thread, each) in (0..).zip(&timelines.threads) {
        for slice in timelines.slices(thread).iter() {
            let ExternalWait::Scanner(daemon) = external_wait_of(&slice) else {
                continue;
            };
            if let Some(span) = slice.wake_span.or(slice.off_span) {
                waits.push(Wait {
                    launch: each.launch,
                    daemon,
                    from: slice.off,
                    to: Nanos(slice.off.0 + span.0),
                    in_exec: slice.syscall.is_some_and(|call| EXECS.contains(&call)),
                });
            }
        }
    }
    waits
}

/// Returns the median waits of the first exec and of later execs of a file, over the files that were executed more than once and waited for
/// at all. A scanner that caches its verdicts does not scan again.
pub(super) fn first_and_later(context: &RuleContext<'_, '_>, waits: &[Wait]) -> Option<(Nanos, Nanos)> {
    let mut by_launch: HashMap<u32, Vec<&Wait>> = HashMap::new();
    for wait in waits.iter().filter(|wait| wait.in_exec) {
        by_launch.entry(wait.launch).or_default().push(wait);
    }
    let mut execs: Vec<(Nanos, &[u8], u64)> = Vec::new();
    for (index, launch) in (0..).zip(&context.forest().launches) {
        let of_launch = by_launch.get(&index).map_or(&[][..], Vec::as_slice);
        for exec in &launch.execs {
            if let (Some(enter), Some(returned)) = (exec.enter.get(), exec.returned.get()) {
                let inside = of_launch
                    .iter()
                    .filter(|wait| wait.from >= enter && wait.to <= returned);
                execs.push((enter, exec.path(), inside.map(|wait| wait.span().0).sum()));
            }
        }
    }
    execs.sort_unstable();
    let mut by_path: HashMap<&[u8], (u64, Vec<f64>)> = HashMap::new();
    for (_, path, waited) in execs {
        by_path
            .entry(path)
            .and_modify(|(_, later)| later.push(waited as f64))
            .or_insert((waited, Vec::new()));
    }
    let is_scanned = |(first, later): &(u64, Vec<f64>)| *first > 0 || later.iter().any(|waited| *waited > 0.0);
    let repeated = || by_path.values().filter(|all| !all.1.is_empty() && is_scanned(all));
    let first = median(repeated().map(|(first, _)| *first as f64))?;
    let later = median(repeated().flat_map(|(_, later)| later.iter().copied()))?;
    Some((Nanos(first as u64), Nanos(later as u64)))
}

/// Returns the largest number of concurrent waits.
pub(super) fn most_at_once(waits: &[Wait]) -> usize {
    let mut ends: Vec<(Nanos, bool)> = waits
        .iter()
        .flat_map(|wait| [(wait.from, true), (wait.to, false)])
        .collect();
    // At the same instant, ends sort before starts.
    ends.sort_unstable();
    let (mut most, mut now) = (0, 0_usize);
    for (_, begins) in ends {
        now = if begins { now + 1 } else { now.saturating_sub(1) };
        most = most.max(now);
    }
    most
}
