//! Whether something looks at a file before it is first launched: fresh copies of a program, each launched twice, and then others
//! all at once, which shows whether they queue.

use std::time::Duration;

use super::folder::Folder;
use super::image::{self, Image};
use super::median;
use super::small::{self, Work};
use crate::event::Nanos;

/// Copies that are launched one after the other.
const ONE_BY_ONE: usize = 7;
/// Copies that are launched at once.
const AT_ONCE: usize = 8;
/// How long all of it may take.
const LIMIT: Duration = Duration::from_millis(900);

/// First and later launches of files that nobody has executed before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// The first launch of each file.
    pub first: Vec<Nanos>,
    /// The second one.
    pub later: Vec<Nanos>,
    /// Launches of the same program from memory, where no scanner sees it; none where the kernel forbids that.
    pub unscanned: Vec<Nanos>,
    /// Whether the time for all of this was up before a first launch had ended.
    pub is_stuck: bool,
    /// Files launched at once for the first time: from then to the end of each, in the order of their ends.
    pub at_once: Vec<Nanos>,
}

impl Scan {
    /// How long a first launch was waited for.
    pub const PATIENCE: Duration = LIMIT;

    /// By how much a first launch takes longer than a later one; `None` when that is no more than chance, or than this.
    #[must_use]
    pub fn first_delay(&self, least: Nanos) -> Option<Nanos> {
        delay(&self.first, &self.later, least)
    }

    /// By how much even a later launch takes longer than one from memory, likewise.
    #[must_use]
    pub fn later_delay(&self, least: Nanos) -> Option<Nanos> {
        delay(&self.later, &self.unscanned, least)
    }

    /// How long all that were launched at once took, in delays of one: behind one thread, as many as there were.
    #[must_use]
    pub fn queue(&self, delay: Nanos) -> Option<f64> {
        let last = self.at_once.iter().max()?;
        Some(last.0 as f64 / delay.0 as f64)
    }
}

/// The difference of the medians, where three quarters of the slow ones are slower than three quarters of the quick ones.
fn delay(slow: &[Nanos], quick: &[Nanos], least: Nanos) -> Option<Nanos> {
    let sorted = |times: &[Nanos]| {
        let mut times = times.to_vec();
        times.sort_unstable();
        times
    };
    let (slow, quick) = (sorted(slow), sorted(quick));
    let is_apart = slow.get(slow.len() / 4)? > quick.get(quick.len() * 3 / 4)?;
    let delay = median(slow)?.since(median(quick)?);
    (is_apart && delay >= least).then_some(delay)
}

pub(super) fn measure(folder: &Folder) -> Option<Scan> {
    let copies: Vec<Image> = (0..ONE_BY_ONE + AT_ONCE)
        .map(|number| {
            let path = folder.path().join(format!("copy-{number}"));
            let is_written = image::write_static(&path).ok()?;
            is_written.then(|| Image::new(&path, std::iter::empty()))?
        })
        .collect::<Option<_>>()?;
    let program = image::static_program()?;
    let (one_by_one, at_once) = copies.split_at(ONE_BY_ONE);
    let at_once: &[Image; AT_ONCE] = at_once.try_into().ok()?;
    let measured = small::measure(LIMIT, |board| {
        let [first, later, together, unscanned] = &board.series;
        let memory = image::in_memory(&program);
        for copy in one_by_one {
            first.add(small::launch(Work::Execute(copy))?);
            later.add(small::launch(Work::Execute(copy))?);
            if let Some(time) = memory.and_then(|file| small::launch(Work::ExecuteInMemory(file))) {
                unscanned.add(time);
            }
        }
        small::launch_together(at_once, together)
    });
    let measured = measured.ok()?;
    let [first, later, together, unscanned] = &measured.board.series;
    Some(Scan {
        first: first.times(),
        later: later.times(),
        unscanned: unscanned.times(),
        is_stuck: !measured.is_in_time && first.times().is_empty(),
        at_once: together.times(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn scan(first: &[u64], later: &[u64], unscanned: &[u64], at_once: &[u64]) -> Scan {
        let times = |ms: &[u64]| ms.iter().map(|ms| Nanos(ms * MS)).collect();
        Scan {
            first: times(first),
            later: times(later),
            unscanned: times(unscanned),
            is_stuck: false,
            at_once: times(at_once),
        }
    }

    fn delays(scan: &Scan) -> [Option<u64>; 2] {
        let delays = [scan.first_delay(Nanos(MS)), scan.later_delay(Nanos(MS))];
        delays.map(|delay| delay.map(|delay| delay.0 / MS))
    }

    #[test]
    fn what_is_slower_at_first_is_scanned_and_all_behind_each_other_are_a_queue() {
        let scan = scan(&[21, 22, 21, 21], &[1, 1, 2, 1], &[1, 1, 1, 1], &[20, 40, 60, 80]);
        assert_eq!(delays(&scan), [Some(20), None]);
        assert!((3.9..4.1).contains(&scan.queue(Nanos(20 * MS)).unwrap()));
    }

    #[test]
    fn what_is_always_slower_than_from_memory_is_scanned_each_time() {
        let scan = scan(&[21, 22, 21, 21], &[21, 21, 22, 21], &[1, 1, 2, 1], &[20, 40]);
        assert_eq!(delays(&scan), [None, Some(20)]);
    }

    #[test]
    fn chance_and_what_is_too_little_are_no_scanner() {
        for scan in [scan(&[1, 9, 1, 9], &[1, 2, 1, 9], &[], &[3]), scan(&[], &[], &[], &[])] {
            assert_eq!(delays(&scan), [None, None]);
        }
        let little = scan(&[7, 7, 7], &[5, 5, 5], &[], &[]);
        assert_eq!(little.first_delay(Nanos(3 * MS)), None);
    }
}
