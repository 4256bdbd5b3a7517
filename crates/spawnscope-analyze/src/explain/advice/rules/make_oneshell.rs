//! Recipes of make with several lines, each of which needs a shell. With `.ONESHELL`, or with lines
//! joined by `&&`, make starts only one shell per target.

use std::collections::BTreeMap;

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, option, time, times};
use crate::explain::advice::thresholds::{MIN_REPETITIONS, longest_groups};
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::{command_of, needless_shell};
use crate::predict::whatif::changes::Change;

const MAX_FINDINGS: usize = 1;

/// The parent's program, the shell, and the number of lines of a recipe.
type RecipeGroup<'a> = (&'a [u8], &'a [u8], usize);

/// Lines belong to one recipe only if the most frequent one runs at most this many times as often
/// as the least frequent one.
const MAX_COUNT_RATIO: usize = 2;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let mut by_kind: BTreeMap<RecipeGroup<'_>, Vec<u32>> = BTreeMap::new();
    for parent in 0..context.forest().launches.len() {
        let mut lines: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
        for &index in context.forest().children(parent) {
            if let Some(line) = line_of(context, index as u32) {
                lines.entry(line).or_default().push(index as u32);
            }
        }
        lines.retain(|_, all| all.len() >= MIN_REPETITIONS);
        let (Some(min), Some(max)) = (lines.values().map(Vec::len).min(), lines.values().map(Vec::len).max()) else {
            continue;
        };
        if lines.len() < 2 || max > MAX_COUNT_RATIO * min {
            continue;
        }
        let all: Vec<u32> = lines.values().flatten().copied().collect();
        let launch = context.launch(all[0]);
        let kind = (launch.birth_command.name, launch.command.name, lines.len());
        by_kind.entry(kind).or_default().extend(all);
    }
    longest_groups(context, by_kind, MAX_FINDINGS)
        .into_iter()
        .map(|((parent, shell, lines), mut all)| {
            all.sort_unstable();
            finding(context, parent, shell, lines, all)
        })
        .collect()
}

/// Returns the line of a recipe without the words that differ between targets: file names and
/// numbers. `None` if the launch is not a shell of make, if its shell is unnecessary, or if make
/// reads its output, as for `$(shell ...)`.
fn line_of(context: &RuleContext<'_, '_>, index: u32) -> Option<Vec<u8>> {
    let launch = context.launch(index);
    let text = launch.execs.first().and_then(command_of)?;
    let is_recipe = Runtime::of_parent(context.forest(), index) == Runtime::Make
        && launch.execs.len() == 1
        && !context.is_captured(index)
        && needless_shell(context.forest(), index).is_none();
    let words = text.split(|byte| *byte == b' ').filter(|word| !is_file_or_number(word));
    is_recipe.then(|| words.collect::<Vec<_>>().join(&b' '))
}

fn is_file_or_number(word: &[u8]) -> bool {
    word.iter().any(|byte| b"./".contains(byte) || byte.is_ascii_digit())
}

fn finding(context: &RuleContext<'_, '_>, parent: &[u8], shell: &[u8], lines: usize, all: Vec<u32>) -> Finding {
    let title = format!("make starts {} {}, about {lines} times for each target", name(shell), times(all.len()));
    let evidence = format!("{} take {} in all", launches(all.len()), time(context.spent_on(&all)));
    Finding::modelled("make-oneshell", title, all)
        .evidence(evidence)
        .with_example(context)
        .fix("run all lines of a recipe in one shell:")
        .fix("  .ONESHELL:                       once in the makefile (GNU make), with .SHELLFLAGS = -ec")
        .fix("  or join the lines:  first && second")
        .limits("with .ONESHELL, `@` and `-` count only at the beginning of a recipe, and `cd` also affects the lines after it")
        .predicted_by(Change::Batch(lines as u32), format!("{}={lines}", option("--batch", shell, parent)))
}
