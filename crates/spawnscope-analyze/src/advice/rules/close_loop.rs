//! Children that close descriptors one by one before their exec, often up to a limit of thousands or millions.

use crate::advice::context::{name, time};
use crate::advice::groups::Group;
use crate::advice::{Basis, Finding, RuleContext};
use crate::whatif::Fix;
use crate::whatif::changes::Change;
use spawnscope_data::units;

/// This many closes before an exec indicate a loop. Shells and libraries that set up redirections make about ten.
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
        title: format!("children of {parent} close descriptors one by one before the exec"),
        evidence: vec![format!(
            "{count} by {parent} with {} calls of close each before the exec, {} in all",
            units::count(closes.unwrap_or_default() as u64),
            time(group.at_stake),
        )],
        example: context.example(&group.launches),
        fix: [
            "replace the loop with one call (Linux 5.11; without the flag 5.9; or closefrom(3) of glibc 2.34):",
            "  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);",
            "with posix_spawn: posix_spawn_file_actions_addclosefrom_np(&actions, 3) (glibc 2.34)",
            "best: open everything with O_CLOEXEC (\"e\" in fopen, SOCK_CLOEXEC, pipe2), and close nothing",
            "Python: close_fds=True uses close_range since 3.10; before that, pass close_fds=False, since files that Python opens are \
             not inherited anyway; in a preexec_fn, use os.closerange(3, N) instead of a loop of os.close",
            "if the program cannot be changed, lower the limit: `ulimit -n 1024`, or `docker run --ulimit nofile=1024`",
        ]
        .map(str::to_owned)
        .to_vec(),
        limits: "descriptors that the child inherits must be excluded; a lower limit also applies to the launched programs"
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
