//! Launches that achieve nothing: the program does not exist.

use super::{Cure, NOT_AT_ALL, finding, removing};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::sites::Site;
use crate::model::launch::NOT_FOUND;

/// Returns the cure of launches that all failed because the program does not exist.
pub(super) fn cure(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    site.launches.iter().all(|index| context.launch(*index).outcome == NOT_FOUND).then_some(())?;
    let which = if site.program.is_empty() { "" } else { ", which does not exist" };
    let finding = finding(context, site, NOT_AT_ALL, which, site.launches.clone())
        .evidence("each ended with status 127, which shells use for programs that they do not find")
        .fix("remove the launch, install the program, or look for it once: `command -v PROGRAM` in a shell, and keep the answer")
        .limits("an installed program takes its own time");
    Some(removing(context, finding, site.launches.clone()))
}
