//! Recursive make: a make for each directory, started by the recipe of another make. Each of them
//! reads its makefiles and checks its files, even if there is nothing to do. They run one after the
//! other unless the directories are targets of their own.

use std::collections::BTreeMap;

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
    let mut by_kind: BTreeMap<(&[u8], &[u8]), Vec<u32>> = BTreeMap::new();
    for (index, launch) in context.launched() {
        // A make whose output is read, as for `$(shell make ...)`, is a query, not a part of the
        // build.
        if is_sub_make(forest, index as usize) && !context.is_captured(index) {
            let kind = (launch.birth_command.name, launch.command.name);
            by_kind.entry(kind).or_default().push(index);
        }
    }
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
    Finding::modelled("make-recursive", title, all)
        .evidence(spent)
        .evidence_lines(idle_evidence)
        .with_example(context)
        .fix_lines(fix(generator, !idle.is_empty()))
        .limits(limits(generator))
        .predicted_by(Change::InProcess, option("--in-process", program, parent))
}

fn fix(generator: Option<Generator>, has_idle: bool) -> Vec<&'static str> {
    match generator {
        Some(Generator::CMake) => {
            vec!["generate for ninja, which builds all targets in one process:", "  cmake -G Ninja"]
        }
        Some(Generator::Automake) => vec![
            "describe all directories in one Makefile.am, without SUBDIRS:",
            "  AUTOMAKE_OPTIONS = subdir-objects",
            "  include dir/local.mk             # in it, write %D% for its directory",
        ],
        None => {
            let mut fix = vec![
                "build all directories with one make, whose makefile includes theirs:",
                "  include a/module.mk b/module.mk      # with names relative to the top directory, such as a/x.o",
            ];
            if has_idle {
                fix.extend([
                    "or skip directories that are up to date, by prerequisites instead of .PHONY:",
                    "  a/lib.a: $(wildcard a/*.[ch]) ; +$(MAKE) -C a",
                ]);
            }
            fix.extend([
                "or at least let `make -j` run them side by side, with a target for each instead of a loop in a recipe:",
                "  $(DIRS): ; +$(MAKE) -C $@            # `$(MAKE)` and `+` pass -j on",
            ]);
            fix
        }
    }
}

fn limits(generator: Option<Generator>) -> &'static str {
    match generator {
        Some(Generator::CMake) => "scripts that call make must call ninja, or `cmake --build`",
        Some(Generator::Automake) => {
            "running make in a single directory no longer works; names of variables must differ between directories"
        }
        None => {
            "names of targets and variables must then differ between directories; the prediction removes the launches of \
             these makes, but not their work"
        }
    }
}
