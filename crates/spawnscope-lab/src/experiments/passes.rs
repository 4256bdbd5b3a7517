//! Selects the parents that are measured in the same pass. If memory is short, parents that do not fit are measured in later passes.

use std::mem;

use crate::memory::AvailableMemory;

/// The parents that are still to be measured, and those that do not fit into memory at all.
pub struct Passes {
    /// For each series, the sizes of its parents in bytes, ascending. Earlier series have priority.
    waiting: Vec<Vec<u64>>,
    /// For each series, the peak memory while a parent is filled, as a multiple of its size.
    fill_factors: Vec<u64>,
    /// Sizes so large that not even one parent fits.
    left_out: Vec<u64>,
}

impl Passes {
    /// Creates passes for these series, each given by its sizes and its fill factor. The parents of a series are filled one after the
    /// other.
    pub fn new(series: Vec<(Vec<u64>, u64)>) -> Passes {
        let (waiting, fill_factors) = series.into_iter().unzip();
        Passes { waiting, fill_factors, left_out: Vec::new() }
    }

    /// Returns the next pass: for each series, the sizes that fit together with those of the other series; `None` if no parent is left. A
    /// series is only split if it does not fit alone, because sizes that are measured in turn are more comparable.
    pub fn next(&mut self, available: AvailableMemory) -> Option<Vec<Vec<u64>>> {
        self.leave_out(available.per_process.min(available.total));
        let mut free = available.total;
        let mut taken = vec![Vec::new(); self.waiting.len()];
        let mut is_first = true;
        for ((sizes, fill_factor), taken) in self.waiting.iter_mut().zip(&self.fill_factors).zip(&mut taken) {
            let fits = count_fitting(sizes, *fill_factor, free);
            if fits == sizes.len() || is_first {
                let remaining = sizes.split_off(fits);
                *taken = mem::replace(sizes, remaining);
                free -= needed_bytes(taken, *fill_factor);
            }
            is_first &= taken.is_empty();
        }
        (!is_first).then_some(taken)
    }

    /// Returns the sizes that do not fit, without duplicates.
    pub fn left_out(mut self) -> Vec<u64> {
        self.left_out.sort_unstable();
        self.left_out.dedup();
        self.left_out
    }

    fn leave_out(&mut self, max_bytes: u64) {
        for (sizes, fill_factor) in self.waiting.iter_mut().zip(&self.fill_factors) {
            let fits = sizes.partition_point(|size| size.saturating_mul(*fill_factor) <= max_bytes);
            self.left_out.extend(sizes.drain(fits..));
        }
    }
}

/// Returns how many of these sizes, counted from the first, fit together.
fn count_fitting(sizes: &[u64], fill_factor: u64, free: u64) -> usize {
    (1..=sizes.len()).take_while(|count| needed_bytes(&sizes[..*count], fill_factor) <= free).count()
}

/// Returns the memory that these parents need while the last and largest one is filled.
fn needed_bytes(sizes: &[u64], fill_factor: u64) -> u64 {
    let copies = sizes.last().map_or(0, |largest| largest.saturating_mul(fill_factor - 1));
    sizes.iter().fold(copies, |sum, size| sum.saturating_add(*size))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with_total(total: u64) -> AvailableMemory {
        AvailableMemory { total, per_process: u64::MAX }
    }

    /// Returns all passes, and the sizes that do not fit.
    fn passes(series: &[&[u64]], available: AvailableMemory) -> (Vec<Vec<Vec<u64>>>, Vec<u64>) {
        all_passes(Passes::new(series.iter().map(|sizes| (sizes.to_vec(), 1)).collect()), available)
    }

    fn all_passes(mut waiting: Passes, available: AvailableMemory) -> (Vec<Vec<Vec<u64>>>, Vec<u64>) {
        let passes = std::iter::from_fn(|| waiting.next(available)).collect();
        (passes, waiting.left_out())
    }

    #[test]
    fn all_parents_are_in_one_pass_if_they_fit() {
        let series: [&[u64]; 3] = [&[0, 10, 100], &[10, 100], &[]];
        let all = vec![vec![0, 10, 100], vec![10, 100], vec![]];
        assert_eq!(passes(&series, with_total(220)), (vec![all], vec![]));
        assert_eq!(passes(&[&[], &[]], with_total(220)), (vec![], vec![]));
    }

    #[test]
    fn series_that_do_not_fit_with_others_come_later_and_are_not_split() {
        let (passes, left_out) = passes(&[&[0, 10, 100], &[10, 100], &[1, 10]], with_total(130));
        let first = vec![vec![0, 10, 100], vec![], vec![1, 10]];
        assert_eq!(passes, [first, vec![vec![], vec![10, 100], vec![]]]);
        assert_eq!(left_out, [0; 0]);
    }

    #[test]
    fn a_size_is_left_out_only_if_one_parent_does_not_fit() {
        let (found, left_out) = passes(&[&[0, 50, 60, 100, 200], &[100, 200]], with_total(110));
        let expected = [vec![vec![0, 50, 60], vec![]], vec![vec![100], vec![]], vec![vec![], vec![100]]];
        assert_eq!((found, left_out), (expected.into(), vec![200]));
        let limited = AvailableMemory { total: 500, per_process: 60 };
        assert_eq!(passes(&[&[0, 50, 100]], limited), (vec![vec![vec![0, 50]]], vec![100]));
        assert_eq!(passes(&[&[0, 1]], with_total(0)), (vec![vec![vec![0]]], vec![1]));
    }

    #[test]
    fn a_fill_factor_of_2_needs_twice_the_size_of_the_parent_being_filled() {
        let all = vec![vec![0, 10], vec![0, 10, 100]];
        assert_eq!(passes_of_two(with_total(220)), (vec![all], vec![]));
        let separate = vec![vec![vec![0, 10], vec![]], vec![vec![], vec![0, 10, 100]]];
        assert_eq!(passes_of_two(with_total(219)), (separate, vec![]));
        let without = vec![vec![vec![0, 10], vec![0, 10]]];
        let limited = AvailableMemory { total: 500, per_process: 199 };
        assert_eq!(passes_of_two(limited), (without, vec![100]), "one process cannot map it twice");
    }

    fn passes_of_two(available: AvailableMemory) -> (Vec<Vec<Vec<u64>>>, Vec<u64>) {
        all_passes(Passes::new(vec![(vec![0, 10], 1), (vec![0, 10, 100], 2)]), available)
    }

    proptest! {
        #[test]
        fn every_parent_that_fits_is_measured_and_no_pass_is_too_large(
            mut series in prop::collection::vec(prop::collection::vec(0..50u64, 0..6), 0..5),
            total in 0..200u64,
        ) {
            for sizes in &mut series {
                sizes.sort_unstable();
            }
            let slices: Vec<&[u64]> = series.iter().map(Vec::as_slice).collect();
            let (passes, left_out) = passes(&slices, with_total(total));
            prop_assert!(passes.iter().all(|pass| pass.iter().flatten().sum::<u64>() <= total));
            prop_assert!(left_out.iter().all(|size| *size > total));
            for (number, sizes) in series.iter().enumerate() {
                let taken: Vec<u64> = passes.iter().flat_map(|pass| pass[number].clone()).collect();
                let fitting: Vec<u64> = sizes.iter().copied().filter(|size| *size <= total).collect();
                prop_assert_eq!(taken, fitting);
            }
        }
    }
}
