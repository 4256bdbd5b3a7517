//! Launches through `sh -c 'program arguments'`, although the command needs no shell, or needs it
//! only for features that the caller has too, such as redirections.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::functions::functions;
use crate::explain::advice::languages::language;
use crate::explain::advice::phrases::{WITHOUT_SHELL_LIMIT, launches, literal, name, quoted, time};
use crate::patterns::programs::has_property;
use crate::patterns::runtimes::Runtime;
use crate::patterns::shell_syntax::{Need, need_of};
use crate::patterns::shells::{command_of, needless_shell, wrapped_child};
use crate::predict::whatif::changes::Change;
use spawnscope_data::units;

/// GNU parallel, which always uses a shell for its jobs.
pub(in crate::explain::advice) const PARALLEL: &[u8] = b"parallel";

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let by_parent = context.grouped_by(|index, launch| {
        let parent = launch.birth_command.name;
        // Code that can do the work of the program needs neither that nor the shell.
        let has_function =
            || wrapped_child(context.forest(), index).is_some_and(|program| functions(context, program).is_some());
        (parent != PARALLEL && is_needless(context, index) && !has_function()).then_some(parent)
    });
    let groups = by_parent.into_iter();
    groups.map(|(parent, all)| finding(context, parent, all)).collect()
}

/// Whether a launch goes through a shell that its parent can leave out. `find`, `xargs` and make
/// need the shell for redirections, directories and variables: they have no options for these.
pub(in crate::explain::advice) fn is_needless(context: &RuleContext<'_, '_>, index: u32) -> bool {
    let has_no_options = has_property(context.launch(index).birth_command.name, "per-item")
        || Runtime::of_parent(context.forest(), index) == Runtime::Make;
    needless_shell(context.forest(), index).is_some() && !(has_no_options && count_with_syntax(context, &[index]) > 0)
}

/// Returns how many of the launches use shell syntax that the caller must replace.
fn count_with_syntax(context: &RuleContext<'_, '_>, all: &[u32]) -> usize {
    let with_syntax = all.iter().filter(|index| {
        let mut commands = context.launch(**index).execs.iter().filter_map(command_of);
        commands.any(|command| need_of(command) == Need::Caller)
    });
    with_syntax.count()
}

/// Returns what to do about launches through shells.
pub(in crate::explain::advice) fn finding(context: &RuleContext<'_, '_>, parent: &[u8], all: Vec<u32>) -> Finding {
    let runtime = Runtime::of_parent(context.forest(), all[0]);
    let with_syntax = count_with_syntax(context, &all);
    let evidence = format!(
        "{} by {} through `sh -c`, {} in all; none of the commands needs a shell",
        launches(all.len()),
        name(parent),
        time(context.spent_on(&all))
    );
    let syntax = (with_syntax > 0).then(|| {
        let some = units::counted(with_syntax as u64, "command has", "commands have");
        format!("{some} redirections, variables or a directory, which options of the call can replace")
    });
    let language = language(runtime);
    let is_per_file = has_property(parent, "per-item");
    let parent_name = name(parent);
    let cases = [
        if is_per_file { "files" } else { "" },
        if is_per_file { &parent_name } else { "" },
        // Go makes system calls without libc, so a preloaded library cannot intercept them.
        if with_syntax < all.len() && runtime != Runtime::Go && !is_per_file { "accel" } else { "" },
    ];
    let values = [
        ("without_shell", language.without_shell),
        ("syntax", if with_syntax > 0 { language.instead_of_syntax } else { "" }),
        ("limit", WITHOUT_SHELL_LIMIT),
    ];
    Finding::modelled("needless-shell", format!("{} starts programs through an unnecessary shell", name(parent)), all)
        .evidence(evidence)
        .evidence_lines(syntax)
        .with_example(context)
        .recipe("needless-shell", &cases, &values)
        .predicted_by(Change::NoShell, quoted(&format!("--no-shell=parent={}", literal(parent))))
}
