//! Infers from first and second launches whether a scanner examines all executables or only new
//! ones, and whether launches queue for it.

use super::first_launch::{FIRST_LAST_END, FIRST_MEDIAN, MINIMUM_OFFSET, SECOND_LAST_END, SECOND_MEDIAN};
use crate::harness::{MIN_ROUNDS, Measurements};

/// A launch that takes at least this many times as long as an unwatched one counts as scanned.
const MIN_SCANNED_RATIO: f64 = 2.0;
/// If the extra time of second launches is smaller than that of first launches by at least this
/// factor, second launches are not scanned. They are slower because the scan of the first launch
/// has displaced cached data.
const CACHE_FACTOR: f64 = 20.0;
/// For each full group of this many rounds, one outlier that is too fast is ignored. The fast ends
/// of the rounds are compared, not the medians: a scanner makes all launches longer, while on a
/// busy machine the median launch from memory may take as long as a scanned one.
const ROUNDS_PER_OUTLIER: usize = 10;

/// Returns a note if a scanner scans each launch. `watched` has the launches of a program, with
/// growing numbers of launches at once. `unwatched` has launches of the same program from memory:
/// one alone, and the largest number at once.
pub fn every_launch_note(watched: &[Measurements], unwatched: &[Measurements]) -> Option<String> {
    let ([alone, .., most], [unwatched_alone, .., unwatched_most]) = (watched, unwatched) else {
        return None;
    };
    let times =
        FastTimes::new((alone, SECOND_MEDIAN), (unwatched_alone, SECOND_MEDIAN)).filter(FastTimes::is_scanned)?;
    let first = FastTimes::new((alone, FIRST_MEDIAN), (unwatched_alone, FIRST_MEDIAN))?;
    if times.extra_ns() * CACHE_FACTOR < first.extra_ns() {
        return None;
    }
    let last = FastTimes::new((most, SECOND_LAST_END), (unwatched_most, SECOND_LAST_END));
    Some(format!(
        "tiny: undisturbed, even a second launch takes {:.1} times as long as one from memory, so a scanner examines every executable each \
         time, or the temporary directory's file system is slow{}",
        times.ratio(),
        queue_clause(&times, last.as_ref(), most).unwrap_or_default()
    ))
}

/// Returns a note if a scanner scans new executables.
pub fn new_file_note(name: &str, measured: &[Measurements]) -> Option<String> {
    let (alone, most) = (measured.first()?, measured.last()?);
    let times = FastTimes::new((alone, FIRST_MEDIAN), (alone, SECOND_MEDIAN)).filter(FastTimes::is_scanned)?;
    let last = FastTimes::new((most, FIRST_LAST_END), (most, SECOND_LAST_END));
    Some(format!(
        "{name}: undisturbed, a first launch takes {:.1} times as long as a second one, so a scanner examines new executables{}",
        times.ratio(),
        queue_clause(&times, last.as_ref(), most).unwrap_or_default()
    ))
}

/// Times of launches in nanoseconds from the fastest rounds: of launches that may be scanned, and
/// of launches that are not. Other load on the machine makes some launches slower, a scanner makes
/// all of them slower. So the fastest rounds distinguish the two, while a busy machine shifts
/// medians and intervals. A scanner is reported wrongly only if all six rounds of five launches
/// that may be scanned are disturbed, but not all of the other rounds. If four of five launches are
/// disturbed, this happens once in 800 runs, and more rarely with more rounds. Missing a scanner is
/// equally rare.
struct FastTimes {
    watched: f64,
    unwatched: f64,
}

impl FastTimes {
    /// Takes the times from a column of each case; returns `None` if there are too few rounds.
    fn new(watched: (&Measurements, usize), unwatched: (&Measurements, usize)) -> Option<FastTimes> {
        Some(FastTimes { watched: fast_time(watched)?, unwatched: fast_time(unwatched)? })
    }

    fn ratio(&self) -> f64 {
        self.watched / self.unwatched
    }

    fn is_scanned(&self) -> bool {
        self.ratio() >= MIN_SCANNED_RATIO
    }

    fn extra_ns(&self) -> f64 {
        self.watched - self.unwatched
    }
}

fn fast_time((measured, column): (&Measurements, usize)) -> Option<f64> {
    let mut values = measured.values(column + MINIMUM_OFFSET);
    values.sort_by(f64::total_cmp);
    let count = values.len();
    values.get(count / ROUNDS_PER_OUTLIER).copied().filter(|_| count >= MIN_ROUNDS)
}

/// Returns a clause if concurrent launches queue: the extra time of the last of `most` launches at
/// once is compared with that of a single launch. Extra times are differences from unscanned
/// launches, so the time that concurrent launches need without a scanner cancels out. Half of a
/// full queue is enough, as with a scanner that has two threads or CPUs.
fn queue_clause(alone: &FastTimes, last: Option<&FastTimes>, most: &Measurements) -> Option<String> {
    let at_once = most.keys.last()?.number().filter(|count| *count > 1.0)?;
    let times = last?.extra_ns() / alone.extra_ns();
    (times >= at_once / 2.0).then(|| {
        format!(", and they queue: of {at_once} at once, the last waits {times:.1} times as long as one alone")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Value;

    const MS: f64 = 1e6;

    /// Returns a case of `at_once` launches at once. Each round has four times in milliseconds: the
    /// first launches, the last end of these, the second launches, and the last end of these.
    fn measured(at_once: u64, rounds: impl IntoIterator<Item = [f64; 4]>) -> Measurements {
        Measurements {
            keys: vec![Value::from("tiny"), Value::from(at_once)],
            // The medians over groups are disturbed, which must not matter.
            rounds: rounds.into_iter().map(|round| [[1e9; MINIMUM_OFFSET], round.map(|ms| ms * MS)].concat()).collect(),
            launches: None,
            failure: None,
        }
    }

    fn undisturbed(at_once: u64, one: f64, last: f64) -> Measurements {
        measured(at_once, [[one, last, one, last]; 6])
    }

    fn in_memory() -> [Measurements; 2] {
        [undisturbed(1, 0.1, 0.1), undisturbed(16, 0.6, 1.2)]
    }

    #[test]
    fn scanners_of_launches_are_reported_with_their_queue() {
        let ends = [3.06, 5.39, 7.34, 14.8, 31.0];
        let watched: Vec<Measurements> =
            (0..).zip(ends).map(|(power, last)| undisturbed(1 << power, 3.0, last)).collect();
        let note = every_launch_note(&watched, &in_memory()).unwrap();
        assert!(note.contains("takes 30.0 times as long as one from memory"), "{note}");
        assert!(note.contains("queue: of 16 at once, the last waits 10.3 times"), "{note}");
        let in_parallel = [undisturbed(1, 3.0, 3.0), undisturbed(16, 4.0, 9.0)];
        let note = every_launch_note(&in_parallel, &in_memory()).unwrap();
        assert!(note.contains("each time") && !note.contains("queue"), "{note}");
        let only_at_first = [measured(1, [[75.0, 75.0, 0.23, 0.23]; 6]), measured(16, [[640.0, 1200.0, 0.9, 1.1]; 6])];
        assert_eq!(every_launch_note(&only_at_first, &in_memory()), None, "cold caches");
        let unscanned = [undisturbed(1, 0.12, 0.12), undisturbed(16, 0.7, 1.4)];
        assert_eq!(every_launch_note(&unscanned, &in_memory()), None);
    }

    #[test]
    fn disturbed_rounds_neither_hide_nor_fake_a_scanner() {
        for disturbed in 0..6 {
            // First without a scanner; then with one, while launches from memory are disturbed.
            assert_eq!(every_launch_note(&with_slow_rounds(6, disturbed), &in_memory()), None, "{disturbed}");
            let [single, _] = with_slow_rounds(6, disturbed);
            let unwatched = [single, undisturbed(16, 0.6, 1.2)];
            assert!(every_launch_note(&with_slow_rounds(6, 6), &unwatched).is_some(), "{disturbed}");
        }
        assert!(every_launch_note(&with_slow_rounds(20, 18), &in_memory()).is_some(), "two of twenty are fast");
        assert_eq!(every_launch_note(&with_slow_rounds(5, 5), &in_memory()), None, "too few rounds");
    }

    fn with_slow_rounds(count: usize, slow: usize) -> [Measurements; 2] {
        let rounds = (0..count).map(|round| if round < slow { [3.0; 4] } else { [0.1; 4] });
        [measured(1, rounds), undisturbed(16, 3.0, 31.0)]
    }

    #[test]
    fn scanners_of_new_files_are_reported_with_their_queue() {
        let note = new_file_note("tiny", &[new_files(1, 20.2, 20.2), new_files(4, 50.0, 80.2)]).unwrap();
        assert!(
            note.starts_with("tiny: undisturbed, a first launch takes 101.0 times")
                && note.contains("the last waits 4.0 times"),
            "{note}"
        );
        let note = new_file_note("tiny", &[new_files(1, 20.2, 20.2), new_files(4, 22.0, 25.0)]).unwrap();
        assert!(!note.contains("queue"), "{note}");
        // Sixteen launches at once take longer even without a queue.
        let note = new_file_note("tiny", &[new_files(1, 0.4, 0.4), new_files(16, 2.0, 3.5)]).unwrap();
        assert!(!note.contains("queue"), "{note}");
        assert_eq!(new_file_note("tiny", &[new_files(1, 0.3, 0.3), new_files(4, 0.9, 1.0)]), None);
    }

    fn new_files(at_once: u64, first: f64, last: f64) -> Measurements {
        measured(at_once, [[first, last, 0.2, 0.2 * at_once as f64]; 6])
    }
}
