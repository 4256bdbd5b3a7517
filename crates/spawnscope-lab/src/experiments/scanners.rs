//! Infers scanners from first and second launches: whether new executables or all are scanned, and whether in parallel or in a queue.

use super::first_launch::{FIRST, FIRST_LAST, SECOND, SECOND_LAST, UNDISTURBED};
use crate::harness::{MIN_ROUNDS, Measured};

/// A launch this many times slower than an unwatched one is scanned.
const SLOW: f64 = 2.0;
/// A scanned first launch may leave cold caches for the second. If the extra time shrinks by this factor, the second launch is not scanned.
const FAR_LESS: f64 = 20.0;
/// One round in this many may be a lucky outlier.
const LUCKY: usize = 10;

/// A note on a scanner that scans each launch. `watched` has the launches of a program, with growing numbers of launches at once.
/// `unwatched` has launches of the same program from memory: one alone, and the largest number at once.
pub fn of_all(watched: &[Measured], unwatched: &[Measured]) -> Option<String> {
    let ([alone, .., most], [unwatched_alone, .., unwatched_most]) = (watched, unwatched) else {
        return None;
    };
    let seen = Seen::of((alone, SECOND), (unwatched_alone, SECOND)).filter(Seen::is_slow)?;
    let first = Seen::of((alone, FIRST), (unwatched_alone, FIRST))?;
    if seen.extra() * FAR_LESS < first.extra() {
        return None;
    }
    let last = Seen::of((most, SECOND_LAST), (unwatched_most, SECOND_LAST));
    Some(format!(
        "tiny: undisturbed, even a second launch takes {:.1} times as long as one from memory: a scanner examines every executable each \
         time, or the temporary directory's file system is slow{}",
        seen.times(),
        queue(&seen, last.as_ref(), most).unwrap_or_default()
    ))
}

/// A note on a scanner that scans new executables.
pub fn of_new(name: &str, measured: &[Measured]) -> Option<String> {
    let (alone, most) = (measured.first()?, measured.last()?);
    let seen = Seen::of((alone, FIRST), (alone, SECOND)).filter(Seen::is_slow)?;
    let last = Seen::of((most, FIRST_LAST), (most, SECOND_LAST));
    Some(format!(
        "{name}: undisturbed, a first launch takes {:.1} times as long as a second one: a scanner examines new executables{}",
        seen.times(),
        queue(&seen, last.as_ref(), most).unwrap_or_default()
    ))
}

/// Undisturbed times of launches that may be scanned, and of launches that are not. Other load on the machine only makes launches slower; a
/// scanner does too, but all of them. The fast end of the rounds therefore distinguishes the two, while a busy machine shifts medians and
/// intervals. A false positive requires that, of the launches that may be scanned, all six rounds of five launches are disturbed, but not
/// all of the others; if four of five launches are disturbed, this happens once in 800 runs. More rounds make it rarer. Missing a scanner
/// is equally rare.
struct Seen {
    watched: f64,
    unwatched: f64,
}

impl Seen {
    /// From a column of each case; `None` with too few rounds.
    fn of(watched: (&Measured, usize), unwatched: (&Measured, usize)) -> Option<Seen> {
        let quick_end = |(measured, column): (&Measured, usize)| {
            let mut values = measured.values(column + UNDISTURBED);
            values.sort_by(f64::total_cmp);
            let count = values.len();
            values.get(count / LUCKY).copied().filter(|_| count >= MIN_ROUNDS)
        };
        Some(Seen {
            watched: quick_end(watched)?,
            unwatched: quick_end(unwatched)?,
        })
    }

    fn times(&self) -> f64 {
        self.watched / self.unwatched
    }

    fn is_slow(&self) -> bool {
        self.times() >= SLOW
    }

    fn extra(&self) -> f64 {
        self.watched - self.unwatched
    }
}

/// A clause if concurrent launches queue, judged by a single launch and by the last one of `most`. Both are differences, so the time that
/// launches at once need without a scanner cancels out. Half of the full queue suffices, for scanners with two threads or CPUs.
fn queue(alone: &Seen, last: Option<&Seen>, most: &Measured) -> Option<String> {
    let at_once = most.keys.last()?.number().filter(|count| *count > 1.0)?;
    let times = last?.extra() / alone.extra();
    (times >= at_once / 2.0).then(|| {
        format!(", and they queue: of {at_once} at once, the last waits {times:.1} times as long as one alone")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Value;

    const MS: f64 = 1e6;

    /// Launches of `at_once` programs at once, with these times per round: the first launch, its last end, the second launch, its last end.
    fn measured(at_once: u64, rounds: impl IntoIterator<Item = [f64; 4]>) -> Measured {
        Measured {
            keys: vec![Value::from("tiny"), Value::from(at_once)],
            // Disturbed times must not matter.
            rounds: rounds
                .into_iter()
                .map(|round| [[1e9; UNDISTURBED], round.map(|ms| ms * MS)].concat())
                .collect(),
            launches: None,
            failure: None,
        }
    }

    fn quiet(at_once: u64, one: f64, last: f64) -> Measured {
        measured(at_once, [[one, last, one, last]; 6])
    }

    fn in_memory() -> [Measured; 2] {
        [quiet(1, 0.1, 0.1), quiet(16, 0.6, 1.2)]
    }

    #[test]
    fn scanners_of_launches_are_reported_with_their_queue() {
        let ends = [3.06, 5.39, 7.34, 14.8, 31.0];
        let watched: Vec<Measured> = (0..)
            .zip(ends)
            .map(|(power, last)| quiet(1 << power, 3.0, last))
            .collect();
        let said = of_all(&watched, &in_memory()).unwrap();
        assert!(said.contains("takes 30.0 times as long as one from memory"), "{said}");
        assert!(
            said.contains("queue: of 16 at once, the last waits 10.3 times"),
            "{said}"
        );
        let side_by_side = [quiet(1, 3.0, 3.0), quiet(16, 4.0, 9.0)];
        let said = of_all(&side_by_side, &in_memory()).unwrap();
        assert!(said.contains("each time") && !said.contains("queue"), "{said}");
        let only_at_first = [
            measured(1, [[75.0, 75.0, 0.23, 0.23]; 6]),
            measured(16, [[640.0, 1200.0, 0.9, 1.1]; 6]),
        ];
        assert_eq!(of_all(&only_at_first, &in_memory()), None, "cold caches");
        let nobody = [quiet(1, 0.12, 0.12), quiet(16, 0.7, 1.4)];
        assert_eq!(of_all(&nobody, &in_memory()), None);
    }

    #[test]
    fn disturbed_rounds_neither_hide_nor_fake_a_scanner() {
        let rounds =
            |count: usize, slow: usize| (0..count).map(move |round| if round < slow { [3.0; 4] } else { [0.1; 4] });
        let of_six = |slow| measured(1, rounds(6, slow));
        let most = || quiet(16, 3.0, 31.0);
        for disturbed in 0..6 {
            // Without a scanner; then with one, while launches from memory are disturbed.
            assert_eq!(of_all(&[of_six(disturbed), most()], &in_memory()), None, "{disturbed}");
            let unwatched = [of_six(disturbed), quiet(16, 0.6, 1.2)];
            assert!(of_all(&[of_six(6), most()], &unwatched).is_some(), "{disturbed}");
        }
        let lucky_twice = measured(1, rounds(20, 18));
        assert!(of_all(&[lucky_twice, most()], &in_memory()).is_some(), "of twenty");
        let interrupted = measured(1, rounds(5, 5));
        assert_eq!(of_all(&[interrupted, most()], &in_memory()), None, "too few rounds");
    }

    #[test]
    fn scanners_of_new_files_are_reported_with_their_queue() {
        let new = |at_once, first, last| measured(at_once, [[first, last, 0.2, 0.2 * at_once as f64]; 6]);
        let said = of_new("tiny", &[new(1, 20.2, 20.2), new(4, 50.0, 80.2)]).unwrap();
        assert!(
            said.starts_with("tiny: undisturbed, a first launch takes 101.0 times")
                && said.contains("the last waits 4.0 times"),
            "{said}"
        );
        let said = of_new("tiny", &[new(1, 20.2, 20.2), new(4, 22.0, 25.0)]).unwrap();
        assert!(!said.contains("queue"), "{said}");
        // Sixteen at once take longer even without a queue.
        let said = of_new("tiny", &[new(1, 0.4, 0.4), new(16, 2.0, 3.5)]).unwrap();
        assert!(!said.contains("queue"), "{said}");
        assert_eq!(of_new("tiny", &[new(1, 0.3, 0.3), new(4, 0.9, 1.0)]), None);
    }
}
