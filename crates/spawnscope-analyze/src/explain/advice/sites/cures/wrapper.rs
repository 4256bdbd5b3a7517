//! Wrappers (`sudo`, `env`, `chroot`, `ssh`) around each of many launches, although one could be
//! around the whole loop.

use super::{MANY, finding, shared_line};
use crate::explain::advice::context::{MIN_REPETITIONS, RuleContext};
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::name;
use crate::explain::advice::programs::items_form;
use crate::explain::advice::sites::Site;
use crate::model::launch::Exec;
use crate::patterns::programs::has_property;
use crate::predict::whatif::changes::Change;

/// Returns how many words of a wrapper's line come before the program that it runs. `None` if the
/// program was not recorded, as on another machine.
fn words_of_wrapper(context: &RuleContext<'_, '_>, index: u32) -> Option<usize> {
    let (first, replaced) = context.launch(index).execs.split_first()?;
    let child = context.forest().children(index as usize).first();
    let launched = child.map_or(&[][..], |child| &context.launch(*child as u32).execs);
    let line: Vec<_> = first.arguments().collect();
    replaced.iter().chain(launched).rev().find_map(|exec| {
        let words: Vec<_> = exec.arguments().collect();
        let common = line.iter().rev().zip(words.iter().rev()).take_while(|(one, other)| one == other).count();
        // The words of an interpreter are before those of its script.
        let is_given = common == words.len() || exec.interpreter().is_some();
        Some(line.len() - common).filter(|before| is_given && (1..line.len()).contains(before))
    })
}

/// Returns the cure of launches that each go through a wrapper.
pub(super) fn cure(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Finding> {
    let all = site.launches.clone();
    // What a wrapper with a connection runs is on another machine.
    let connection = |exec: &Exec<'_>| Some(items_form(exec.program_name(), exec, None)?.0);
    let wrapper = |index: &u32| {
        let launch = context.launch(*index);
        // The first line of a script may name env: `#!/usr/bin/env bash`.
        let first = launch.execs.first().filter(|exec| exec.interpreter().is_none())?;
        // `env` alone prints the environment.
        let runs_another = launch.execs.len() > 1 || !context.forest().children(*index as usize).is_empty();
        (has_property(first.program_name(), "wrapper") && (runs_another || connection(first).is_some()))
            .then_some(first.program_name())
    };
    let first = wrapper(&all[0])?;
    if all.len() < MIN_REPETITIONS || !all.iter().all(|index| wrapper(index) == Some(first)) {
        return None;
    }
    let shared = shared_line(context, &all).and_then(|line| match words_of_wrapper(context, all[0]) {
        Some(words) => line.text(0..words),
        None => line.before_inputs(),
    });
    let shared = shared.unwrap_or_else(|| name(first));
    let size = all.len() as u32;
    let connection = context.launch(all[0]).execs.first().and_then(connection);
    let wrapper = name(first);
    let values = [("wrapper", &wrapper[..]), ("shared", &shared), ("connection", connection.unwrap_or_default())];
    let finding = finding(context, site, MANY, &format!(", each through {}", name(first)), all)
        .recipe(context, "wrapper", &[], &values)
        .predicted_by(Change::Batch(size), "");
    Some(finding)
}
