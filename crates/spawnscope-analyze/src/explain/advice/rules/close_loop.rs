//! Children that close descriptors one by one before their exec, often up to a limit of thousands
//! or millions.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, time};
use crate::explain::advice::thresholds::Candidate;
use crate::predict::whatif::changes::Change;
use spawnscope_data::units;

/// Minimum number of `close` calls before an exec that count as a loop. Shells and libraries that
/// set up redirections make about ten.
const MIN_CLOSES: u32 = 32;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let candidates = context.candidates(|_, launch| {
        launch.counts.setup_closes.filter(|closes| *closes >= MIN_CLOSES)?;
        Some((launch.birth_command.name, launch.counts.setup_close_span.get()?))
    });
    candidates.into_iter().map(|candidate| finding(context, candidate)).collect()
}

fn finding(context: &RuleContext<'_, '_>, candidate: Candidate<'_>) -> Finding {
    let parent = name(candidate.name);
    let closes = context.median_of(&candidate.launches, |launch| launch.counts.setup_closes.map(f64::from));
    let title = format!("children of {parent} close descriptors one by one before the exec");
    let count = launches(candidate.launches.len());
    Finding::measured("close-loop", title, candidate.launches)
        .evidence(format!(
            "{count} by {parent} made a median of {} `close` calls before the exec; the calls took {} in all",
            units::count(closes.unwrap_or_default() as u64),
            time(candidate.max_saving),
        ))
        .with_example(context)
        .fix("replace the loop with one call (needs Linux 5.11, or 5.9 without the flag; alternatively closefrom(3), glibc 2.34):")
        .fix("  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);")
        .fix("with posix_spawn: `posix_spawn_file_actions_addclosefrom_np(&actions, 3)` (glibc 2.34)")
        .fix("best: open everything with O_CLOEXEC (\"e\" in fopen, SOCK_CLOEXEC, pipe2), and close nothing")
        .fix(
            "Python: `close_fds=True` uses close_range since 3.10; before that, pass `close_fds=False`, since files that Python opens \
             are not inherited anyway; in a preexec_fn, use `os.closerange(3, N)` instead of a loop of os.close",
        )
        .fix("if the program cannot be changed, lower the limit: `ulimit -n 1024`, `spawnscope accel --open-files 1024 -- CMD`, or \
             `docker run --ulimit nofile=1024`")
        .limits("descriptors that the child needs must be excluded; a lower limit also applies to the launched programs")
        .predicted_by(Change::CloseRange, format!("--close-range=parent={parent}"))
}
