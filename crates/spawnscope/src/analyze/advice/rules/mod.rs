//! One rule a file: each finds launches that cost more than they need to, and proposes a fix. A rule decides by what was
//! recorded, and leaves it to the replay whether its fix is worth anything.

mod bare_forks;
mod batch;
mod builtin;
mod interpreter_start;
mod needless_shell;
pub(super) mod off_path;
mod path_search;
mod shims;

use super::{Finding, Ground};

/// Finds what there is to be found of one kind.
pub(super) type Rule = fn(&Ground<'_, '_>) -> Vec<Finding>;

/// All rules.
pub(super) const ALL: [Rule; 8] = [
    bare_forks::find,
    batch::find,
    builtin::find,
    interpreter_start::find,
    needless_shell::find,
    off_path::find,
    path_search::find,
    shims::find,
];
