//! What first and second launches say about somebody who looks at executables: at new ones or at all, side by side or in a
//! queue.

use super::first_launch::{FIRST, FIRST_LAST, SECOND, SECOND_LAST, UNDISTURBED};
use crate::lab::harness::{FEWEST_ROUNDS, Measured};

/// A launch that takes so many times one that nobody looks at is looked at by something.
const SLOW: f64 = 2.0;
/// Who has slept for its first launch finds cold caches at the second: so much shorter, that is no look.
const FAR_LESS: f64 = 20.0;
/// One round in so many may have been lucky.
const LUCKY: usize = 10;

/// What the figures say about somebody who looks at each launch: a program's, in growing numbers at once, and those of the
/// same program where nobody watches, alone and in the largest number.
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
        "tiny: undisturbed, a second launch, too, takes {:.1} times one from memory: something looks at every executable each \
         time, or the temporary folder's file system is slow{}",
        seen.times(),
        queue(&seen, last.as_ref(), most).unwrap_or_default()
    ))
}

/// What the figures say about somebody who looks at new executables.
pub fn of_new(name: &str, measured: &[Measured]) -> Option<String> {
    let (alone, most) = (measured.first()?, measured.last()?);
    let seen = Seen::of((alone, FIRST), (alone, SECOND)).filter(Seen::is_slow)?;
    let last = Seen::of((most, FIRST_LAST), (most, SECOND_LAST));
    Some(format!(
        "{name}: undisturbed, a first launch takes {:.1} times a second one: something looks at new executables{}",
        seen.times(),
        queue(&seen, last.as_ref(), most).unwrap_or_default()
    ))
}

/// Launches that somebody may look at, and such as nobody does, undisturbed: what a machine does beside makes them longer and
/// never shorter, and so does a scanner, but each of them. So the quick end of the rounds tells the two apart, where a busy
/// machine moves medians and intervals. That all of six rounds with five launches each were disturbed where nobody looks, and
/// not all of the others, happens once in 800 runs where four launches of five are disturbed; more rounds make it
/// rarer. A scanner is missed as rarely.
struct Seen {
    watched: f64,
    unwatched: f64,
}

impl Seen {
    /// Of columns of two cases; `None` after fewer rounds than must be.
    fn of(watched: (&Measured, usize), unwatched: (&Measured, usize)) -> Option<Seen> {
        let quick_end = |(measured, column): (&Measured, usize)| {
            let mut values = measured.values(column + UNDISTURBED);
            values.sort_by(f64::total_cmp);
            let count = values.len();
            values.get(count / LUCKY).copied().filter(|_| count >= FEWEST_ROUNDS)
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

/// Whether they wait for each other, by one alone and the last of `most`. What launches at once take without anybody who looks
/// is in neither. The half is for who looks at two at a time, or has two CPUs for it.
fn queue(alone: &Seen, last: Option<&Seen>, most: &Measured) -> Option<String> {
    let at_once = most.keys.last()?.number().filter(|count| *count > 1.0)?;
    let times = last?.extra() / alone.extra();
    (times >= at_once / 2.0)
        .then(|| format!(", and they queue: of {at_once} at once the last waits {times:.1} times as long as one alone"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::outcome::Value;

    const MS: f64 = 1e6;

    /// So many at once, in rounds with these times of the first and of the second launch, and of the last of each.
    fn measured(at_once: u64, rounds: impl IntoIterator<Item = [f64; 4]>) -> Measured {
        Measured {
            keys: vec![Value::from("tiny"), Value::from(at_once)],
            // What was disturbed is of no matter.
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
    fn who_looks_at_each_launch_is_told_with_the_queue() {
        let ends = [3.06, 5.39, 7.34, 14.8, 31.0];
        let watched: Vec<Measured> = (0..)
            .zip(ends)
            .map(|(power, last)| quiet(1 << power, 3.0, last))
            .collect();
        let said = of_all(&watched, &in_memory()).unwrap();
        assert!(said.contains("takes 30.0 times one from memory"), "{said}");
        assert!(
            said.contains("queue: of 16 at once the last waits 10.3 times"),
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
    fn bad_rounds_hide_no_scanner_and_make_none() {
        let rounds =
            |count: usize, slow: usize| (0..count).map(move |round| if round < slow { [3.0; 4] } else { [0.1; 4] });
        let of_six = |slow| measured(1, rounds(6, slow));
        let most = || quiet(16, 3.0, 31.0);
        for disturbed in 0..6 {
            // Nobody looks, or somebody does while launches from memory are disturbed.
            assert_eq!(of_all(&[of_six(disturbed), most()], &in_memory()), None, "{disturbed}");
            let unwatched = [of_six(disturbed), quiet(16, 0.6, 1.2)];
            assert!(of_all(&[of_six(6), most()], &unwatched).is_some(), "{disturbed}");
        }
        let lucky_twice = measured(1, rounds(20, 18));
        assert!(of_all(&[lucky_twice, most()], &in_memory()).is_some(), "of twenty");
        let interrupted = measured(1, rounds(5, 5));
        assert_eq!(of_all(&[interrupted, most()], &in_memory()), None, "too few to say so");
    }

    #[test]
    fn who_looks_at_new_files_is_told_with_the_queue() {
        let new = |at_once, first, last| measured(at_once, [[first, last, 0.2, 0.2 * at_once as f64]; 6]);
        let said = of_new("tiny", &[new(1, 20.2, 20.2), new(4, 50.0, 80.2)]).unwrap();
        assert!(
            said.starts_with("tiny: undisturbed, a first launch takes 101.0 times")
                && said.contains("the last waits 4.0 times"),
            "{said}"
        );
        let said = of_new("tiny", &[new(1, 20.2, 20.2), new(4, 22.0, 25.0)]).unwrap();
        assert!(!said.contains("queue"), "{said}");
        // Sixteen at once take longer whoever looks.
        let said = of_new("tiny", &[new(1, 0.4, 0.4), new(16, 2.0, 3.5)]).unwrap();
        assert!(!said.contains("queue"), "{said}");
        assert_eq!(of_new("tiny", &[new(1, 0.3, 0.3), new(4, 0.9, 1.0)]), None);
    }
}
