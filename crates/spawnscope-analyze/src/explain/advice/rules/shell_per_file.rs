//! `find -exec sh -c '...' {} \;` and `xargs -n1 sh -c` launch a shell per file, although one shell
//! could loop over many files.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, literal, name, quoted, time, times};
use crate::explain::advice::rules::needless_shell::is_needless;
use crate::explain::advice::thresholds::longest_frequent_groups;
use crate::patterns::shells::command_of;
use crate::predict::whatif::changes::Change;

const MAX_FINDINGS: usize = 2;
/// Programs that launch a command per file or per item of their input.
pub(super) const PER_FILE_LAUNCHERS: [&[u8]; 4] = [b"find", b"gfind", b"gxargs", b"xargs"];

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let by_parent = context.grouped_by(|index, launch| {
        let parent = launch.birth_command.name;
        let is_shell = launch.execs.first().and_then(command_of).is_some();
        let can_share = is_shell && PER_FILE_LAUNCHERS.contains(&parent) && takes_one_file(context, index);
        (can_share && !is_needless(context, index)).then_some(parent)
    });
    longest_frequent_groups(context, by_parent, MAX_FINDINGS)
        .into_iter()
        .map(|(parent, all)| finding(context, parent, all))
        .collect()
}

/// Whether `find` ends the command with `;`, or `xargs` passes one argument or line at a time.
fn takes_one_file(context: &RuleContext<'_, '_>, index: u32) -> bool {
    let Some(exec) = context.forest().launcher(index as usize) else {
        return false;
    };
    let mut arguments = exec.arguments();
    if exec.program_name().ends_with(b"find") {
        return arguments.any(|argument| argument == b";");
    }
    arguments.any(|argument| argument == b"-n1" || argument == b"-I{}" || argument == b"-L1")
        || exec.arguments().zip(exec.arguments().skip(1)).any(|pair| matches!(pair, (b"-n" | b"-L", b"1") | (b"-I", _)))
}

fn finding(context: &RuleContext<'_, '_>, parent: &[u8], all: Vec<u32>) -> Finding {
    let title = format!("{} launches a shell {}, once per file", name(parent), times(all.len()));
    let evidence = format!(
        "{} of a shell take {} in all, including everything that they launch",
        launches(all.len()),
        time(context.spent_on(&all))
    );
    let loop_command = match parent {
        b"find" | b"gfind" => "  find ... -exec sh -c 'for f; do ... \"$f\" ...; done' sh {} +",
        _ => "  xargs sh -c 'for f; do ... \"$f\" ...; done' sh",
    };
    let program = name(context.launch(all[0]).command.name);
    Finding::modelled("shell-per-file", title, all)
        .evidence(evidence)
        .with_example(context)
        .fix("loop over many files in one shell:")
        .fix(loop_command)
        .limits(
            "programs that the shell launches for each file are still launched; `xargs -P` then has fewer, larger jobs",
        )
        .predicted_by(Change::InProcess, quoted(&format!("--in-process={program},parent={}", literal(parent))))
}
