//! Rows of numbers in shared memory. One process adds rows; others read the complete rows at any
//! time.

use std::sync::atomic::{AtomicU64, Ordering};

use super::shared::Shareable;

/// Up to `ROWS` rows of `VALUES` numbers; empty if all bytes are zero.
#[derive(Debug)]
#[repr(C)]
pub struct Series<const VALUES: usize, const ROWS: usize> {
    complete: AtomicU64,
    rows: [[AtomicU64; VALUES]; ROWS],
}

// SAFETY: consists of atomic numbers, for which zero is valid.
unsafe impl<const VALUES: usize, const ROWS: usize> Shareable for Series<VALUES, ROWS> {}

impl<const VALUES: usize, const ROWS: usize> Series<VALUES, ROWS> {
    /// Adds a row; drops it if the series is full.
    pub fn add(&self, values: [u64; VALUES]) {
        let number = self.complete.load(Ordering::Relaxed);
        if let Some(row) = self.rows.get(number as usize) {
            for (cell, value) in row.iter().zip(values) {
                cell.store(value, Ordering::Relaxed);
            }
            self.complete.store(number + 1, Ordering::Release);
        }
    }

    pub fn rows(&self) -> impl Iterator<Item = [u64; VALUES]> {
        let complete = self.complete.load(Ordering::Acquire) as usize;
        self.rows.iter().take(complete).map(|row| std::array::from_fn(|value| row[value].load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch_timing::clone::fork;
    use crate::launch_timing::shared::SharedMapping;
    use crate::process::reap;

    #[test]
    fn rows_that_a_child_adds_are_read_and_those_beyond_the_capacity_are_dropped() {
        let series = SharedMapping::<Series<2, 3>>::map().unwrap();
        assert_eq!(series.rows().count(), 0);
        let child = fork(|| {
            (1..=5).for_each(|number| series.add([number, 10 * number]));
            0
        });
        assert_eq!(reap(child.unwrap()).unwrap().1, 0);
        assert_eq!(series.rows().collect::<Vec<_>>(), [[1, 10], [2, 20], [3, 30]]);
    }
}
