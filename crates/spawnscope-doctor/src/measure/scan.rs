//! Measures whether files are scanned before their first launch. Launches fresh copies of a program
//! one by one, each several times, and then other copies concurrently, which shows whether launches
//! queue for the scanner.

use std::os::fd::AsRawFd;
use std::time::Duration;

use super::launches::{Image, LaunchError, Series, SharedResults, Work, launch, launch_concurrently};
use super::median;
use super::temporary_directory::TemporaryDirectory;
use spawnscope_data::event::Nanos;
use spawnscope_system::launch_timing::measuring_process::{self, Measurement};
use spawnscope_system::tiny;

pub(super) const SEQUENTIAL_COPIES: usize = 7;
pub(super) const CONCURRENT_COPIES: usize = 8;
const REPETITIONS: usize = 2;
/// The minimum number of launches of each kind to distinguish a delay from noise.
const MIN_LAUNCHES: usize = 5;
/// For delays of at least this length, this many launches are enough: only waits for a CPU could
/// delay a launch that long by chance, and there is no time for more launches.
const MIN_LAUNCHES_FOR_LONG_DELAYS: [(Nanos, usize); 2] = [(Nanos(80_000_000), 2), (Nanos(10_000_000), 3)];
/// An operation that does not finish is blamed on a scanner only if a launch from memory takes at
/// most this long.
const MAX_HEALTHY_LAUNCH: Nanos = Nanos(50_000_000);
pub(super) const TOTAL_TIMEOUT: Duration = Duration::from_millis(800);

/// Times of first and later launches of files that were never executed before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Whether some launches waited for a CPU for most of their time, or even launches from memory
    /// were slow. The waiting launches are left out; if too few remain, all are kept, with their
    /// waits subtracted.
    pub is_disturbed: bool,
    pub creation_times: Vec<Nanos>,
    pub first_launches: Vec<Nanos>,
    pub later_launches: Vec<Nanos>,
    /// Launches of the same program from memory, where no scanner sees it; empty if the kernel
    /// forbids such launches.
    pub memory_launches: Vec<Nanos>,
    /// The operation that had not finished even once when the time limit was reached.
    pub stuck: Option<StuckOperation>,
    /// First launches of further files, all concurrent: the time from the common start to the end
    /// of each, in the order of the ends.
    pub concurrent_launches: Vec<Nanos>,
}

/// An operation that did not finish, and the time after which it was abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StuckOperation {
    Creation(Nanos),
    Launch(Nanos),
}

impl Scan {
    /// Returns how much longer a first launch takes than a later one; `None` if the difference is
    /// below `min_delay` or within the noise.
    pub fn first_delay(&self, min_delay: Nanos) -> Option<Nanos> {
        delay(&self.first_launches, &self.later_launches, min_delay)
    }

    /// Returns how much longer a later launch takes than one from memory; `None` if the difference
    /// is below `min_delay` or within the noise.
    pub fn later_delay(&self, min_delay: Nanos) -> Option<Nanos> {
        delay(&self.later_launches, &self.memory_launches, min_delay)
    }

    /// Returns whether there are enough launches of each kind to conclude that no kind is slower.
    pub fn is_conclusive(&self) -> bool {
        [&self.first_launches, &self.later_launches, &self.memory_launches]
            .iter()
            .all(|times| times.len() >= MIN_LAUNCHES)
    }

    /// Returns how many successive delays the concurrent launches suffered: their total time, less
    /// that of as many successive launches from memory, divided by `delay`. For a single-threaded
    /// scanner, this is the number of launches.
    pub fn queued_delays(&self, delay: Nanos) -> Option<f64> {
        let last = self.concurrent_launches.iter().max()?;
        let unscanned = median(self.memory_launches.clone()).unwrap_or_default();
        let launches = Nanos(unscanned.0 * self.concurrent_launches.len() as u64);
        Some(last.since(launches).0 as f64 / delay.0 as f64)
    }
}

/// Returns the difference of the medians or of the minima, whichever is less, because a scanner
/// delays all launches. Three quarters of the slow launches must be slower than three quarters of
/// the fast ones.
fn delay(slow: &[Nanos], quick: &[Nanos], min_delay: Nanos) -> Option<Nanos> {
    let (mut slow, mut quick) = (slow.to_vec(), quick.to_vec());
    slow.sort_unstable();
    quick.sort_unstable();
    let are_separate = slow.get(slow.len() / 4)? > quick.get(quick.len() * 3 / 4)?;
    let min_difference = slow.first()?.since(*quick.first()?);
    let delay = median(slow.clone())?.since(median(quick.clone())?).min(min_difference);
    let long = MIN_LAUNCHES_FOR_LONG_DELAYS.iter().find(|(span, _)| delay >= *span);
    let fewest = long.map_or(MIN_LAUNCHES, |(_, fewest)| *fewest);
    (are_separate && slow.len().min(quick.len()) >= fewest && delay >= min_delay).then_some(delay)
}

/// Writes and launches files in a directory, for at most `limit`.
pub(super) fn measure(directory: &TemporaryDirectory, limit: Duration) -> Option<Scan> {
    let copies: Vec<Image> = (0..SEQUENTIAL_COPIES + CONCURRENT_COPIES)
        .map(|number| directory.program(number, None))
        .collect::<Option<_>>()?;
    let program = tiny::program(0, "");
    let (one_by_one, concurrent) = copies.split_at(SEQUENTIAL_COPIES);
    let concurrent: &[Image; CONCURRENT_COPIES] = concurrent.try_into().ok()?;
    let measured = measuring_process::measure(limit, |results: &SharedResults| {
        let [created, first, later, unscanned, together] = &results.series;
        let memory = tiny::in_memory(&program).ok();
        for copy in one_by_one {
            // If the kernel forbids launches from memory, there are none.
            let _ = memory
                .as_ref()
                .and_then(|file| add_repetitions(unscanned, Work::ExecuteInMemory(file.as_raw_fd()), limit));
            add(created, Work::Write(copy.path(), &program), limit)?;
            add(first, Work::Execute(copy), limit)?;
            add_repetitions(later, Work::Execute(copy), limit)?;
        }
        for copy in concurrent {
            launch(Work::Write(copy.path(), &program), limit).ok()?;
        }
        launch_concurrently(concurrent, together)
    });
    Some(evaluate(&measured.ok()?, limit))
}

fn evaluate(measured: &Measurement<SharedResults>, limit: Duration) -> Scan {
    let all = &measured.results.series;
    let [created, first, later, unscanned, concurrent] = std::array::from_fn(|kind| all[kind].times());
    let [_, undisturbed_first, undisturbed_later, undisturbed_unscanned, _] =
        std::array::from_fn(|kind| all[kind].undisturbed_times(MIN_LAUNCHES));
    let waited = Nanos(limit.as_nanos() as u64);
    // Either the doctor or the measuring process notices first that the time is up.
    let is_late = !measured.is_in_time || all.iter().any(|series| series.abandoned_after().is_some());
    // If even launches from memory are slow, a scanner is not the cause.
    let is_healthy = unscanned.first().is_none_or(|time| *time <= MAX_HEALTHY_LAUNCH);
    let stuck = if !is_late || !is_healthy {
        None
    } else if created.is_empty() {
        Some(StuckOperation::Creation(waited))
    } else {
        first.is_empty().then(|| StuckOperation::Launch(waited.since(created[0])))
    };
    let are_all_undisturbed =
        [&first, &later, &unscanned] == [&undisturbed_first, &undisturbed_later, &undisturbed_unscanned];
    Scan {
        is_disturbed: !are_all_undisturbed || !is_healthy,
        creation_times: created,
        first_launches: undisturbed_first,
        later_launches: undisturbed_later,
        memory_launches: undisturbed_unscanned,
        stuck,
        concurrent_launches: concurrent,
    }
}

fn add_repetitions(series: &Series, work: Work<'_>, limit: Duration) -> Option<()> {
    (0..REPETITIONS).try_for_each(|_| add(series, work, limit))
}

fn add(series: &Series, work: Work<'_>, limit: Duration) -> Option<()> {
    match launch(work, limit) {
        Ok(launched) => {
            series.add(launched);
            Some(())
        }
        Err(LaunchError::TookTooLong) => {
            series.abandon(Nanos(limit.as_nanos() as u64));
            None
        }
        Err(LaunchError::Failed) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn scan(first: &[u64], later: &[u64], unscanned: &[u64], concurrent: &[u64]) -> Scan {
        let [first_launches, later_launches, memory_launches, concurrent_launches] =
            [first, later, unscanned, concurrent].map(|launches| launches.iter().map(|ms| Nanos(ms * MS)).collect());
        Scan { first_launches, later_launches, memory_launches, concurrent_launches, ..Scan::default() }
    }

    fn delays(scan: &Scan) -> [Option<u64>; 2] {
        let delays = [scan.first_delay(Nanos(MS)), scan.later_delay(Nanos(MS))];
        delays.map(|delay| delay.map(|delay| delay.0 / MS))
    }

    #[test]
    fn slow_first_launches_show_a_scanner_and_late_concurrent_launches_a_queue() {
        let scan = scan(&[21, 22, 21, 21], &[1, 1, 2, 1], &[1, 1, 1, 1], &[20, 40, 60, 80]);
        assert_eq!(delays(&scan), [Some(20), None]);
        assert!((3.7..4.0).contains(&scan.queued_delays(Nanos(20 * MS)).unwrap()));
    }

    #[test]
    fn launches_that_are_all_slower_than_from_memory_are_all_scanned() {
        let scan = scan(&[21, 22, 21, 21], &[21, 21, 22, 21], &[1, 1, 2, 1], &[20, 40]);
        assert_eq!(delays(&scan), [None, Some(20)]);
    }

    #[test]
    fn noise_and_small_delays_do_not_show_a_scanner() {
        for scan in [scan(&[1, 9, 1, 9], &[1, 2, 1, 9], &[], &[3]), scan(&[], &[], &[], &[])] {
            assert_eq!(delays(&scan), [None, None]);
        }
        let small_delay = scan(&[7, 7, 7], &[5, 5, 5], &[], &[]);
        assert_eq!(small_delay.first_delay(Nanos(3 * MS)), None);
    }
}
