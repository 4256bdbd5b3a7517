//! Measures launches per second in a steady state: each thread has all its children in flight before the clock starts.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self};
use std::time::{Duration, Instant};

use super::Mechanism;
use super::launcher::{Launcher, RunningChild};
use super::protocol::Program;
use crate::LabError;

/// A launching thread.
struct Lane<'p> {
    mechanism: Mechanism,
    launcher: Launcher<'p>,
    /// The children that have not been reaped, the oldest first.
    running: VecDeque<RunningChild>,
}

impl<'p> Lane<'p> {
    /// Starts `in_flight` children, and replaces each once, so that later launches find stacks to reuse and warm caches.
    fn fill(mechanism: Mechanism, program: &'p Program, in_flight: usize) -> Result<Lane<'p>, LabError> {
        let mut lane = Lane {
            mechanism,
            launcher: Launcher::new(mechanism, program)?,
            running: VecDeque::with_capacity(in_flight + 1),
        };
        (0..in_flight).try_for_each(|_| lane.start())?;
        lane.replace(in_flight)?;
        Ok(lane)
    }

    fn start(&mut self) -> Result<(), LabError> {
        self.running.push_back(self.launcher.start(self.mechanism)?);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), LabError> {
        let oldest = self.running.pop_front();
        oldest.map_or(Ok(()), |child| self.launcher.finish(self.mechanism, child))
    }

    /// Waits for the oldest child and starts another one; does so `count` times.
    fn replace(&mut self, count: usize) -> Result<(), LabError> {
        for _ in 0..count {
            self.finish()?;
            self.start()?;
        }
        Ok(())
    }

    /// Makes `count` replacements once all lanes are filled, and returns their start and end.
    fn time_replacements(mut self, count: usize, unfilled_lanes: &AtomicUsize) -> Result<Span, LabError> {
        while unfilled_lanes.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
        let began = Instant::now();
        self.replace(count)?;
        let ended = Instant::now();
        while !self.running.is_empty() {
            self.finish()?;
        }
        Ok(Span { began, ended })
    }
}

impl Drop for Lane<'_> {
    /// Reaps the children, even after a failure, because they may run on the stacks of this lane.
    fn drop(&mut self) {
        while !self.running.is_empty() {
            let _ = self.finish();
        }
    }
}

/// Returns the launches per second of `threads` threads, each of which replaces its children until it has launched its part of `count`. The
/// time is from the start of the first thread to the end of the last.
pub fn throughput(
    mechanism: Mechanism,
    program: &Program,
    threads: usize,
    in_flight: usize,
    count: u32,
) -> Result<Vec<f64>, LabError> {
    let launches_per_thread = (count as usize).div_ceil(threads).max(1);
    let unfilled_lanes = AtomicUsize::new(threads);
    let outcomes: Vec<Result<Span, LabError>> = thread::scope(|scope| {
        let run_lane = || {
            let filled = Lane::fill(mechanism, program, in_flight);
            // This also happens if the lane failed, so that the other threads do not wait for it.
            unfilled_lanes.fetch_sub(1, Ordering::Relaxed);
            filled?.time_replacements(launches_per_thread, &unfilled_lanes)
        };
        let mut started = Vec::new();
        for _ in 0..threads {
            let thread = thread::Builder::new().spawn_scoped(scope, run_lane);
            if thread.is_err() {
                unfilled_lanes.fetch_sub(1, Ordering::Relaxed);
            }
            started.push(thread);
        }
        started
            .into_iter()
            .map(|thread| {
                thread.map_err(LabError::doing("start a thread")).and_then(|thread| {
                    thread.join().unwrap_or_else(|_| Err(LabError::Invalid("a launching thread died".to_owned())))
                })
            })
            .collect()
    });
    let spans = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(vec![(launches_per_thread * threads) as f64 / first_start_to_last_end(&spans).as_secs_f64()])
}

/// The start and the end of a thread's launches.
struct Span {
    began: Instant,
    ended: Instant,
}

/// Returns the time from the first start to the last end. If threads wait for a CPU, that is longer than the time of any single thread.
fn first_start_to_last_end(spans: &[Span]) -> Duration {
    let began = spans.iter().map(|span| span.began).min();
    let ended = spans.iter().map(|span| span.ended).max();
    let span = began.zip(ended);
    span.map_or(Duration::ZERO, |(began, ended)| ended - began)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_time_includes_all_threads_even_if_they_do_not_overlap() {
        let now = Instant::now();
        let in_turn = [span(now, 0, 10), span(now, 10, 20)];
        assert_eq!(first_start_to_last_end(&in_turn), Duration::from_millis(20));
        let overlapping = [span(now, 3, 10), span(now, 1, 12), span(now, 2, 9)];
        assert_eq!(first_start_to_last_end(&overlapping), Duration::from_millis(11));
        assert_eq!(first_start_to_last_end(&[]), Duration::ZERO);
    }

    fn span(start: Instant, began: u64, ended: u64) -> Span {
        Span { began: start + Duration::from_millis(began), ended: start + Duration::from_millis(ended) }
    }
}
