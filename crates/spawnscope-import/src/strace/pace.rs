//! What strace adds to the time of a thread. Two calls that follow each other have little between
//! them but the stops of each, so the shorter ones of recent times between calls are the tracer's.
//! The rest of a longer one is work.

use spawnscope_data::event::{Calibration, Constant, Nanos};

use super::effects::{is_creation, is_wait};
use super::line::What;
use crate::text::find;

/// Number of recent times between calls that the cost of a stop is taken from. It changes at once,
/// by a factor of three, when the kernel moves the tracer to another CPU.
const RECENT: usize = 12;
/// Which of them, sorted, is the least, the likely and the greatest cost. Walls without the likely
/// one were 0.5 to 1.7 times those of eBPF in 28 programs, in the median 1.1.
const RANKS: [usize; 3] = [1, 10, 11];
/// Number of calls from which their cost is known.
const MIN_CALLS: u64 = 100;
/// The time that slices count as one call, in nanoseconds. The cost of calls changes within a log.
const UNIT: f64 = 10_000.0;
/// The stops of a launch, at its creation and end, as multiples of a call.
const CALLS_OF_LAUNCH: f64 = 2.0;

/// The last line of a thread.
#[derive(Debug)]
pub struct LastLine {
    at: Nanos,
    /// The number of stops in the log up to this line.
    stops: u64,
    then: Then,
}

/// What the time until the next line of a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// A call, and what its program does afterwards.
    Program,
    /// The same, if the call does not wait.
    Wait,
    /// A wait, or a phase whose cost is known for each launch.
    Apart,
}

#[derive(Debug, Default)]
pub struct Pace {
    stops: u64,
    /// The last times between calls, in nanoseconds for each stop, without and with lines of other
    /// threads in between.
    recent: [[u64; RECENT]; 2],
    /// The stops of threads between their calls, and what they cost at least, likely and at most.
    served: u64,
    added: [u64; 3],
}

impl Pace {
    /// Adds a line of a thread with this last one. Returns what the tracer has added to the time
    /// between them. `others`: the number of other threads.
    pub fn add_line(&mut self, last: &mut Option<LastLine>, at: Nanos, what: &What<'_>, others: u64) -> u64 {
        let (own, then) = match what {
            What::Call { name, .. } if name.starts_with(b"exit") => (1, Then::Apart),
            What::Call { name, .. } => (2, if is_wait(name) || is_creation(name) { Then::Wait } else { Then::Program }),
            What::Unfinished { name, text } if is_wait(name) || name.starts_with(b"exit") || is_vfork(name, text) => {
                (1, Then::Apart)
            }
            What::Unfinished { name, .. } if is_creation(name) => (1, Then::Wait),
            _ => (1, Then::Program),
        };
        self.stops += own;
        let Some(last) = last.replace(LastLine { at, stops: self.stops, then }) else { return 0 };
        // Each other thread delays this one at most by its next call.
        let of_others = (self.stops - last.stops - own).min(2 * others);
        let between = at.since(last.at).0;
        if last.then == Then::Apart { 0 } else { self.cost_of(between, own + of_others, of_others > 0, last.then) }
    }

    pub fn line(&self, at: Nanos) -> LastLine {
        LastLine { at, stops: self.stops, then: Then::Program }
    }

    /// Returns what this many stops have added to a time between two lines of a thread.
    fn cost_of(&mut self, between: u64, stops: u64, is_shared: bool, then: Then) -> u64 {
        let recent = &mut self.recent[usize::from(is_shared)];
        let mut sorted = *recent;
        sorted.sort_unstable();
        let costs = RANKS.map(|rank| between.min(stops * sorted[rank]));
        if then == Then::Program {
            recent.rotate_left(1);
            recent[RECENT - 1] = between / stops;
        }
        self.served += stops;
        self.added.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
        costs[1]
    }

    /// Returns a time that the tracer has added, as a number of calls.
    pub fn calls(&self, added_ns: u64) -> Option<u32> {
        (self.served >= 2 * MIN_CALLS).then_some((added_ns as f64 / UNIT).round() as u32)
    }

    pub fn constants(&self) -> Vec<Calibration> {
        if self.calls(0).is_none() {
            return Vec::new();
        }
        let [least, likely, greatest] = self.added.map(|added| added.max(1) as f64);
        let launch = CALLS_OF_LAUNCH * 2.0 * likely / self.served as f64;
        let costs = [(Constant::RecordedCall, UNIT), (Constant::RecordedLaunch, launch)];
        let ends = |ns| [least, greatest].map(|end| Some(ns * end / likely));
        let row = |(what, ns)| Calibration { what, ns, low_ns: ends(ns)[0], high_ns: ends(ns)[1] };
        costs.map(row).into()
    }
}

/// Whether a process waits in a call until its child has executed a program.
fn is_vfork(name: &[u8], text: &[u8]) -> bool {
    name == b"vfork" || is_creation(name) && find(text, b"CLONE_VFORK").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_ones_of_recent_times_between_calls_are_the_tracers() {
        let mut pace = Pace::default();
        let mut add = |us: u64, others: u64| pace.cost_of(us * 1_000, 2 + others, others > 0, Then::Program) / 1_000;
        for us in [20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31] {
            add(us, 0);
        }
        assert_eq!(add(9_000, 0), 30, "the rest is work");
        assert_eq!(add(21, 0), 21);
        assert_eq!(add(60, 2), 0, "what it costs while other threads are served is not known yet");
        for _ in 0..12 {
            add(80, 0);
        }
        assert_eq!(add(90, 0), 80, "the tracer moved to another CPU");
        assert_eq!(pace.calls(30_000), None);
        (0..100).for_each(|_| assert_eq!(pace.cost_of(80_000, 2, false, Then::Wait), 80_000));
        assert_eq!(pace.calls(30_000), Some(3));
        let [low, ns, high] =
            pace.constants().first().map(|row| [row.low_ns.unwrap(), row.ns, row.high_ns.unwrap()]).unwrap();
        assert!(low < ns && ns == UNIT && high >= ns, "{low} {ns} {high}");
    }
}
