//! Counts and histograms of launches by command since the start of a recording, for monitoring
//! systems. The number of commands is bounded; the launches of all further commands are counted
//! together.

use std::collections::BTreeMap;

use super::EndedLaunch;
use crate::model::phases::Phase;
use spawnscope_data::event::Nanos;

/// The name of the row that sums all commands without a row of their own.
pub const OTHER: &str = "other";

/// The upper ends of the buckets in microseconds, from 100 µs to 10 s. They are fixed, so that
/// histograms of different machines and different times can be added.
const BUCKETS_US: [u64; 11] = [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000, 10_000_000];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The count of each bucket, not cumulative; the last entry counts longer durations.
    counts: [u64; BUCKETS_US.len() + 1],
    pub sum: Nanos,
}

impl Histogram {
    fn observe(&mut self, duration: Nanos) {
        let bucket = BUCKETS_US.partition_point(|end| end * 1_000 < duration.0);
        self.counts[bucket] += 1;
        self.sum.0 = self.sum.0.saturating_add(duration.0);
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Iterates over the buckets: the upper end, and how many durations are at most that long.
    pub fn cumulative(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        let counts = self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        BUCKETS_US.into_iter().map(|end| Nanos(end * 1_000)).zip(counts)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandMetrics {
    pub launches: u64,
    /// Number of launches that exited with a status other than 0 or were killed.
    pub failures: u64,
    phases: [Histogram; Phase::ALL.len()],
}

impl CommandMetrics {
    /// Iterates over the phases that at least one launch had.
    pub fn phases(&self) -> impl Iterator<Item = (Phase, &Histogram)> {
        let phases = Phase::ALL.into_iter().zip(&self.phases);
        phases.filter(|(_, histogram)| histogram.count() > 0)
    }

    fn add(&mut self, launch: &EndedLaunch) {
        self.launches += 1;
        self.failures += u64::from(launch.has_failed());
        let Some(phases) = &launch.phases else { return };
        for (phase, time) in phases.iter().filter(|(phase, _)| phases.has(*phase)) {
            if let Some(time) = time {
                self.phases[phase as usize].observe(time);
            }
        }
    }
}

#[derive(Debug)]
pub struct LaunchMetrics {
    max_commands: usize,
    commands: BTreeMap<String, CommandMetrics>,
}

impl LaunchMetrics {
    /// Creates empty metrics, in which the first `max_commands` commands get a row each. A command
    /// keeps its row, because a counter must not decrease.
    pub fn new(max_commands: usize) -> LaunchMetrics {
        LaunchMetrics { max_commands, commands: BTreeMap::new() }
    }

    /// Adds a launch that has ended. `command` is its name as displayed, so that names that are
    /// displayed in the same way share a row.
    pub fn add(&mut self, command: String, launch: &EndedLaunch) {
        let others = usize::from(self.commands.contains_key(OTHER));
        let has_room = self.commands.len() - others < self.max_commands;
        let row = if has_room || self.commands.contains_key(&command) { command } else { OTHER.to_owned() };
        self.commands.entry(row).or_default().add(launch);
    }

    pub fn commands(&self) -> impl Iterator<Item = (&str, &CommandMetrics)> + Clone {
        self.commands.iter().map(|(name, metrics)| (name.as_str(), metrics))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cumulative_buckets_count_all_durations_up_to_their_upper_end() {
        let mut histogram = Histogram::default();
        for duration in [0, 100_000, 100_001, 20_000_000_000] {
            histogram.observe(Nanos(duration));
        }
        let cumulative: Vec<u64> = histogram.cumulative().map(|(_, count)| count).collect();
        assert_eq!(cumulative, [2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]);
        assert_eq!((histogram.count(), histogram.sum), (4, Nanos(20_000_200_001)));
    }
}
