//! A child that closes descriptors one by one before its exec, often up to a limit of thousands or millions.

use super::super::context::{name, time};
use super::super::groups::Group;
use super::super::{Basis, Finding, RuleContext};
use crate::analyze::whatif::Fix;
use crate::analyze::whatif::changes::Change;
use crate::units;

/// So many closes before an exec are a loop. Shells and libraries that set up redirections make some ten.
const LOOP: u32 = 32;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let groups = context.groups(|_, launch| {
        launch.setup_closes.filter(|closes| *closes >= LOOP)?;
        Some((launch.birth_command.name, launch.setup_close_span.get()?))
    });
    groups.into_iter().map(|group| finding(context, group)).collect()
}

fn finding(context: &RuleContext<'_, '_>, group: Group<'_>) -> Finding {
    let parent = name(group.name);
    let closes = context.middle(&group.launches, |launch| launch.setup_closes.map(f64::from));
    let count = units::counted(group.launches.len() as u64, "launch", "launches");
    Finding {
        rule: "close-loop",
        title: format!("children of {parent} close descriptors one by one before they execute"),
        evidence: vec![format!(
            "{count} by {parent} with {} calls of close each before the exec, {} in all",
            units::count(closes.unwrap_or_default() as u64),
            time(group.at_stake),
        )],
        example: context.example(&group.launches),
        fix: [
            "one call in the place of the loop (Linux 5.11; without the flag 5.9; or closefrom(3) of glibc 2.34):",
            "  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);",
            "with posix_spawn: posix_spawn_file_actions_addclosefrom_np(&actions, 3) (glibc 2.34)",
            "best: open everything with O_CLOEXEC (\"e\" of fopen, SOCK_CLOEXEC, pipe2), and close nothing",
            "Python: from 3.10 on, close_fds=True uses close_range; before that close_fds=False, as files that Python opens are not \
             inherited anyway; in a preexec_fn, os.closerange(3, N) rather than a loop of os.close",
            "where the program cannot be changed, a lower limit: `ulimit -n 1024`, or `docker run --ulimit nofile=1024`",
        ]
        .map(str::to_owned)
        .to_vec(),
        limits: "descriptors that are to be inherited have to be left out; a lower limit also holds for the programs themselves"
            .to_owned(),
        whatif: format!("--close-range=parent={parent}"),
        tries: vec![Fix {
            change: Change::CloseRange,
            launches: group.launches.clone(),
        }],
        basis: Basis::Measured,
        launches: group.launches,
    }
}
