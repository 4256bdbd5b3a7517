//! One file per rule. Each rule finds launches that cost more than necessary, and proposes a fix. A rule decides by the recording; the
//! replay decides whether the fix saves enough.

mod bare_forks;
mod batch;
mod builtin;
#[cfg(fuzzing)]
pub(super) use builtin::fuzz as fuzz_builtin;
mod close_loop;
mod growing_parent;
mod interpreter_start;
mod large_parent;
mod late_reaping;
mod loader;
mod needless_shell;
pub(super) mod off_path;
mod path_search;
mod run_queue;
mod scanner;
mod shims;
mod slow_machine;
mod teardown;
mod version_manager;

use super::{Finding, RuleContext};

/// Returns the findings of one rule.
pub(super) type Rule = fn(&RuleContext<'_, '_>) -> Vec<Finding>;

/// All rules. They run in parallel. `run_queue` is first because it runs a replay and takes longest.
pub(super) const ALL: [Rule; 18] = [
    run_queue::find,
    bare_forks::find,
    batch::find,
    builtin::find,
    close_loop::find,
    growing_parent::find,
    interpreter_start::find,
    large_parent::find,
    late_reaping::find,
    loader::find,
    needless_shell::find,
    off_path::find,
    path_search::find,
    scanner::find,
    shims::find,
    slow_machine::find,
    teardown::find,
    version_manager::find,
];
