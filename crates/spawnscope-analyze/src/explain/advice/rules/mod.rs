//! Rules, in one file for each kind. Each rule finds launches that cost more than necessary, and
//! proposes a fix. The replay decides later whether the fix saves enough.

mod builds;
pub(super) mod builtin;
mod forks;
mod run_queue;
mod scanner;
mod searches;
pub(super) mod shell;
pub(super) mod shims;
pub(super) mod sleeps;
pub(super) mod tool_calls;

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;

/// A function that returns the findings of one rule.
pub(super) type Rule = fn(&RuleContext<'_, '_>) -> Vec<Finding>;

/// All rules, each with the ids of its findings. The rules run in parallel. `run_queue` is first
/// because it runs a replay and takes longest.
pub(super) const ALL: &[(&[&str], Rule)] = &[
    (&["run-queue"], run_queue::find),
    (&["bare-forks"], shell::bare_forks),
    (&["builtin"], builtin::find),
    (&["close-loop"], forks::with_close_loops),
    (&["growing-parent"], forks::by_growing_parents),
    (&["large-parent", "large-parent-pages"], forks::by_large_parents),
    (&["late-reaping"], sleeps::before_reaping),
    (&["loader-search"], searches::for_libraries),
    (&["make-recursive"], builds::sub_makes),
    (&["needless-shell"], shell::needless),
    (&["package-script"], builds::package_scripts),
    (&["path-search"], searches::for_programs),
    (&["pipeline"], shell::pipelines),
    (&["scanner"], scanner::find),
    (&["shell-code", "version-manager"], shims::printed_code),
    (&["shell-line"], shell::whole_lines),
    (&["shims"], shims::find),
    (&[sleeps::SLEEP_LOOP], sleeps::in_loops),
    (&["tool-calls"], tool_calls::find),
];
