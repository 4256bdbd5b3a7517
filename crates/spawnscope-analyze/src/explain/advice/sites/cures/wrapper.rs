//! A wrapper (`sudo`, `env`, `chroot`, `ssh`) around each of many launches, although one could be around the whole loop.

use super::{Cure, MANY, finding, open, shared_line};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::phrases::name;
use crate::explain::advice::programs::is_wrapper;
use crate::explain::advice::sites::Site;
use crate::explain::advice::thresholds::MIN_REPETITIONS;
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;

/// Returns the cure of launches that each begin with a wrapper.
pub(super) fn cure(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    let all = site.launches.clone();
    let wrapper = |index: &u32| {
        let launch = context.launch(*index);
        // The first line of a script may name env: `#!/usr/bin/env bash`.
        let first = launch.execs.first().filter(|exec| exec.interpreter().is_none())?;
        // `env` alone prints the environment.
        let runs_another = launch.execs.len() > 1 || !context.forest().children(*index as usize).is_empty();
        (is_wrapper(first.program_name()) && runs_another).then_some(first.program_name())
    };
    let first = wrapper(&all[0])?;
    if all.len() < MIN_REPETITIONS || !all.iter().all(|index| wrapper(index) == Some(first)) {
        return None;
    }
    let shared = shared_line(context, &all).and_then(|line| line.before_inputs()).unwrap_or_else(|| name(first));
    let shared = shared.strip_suffix(" sh -c").or(shared.strip_suffix(" bash -c")).unwrap_or(&shared).to_owned();
    let changes = vec![AppliedChange { change: Change::Batch(all.len() as u32), launches: all.clone() }];
    let finding = finding(context, site, MANY, &format!(", each through {}", name(first)), all)
        .fix(format!("run {} once, around the whole loop or script:", name(first)))
        .fix(format!("  {shared} sh -c 'for ...; do ...; done'   or {shared} ./SCRIPT"))
        .limits("everything in the loop then runs in that environment and with those rights")
        .predicted_by_all(changes, "");
    Some(open(finding))
}
