//! Selects the parents that are measured together if memory is short: all that fit, and the rest in another pass.

use std::mem;

use crate::memory::Room;

/// The parents that are still to be measured, and those that never can be.
pub struct Passes {
    /// For each series, the sizes of its parents in bytes, ascending. Earlier series have priority.
    waiting: Vec<Vec<u64>>,
    /// For each series, the peak memory while a parent is filled, as a multiple of its size.
    to_fill: Vec<u64>,
    /// Sizes of which not even one parent fits.
    left_out: Vec<u64>,
}

impl Passes {
    /// Starts with all parents waiting, given the sizes of each series and its peak factor. Parents of a series are filled one after the
    /// other.
    pub fn of(series: Vec<(Vec<u64>, u64)>) -> Passes {
        let (waiting, to_fill) = series.into_iter().unzip();
        Passes {
            waiting,
            to_fill,
            left_out: Vec::new(),
        }
    }

    /// The next pass: for each series, the sizes that fit beside all others; `None` when no parent is left. A series is only split if it
    /// does not fit on its own, because sizes that are measured in turns are more comparable.
    pub fn next(&mut self, room: Room) -> Option<Vec<Vec<u64>>> {
        self.leave_out(room.each.min(room.in_all));
        let mut free = room.in_all;
        let mut taken = vec![Vec::new(); self.waiting.len()];
        let mut is_first = true;
        for ((sizes, to_fill), taken) in self.waiting.iter_mut().zip(&self.to_fill).zip(&mut taken) {
            let fits = fitting(sizes, *to_fill, free);
            if fits == sizes.len() || is_first {
                let rest = sizes.split_off(fits);
                *taken = mem::replace(sizes, rest);
                free -= needed(taken, *to_fill);
            }
            is_first &= taken.is_empty();
        }
        (!is_first).then_some(taken)
    }

    /// The sizes that do not fit, without duplicates.
    pub fn left_out(mut self) -> Vec<u64> {
        self.left_out.sort_unstable();
        self.left_out.dedup();
        self.left_out
    }

    fn leave_out(&mut self, most: u64) {
        for (sizes, to_fill) in self.waiting.iter_mut().zip(&self.to_fill) {
            let fits = sizes.partition_point(|size| size.saturating_mul(*to_fill) <= most);
            self.left_out.extend(sizes.drain(fits..));
        }
    }
}

/// How many of these sizes fit, counted from the first.
fn fitting(sizes: &[u64], to_fill: u64, room: u64) -> usize {
    let fits = |count: &usize| needed(&sizes[..*count], to_fill) <= room;
    (1..=sizes.len()).take_while(fits).count()
}

/// The memory that these parents need while the largest is filled.
fn needed(sizes: &[u64], to_fill: u64) -> u64 {
    let copies = sizes.last().map_or(0, |largest| largest.saturating_mul(to_fill - 1));
    sizes.iter().fold(copies, |sum, size| sum.saturating_add(*size))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn room(in_all: u64) -> Room {
        Room { in_all, each: u64::MAX }
    }

    /// All passes, and the sizes that do not fit.
    fn passes(series: &[&[u64]], room: Room) -> (Vec<Vec<Vec<u64>>>, Vec<u64>) {
        let mut waiting = Passes::of(series.iter().map(|sizes| (sizes.to_vec(), 1)).collect());
        let passes = std::iter::from_fn(|| waiting.next(room)).collect();
        (passes, waiting.left_out())
    }

    #[test]
    fn where_there_is_room_all_live_at_once() {
        let series: [&[u64]; 3] = [&[0, 10, 100], &[10, 100], &[]];
        let all = vec![vec![0, 10, 100], vec![10, 100], vec![]];
        assert_eq!(passes(&series, room(220)), (vec![all], vec![]));
        assert_eq!(passes(&[&[], &[]], room(220)), (vec![], vec![]));
    }

    #[test]
    fn series_that_do_not_fit_beside_others_come_later_and_whole() {
        let (passes, left_out) = passes(&[&[0, 10, 100], &[10, 100], &[1, 10]], room(130));
        let first = vec![vec![0, 10, 100], vec![], vec![1, 10]];
        assert_eq!(passes, [first, vec![vec![], vec![10, 100], vec![]]]);
        assert_eq!(left_out, [0; 0]);
    }

    #[test]
    fn a_size_is_left_out_only_if_one_parent_of_it_does_not_fit() {
        let (found, left_out) = passes(&[&[0, 50, 60, 100, 200], &[100, 200]], room(110));
        let of_first = |sizes: &[u64]| vec![sizes.to_vec(), vec![]];
        let expected = [of_first(&[0, 50, 60]), of_first(&[100]), vec![vec![], vec![100]]];
        assert_eq!((found, left_out), (expected.into(), vec![200]));
        let each = Room { in_all: 500, each: 60 };
        assert_eq!(passes(&[&[0, 50, 100]], each), (vec![vec![vec![0, 50]]], vec![100]));
        assert_eq!(passes(&[&[0, 1]], room(0)), (vec![vec![vec![0]]], vec![1]));
    }

    #[test]
    fn a_shell_that_is_being_filled_takes_its_size_twice() {
        let found = |in_all: u64, each: u64| {
            let mut waiting = Passes::of(vec![(vec![0, 10], 1), (vec![0, 10, 100], 2)]);
            let passes: Vec<_> = std::iter::from_fn(|| waiting.next(Room { in_all, each })).collect();
            (passes, waiting.left_out())
        };
        let all = vec![vec![0, 10], vec![0, 10, 100]];
        assert_eq!(found(220, u64::MAX), (vec![all], vec![]));
        let apart = vec![vec![vec![0, 10], vec![]], vec![vec![], vec![0, 10, 100]]];
        assert_eq!(found(219, u64::MAX), (apart, vec![]));
        let without = vec![vec![vec![0, 10], vec![0, 10]]];
        assert_eq!(found(500, 199), (without, vec![100]), "one process cannot map it twice");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_too_much(mut series in prop::collection::vec(prop::collection::vec(0..50u64, 0..6), 0..5), in_all in 0..200u64) {
            for sizes in &mut series {
                sizes.sort_unstable();
            }
            let slices: Vec<&[u64]> = series.iter().map(Vec::as_slice).collect();
            let (passes, left_out) = passes(&slices, room(in_all));
            let fits = |pass: &Vec<Vec<u64>>| pass.iter().flatten().sum::<u64>() <= in_all;
            prop_assert!(passes.iter().all(fits));
            prop_assert!(left_out.iter().all(|size| *size > in_all));
            for (number, sizes) in series.iter().enumerate() {
                let taken: Vec<u64> = passes.iter().flat_map(|pass| pass[number].clone()).collect();
                let fitting: Vec<u64> = sizes.iter().copied().filter(|size| *size <= in_all).collect();
                prop_assert_eq!(taken, fitting);
            }
        }
    }
}
