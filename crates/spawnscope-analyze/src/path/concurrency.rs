//! How many threads were on a CPU, and how many waited for one, over the time of a recording.

use crate::model::slices::ThreadSlices;
use crate::model::timeline::{Timelines, beginning, runnable};
use spawnscope_data::event::Nanos;

/// The mean numbers of threads in each of several equal parts of the recorded time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Concurrency {
    pub running: Vec<f32>,
    pub waiting: Vec<f32>,
}

/// Counts threads in `parts` equal parts of the time until `end`. `None` without slices.
pub fn concurrency(timelines: &Timelines, end: Nanos, parts: usize) -> Option<Concurrency> {
    let threads = 0..timelines.threads.len() as u32;
    if end.0 == 0 || parts == 0 || threads.clone().all(|thread| timelines.slices(thread).is_empty()) {
        return None;
    }
    let mut running = Occupancy::new(end, parts);
    let mut waiting = Occupancy::new(end, parts);
    for thread in threads {
        add(timelines.slices(thread), &mut running, &mut waiting);
    }
    Some(Concurrency { running: running.means(), waiting: waiting.means() })
}

/// Returns the largest number of threads that were on a CPU at the same time.
pub fn most_running(timelines: &Timelines) -> u32 {
    let threads = 0..timelines.threads.len() as u32;
    let stretches = threads.flat_map(|thread| timelines.slices(thread).iter());
    let mut changes: Vec<(Nanos, i64)> = Vec::new();
    for slice in stretches.filter(|slice| slice.on_span.is_some_and(|span| span.0 > 0)) {
        changes.extend([(beginning(&slice), 1), (slice.off, -1)]);
    }
    // Where one stretch ends as another one begins, they do not overlap.
    changes.sort_unstable();
    let running = changes.iter().scan(0, |running, (_, change)| {
        *running += change;
        Some(*running)
    });
    running.max().unwrap_or_default() as u32
}

fn add(slices: ThreadSlices<'_>, running: &mut Occupancy, waiting: &mut Occupancy) {
    for slice in slices.iter() {
        running.add(beginning(&slice), slice.off);
        if let Some((from, to)) = runnable(&slice) {
            waiting.add(from, to);
        }
    }
}

/// Sums intervals over equal parts of a time span. A long interval costs as much as a short one:
/// `add` records only its ends, and `means` fills in the parts between them.
struct Occupancy {
    /// Nanoseconds of one part.
    width: f64,
    /// For each part, the covered nanoseconds of intervals that begin or end in it.
    partial: Vec<f64>,
    /// For each part, the change from the previous part in the number of intervals that cover all
    /// of it.
    whole: Vec<i64>,
}

impl Occupancy {
    fn new(end: Nanos, parts: usize) -> Occupancy {
        Occupancy { width: end.0 as f64 / parts as f64, partial: vec![0.0; parts], whole: vec![0; parts + 1] }
    }

    fn add(&mut self, start: Nanos, end: Nanos) {
        let parts = self.partial.len();
        let limit = self.width * parts as f64;
        let (start, end) = ((start.0 as f64).min(limit), (end.0 as f64).min(limit));
        if end <= start {
            return;
        }
        let [first, last] = [start, end].map(|at| ((at / self.width) as usize).min(parts - 1));
        if first == last {
            self.partial[first] += end - start;
            return;
        }
        self.partial[first] += (first + 1) as f64 * self.width - start;
        self.partial[last] += end - last as f64 * self.width;
        self.whole[first + 1] += 1;
        self.whole[last] -= 1;
    }

    fn means(self) -> Vec<f32> {
        let mut covering = 0;
        let parts = self.partial.iter().zip(&self.whole);
        parts
            .map(|(partial, change)| {
                covering += change;
                (partial / self.width + covering as f64) as f32
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_means_add_up_to_the_intervals() {
        let mut occupancy = Occupancy::new(Nanos(100), 10);
        occupancy.add(Nanos(5), Nanos(35));
        occupancy.add(Nanos(20), Nanos(24));
        occupancy.add(Nanos(95), Nanos(400));
        let means = occupancy.means();
        let wanted = [0.5, 1.0, 1.4, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5];
        for (mean, wanted) in means.iter().zip(wanted) {
            assert!((mean - wanted).abs() < 1e-6, "{means:?}");
        }
    }
}
