//! Measures how much recording adds to each system call, launch and exec. The recorder times its own calls and launches before the collector
//! is attached, and again when the collector is attached and follows the recorder too. After every second call, it executes instructions that
//! fill the L1 instruction cache, as an ordinary program does. Without them, the collector's code would stay cached and cost a third less.

use super::launches::{LaunchTimes, Launcher};
use super::summarize;
use crate::arch::fill_instruction_cache;
use crate::launch_timing::timing::{make_system_calls, timed};
use spawnscope_data::event::{Calibration, Constant};

/// Number of calls in a round, which are timed together.
const CALLS: u32 = 100;
/// Number of rounds. Together they take a millisecond.
const ROUNDS: usize = 9;

/// The durations of a system call and of launches without a recording, in nanoseconds.
pub struct UnrecordedTimes {
    call: f64,
    launcher: Option<(Launcher, LaunchTimes)>,
}

impl UnrecordedTimes {
    /// Measures the durations.
    #[must_use]
    pub fn measure() -> UnrecordedTimes {
        let mut rounds = nanos_per_call();
        rounds.sort_by(f64::total_cmp);
        // If this fails, only what recording adds to launches stays unknown.
        let launcher = Launcher::new().ok();
        UnrecordedTimes {
            call: rounds[ROUNDS / 2],
            launcher: launcher.map(|launcher| {
                let times = launcher.times();
                (launcher, times)
            }),
        }
    }

    /// Returns how much longer system calls, launches and execs take now. Constants without a measurable difference are omitted.
    #[must_use]
    pub fn compare(&self) -> Vec<Calibration> {
        let calls = nanos_per_call().map(|nanos| nanos - self.call).to_vec();
        let mut found: Vec<_> = summarize(Constant::RecordedCall, calls).into_iter().collect();
        if let Some((launcher, before)) = &self.launcher {
            found.extend(compare_launches(before, launcher.times()));
        }
        found
    }
}

/// How many launches with an exec, and how many without one, are compared: the fastest ones.
const COMPARED_LAUNCHES: usize = 5;

/// Returns how much longer a launch takes, and how much longer an exec takes. Only the fastest launches are compared, because other programs
/// delay launches, most of them if the machine is busy. A launch with an exec is longer by the sum of both constants.
fn compare_launches(before: &LaunchTimes, now: LaunchTimes) -> impl Iterator<Item = Calibration> + use<> {
    let launch = increase(&before.plain, now.plain, 0.0).and_then(|by| summarize(Constant::RecordedLaunch, by));
    let launch_ns = launch.map_or(0.0, |launch| launch.ns);
    let exec = increase(&before.executing, now.executing, launch_ns);
    let exec = exec.and_then(|by| summarize(Constant::RecordedExec, by));
    launch.into_iter().chain(exec)
}

/// Returns by how much each of the fastest launches exceeds the median of the earlier ones plus `known_increase`.
fn increase(before: &[f64], now: Vec<f64>, known_increase: f64) -> Option<Vec<f64>> {
    let base = fastest(before.to_vec()).get(COMPARED_LAUNCHES / 2)? + known_increase;
    Some(fastest(now).into_iter().map(|nanos| nanos - base).collect())
}

fn fastest(mut times: Vec<f64>) -> Vec<f64> {
    times.sort_by(f64::total_cmp);
    times.truncate(COMPARED_LAUNCHES);
    times
}

/// Returns the nanoseconds per call in each round.
fn nanos_per_call() -> [f64; ROUNDS] {
    [(); ROUNDS].map(|()| {
        let time = timed(|| {
            for _ in 0..CALLS / 2 {
                make_system_calls(2);
                fill_instruction_cache();
            }
        });
        time.0 as f64 / f64::from(CALLS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns times of which about half are close to the given ones, and the others much longer.
    fn times(plain: f64, executing: f64) -> LaunchTimes {
        let [plain, executing] = [plain, executing]
            .map(|time| (0..15).map(|round| time + f64::from(round % 5) + if round > 7 { 1e6 } else { 0.0 }).collect());
        LaunchTimes { plain, executing }
    }

    #[test]
    fn the_fastest_launches_are_compared_and_an_exec_counts_without_its_launch() {
        let found: Vec<_> = compare_launches(&times(30_000.0, 100_000.0), times(45_000.0, 135_000.0)).collect();
        for (what, ns) in [(Constant::RecordedLaunch, 15_000.0), (Constant::RecordedExec, 20_000.0)] {
            assert!(found.iter().any(|row| row.what == what && (row.ns - ns).abs() < 5.0), "{what:?}: {found:?}");
        }
        let faster = compare_launches(&times(30_000.0, 100_000.0), times(20_000.0, 90_000.0));
        assert_eq!(faster.count(), 0, "unknown, because recording cannot make a launch faster");
    }
}
