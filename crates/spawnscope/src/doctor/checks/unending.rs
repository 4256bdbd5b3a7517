//! Programs that do not come to their end, though they were asked for nothing.

use crate::doctor::programs::{Took, Unknown};
use crate::doctor::{Finding, Findings};
use crate::event::Nanos;
use crate::units;

/// In less, a program may not end that is sound.
const LEAST: Nanos = Nanos(250_000_000);

/// Tells of a program, which was started by that line, why its time is not known: one that did not end is a problem, where it had time
/// enough.
pub(super) fn tell(findings: &mut Findings, program: &str, line: &str, why: Unknown) {
    match why {
        Unknown::DidNotEnd(after) if after >= LEAST => findings.add(problem(program, line, after)),
        why => findings.unseen(format!("`{line}` {why}")),
    }
}

fn problem(program: &str, line: &str, after: Nanos) -> Finding {
    let took = Took {
        time: after,
        is_cut: true,
    };
    let after = units::time(after);
    Finding::problem(format!("{program} does not end within {after}"))
        .evidence(format!(
            "`{line}` was ended after {after}; it asks for nothing that takes long"
        ))
        .effect(took.effect("each launch of it"))
        .fix(format!(
            "see what it launches and waits for: `spawnscope record -- {line}`, `strace -f {line}`"
        ))
        .fix_cost("nothing: both only look; where the machine was busy, ask again when it is not")
}
