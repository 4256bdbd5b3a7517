//! One file per rule. Each rule finds launches that cost more than necessary, and proposes a fix.
//! The replay decides later whether the fix saves enough.

mod bare_forks;
pub(super) mod builtin;
mod close_loop;
mod growing_parent;
mod large_parent;
mod late_reaping;
mod loader;
mod make_recursive;
pub(super) mod needless_shell;
mod package_scripts;
mod path_search;
mod pipelines;
mod run_queue;
mod scanner;
pub(super) mod shell_code;
mod shell_line;
mod shims;
pub(super) mod sleep_loop;

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::tool_calls;

/// A function that returns the findings of one rule.
pub(super) type Rule = fn(&RuleContext<'_, '_>) -> Vec<Finding>;

/// All rules, each with the ids of its findings. The rules run in parallel. `run_queue` is first
/// because it runs a replay and takes longest.
pub(super) const ALL: &[(&[&str], Rule)] = &[
    (&["run-queue"], run_queue::find),
    (&["bare-forks"], bare_forks::find),
    (&["builtin"], builtin::find),
    (&["close-loop"], close_loop::find),
    (&["growing-parent"], growing_parent::find),
    (&["large-parent", "large-parent-pages"], large_parent::find),
    (&["late-reaping"], late_reaping::find),
    (&["loader-search"], loader::find),
    (&["make-recursive"], make_recursive::find),
    (&["needless-shell"], needless_shell::find),
    (&["package-script"], package_scripts::find),
    (&["path-search"], path_search::find),
    (&["pipeline"], pipelines::find),
    (&["scanner"], scanner::find),
    (&["shell-code", "version-manager"], shell_code::find),
    (&["shell-line"], shell_line::find),
    (&["shims"], shims::find),
    (&[sleep_loop::RULE], sleep_loop::find),
    (&["tool-calls"], tool_calls::find),
];
