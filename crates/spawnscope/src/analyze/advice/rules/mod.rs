//! One rule a file: each finds launches that cost more than they need to, and proposes a fix. A rule decides by what was
//! recorded, and leaves it to the replay whether its fix is worth anything.

mod needless_shell;

use super::{Finding, Ground};

/// Finds what there is to be found of one kind.
pub(super) type Rule = fn(&Ground<'_, '_>) -> Vec<Finding>;

/// All rules.
pub(super) const ALL: [Rule; 1] = [needless_shell::find];
