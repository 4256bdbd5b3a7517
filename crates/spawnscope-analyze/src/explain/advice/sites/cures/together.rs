//! One launch for several questions about the same input, such as three fields of a JSON file.

use super::super::grouping::rounds;
use super::{Cure, MANY, certain, finding};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::edit::Form;
use crate::explain::advice::edits::shell_edits;
use crate::explain::advice::programs::Together;
use crate::explain::advice::sites::Site;
use crate::predict::whatif::changes::Change;

/// Returns the cure of launches that several lines request in turn.
pub(super) fn cure(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    let command = context.launch(site.launches[0]).command.name;
    let way = Together::of(command)?;
    let questions = rounds(context, &site.launches)?;
    let finding = finding(context, site, MANY, &format!(", {questions} for each input"), site.launches.clone())
        .fix("ask for all of it in one launch:")
        .fix(format!("  {}", way.form()))
        .edits(shell_edits(context, command, &site.launches, &Form::Together))
        .limits("the answers must be texts of one line, numbers or null")
        .predicted_by(Change::Batch(questions), "");
    Some(certain(finding))
}
