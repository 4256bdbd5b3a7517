//! What strace adds to the time of a thread. Two calls that follow each other have little between
//! them but the two stops of each, so short times between calls are the tracer's. A long one
//! contains work, and of it the typical cost of a call is.

use spawnscope_data::event::{Calibration, Constant, Nanos};

use super::effects::{is_creation, is_wait};
use super::line::What;

/// Times between calls are counted below this one, in microseconds. No tracer is slower, even if it
/// writes the stack of each call.
const MAX_US: usize = 4_096;
/// The longest time between calls that is no work, as a multiple of the lower quartile. Calls take
/// about twice as long where the kernel wakes the tracer on another CPU.
const MAX_OF_QUARTILE: usize = 4;
/// Number of calls from which their cost is known, and after which it is computed again.
const MIN_CALLS: u64 = 100;
/// The stops of a launch (at its creation, first run and end), and those of an exec, as multiples
/// of a call.
const CALLS_OF_LAUNCH: f64 = 4.0;
const CALLS_OF_EXEC: f64 = 2.0;
/// The share of short times between calls that is the tracer's. The rest is the calls.
const SHARE: f64 = 0.9;

/// What a thread is in after a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    /// Its program.
    Program,
    /// A call that waits for nothing. Only the tracer and the other threads delay its end.
    Call,
    /// A call that may wait.
    Wait,
}

/// The last line of a thread.
#[derive(Debug)]
pub struct LastLine {
    at: Nanos,
    /// The number of the line in the log.
    number: u64,
    within: Within,
}

/// How often each time between two calls of a thread occurred.
#[derive(Debug)]
pub struct Pace {
    counts: Vec<u64>,
    all: u64,
    lines: u64,
    /// The longest time between calls that is no work.
    max_ns: f64,
    /// The mean of those that are no longer.
    typical_ns: f64,
}

impl Default for Pace {
    /// Until the cost of calls is known, it is the usual one of strace.
    fn default() -> Pace {
        Pace { counts: vec![0; MAX_US], all: 0, lines: 0, max_ns: 150_000.0, typical_ns: 40_000.0 }
    }
}

impl Pace {
    /// Adds a line of a thread with this last one. Returns what the tracer has added to the time
    /// between them. `others`: the number of other threads.
    pub fn add_line(&mut self, last: &mut Option<LastLine>, at: Nanos, what: &What<'_>, others: u64) -> f64 {
        let within = match what {
            What::Unfinished { name, .. } if is_wait(name) || is_creation(name) => Within::Wait,
            What::Unfinished { .. } => Within::Call,
            _ => Within::Program,
        };
        self.lines += 1;
        let Some(last) = last.replace(LastLine { within, ..self.line(at) }) else { return 0.0 };
        self.cost_of(at.since(last.at), last.within, (self.lines - last.number - 1).min(others))
    }

    pub fn line(&self, at: Nanos) -> LastLine {
        LastLine { at, number: self.lines, within: Within::Program }
    }

    /// Returns what the tracer has added to a time between two lines of a thread. `others`: the
    /// threads whose lines are in between, which the tracer served first.
    fn cost_of(&mut self, between: Nanos, within: Within, others: u64) -> f64 {
        if within == Within::Program
            && others == 0
            && let Some(count) = self.counts.get_mut((between.0 / 1_000) as usize)
        {
            (*count, self.all) = (*count + 1, self.all + 1);
            if self.all.is_multiple_of(MIN_CALLS) && (self.all / MIN_CALLS).is_power_of_two() {
                self.compute();
            }
        }
        let (between, served) = (between.0 as f64, others as f64 + 1.0);
        match within {
            Within::Call => between,
            Within::Program if between <= served * self.max_ns => between,
            Within::Program | Within::Wait => between.min(served * self.typical_ns),
        }
    }

    fn compute(&mut self) {
        let below = |us: &usize| self.counts[..=*us].iter().sum::<u64>() >= self.all.div_ceil(4);
        let quartile = (0..MAX_US).find(below).unwrap_or_default();
        let max = (MAX_OF_QUARTILE * (quartile + 1)).min(MAX_US);
        let sum: f64 = (0..).zip(&self.counts[..max]).map(|(us, count)| f64::from(us) * *count as f64).sum();
        self.typical_ns = sum.max(1.0) * 1e3 / self.counts[..max].iter().sum::<u64>().max(1) as f64;
        self.max_ns = max as f64 * 1e3;
    }

    /// Returns a time that the tracer has added, as a number of calls.
    pub fn calls(&self, added_ns: f64) -> Option<u32> {
        (self.all >= MIN_CALLS).then_some((SHARE * added_ns / self.typical_ns).round() as u32)
    }

    pub fn constants(&self) -> Vec<Calibration> {
        let of_calls = [
            (Constant::RecordedCall, 1.0),
            (Constant::RecordedLaunch, CALLS_OF_LAUNCH),
            (Constant::RecordedExec, CALLS_OF_EXEC),
        ];
        let known = of_calls.into_iter().filter(|_| self.all >= MIN_CALLS);
        let costs = known.map(|(what, calls)| (what, calls * self.typical_ns));
        costs.map(|(what, ns)| Calibration { what, ns, low_ns: None, high_ns: None }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_times_between_calls_are_the_tracers_and_a_long_one_contains_work() {
        let (mut pace, us) = (Pace::default(), |us: u64| Nanos(us * 1_000));
        for _ in 0..300 {
            pace.cost_of(us(20), Within::Program, 0);
            pace.cost_of(us(40), Within::Program, 0);
            pace.cost_of(us(9_000), Within::Program, 0);
        }
        assert_eq!(pace.typical_ns, 30_000.0);
        let cost = |pace: &mut Pace, time, within, others| pace.cost_of(us(time), within, others) / 1e3;
        assert_eq!(cost(&mut pace, 50, Within::Program, 0), 50.0);
        assert_eq!(cost(&mut pace, 9_000, Within::Program, 0), 30.0);
        assert_eq!(cost(&mut pace, 200, Within::Program, 2), 200.0, "two other threads were served first");
        assert_eq!(cost(&mut pace, 9_000, Within::Call, 2), 9_000.0);
        assert_eq!(cost(&mut pace, 9_000, Within::Wait, 1), 60.0);
        assert_eq!(pace.calls(300_000.0), Some(9));
        assert_eq!(Pace::default().calls(300_000.0), None);
    }
}
