//! `sh -c 'program arguments'`: launches through a shell of a command that needs no shell.

use crate::advice::context::RuleContext;
use crate::advice::finding::Finding;
use crate::advice::phrases::{launches, name, time};
use crate::patterns::shells::needless_shell;
use crate::whatif::changes::Change;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let by_parent = context.grouped_by(|index, launch| {
        needless_shell(context.forest(), index)?;
        Some(launch.birth_command.name)
    });
    let groups = by_parent.into_iter();
    groups
        .map(|(parent, all)| finding(context, &name(parent), all))
        .collect()
}

fn finding(context: &RuleContext<'_, '_>, parent: &str, all: Vec<u32>) -> Finding {
    let evidence = format!(
        "{} by {parent} through `sh -c`, {} in all; none of the commands needs a shell",
        launches(all.len()),
        time(context.spent_on(&all))
    );
    Finding::modelled(
        "needless-shell",
        format!("{parent} starts programs through an unnecessary shell"),
        all,
    )
    .evidence(evidence)
    .with_example(context)
    .fix("start the program directly, with its arguments as a list:")
    .fix("  Python: subprocess.run([\"prog\", \"arg\"]) without shell=True")
    .fix("  C: posix_spawnp() instead of system() or popen()")
    .fix("  Perl, Ruby: system(\"prog\", \"arg\")")
    .fix("  Node: execFile()")
    .fix("  make: a recipe line without quotes, redirections and ; needs no shell")
    .limits("commands with pipes, redirections, wildcards or several steps still need a shell")
    .predicted_by(Change::NoShell, format!("--no-shell=parent={parent}"))
}
