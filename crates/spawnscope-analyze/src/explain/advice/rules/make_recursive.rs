//! Recursive make: a make for each directory, started by the recipe of another make. Each of them
//! reads its makefiles and checks its files, even if there is nothing to do. They run one after the
//! other unless the directories are targets of their own.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, option, time, times};
use crate::explain::advice::thresholds::longest_frequent_groups;
use crate::patterns::recursive_make::{Generator, is_sub_make};
use crate::predict::whatif::changes::Change;
use spawnscope_data::units;

const MAX_FINDINGS: usize = 2;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let forest = context.forest();
    // A make whose output is read, as for `$(shell make ...)`, is a query, not a part of the build.
    let by_kind = context.grouped_by(|index, launch| {
        let is_part = is_sub_make(forest, index as usize) && !context.is_captured(index);
        is_part.then_some((launch.birth_command.name, launch.command.name))
    });
    longest_frequent_groups(context, by_kind, MAX_FINDINGS)
        .into_iter()
        .map(|(kind, all)| finding(context, kind, all))
        .collect()
}

fn finding(context: &RuleContext<'_, '_>, (parent, program): (&[u8], &[u8]), all: Vec<u32>) -> Finding {
    let forest = context.forest();
    let idle = all.iter().filter(|index| forest.children(**index as usize).is_empty());
    let idle: Vec<u32> = idle.copied().collect();
    let title =
        format!("{} starts {} {}, each time for a part of the build", name(parent), name(program), times(all.len()));
    let spent = format!("{} take {} in all", launches(all.len()), time(context.spent_on(&all)));
    let idle_evidence = (!idle.is_empty()).then(|| {
        format!(
            "{} {}",
            units::counted(
                idle.len() as u64,
                "of them launches nothing, and takes",
                "of them launch nothing, and take"
            ),
            time(context.spent_on(&idle))
        )
    });
    let generator = all.iter().find_map(|index| Generator::of(forest, *index as usize));
    let generator = generator.map_or("own".to_owned(), |generator| format!("{generator:?}"));
    Finding::modelled("make-recursive", title, all)
        .evidence(spent)
        .evidence_lines(idle_evidence)
        .with_example(context)
        .recipe("make-recursive", &[&generator, if idle.is_empty() { "" } else { "idle" }], &[])
        .predicted_by(Change::InProcess, option("--in-process", program, parent))
}
