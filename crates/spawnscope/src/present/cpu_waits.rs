//! The sentence about waits for a CPU: how much of the wall time they are, those of running
//! programs and those of new processes, and who held the CPUs.

use super::units;
use crate::analyze::explain::report::{Report, Spent};
use crate::event::Nanos;

/// Waits for a CPU are reported if they are at least this share of the wall time.
const NOTABLE: f64 = 0.2;
/// Who held the CPUs is reported as one side only, if the other held them for less than this share
/// of the waits.
const NEARLY_NONE: f64 = 0.1;

/// Returns the sentence. `None` if little of the wall time was waiting for a CPU.
pub fn sentence(report: &Report) -> Option<String> {
    let running = report.where_the_wall_went.iter().find(|(what, _)| *what == Spent::RunQueue);
    let running = running.map_or(Nanos(0), |(_, time)| *time);
    let new = report.critical_queue.unwrap_or_default();
    let all = Nanos(running.0 + new.0);
    if report.wall.0 == 0 || (all.0 as f64) < NOTABLE * report.wall.0 as f64 {
        return None;
    }
    let holders = holders(report).map(|holders| format!(": {holders}")).unwrap_or_default();
    let share = |part| units::percent(part, report.wall);
    // Another sentence has the share of starting programs, which contains the waits of new
    // processes.
    let waited = "of the wall time was waiting for a CPU";
    Some(match (running, new) {
        (Nanos(0), _) | (_, Nanos(0)) => format!("{} {waited}{holders}.", share(all)),
        _ => {
            let [ran, started] = [running, new].map(share);
            format!("{ran} {waited} while programs ran, and {started} while they started (part of start-up){holders}.")
        }
    })
}

fn holders(report: &Report) -> Option<String> {
    let waits = report.cpu_waits.filter(|waits| waits.all.0 > 0)?;
    let others = waits.held_by_others.0 as f64 / waits.all.0 as f64;
    Some(if others < NEARLY_NONE {
        "the command's own processes held all CPUs".to_owned()
    } else if others > 1.0 - NEARLY_NONE {
        "unrecorded processes held the CPUs".to_owned()
    } else {
        let share = units::percent(waits.held_by_others, waits.all);
        format!("unrecorded processes held the CPUs for {share} of these waits, the command's own for the rest")
    })
}
