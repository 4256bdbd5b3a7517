//! Shared memory in which a measuring process stores times of launches for the doctor. Bytes of
//! zero mean that nothing is stored.

use super::median;
use spawnscope_data::event::Nanos;
use spawnscope_system::launch_timing::series;
use spawnscope_system::launch_timing::shared::Shareable;

pub(super) const MAX_TIMES: usize = 48;
pub(super) const SERIES: usize = 5;

#[derive(Clone, Copy)]
pub(super) struct LaunchTime {
    pub(super) took: Nanos,
    /// How long the child and the parent waited for a CPU, as part of `took`; zero if the kernel
    /// does not report it.
    pub(super) waited: Nanos,
}

impl LaunchTime {
    /// Returns whether the launch waited for a CPU for more than half of its time.
    pub(super) fn is_disturbed(self) -> bool {
        self.waited.0 * 2 > self.took.0
    }
}

#[repr(C)]
pub(super) struct SharedResults {
    pub(super) series: [Series; SERIES],
}

/// The times of one kind of launch. All times are in nanoseconds.
#[repr(C)]
pub(super) struct Series {
    /// The time of the first launch, whose files are not yet cached.
    first_launch: series::Series<1, 1>,
    /// The time after which the first launch was abandoned.
    abandoned_after: series::Series<1, 1>,
    /// The time of each launch, and how long it waited for a CPU.
    launches: series::Series<2, MAX_TIMES>,
}

impl Series {
    pub(super) fn add(&self, launch: LaunchTime) {
        self.launches.add([launch.took.0, launch.waited.0]);
    }

    fn launches(&self) -> impl Iterator<Item = LaunchTime> {
        self.launches.rows().map(|[took, waited]| LaunchTime { took: Nanos(took), waited: Nanos(waited) })
    }

    pub(super) fn times(&self) -> Vec<Nanos> {
        self.launches().map(|launch| launch.took).collect()
    }

    /// Returns the times of the undisturbed launches. If there are fewer than `min_count`, returns
    /// the times of all launches, less their waits for a CPU.
    pub(super) fn undisturbed_times(&self, min_count: usize) -> Vec<Nanos> {
        let launches: Vec<LaunchTime> = self.launches().collect();
        let undisturbed = launches.iter().filter(|launch| !launch.is_disturbed());
        let undisturbed: Vec<Nanos> = undisturbed.map(|launch| launch.took).collect();
        if undisturbed.len() >= min_count {
            return undisturbed;
        }
        // A time during which both the child and its parent waited is subtracted twice, so the
        // difference can be zero.
        let times = launches.iter().map(|launch| launch.took.since(launch.waited));
        times.filter(|time| time.0 > 0).collect()
    }

    pub(super) fn set_first(&self, launch: LaunchTime) {
        self.first_launch.add([launch.took.0]);
    }

    pub(super) fn abandon(&self, after: Nanos) {
        self.abandoned_after.add([after.0]);
    }

    /// Returns the median, or the time of the first launch if there are no others.
    pub(super) fn typical(&self) -> Option<Nanos> {
        median(self.times()).or_else(|| only(&self.first_launch))
    }

    pub(super) fn abandoned_after(&self) -> Option<Nanos> {
        only(&self.abandoned_after)
    }
}

fn only(time: &series::Series<1, 1>) -> Option<Nanos> {
    time.rows().next().map(|[time]| Nanos(time))
}

// SAFETY: consists of atomic numbers, for which zero is valid.
unsafe impl Shareable for SharedResults {}
