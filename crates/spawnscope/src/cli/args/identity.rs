//! The options of `record`, `top` and `hold` that choose the user of the command.

use clap::{Args, ValueHint};

use crate::cli::identity::Choice;

/// The user that the command runs as.
#[derive(Clone, Debug, Default, Args)]
pub struct IdentityArguments {
    /// Run the command as the user NAME (needs root) [default: the user who called sudo, or you]
    #[arg(long, value_name = "NAME", conflicts_with = "as_root", value_hint = ValueHint::Username)]
    pub user: Option<String>,
    /// Run the command as root even if sudo started spawnscope
    #[arg(long)]
    pub as_root: bool,
}

impl IdentityArguments {
    /// Returns the choice that these options express.
    #[must_use]
    pub fn choice(&self) -> Choice<'_> {
        Choice { user: self.user.as_deref(), as_root: self.as_root }
    }
}
