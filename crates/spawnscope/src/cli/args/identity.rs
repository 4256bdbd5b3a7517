//! What can be typed about whom the command runs as: the same for `record` and `hold`.

use clap::{Args, ValueHint};

use crate::cli::identity::Choice;

/// Whom the command runs as.
#[derive(Debug, Default, Args)]
pub struct IdentityArguments {
    /// Run the command as the user NAME (needs root); by default it runs as whoever called sudo, or as you
    #[arg(long, value_name = "NAME", conflicts_with = "as_root", value_hint = ValueHint::Username)]
    pub user: Option<String>,
    /// Run the command as root, though spawnscope was started by sudo
    #[arg(long)]
    pub as_root: bool,
}

impl IdentityArguments {
    /// What was asked for.
    #[must_use]
    pub fn choice(&self) -> Choice<'_> {
        Choice {
            user: self.user.as_deref(),
            as_root: self.as_root,
        }
    }
}
