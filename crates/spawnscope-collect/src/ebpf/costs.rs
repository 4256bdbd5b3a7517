//! How much more the BPF programs cost in the command than in the recorder's measurement before it
//! (`costs.h`): their data are less often in the CPU caches, and the memory of interpreters is
//! read.

use std::cell::RefCell;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use zerocopy::FromBytes;

use super::failed;
use crate::CollectError;
use crate::wire::{COST_END, COST_ENTER, COST_EXEC, COST_EXIT, COST_FORK, COST_RETURN, WireCost};
use spawnscope_data::event::Constant;

/// The name of the map.
pub(super) const MAP: &str = "costs";
/// With fewer measured runs, a mean is a matter of chance.
const MIN_RUNS: u64 = 20;
/// The constants, and the events whose programs are part of each.
const PARTS: [(Constant, &[u32]); 3] = [
    (Constant::RecordedCall, &[COST_ENTER, COST_RETURN]),
    (Constant::RecordedLaunch, &[COST_FORK, COST_EXIT]),
    (Constant::RecordedExec, &[COST_EXEC]),
];

/// Measured runs, and their duration in nanoseconds, by event.
type Totals = [(u64, u64); COST_END as usize];

pub(super) struct Costs {
    map: MapHandle,
    calibrated: RefCell<Totals>,
}

impl Costs {
    pub(super) fn new(map: MapHandle) -> Costs {
        Costs { map, calibrated: RefCell::default() }
    }

    /// Runs `act`, in which the recorder measures calls or launches. The calls of launches do more
    /// than others, so they do not count.
    pub(super) fn calibrate<T>(&self, act: impl FnOnce() -> T) -> T {
        let before = self.totals();
        let result = act();
        if let (Ok(before), Ok(after)) = (before, self.totals()) {
            let done = difference(&after, &before);
            let launches = done[COST_FORK as usize].0 > 0;
            let counts = |event: usize| (event > COST_RETURN as usize) == launches;
            let mut calibrated = self.calibrated.borrow_mut();
            for (event, (runs, span)) in done.into_iter().enumerate().filter(|(event, _)| counts(*event)) {
                calibrated[event].0 += runs;
                calibrated[event].1 += span;
            }
        }
        result
    }

    /// Returns how much more than measured before each constant is in the command, in nanoseconds,
    /// as far as it is known.
    pub(super) fn surplus(&self) -> Vec<(Constant, f64)> {
        self.totals().map_or_else(|_| Vec::new(), |totals| surplus(&self.calibrated.borrow(), &totals))
    }

    fn totals(&self) -> Result<Totals, CollectError> {
        let mut totals = Totals::default();
        for (event, total) in (0u32..).zip(&mut totals) {
            let costs = self.map.lookup_percpu(&event.to_ne_bytes(), MapFlags::ANY);
            let costs = costs.map_err(|error| failed("read what the programs cost", &error))?;
            for cost in costs.iter().flatten().filter_map(|cost| WireCost::read_from_prefix(cost).ok()) {
                total.0 += cost.0.measured;
                total.1 += cost.0.span;
            }
        }
        Ok(totals)
    }
}

fn difference(later: &Totals, earlier: &Totals) -> Totals {
    std::array::from_fn(|event| {
        let (later, earlier) = (later[event], earlier[event]);
        (later.0.saturating_sub(earlier.0), later.1.saturating_sub(earlier.1))
    })
}

fn surplus(calibrated: &Totals, totals: &Totals) -> Vec<(Constant, f64)> {
    let recorded = difference(totals, calibrated);
    let mean = |(runs, span): (u64, u64)| (runs >= MIN_RUNS).then(|| span as f64 / runs as f64);
    let more = |event: &u32| Some(mean(recorded[*event as usize])? - mean(calibrated[*event as usize])?);
    PARTS.iter().filter_map(|(what, events)| Some((*what, events.iter().map(more).sum::<Option<f64>>()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rises_with_all_its_programs_if_enough_runs_are_known() {
        let calibrated = [(50, 5_000), (50, 10_000), (55, 110_000), (55, 110_000), (30, 60_000)];
        let totals = [(1_050, 205_000), (1_050, 260_000), (1_055, 9_110_000), (60, 999_999), (1_030, 1_060_000)];
        let expected = [(Constant::RecordedCall, 100.0 + 50.0), (Constant::RecordedLaunch, 7_000.0 - 1_000.0)];
        assert_eq!(surplus(&calibrated, &totals), expected);
    }
}
