//! One rule a file: each finds launches that cost more than they need to, and proposes a fix. A rule decides by what was
//! recorded, and leaves it to the replay whether its fix is worth anything.

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

/// Finds what there is to be found of one kind.
pub(super) type Rule = fn(&RuleContext<'_, '_>) -> Vec<Finding>;

/// All rules. The one that plays a replay comes first, since it takes longest, and they run beside each other.
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
