//! Programs that have almost nothing to do: their time is the baseline of a comparison, and a
//! finding if they hang.

use crate::programs::{RunError, RunTime};
use crate::{Finding, Findings};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// If a time limit is shorter than this, even a healthy program may not finish in time.
const MIN_TIME_LIMIT: Nanos = Nanos(250_000_000);

/// Returns the time of a program that has almost nothing to do, or reports why there is none.
pub(super) fn baseline(
    findings: &mut Findings,
    program: &str,
    command_line: &str,
    timed: Result<RunTime, RunError>,
) -> Option<Nanos> {
    timed.and_then(RunTime::complete).map_err(|why| report(findings, program, command_line, why)).ok()
}

/// Reports why `program` could not be timed; it was started by `command_line`. A program that did
/// not end is a problem if it had enough time.
pub(super) fn report(findings: &mut Findings, program: &str, command_line: &str, why: RunError) {
    match why {
        RunError::DidNotEnd(after) if after >= MIN_TIME_LIMIT => {
            findings.add(hanging_finding(program, command_line, after));
        }
        why => findings.add_not_examined(format!("`{command_line}` {why}")),
    }
}

fn hanging_finding(program: &str, command_line: &str, after: Nanos) -> Finding {
    let took = RunTime { time: after, is_lower_bound: true };
    let after = units::time(after);
    Finding::problem(format!("{program} does not finish within {after}"))
        .evidence(format!("`{command_line}` was killed after {after}, although it has almost nothing to do"))
        .effect(took.effect("each launch of it"))
        .fix(format!(
            "see what it launches and waits for: `spawnscope record -- {command_line}`, `strace -f {command_line}`"
        ))
        .fix_cost("nothing: both only observe; if the machine was busy, repeat the check when it is not")
}
