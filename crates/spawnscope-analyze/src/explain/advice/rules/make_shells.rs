//! `$(shell ...)` in a makefile, which make evaluates again at every use of a variable that was
//! defined with `=`.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::edit::{Edit, Rewrite};
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, time, times};
use crate::explain::advice::selection::options;
use crate::explain::advice::thresholds::longest_frequent_groups;
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::command_of;
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Language;

const MAX_FINDINGS: usize = 3;
/// Maximum number of characters of the command that are shown.
const MAX_CHARACTERS: usize = 40;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let by_text = context.grouped_by(|index, launch| {
        let text = launch.execs.first().and_then(command_of)?;
        let is_function = Runtime::of_parent(context.forest(), index) == Runtime::Make && context.is_captured(index);
        is_function.then_some((text, launch.execs.first()?.cwd()))
    });
    longest_frequent_groups(context, by_text, MAX_FINDINGS)
        .into_iter()
        .map(|((text, _), all)| finding(context, text, all))
        .collect()
}

fn finding(context: &RuleContext<'_, '_>, text: &[u8], all: Vec<u32>) -> Finding {
    let changes = vec![AppliedChange { change: Change::Remove, launches: all[1..].to_vec() }];
    let options = options(context, &changes);
    let edits: Vec<Edit> = edit(context, text, &all).into_iter().collect();
    let text: String = name(text).chars().take(MAX_CHARACTERS).collect();
    let title = format!("make evaluates `$(shell {text})` {}", times(all.len()));
    let evidence = format!("{} take {} in all", launches(all.len()), time(context.spent_on(&all)));
    Finding::modelled("make-shell", title, all)
        .evidence(evidence)
        .with_example(context)
        .fix("evaluate it once, where the variable is defined:")
        .fix("  NAME = $(shell ...)  ->  NAME := $(shell ...)")
        .fix("  or at the first use: NAME = $(eval NAME := $$(shell ...))$(NAME)")
        .edits(edits)
        .limits("the command then runs even if no target needs it, and does not see files that the build makes later")
        .predicted_by_all(changes, options)
}

/// Returns the edit of the makefile that requests most of the launches. `Edit::apply` finds the definition; the line of a use may be unknown.
fn edit(context: &RuleContext<'_, '_>, command: &[u8], all: &[u32]) -> Option<Edit> {
    let counts = context.callers.count(all);
    let (call_site, _) = counts.largest.iter().find(|(call_site, _)| call_site.language == Language::Make)?;
    let directory = context.forest().launcher(all[0] as usize).and_then(|make| make.cwd());
    Some(Edit {
        file: call_site.file.clone()?,
        directory: directory.map(<[u8]>::to_vec),
        line: call_site.line.unwrap_or(1),
        rewrite: Ok(Rewrite::MakeVariable(command.to_vec())),
    })
}
