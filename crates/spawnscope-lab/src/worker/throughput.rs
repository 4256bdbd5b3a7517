//! Launches per second in a steady state: each thread has its children in flight before the clock starts.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use super::Mechanism;
use super::launcher::{Launcher, Running};
use super::protocol::Program;
use crate::LabError;

/// A launching thread, with its unreaped children, the oldest first.
struct Lane<'p> {
    mechanism: Mechanism,
    launcher: Launcher<'p>,
    running: VecDeque<Running>,
}

impl<'p> Lane<'p> {
    /// Fills the lane twice: the second time, the stacks and caches of the first are reused.
    fn filled(mechanism: Mechanism, program: &'p Program, in_flight: usize) -> Result<Lane<'p>, LabError> {
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

    /// Waits for the oldest child and starts another, `count` times.
    fn replace(&mut self, count: usize) -> Result<(), LabError> {
        for _ in 0..count {
            self.finish()?;
            self.start()?;
        }
        Ok(())
    }

    /// The time span of `count` replacements, starting after all lanes are filled.
    fn timed(mut self, count: usize, unready: &AtomicUsize) -> Result<Span, LabError> {
        while unready.load(Ordering::Relaxed) > 0 {
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
    /// Reaps the children, even after a failure, because they may run on stacks of the lane.
    fn drop(&mut self) {
        while !self.running.is_empty() {
            let _ = self.finish();
        }
    }
}

/// Each thread replaces its children until it has launched its part of `count`. The measured time is from the start of the first thread to
/// the end of the last.
pub fn throughput(
    mechanism: Mechanism,
    program: &Program,
    threads: usize,
    in_flight: usize,
    count: u32,
) -> Result<Vec<f64>, LabError> {
    let of_each = (count as usize).div_ceil(threads).max(1);
    let unready = AtomicUsize::new(threads);
    let outcomes: Vec<Result<Span, LabError>> = thread::scope(|scope| {
        let keep = || {
            let filled = Lane::filled(mechanism, program, in_flight);
            // A failed thread must not keep the others waiting.
            unready.fetch_sub(1, Ordering::Relaxed);
            filled?.timed(of_each, &unready)
        };
        let start = |_| {
            let started = thread::Builder::new().spawn_scoped(scope, keep);
            started.inspect_err(|_| {
                unready.fetch_sub(1, Ordering::Relaxed);
            })
        };
        let started: Vec<_> = (0..threads).map(start).collect();
        let dead = |_| Err(LabError::Invalid("a launching thread died".to_owned()));
        let joined = |thread: ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(dead);
        started
            .into_iter()
            .map(|thread| thread.map_err(LabError::doing("start a thread")).and_then(joined))
            .collect()
    });
    let spans = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(vec![
        (of_each * threads) as f64 / first_start_to_last_end(&spans).as_secs_f64(),
    ])
}

/// When a thread started and ended its launches.
struct Span {
    began: Instant,
    ended: Instant,
}

/// The time from the first start to the last end. If threads wait for a CPU, no single thread runs that long.
fn first_start_to_last_end(spans: &[Span]) -> Duration {
    let began = spans.iter().map(|span| span.began).min();
    let ended = spans.iter().map(|span| span.ended).max();
    let both = began.zip(ended);
    both.map_or(Duration::ZERO, |(began, ended)| ended - began)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_span_of_threads_that_launch_one_after_the_other_includes_all_of_them() {
        let now = Instant::now();
        let span = |from: u64, to: u64| Span {
            began: now + Duration::from_millis(from),
            ended: now + Duration::from_millis(to),
        };
        assert_eq!(
            first_start_to_last_end(&[span(0, 10), span(10, 20)]),
            Duration::from_millis(20)
        );
        assert_eq!(
            first_start_to_last_end(&[span(3, 10), span(1, 12), span(2, 9)]),
            Duration::from_millis(11)
        );
        assert_eq!(first_start_to_last_end(&[]), Duration::ZERO);
    }
}
