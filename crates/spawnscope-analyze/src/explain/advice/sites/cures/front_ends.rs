//! Front ends that prepare a program at each launch and then run it: they build it, resolve its
//! packages, or start a container. What they prepare can be kept.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::sites::Site;
use crate::explain::advice::tables::rows;
use crate::patterns::calls::Call;
use crate::patterns::subcommands::subcommand_of;

/// How to keep what a front end prepares.
#[derive(Clone, Copy)]
pub(in crate::explain::advice::sites) struct FrontEnd {
    program: &'static str,
    /// Empty if any arguments match.
    subcommand: &'static str,
    /// The program that launches it for each of its cases. If there is none, the last process that
    /// the front end launches is the program, whose work stays.
    parent: &'static str,
    /// What each launch repeats.
    pub(super) repeats: &'static str,
    pub(super) fix: &'static str,
}

impl FrontEnd {
    /// Whether it is about each program that its parent launches.
    pub(super) fn is_any_program(&self) -> bool {
        self.program.is_empty()
    }

    /// Whether the last process that it launches is the program, whose work stays.
    pub(super) fn keeps_last_child(&self) -> bool {
        self.parent.is_empty()
    }
}

/// Returns the front end that a site launches.
pub(in crate::explain::advice::sites) fn of(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<FrontEnd> {
    let exec = context.launch(site.launches[0]).execs.last()?;
    let call = Call::of(exec)?;
    let words = [call.arguments.first().copied(), subcommand_of(exec)];
    let all = rows(include_str!("../../front_ends.tsv")).map(|[program, subcommand, parent, repeats, fix]| FrontEnd {
        program,
        subcommand,
        parent,
        repeats,
        fix,
    });
    let mut of_site = all.filter(|front_end| {
        (front_end.is_any_program() || call.name == front_end.program.as_bytes())
            && (front_end.subcommand.is_empty() || words.contains(&Some(front_end.subcommand.as_bytes())))
            && (front_end.parent.is_empty() || site.parent == front_end.parent.as_bytes())
    });
    of_site.next()
}
